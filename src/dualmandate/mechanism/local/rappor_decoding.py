"""Which words people hold, and how many, from RAPPOR reports: regression, and a bound on false discoveries.

The share of 1s among the bits of a cohort, less p* and divided by q* − p*, is the share of its people whose word sets
the bit, and noise. It is regressed on the bits of the candidate words, cohorts weighted by their people. Whoever holds
none of the candidates sets a bit as often as words do on average, c = 1 − (1 − 1/k)^h; so all is counted from c, and
the rest of the people need no word of their own. The variance of an estimate has a closed form: with A the regression,
b the shares of people who set a bit, s those who hold a word, S = diag s − ssᵀ, n a cohort's people and X its bits,

    Σ over cohorts A·(diag(b·q*(1 − q*) + (1 − b)·p*(1 − p*))/((q* − p*)²·n) + X·S·Xᵀ/n)·Aᵀ − S/N,

the coins, and which of the N people are in which cohort; s and b are put in as estimated. Where the fit leaves more
than that (people with words that are no candidates), all of it is scaled up.

A word is *detected* where its estimate is too large for a word that nobody holds, by the p-values of a normal law
and the procedure of [BH95], which keeps the expected share of detected words that nobody holds below the rate. Where
there are too many candidates for one regression, those that a lasso keeps on every other cohort are regressed on the
other cohorts alone: whoever is chosen by one half of the reports is judged by the other. Source: [EPK14].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dualmandate.errors import InvalidMechanism, TooLarge
from dualmandate.mechanism.local.intervals import normal_interval
from dualmandate.mechanism.local.rappor import Rappor, RapporCounts
from dualmandate.population.arrays import Booleans, Floats, Indices

MOST_SHARE = 0.5  # candidates per number that is observed, in one regression
LARGEST_DESIGN = 2**27  # bits of all candidates in all cohorts
WORST_CONDITION = 1e10
LASSO_STEPS = 300


@dataclass(frozen=True)
class WordCount:
    """How many people hold a word: the estimate, its standard error, and whether it is told from nobody."""

    word: str
    count: float
    standard_error: float
    p_value: float  # of an estimate so large where nobody holds the word; 1 where it was not looked at any further
    detected: bool
    people: int

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Where the count lies, if estimates are about normal; within 0 and N."""
        return normal_interval(
            self.count, standard_error=self.standard_error, probability=probability, largest=self.people
        )


def decode_reports(
    rappor: Rappor, counts: RapporCounts, *, candidates: Sequence[str], false_discovery_rate: float = 0.05
) -> list[WordCount]:
    """The count of each candidate, in their order."""
    _refuse_unless_fitting(rappor, counts, candidates, false_discovery_rate)
    people = int(counts.people.sum())
    (living,) = np.nonzero(counts.people)
    design = np.stack([rappor.filters(word)[living] for word in candidates], axis=-1)
    shares, errors, chosen = np.zeros(len(candidates)), np.full(len(candidates), 1.0), np.arange(len(candidates))
    fitted, used = np.ones(len(living), dtype=np.bool_), len(living) * rappor.bits
    if len(candidates) > MOST_SHARE * used:
        if len(living) < 2:
            raise InvalidMechanism(
                f"{len(candidates):,} candidates for {used:,} bits of one cohort",
                why="the words to look at are chosen by some cohorts and judged by others",
                instead="use several cohorts, or name fewer candidates",
            )
        fitted = np.arange(len(living)) % 2 == 1
        chosen = _kept_by_lasso(rappor, counts, living[~fitted], design[~fitted])
    if len(chosen):
        part = design[fitted][:, :, chosen]
        shares[chosen], errors[chosen] = _regressed(rappor, counts, living[fitted], part, people=people)
    p_values = np.ones(len(candidates))
    normal = NormalDist()
    p_values[chosen] = [normal.cdf(-share / error) for share, error in zip(shares[chosen], errors[chosen], strict=True)]
    detected = np.zeros(len(candidates), dtype=np.bool_)
    detected[chosen] = _discovered(p_values[chosen], false_discovery_rate)
    return [
        WordCount(word, float(people * share), float(people * error), float(p_value), bool(found), people)
        for word, share, error, p_value, found in zip(candidates, shares, errors, p_values, detected, strict=True)
    ]


def _observed(rappor: Rappor, counts: RapporCounts, cohorts: Indices) -> Floats:
    """The share of people who set each bit, less that of people with any word; shape (cohorts, bits)."""
    q, p = (float(chance) for chance in rappor.chances)
    rates = counts.ones[cohorts] / counts.people[cohorts][:, None]
    return np.asarray((rates - p) / (q - p) - _any_word(rappor))


def _any_word(rappor: Rappor) -> float:
    """c: how often a word sets a bit."""
    return 1 - (1 - 1 / rappor.bits) ** rappor.hashes


def _regressed(
    rappor: Rappor, counts: RapporCounts, cohorts: Indices, design: Booleans, *, people: int
) -> tuple[Floats, Floats]:
    """The share of people who hold each word, and its standard error."""
    q, p = (float(chance) for chance in rappor.chances)
    centered = design - _any_word(rappor)  # shape (cohorts, bits, words)
    observed, numbers = _observed(rappor, counts, cohorts), counts.people[cohorts].astype(np.float64)
    weighted = centered * numbers[:, None, None]
    normal = np.einsum("jiv,jiw->vw", weighted, centered, optimize=True)
    if np.linalg.cond(normal) > WORST_CONDITION:
        raise InvalidMechanism(
            f"{design.shape[-1]:,} candidates that set the same bits, or sums of each other's",
            why="words that look alike in every cohort have only a count together",
            instead="name a word once, or use more bits or cohorts",
        )
    inverse = np.linalg.inv(normal)
    shares = inverse @ np.einsum("jiv,ji->v", weighted, observed, optimize=True)
    held = np.clip(shares, 0, None)
    held /= max(1.0, held.sum())
    setting = np.clip(centered @ held + _any_word(rappor), 0, 1)
    coins = (setting * q * (1 - q) + (1 - setting) * p * (1 - p)) / ((q - p) ** 2 * numbers[:, None])
    variances = np.zeros(len(shares))
    for part, number, noise in zip(centered, numbers, coins, strict=True):
        through = inverse @ part.T * number
        variances += np.square(through) @ noise
        told = through @ part
        variances += (np.square(told) @ held - np.square(told @ held)) / number
    left = np.square(observed - centered @ shares) / (coins + setting * (1 - setting) / numbers[:, None])
    excess = float(left.sum()) / (left.size - len(shares))
    return shares, np.sqrt(np.maximum(variances - held * (1 - held) / people, 1e-12) * max(1.0, excess))


def _kept_by_lasso(rappor: Rappor, counts: RapporCounts, cohorts: Indices, design: Booleans) -> Indices:
    """The words whose share a lasso on shares from 0 on does not leave at 0; no more than one regression takes.

    The penalty is what the largest of so many words that nobody holds reaches by chance, σ·√(2·ln words).
    """
    q, p = (float(chance) for chance in rappor.chances)
    numbers = counts.people[cohorts][:, None].astype(np.float64)
    noise = math.sqrt(max(q * (1 - q), p * (1 - p))) / (q - p)
    roots = np.sqrt(numbers)
    rows = ((design - _any_word(rappor)) * roots[..., None]).reshape(-1, design.shape[-1])
    aim = (_observed(rappor, counts, cohorts) * roots).reshape(-1)
    lengths = np.linalg.norm(rows, axis=0)
    penalty = noise * math.sqrt(2 * math.log(max(2, design.shape[-1]))) * lengths
    steepest = float(np.linalg.norm(rows, ord=2)) ** 2
    shares = ahead = np.zeros(design.shape[-1])
    pace = 1.0
    for _ in range(LASSO_STEPS):  # accelerated gradients, [BT09]
        moved = np.maximum(ahead - (rows.T @ (rows @ ahead - aim) + penalty) / steepest, 0.0)
        faster = (1 + math.sqrt(1 + 4 * pace * pace)) / 2
        ahead, shares, pace = moved + (pace - 1) / faster * (moved - shares), moved, faster
    (kept,) = np.nonzero(shares > 0)
    most = int(MOST_SHARE * rows.shape[0])
    return np.asarray(np.sort(kept[np.argsort(-shares[kept], kind="stable")[:most]]))


def _discovered(p_values: Floats, rate: float) -> Booleans:
    """All up to the last p-value, in order, that is at most rate·place/number [BH95]."""
    order = np.argsort(p_values, kind="stable")
    (within,) = np.nonzero(p_values[order] <= rate * np.arange(1, len(order) + 1) / len(order))
    found = np.zeros(len(order), dtype=np.bool_)
    if len(within):
        found[order[: within[-1] + 1]] = True
    return found


def _refuse_unless_fitting(rappor: Rappor, counts: RapporCounts, candidates: Sequence[str], rate: float) -> None:
    if counts.ones.shape != (rappor.cohorts, rappor.bits) or int(counts.people.sum()) < 1:
        raise InvalidMechanism(
            f"counts of shape {counts.ones.shape} and {int(counts.people.sum()):,} people",
            why=f"reports of {rappor.cohorts:,} cohorts have {rappor.bits:,} bits each",
            instead="decode with the parameters that the reports were made with, and at least one report",
        )
    if not candidates or len(set(candidates)) < len(candidates):
        raise InvalidMechanism(
            f"{len(candidates):,} candidates, {len(set(candidates)):,} of them different",
            why="reports hold bits and no words: each word to be counted is named, once",
            instead="name the words that may occur",
        )
    if len(candidates) * rappor.cohorts * rappor.bits > LARGEST_DESIGN:
        raise TooLarge(
            f"{len(candidates):,} candidates of {rappor.cohorts * rappor.bits:,} bits",
            why=f"a regression on more than {LARGEST_DESIGN:,} bits would not fit in memory",
            instead="name fewer candidates",
        )
    if not 0 < rate < 1:
        raise InvalidMechanism(
            f"a false discovery rate of {rate}",
            why="it is the share of detected words that nobody holds, expected at most",
            instead="state a rate strictly between 0 and 1, for example 0.05",
        )
