"""The same records published by every method of disclosure control, and with noise at each ε: what is printed, and what
it tells.

Numbers that a method is known to leave within bounds are attacked with these bounds: a rule that is public tells
something about every number that it touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.disclosure_control.methods import (
    Recoding,
    cell_key_noise,
    linked_numbers,
    microaggregate,
    round_randomly,
    suppressed_numbers,
    swap,
    top_cap,
    top_code,
)
from dualmandate.audit.effort import generator
from dualmandate.audit.equations import Equations, Floats, Integers
from dualmandate.audit.reconstruction.noisy import KnownNumbers
from dualmandate.mechanism import GEOMETRIC
from dualmandate.population import Attribute, PrivacyLoss
from dualmandate.workload import Total, Workload
from dualmandate.workload.factor import Factor

Family = Literal[
    "exact",
    "swapping",
    "rounding",
    "cell key",
    "suppression",
    "micro-aggregation",
    "top-coding",
    "differential privacy",
]
SWAPPED, BASES, DEVIATIONS, THRESHOLDS = (0.01, 0.05, 0.2, 0.5), (3, 5, 10), (1.0, 2.0), (3, 6)
GROUP_SIZES, TOPS = (3, 10), (0.05, 0.2)  # Records that share a mean; the share of records above a top code.
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
MOST_NOISE = 5  # The noise of a cell key is at most this large.
PROTECTED = 0.2  # A suppressed number should not be told within this share of it.


@dataclass(frozen=True, eq=False)
class PublicationMethod:
    """One method of publication: `printed` is what a reader sees, NaN where a number is hidden; shape (places, rows).

    `known` is what an attacker makes of it, of the rows of `counting` where these are not the tables' own.
    """

    family: Family
    name: str
    printed: Floats = field(repr=False)
    known: KnownNumbers = field(repr=False)
    counting: Equations | None = field(default=None, repr=False)
    loss: PrivacyLoss | None = None  # None: the method has none
    planned: bool = False
    recoding: Recoding | None = None  # where the tables are exact, of records that were changed
    promised_error: float | None = None  # mean absolute error that the frontier states before anything is drawn


@dataclass(frozen=True, eq=False)
class Subject:
    """What is published of every place, and of whom; `truth` has shape (places, cells)."""

    workload: Workload
    truth: Integers = field(repr=False)
    possible: NDArray[np.bool_] = field(repr=False)  # cells that may occur; shape (cells,)
    secret: int | None = None  # the attribute that an attacker is after; all others are known

    @property
    def _factors(self) -> list[tuple[Factor, ...]]:
        return [table.factors for table in self.workload.tables]

    @property
    def ordered(self) -> Attribute | None:
        """The attribute that is grouped or cut: the ordered one with most levels, at least three, that tables tell."""
        told = [any(not isinstance(factor, Total) for factor in axis) for axis in zip(*self._factors, strict=True)]
        attributes = zip(self.workload.domain.attributes, told, strict=True)
        able = [each for each, shown in attributes if shown and each.ordered and each.size > 2]
        return max(able, key=lambda each: each.size, default=None)


def publication_methods(
    subject: Subject, *, sensitivity: float, key: bytes, epsilons: Sequence[float] = EPSILONS
) -> Iterator[PublicationMethod]:
    """Every method, weakest first within its family.

    `sensitivity` is by how much one unit's records change all numbers together: noise at ε has the scale of it over ε.
    """
    equations = Equations.of_workload(subject.workload)
    exact = equations.of(subject.truth)
    yield PublicationMethod("exact", "exact tables", exact.astype(np.float64), KnownNumbers.shown(exact))
    places, records = _records(subject.truth)
    alike = np.zeros(subject.truth.shape[1], dtype=np.int64)
    for share in SWAPPED:
        moved = swap(records, places, share=share, alike=alike, draws=generator(key, f"swap {share}"))
        yield _tabulated("swapping", f"{share:.0%} swapped", equations, exact, _counted(subject, moved, records))
    for base in BASES:
        rounded = round_randomly(exact, base=base, draws=generator(key, f"round {base}"))
        bounds = np.maximum(rounded - base + 1, 0), rounded + base - 1
        yield _bounded("rounding", f"rounded to {base}", exact, rounded, bounds)
    keys = np.zeros_like(subject.truth)
    np.add.at(keys, (places, records), generator(key, "cell keys").integers(0, 2**32, len(records)))
    for deviation in DEVIATIONS:
        noisy = cell_key_noise(exact, equations.of(keys), deviation=deviation, most=MOST_NOISE)
        bounds = np.maximum(noisy - MOST_NOISE, (noisy > 0).astype(np.int64)), noisy + MOST_NOISE
        yield _bounded("cell key", f"cell key, deviation {deviation:g}", exact, noisy, bounds)
    yield from _suppressed(linked_numbers(subject.workload), exact)
    yield from _coarsened(subject, equations, exact)
    for epsilon in epsilons:
        law = GEOMETRIC.at(epsilon / sensitivity)
        drawn = exact + law.draw(generator(key, f"epsilon {epsilon}"), exact.shape)
        loss = PrivacyLoss(Fraction(str(epsilon)))
        known = KnownNumbers.shown(drawn, law.mean_absolute)
        yield PublicationMethod(
            "differential privacy",
            f"ε = {epsilon:g}",
            drawn.astype(np.float64),
            known,
            loss=loss,
            promised_error=law.mean_absolute,
        )


def _records(truth: Integers) -> tuple[Integers, Integers]:
    """The place and the cell of every record."""
    places, records = np.divmod(np.repeat(np.arange(truth.size), truth.reshape(-1)), truth.shape[1])
    return places.astype(np.int64), records.astype(np.int64)


def _counted(subject: Subject, places: Integers, records: Integers) -> Integers:
    counts = np.zeros_like(subject.truth)
    np.add.at(counts, (places, records), 1)
    return counts


def _tabulated(family: Family, name: str, equations: Equations, exact: Integers, counts: Integers) -> PublicationMethod:
    """Tables of changed records: an attacker knows how large their errors are, and no bounds."""
    printed = equations.of(counts)
    return PublicationMethod(
        family, name, printed.astype(np.float64), KnownNumbers.shown(printed, float(np.abs(printed - exact).mean()))
    )


def _bounded(
    family: Family, name: str, exact: Integers, printed: Integers, bounds: tuple[NDArray[Any], NDArray[Any]]
) -> PublicationMethod:
    """Numbers with errors of known size and known bounds: both are used, each as rows of its own."""
    near = KnownNumbers.shown(printed, float(np.abs(printed - exact).mean()))
    least, largest = (each.astype(np.float64) for each in bounds)
    return PublicationMethod(
        family, name, printed.astype(np.float64), near.beside(KnownNumbers(least, largest, np.zeros(printed.shape)))
    )


def _suppressed(relations: Equations, exact: Integers) -> Iterator[PublicationMethod]:
    """Thresholds with complementary suppression; the marks tell which is which, so each has its own bounds.

    A number that the rule hid lies from 1 to the threshold; one that was hidden beside it is at least the threshold,
    or the rule had hidden it too.
    """
    for least in THRESHOLDS:
        primary, hidden = suppressed_numbers(relations, exact, least=least, share=PROTECTED)
        low = np.where(primary, 1.0, np.where(hidden, float(least), exact))
        high = np.where(primary, least - 1.0, np.where(hidden, np.inf, exact))
        printed = np.where(hidden, np.nan, exact)
        yield PublicationMethod(
            "suppression", f"suppressed below {least}", printed, KnownNumbers(low, high, np.zeros(exact.shape))
        )


def _coarsened(subject: Subject, equations: Equations, exact: Integers) -> Iterator[PublicationMethod]:
    """Records whose ordered attribute is averaged within groups of a place, or cut at a top, and then tabulated."""
    attribute = subject.ordered
    if attribute is None:
        return
    places, records = _records(subject.truth)
    levels = Levels.of(subject.workload, attribute)
    for size in GROUP_SIZES:
        moved = levels.averaged(records, places, size)
        counts = _counted(subject, places, moved)
        method = _tabulated("micro-aggregation", f"{attribute.name} averaged over {size}", equations, exact, counts)
        yield replace(method, recoding=levels.recoding(records, moved))
    for share in TOPS:
        coded = levels.top_coded(records, share)
        counting = Equations.of_matrix(equations.matrix[:, coded])
        printed = counting.of(subject.truth)
        name = f"{attribute.name} top-coded, {share:.0%}"
        yield PublicationMethod("top-coding", name, printed.astype(np.float64), KnownNumbers.shown(printed), counting)


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of one ordered attribute of the cells, as numbers; a missing answer is none."""

    shape: tuple[int, ...]
    axis: int
    numbers: int  # levels that are numbers: all but a missing one

    @classmethod
    def of(cls, workload: Workload, attribute: Attribute) -> Levels:
        """Levels stand for their places in the order: equal steps of a grid, ranks of bins."""
        numbers = attribute.size - (attribute.missing is not None)
        return cls(workload.domain.shape, workload.domain.axis(attribute.name), numbers)

    def level(self, cells: Integers) -> Integers:
        """The level of each cell."""
        return np.asarray(np.unravel_index(cells, self.shape)[self.axis], dtype=np.int64)

    def moved(self, cells: Integers, levels: Integers) -> Integers:
        """The same cells at other levels."""
        step = int(np.prod(self.shape[self.axis + 1 :], dtype=np.int64))
        return cells + (levels - self.level(cells)) * step

    def averaged(self, records: Integers, places: Integers, size: int) -> Integers:
        """Every record at the mean level, rounded, of its group of `size` or more records of its place.

        A place with fewer records than that is one group. A missing answer stays.
        """
        level = self.level(records).astype(np.float64)
        for place in np.unique(places):
            own = np.flatnonzero((places == place) & (level < self.numbers))
            if len(own) > 1:
                level[own] = microaggregate(level[own], size=min(size, len(own)))
        return self.moved(records, np.rint(level).astype(np.int64))

    def recoding(self, records: Integers, moved: Integers) -> Recoding:
        """How levels moved, of all records together."""
        counts = np.zeros((self.shape[self.axis],) * 2)
        np.add.at(counts, (self.level(records), self.level(moved)), 1.0)
        return Recoding(self.shape, self.axis, counts)

    def top_coded(self, records: Integers, share: float) -> Integers:
        """For each cell the cell that its records are counted in, once a share of records at the top has one level."""
        level = self.level(records)
        numbers = level[level < self.numbers].astype(np.float64)
        every = np.arange(int(np.prod(self.shape, dtype=np.int64)))
        if not len(numbers):
            return every
        # the two highest levels at least: a top of one level would change nothing
        cap = min(top_cap(numbers, share=share), self.numbers - 2)
        own = self.level(every)
        code = int(np.rint(top_code(numbers, cap=cap).max()))
        return self.moved(every, np.where((own >= cap) & (own < self.numbers), code, own))
