"""How many groups have how many members: households by their number of persons, establishments by employees.

The number of groups is public, and so is the largest size that is told apart, K; larger groups count as K. A person
changes the size of one group by one, and there are three ways to see that. As *counts* of groups of each size two
numbers change. As *running counts*, of groups of at most each size, one number changes by one [KCKHM18]. As *sizes*,
one number a group in rising order, one number changes by one as well [HRMS10]. So the last two are measured with half
the noise, and both can only rise: the rising whole numbers that are nearest to what was measured, by the sum of
distances, take the noise off wherever many of them are alike. Distances and not squares, because that is the most
likely rising sequence under Laplace noise, and whole: medians of noisy whole numbers. The error grows with the number
of different sizes, and hardly with the number of groups.

What counts is by how many persons groups are wrong: the *earth mover's distance* Σ_j |C(j) − Ĉ(j)| of running counts,
the fewest persons that must be added to groups or taken from them to turn one table into the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from heapq import heappush, heappushpop

import numpy as np

from dualmandate.errors import InvalidMechanism, TooLarge
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler, NoiseKey
from dualmandate.population import Neighbors, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.workload import Norm, Sensitivity

MOST_NUMBERS = 2**27  # that are measured at once


class GroupForm(StrEnum):
    """In which form the sizes of groups are measured."""

    COUNTS = "counts"
    RUNNING_COUNTS = "running counts"
    SIZES = "sizes"


def counts_by_size(sizes: Integers, areas: Integers, *, area_count: int, largest: int) -> Integers:
    """How many groups of each area have 0, 1, …, `largest` or more members; shape (areas, largest + 1).

    `sizes` and `areas` have one entry a group.
    """
    if largest < 1 or area_count * (largest + 1) > MOST_NUMBERS:
        raise TooLarge(
            f"sizes up to {largest:,} in {area_count:,} areas",
            why=f"groups differ in size, and a table has at most {MOST_NUMBERS:,} numbers",
            instead="state a public largest size of at least 1; larger groups count as that",
        )
    proper = sizes.shape == areas.shape and sizes.dtype.kind in "iu" and areas.dtype.kind in "iu"
    if not proper or (sizes.size and (sizes.min() < 0 or areas.min() < 0 or areas.max() >= area_count)):
        raise InvalidMechanism(
            "groups without a whole size from 0 on in one of the areas",
            why="each group has one size and lies in one area",
            instead=f"give a size and an area from 0 to {area_count - 1:,} for each group",
        )
    places = areas * (largest + 1) + np.minimum(sizes, largest)
    return np.bincount(places, minlength=area_count * (largest + 1)).reshape(area_count, largest + 1)


def group_sensitivity(form: GroupForm, protection: Protection, *, largest: int, norm: Norm) -> Sensitivity:
    """How far a protected person, with all of up to m records, can move the numbers of all areas together.

    A record that is added or removed changes the size of one group by one; a replaced one leaves a group and joins
    another. Most changes where all of a person's groups have one size (counts), or are one group (sizes, squared).
    """
    if protection.invariants:
        raise InvalidMechanism(
            f"sizes of groups beside the exact total '{protection.invariants[0].name}'",
            why="what is public here is the number of groups, and nothing about their members",
            instead="drop the invariant",
        )
    records = protection.most_records_per_unit
    replaced = protection.neighbors is Neighbors.REPLACE_ONE
    if norm == "l1":
        each = 2 if form is GroupForm.COUNTS else 1
        power = each * records * (2 if replaced else 1)
    else:
        # Counts of one size: −2, +1 and +1 where two groups of it lose and gain; −1 and +1 where one does.
        each = (6 if replaced else 2) if form is GroupForm.COUNTS else (2 if replaced else 1)
        power = each * records**2
    exact = largest >= 2 * records  # else groups are too small to lose and gain as many members
    return Sensitivity(norm, Fraction(power), exact, "a person is a member of a group for each record")


@dataclass(frozen=True)
class MeasuredGroups:
    """What was measured of the groups of some areas: whole numbers with noise, and nothing of the data beside."""

    form: GroupForm
    groups: Integers  # of each area, public; shape (areas,)
    largest: int
    values: Integers  # counts (areas, K + 1), running counts (areas, K), or sizes (groups of all areas one by one,)

    def fitted(self) -> Integers:
        """Whole counts of groups of each size, none below 0, as many groups as there are; shape (areas, K + 1)."""
        if self.form is GroupForm.RUNNING_COUNTS:
            rising = [np.clip(nearest_rising(row), 0, all_) for row, all_ in zip(self.values, self.groups, strict=True)]
            running = np.column_stack([np.array(rising).reshape(len(self.groups), self.largest), self.groups])
            return np.diff(running, prepend=0, axis=1)
        if self.form is GroupForm.SIZES:
            parts = np.split(self.values, np.cumsum(self.groups)[:-1])
            sizes = [np.clip(nearest_rising(part), 0, self.largest) for part in parts]
            return np.array([np.bincount(each, minlength=self.largest + 1) for each in sizes])
        return np.array(
            [_whole(_onto_total(row, int(all_)), int(all_)) for row, all_ in zip(self.values, self.groups, strict=True)]
        )


def measure_groups(
    counts: Integers, *, form: GroupForm, loss: PrivacyLoss, protection: Protection, key: NoiseKey
) -> MeasuredGroups:
    """Measure the groups of all areas of one level, shape (areas, K + 1), at a loss: exact noise on exact numbers.

    Laplace noise for a loss in ε, Gaussian for one in ρ. A function of the key, as all noise that is published.
    """
    largest, groups = counts.shape[1] - 1, counts.sum(axis=1)
    numbers = int(groups.sum()) if form is GroupForm.SIZES else counts.size
    if numbers > MOST_NUMBERS:
        raise TooLarge(
            f"{numbers:,} sizes of groups",
            why=f"at most {MOST_NUMBERS:,} numbers are measured at once",
            instead=f'measure them in the form "{GroupForm.RUNNING_COUNTS}", one number a size and area',
        )
    if form is GroupForm.SIZES:
        kinds = np.tile(np.arange(largest + 1), len(counts))
        exact = np.repeat(kinds, counts.reshape(-1))
    else:
        exact = counts if form is GroupForm.COUNTS else counts.cumsum(axis=1)[:, :-1]
    pure = loss.privacy_measure is PrivacyMeasure.PURE_DP
    power = group_sensitivity(form, protection, largest=largest, norm="l1" if pure else "l2").power
    sampler = LaplaceSampler(power / loss.amount) if pure else GaussianSampler(power / (2 * loss.amount))
    noise = sampler.draw(key, range(exact.size)).reshape(exact.shape)
    return MeasuredGroups(form, groups, largest, exact + noise)


def earth_movers_distance(first: Integers, second: Integers) -> Integers:
    """The fewest persons that must join or leave groups to turn one table into another, area by area.

    Two counts of counts with as many groups, shape (areas, K + 1).
    """
    return np.asarray(np.abs(np.cumsum(first - second, axis=-1)).sum(axis=-1))


def nearest_rising(numbers: Integers) -> Integers:
    """Whole numbers that never fall, with the least sum of distances from these.

    A heap holds where the cost of ending at most this high bends; two bends are added a number and the highest goes.
    """
    bends: list[int] = []
    ends = []
    for number in numbers.tolist():
        heappush(bends, -number)
        heappushpop(bends, -number)
        ends.append(-bends[0])
    found = np.array(ends, dtype=np.int64)
    return np.asarray(np.minimum.accumulate(found[::-1])[::-1])


def _onto_total(numbers: Integers, total: int) -> Floats:
    """The nearest numbers from 0 on that add up to a total, by the sum of squares: all less one amount, or 0."""
    falling = np.sort(numbers)[::-1].astype(np.float64)
    over = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    last = int(np.flatnonzero(falling > over)[-1]) if total else 0
    return np.maximum(numbers - over[last], 0.0) if total else np.zeros(len(numbers))


def _whole(numbers: Floats, total: int) -> Integers:
    """Whole numbers with the same total: running sums are rounded."""
    running = np.rint(np.cumsum(numbers)).astype(np.int64)
    running[-1] = total
    return np.diff(running, prepend=0)
