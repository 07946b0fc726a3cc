"""An amount that is reported again and again: rounded by a threshold of one's own, and always answered alike.

A device picks once and for all a threshold a among 0, …, s − 1, and rounds its amount of each day down or up to a
multiple of the step s: up where what exceeds the multiple below is more than a. For each multiple it flips the coin of
the one-bit mean once, keeps the answer, and gives it whenever its amount rounds to that multiple. Each day alone, bits
have the very law of the one-bit mean. While the rounded amount stays, all days together lose what one day does.

When it moves, the answer may move, and that it moved is seen: two histories of which one moves and the other does not
may be told apart for certain. If each day's answer is turned around with probability γ (`flip_probability`), they never
are, but each day that differs adds to the loss. `history_ratio` is the exact answer for any two histories.
Source: [DKY17].
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.local.coins import WordSource, device_words, flipped, picked
from dualmandate.mechanism.local.one_bit_mean import OneBitSurvey
from dualmandate.population.arrays import Booleans, Integers

MOST_DAYS = 12


@dataclass(frozen=True)
class Devices:
    """What some people's devices keep: their thresholds, and one answer for each multiple of the step."""

    thresholds: Integers  # shape (people,)
    answers: Booleans  # shape (people, multiples)


@dataclass(frozen=True)
class MemoizedMean:
    """A sum of amounts, day after day, from one bit a person and day.

    `step` divides the largest amount; the coarser it is, the more changes of an amount are never seen, at no cost in
    the accuracy of a day. `flip_probability` γ below ½ turns answers around afresh each day; 0 for never.
    """

    survey: OneBitSurvey
    step: int
    flip_probability: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.step < 1 or self.survey.largest % self.step:
            raise InvalidMechanism(
                f"rounding to multiples of {self.step} of amounts up to {self.survey.largest:,}",
                why="the largest amount is one of the multiples that are reported",
                instead="state a step that divides the largest amount, or that amount itself",
            )
        if not isinstance(self.flip_probability, Fraction | int) or not 0 <= self.flip_probability < Fraction(1, 2):
            raise InvalidMechanism(
                f"a flip probability of {self.flip_probability!s:.40}",
                why="turned around half of the time an answer says nothing, and probabilities here are exact",
                instead="state a Fraction from 0 to below 1/2",
            )

    def devices(self, people: int, words: WordSource = device_words) -> Devices:
        """Fresh devices, each with its threshold and its answers, drawn exactly."""
        multiples = np.arange(0, self.survey.largest + 1, self.step)
        answers = [flipped(self.survey.chance(int(multiple)), people, words) for multiple in multiples]
        return Devices(picked(self.step, people, words), np.stack(answers, axis=1))

    def reports(self, devices: Devices, amounts: Integers, words: WordSource = device_words) -> Booleans:
        """The bits of one day; shape (people,)."""
        places = self._rounded(self.survey.clipped(amounts), devices.thresholds)
        bits: Booleans = devices.answers[np.arange(len(places)), places]
        return bits ^ flipped(Fraction(self.flip_probability), len(bits), words)

    def total(self, ones: float, people: int) -> float:
        """The sum of a day's amounts, estimated without bias."""
        flip = float(self.flip_probability)
        return self.survey.total((ones - flip * people) / (1 - 2 * flip), people)

    def variance(self, amounts: Integers) -> float:
        """Of the estimate of one day; errors of days go together where answers are kept."""
        flip, people = float(self.flip_probability), len(amounts)
        scale = self.survey.largest * float((self.survey.odds + 1) / (self.survey.odds - 1))
        return self.survey.variance(amounts) + people * flip * (1 - flip) * (scale / (1 - 2 * flip)) ** 2

    def history_ratio(self, first: tuple[int, ...], second: tuple[int, ...]) -> Fraction | None:
        """By which factor any row of reports can be likelier under one history of amounts than under the other.

        Exact, by every threshold and every kept answer. None: some reports are possible under one of them alone.
        """
        if len(first) != len(second) or not 1 <= len(first) <= MOST_DAYS:
            raise InvalidMechanism(
                f"histories of {len(first)} and {len(second)} days",
                why=f"all rows of reports are compared, of equally many days, at most {MOST_DAYS}",
                instead="compare the days on which the histories differ",
            )
        one, other = self._law_of_history(first), self._law_of_history(second)
        largest = Fraction(1)
        for reports in product((0, 1), repeat=len(first)):
            chances = one.get(reports, Fraction(0)), other.get(reports, Fraction(0))
            if max(chances) > 0 and min(chances) == 0:
                return None
            if min(chances) > 0:
                largest = max(largest, max(chances) / min(chances))
        return largest

    def _law_of_history(self, history: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
        """The chance of every row of reports."""
        amounts = self.survey.clipped(np.array(history, dtype=np.int64))
        # What a threshold does changes only where it passes the rest of an amount.
        cuts = np.unique(np.append(amounts % self.step, [0, self.step]))
        rows = np.stack([self._rounded(np.full(len(cuts) - 1, amount), cuts[:-1]) for amount in amounts], axis=1)
        times = np.diff(cuts)
        law: dict[tuple[int, ...], Fraction] = {}
        for row, count in zip(rows.tolist(), times.tolist(), strict=True):
            kept = sorted(set(row))
            for answers in product((0, 1), repeat=len(kept)):
                chance = Fraction(count, self.step)
                for place, answer in zip(kept, answers, strict=True):
                    one = self.survey.chance(place * self.step)
                    chance *= one if answer else 1 - one
                reports = tuple(answers[kept.index(place)] for place in row)
                law[reports] = law.get(reports, Fraction(0)) + chance
        return self._turned(law, len(history)) if self.flip_probability else law

    def _turned(self, law: dict[tuple[int, ...], Fraction], days: int) -> dict[tuple[int, ...], Fraction]:
        """The law after each day's report was turned around with the flip probability."""
        flip = Fraction(self.flip_probability)
        for day in range(days):
            turned: dict[tuple[int, ...], Fraction] = {}
            for reports, chance in law.items():
                for report, share in ((reports[day], 1 - flip), (1 - reports[day], flip)):
                    moved = (*reports[:day], report, *reports[day + 1 :])
                    turned[moved] = turned.get(moved, Fraction(0)) + chance * share
            law = turned
        return law

    def _rounded(self, amounts: Integers, thresholds: Integers) -> Integers:
        """The place of the multiple that each amount is rounded to."""
        below, rest = np.divmod(amounts, self.step)
        return np.asarray(below + (rest > thresholds))
