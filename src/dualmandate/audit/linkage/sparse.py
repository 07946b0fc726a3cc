"""Linkage of sparse records: a few items that somebody is known to have rated, about when, and about how.

Most people are alone with very few of their items. An attacker scores every record of a published file by how well it
fits what is known of one person, rare items counting more, and takes the best one only where it stands out
(Narayanan and Shmatikov, "Scoreboard-RH" [NS08]):

    score = Σ 1/ln(max(2, n_i)) · (e^(−|Δrating|/1.5) + e^(−|Δday|/30)), over known items i that it has,

with n_i how many records have the item. The best is a match where it is above the second best by more than
`ECCENTRICITY` standard deviations of all scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dualmandate.audit.finding import Baseline, Finding, Rate
from dualmandate.audit.options import Effort, generator
from dualmandate.errors import InvalidRequest
from dualmandate.population.arrays import Floats, Integers

RATING_SCALE, DAY_SCALE = 1.5, 30.0
ECCENTRICITY = 1.5
TARGETS = 200  # people who are looked for, and as many who are not in the file


@dataclass(frozen=True, eq=False)
class SparseRecords:
    """A published file of ratings, one row an entry, and what an attacker knows of people.

    Shapes are (entries,). Of a person looked for `known` items are known, `wrong` of them being items that the person
    never rated; ratings are off by up to `rating_error`, days by up to `day_error`. `kept` is the share of entries of
    each record that were published, the others being left out. Half of the people looked for are not in the file.
    """

    name: str
    record: Integers = field(repr=False)
    item: Integers = field(repr=False)
    rating: Integers = field(repr=False)
    day: Integers = field(repr=False)
    known: int
    wrong: int = 0
    rating_error: int = 1
    day_error: int = 14
    kept: float = 1.0

    def __post_init__(self) -> None:
        columns = (self.record, self.item, self.rating, self.day)
        if len({len(column) for column in columns}) != 1 or not len(self.record):
            raise InvalidRequest(
                f"{', '.join(str(len(column)) for column in columns)} records, items, ratings and days",
                why="an entry is one of each, and a file has entries",
                instead="give columns of one length",
            )
        if not 0 <= self.wrong < self.known or not 0 < self.kept <= 1:
            raise InvalidRequest(
                f"{self.known} known items, {self.wrong} of them wrong, with {self.kept:g} of entries published",
                why="something true must be known, and something published",
                instead="state more known than wrong items, and a share above 0 and up to 1",
            )


@dataclass(frozen=True)
class SparseLinkageAttack:
    """How many people are found by a few of their entries, and how many who are not there are found wrongly."""

    effort: Effort = field(default_factory=Effort)
    name: str = "re-identification of sparse records"

    def run(self, target: SparseRecords, key: bytes, /) -> tuple[Finding, ...]:
        draws = generator(key, f"sparse records: {target.name}")
        people = np.unique(target.record)
        entries = np.bincount(np.searchsorted(people, target.record), minlength=len(people))
        able = people[entries >= target.known]
        if len(able) < 2:
            raise InvalidRequest(
                f"{len(able)} people of {target.name} have {target.known} entries",
                why="the attacker knows as many of each",
                instead="know fewer items",
            )
        sought = draws.permutation(able)[: 2 * TARGETS]
        absent, present = sought[: len(sought) // 2], sought[len(sought) // 2 :]
        file = Scoreboard.of(target, absent, draws)
        self.effort.say(f"looking for {len(sought):,} people in {target.name}")
        found = [file.best(*_auxiliary(target, person, draws)) for person in present]
        right = sum(best == person for best, person in zip(found, present.tolist(), strict=True))
        stray = sum(file.best(*_auxiliary(target, person, draws)) is not None for person in absent)
        records = len(file.people)
        what = (
            f"{target.known} known items, {target.wrong} of them wrong"
            if target.wrong
            else f"{target.known} known items"
        )
        common = {
            "attack": self.name,
            "attacker_knows": f"{what}, ratings within {target.rating_error} and days within {target.day_error}",
            "coarsening": "ratings and days as they are published",
            "reference": "synthetic",
        }
        guess = Baseline("whoever guesses a record", Rate(round(len(present) / records), len(present)))
        return (
            Finding(
                claim=f"people of {target.name} found among {records:,} records",
                success=Rate(right, len(present)),
                baselines=(guess,),
                **common,  # type: ignore[arg-type]
            ),
            Finding(
                claim=f"matches of {target.name} that are wrong, of people who are in it and of as many who are not",
                success=Rate(stray + sum(best is not None for best in found) - right, len(sought)),
                baselines=(
                    Baseline(
                        "somebody who matches everybody", Rate(len(sought) - round(len(present) / records), len(sought))
                    ),
                ),
                **common,  # type: ignore[arg-type]
            ),
        )


@dataclass(frozen=True, eq=False)
class Scoreboard:
    """The entries that were published, in the order of their items."""

    people: Integers
    record: Integers  # a place in `people`
    rating: Integers
    day: Integers
    starts: Integers  # of each item

    @classmethod
    def of(cls, target: SparseRecords, absent: Integers, draws: np.random.Generator) -> Scoreboard:
        there = ~np.isin(target.record, absent) & (draws.random(len(target.record)) < target.kept)
        order = np.flatnonzero(there)[np.argsort(target.item[there], kind="stable")]
        people, places = np.unique(target.record[order], return_inverse=True)
        starts = np.searchsorted(target.item[order], np.arange(int(target.item.max()) + 2))
        return cls(people, places.reshape(-1), target.rating[order], target.day[order], starts)

    def best(self, item: Integers, rating: Integers, day: Integers) -> int | None:
        """The record that fits best, where it stands out; None where it does not."""
        scores = self.scores(item, rating, day)
        second, first = np.partition(scores, len(scores) - 2)[-2:]
        if first - second <= ECCENTRICITY * float(scores.std()):
            return None
        return int(self.people[int(np.argmax(scores))])

    def scores(self, item: Integers, rating: Integers, day: Integers) -> Floats:
        """How well each record fits; shape (records,)."""
        scores = np.zeros(len(self.people))
        for one, stars, when in zip(item, rating, day, strict=True):
            rows = slice(int(self.starts[one]), int(self.starts[one + 1]))
            near = np.exp(-np.abs(self.rating[rows] - stars) / RATING_SCALE)
            near += np.exp(-np.abs(self.day[rows] - when) / DAY_SCALE)
            weight = 1 / np.log(max(2, rows.stop - rows.start))
            scores[self.record[rows]] += weight * near
        return scores


def _auxiliary(target: SparseRecords, person: int, draws: np.random.Generator) -> tuple[Integers, Integers, Integers]:
    """What is known of one person: some items, about how they were rated, about when; and some that are wrong."""
    own = np.flatnonzero(target.record == person)
    chosen = draws.choice(own, target.known - target.wrong, replace=False)
    others = np.setdiff1d(np.arange(int(target.item.max()) + 1), target.item[own])
    item = np.concatenate([target.item[chosen], draws.choice(others, target.wrong)])
    low, high = int(target.rating.min()), int(target.rating.max())
    rating = np.concatenate([target.rating[chosen], draws.integers(low, high + 1, target.wrong)])
    day = np.concatenate([target.day[chosen], draws.integers(0, int(target.day.max()) + 1, target.wrong)])
    rating = np.clip(rating + draws.integers(-target.rating_error, target.rating_error + 1, len(item)), low, high)
    return item, rating, day + draws.integers(-target.day_error, target.day_error + 1, len(item))
