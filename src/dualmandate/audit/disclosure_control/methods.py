"""Statistical disclosure control before differential privacy, so that its risk and accuracy can be compared: swapping,
random rounding, cell keys, top-coding, micro-aggregation, primary and complementary suppression; and the same records
published by each of them, and with noise at each ε.

Disclosure control has no ε. Each method is a point with a measured accuracy and a measured risk, and nothing bounds
what another attack finds. Numbers that a method is known to leave within bounds are attacked with these bounds: a rule
that is public tells something about every number that it touched. All draws come from a key of the audit's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.options import generator
from dualmandate.audit.reconstruction.noisy import KnownNumbers
from dualmandate.audit.suppression.cells import LinkedTables, audit_suppression
from dualmandate.audit.tables import Equations
from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import GEOMETRIC
from dualmandate.population import Attribute, PrivacyLoss
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.wording import percent
from dualmandate.workload import Identity, Table, Total, Workload

MOST_ROUNDS = 1000  # of complementary suppression
LARGEST_LINKED = 4096  # Tables that show an attribute differently are linked up to this many levels.
Part = tuple[Integers, Integers]  # rows of two factors that count the same levels
PrimaryRule = Callable[[Floats], bool]  # whether a cell with these contributions, largest first, is sensitive
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


def swap(records: Integers, places: Integers, *, share: float, alike: Integers, draws: np.random.Generator) -> Integers:
    """Data swapping: some records exchange their places with records of other places that are alike in a stated way.

    `records` are cells and `places` where each record lives, shape (records,); `alike` is the class of each cell within
    which records are swapped (whatever is counted by class stays exact). Returns the new places. About a share of the
    records moves; a record without a partner stays.
    """
    _check_share(share)
    moved = places.copy()
    chosen = np.flatnonzero(draws.random(len(records)) < share)
    for one_class in np.unique(alike[records[chosen]]):
        members = draws.permutation(chosen[alike[records[chosen]] == one_class])
        # neighbors in a random order, sorted by place and folded in the middle: partners live apart where they can
        members = members[np.argsort(places[members], kind="stable")]
        half = len(members) // 2
        left, right = members[:half], members[half : 2 * half]
        moved[left], moved[right] = places[right], places[left]
    return moved


def round_randomly(values: Integers, *, base: int, draws: np.random.Generator) -> Integers:
    """Random rounding to multiples of a base, unbiased: up with the probability of the remainder; multiples stay."""
    if base < 2:
        raise InvalidRequest(
            f"rounding to base {base}", why="it would change nothing", instead="state a base from 2 on"
        )
    low, remainder = values // base * base, values % base
    return low + base * (draws.random(values.shape) * base < remainder)


def cell_key_noise(counts: Integers, keys: Integers, *, deviation: float, most: int) -> Integers:
    """Cell-key noise: looked up by the sum of the random keys of a cell's records, so the same for the same records.

    `keys` are sums modulo 2³² of the keys of each cell's records; noise is normal with this deviation, rounded, cut at
    `most` and at the count itself, and 0 where the count is 0. A cell has the same noise wherever it is published.
    """
    from scipy.stats import norm

    share = ((keys % 2**32).astype(np.float64) + 0.5) / 2**32
    noise = np.clip(np.rint(norm.ppf(share) * deviation), -most, most).astype(np.int64)
    return np.where(counts > 0, np.maximum(counts + noise, 0), 0)


def top_cap(values: Floats, *, share: float) -> float:
    """Where the top begins: the largest number so that at least this share of the values is not below it."""
    _check_share(share)
    top = max(math.ceil(share * len(values) - 1e-9), 1)  # less what a share in decimals is too large by
    return float(np.sort(values)[-top])


def top_code(values: Floats, *, cap: float) -> Floats:
    """Top-coding: values from the cap on are replaced by their mean."""
    top = values >= cap
    return np.where(top, values[top].mean() if top.any() else cap, values)


def microaggregate(values: Floats, *, size: int) -> Floats:
    """Micro-aggregation of one number: in sorted groups of `size` or more, each record gets the mean of its group."""
    if not 2 <= size <= len(values):
        raise InvalidRequest(
            f"groups of {size} among {len(values)} records",
            why="a group hides its members among each other",
            instead="state a size from 2 to the number of records",
        )
    order = np.argsort(values, kind="stable")
    groups = np.minimum(np.arange(len(values)) // size, len(values) // size - 1)
    means = np.bincount(groups, weights=values[order]) / np.bincount(groups)
    found = np.empty(len(values))
    found[order] = means[groups]
    return found


def few_contributors(contributions: Floats, *, least: int) -> bool:
    """The threshold rule: an occupied cell has fewer than so many contributors."""
    return 0 < len(contributions) < least


def dominated(contributions: Floats, *, contributors: int, share: float) -> bool:
    """The (n, k) rule: the n largest contributors make up more than a share k of the cell."""
    total = contributions.sum()
    return bool(total > 0 and contributions[:contributors].sum() > share * total)


def told_by_second(contributions: Floats, *, share: float) -> bool:
    """The p % rule: the second largest could tell the largest within p % of it; contributions are largest first."""
    if not len(contributions) or contributions[0] <= 0:
        return False
    return bool(contributions[2:].sum() < share * contributions[0])


def suppress(relations: Equations, values: Integers, primary: Booleans, *, share: float) -> Booleans:
    """Complementary suppression: as many further cells as it takes until no sensitive cell can be told within a share.

    Greedy: where a sensitive cell is too well bounded, the smallest shown and occupied cell of its sums is hidden too.
    Not the fewest cells, and a cell that no more suppression can protect is left as it is.
    """
    _check_share(share)
    hidden, given_up = primary.copy(), np.zeros_like(primary)
    cell_starts, cell_rows = relations.by_cell
    for _ in range(MOST_ROUNDS):
        audit = audit_suppression(LinkedTables(relations, values, hidden))
        exposed = [c for c in audit.unprotected(values, share=share) if primary[c] and not given_up[c]]
        if not exposed:
            break
        for cell in exposed:
            rows = cell_rows[cell_starts[cell] : cell_starts[cell + 1]]
            best = _smallest_shown(relations, values, hidden, rows)
            if best is None:
                given_up[cell] = True
            else:
                hidden[best] = True
    return hidden


def _smallest_shown(relations: Equations, values: Integers, hidden: Booleans, rows: Any) -> int | None:
    parts = [relations.cells[relations.starts[row] : relations.starts[row + 1]] for row in rows]
    cells = np.unique(np.concatenate(parts)) if parts else np.array([], dtype=np.int64)
    shown = cells[~hidden[cells] & (values[cells] > 0)]
    return int(shown[np.argmin(values[shown])]) if shown.size else None


def _check_share(share: float) -> None:
    if not 0 <= share <= 1:
        raise InvalidRequest(f"a share of {share:g}", why="a share lies between 0 and 1", instead="state one there")


@dataclass(frozen=True, eq=False)
class Recoding:
    """How many records of each true level got each level that was tabulated; `moved` has shape (true, tabulated).

    Whoever knows the method can find that out on people of their own. Levels without records stay as they are.
    """

    shape: tuple[int, ...]  # of the cells of a place
    axis: int
    moved: Floats = field(repr=False)

    def tabulated(self, file: Floats) -> Floats:
        """What becomes of a file on average; shape (places, cells)."""
        return self._along(file, _shares(self.moved))

    def undone(self, file: Floats) -> Floats:
        """The true file that is expected behind a tabulated one."""
        return self._along(file, _shares(self.moved.T))

    def looked_up(self, file: Floats) -> Floats:
        """What somebody of a true level finds in a tabulated file: its levels, as likely as theirs became these."""
        return self._along(file, _shares(self.moved).T)

    def _along(self, file: Floats, matrix: Floats) -> Floats:
        cells = np.moveaxis(file.reshape(-1, *self.shape), self.axis + 1, -1)
        return np.asarray(np.moveaxis(cells @ matrix, -1, self.axis + 1).reshape(file.shape))


def _shares(counts: Floats) -> Floats:
    """Rows that add up to 1; a row of nobody stays where it is."""
    totals = counts.sum(axis=1, keepdims=True)
    return np.where(totals > 0, counts / np.maximum(totals, 1e-300), np.eye(len(counts)))


def linked_numbers(workload: Workload) -> Equations:
    """Sums that two tables have in common: Σ numbers of the one − Σ numbers of the other = 0, over all numbers.

    For every pair of tables the finest groups of levels that both can add up, attribute by attribute: a table by sex
    and age and one by age and race share every age. Tables whose numbers overlap (ranges, running totals) take no part.
    """
    starts = np.concatenate([[0], np.cumsum([table.query_count for table in workload.tables])])
    rows = [
        (starts[one] + left, starts[other] + right)
        for (one, first), (other, second) in combinations(enumerate(workload.tables), 2)
        for left, right in _common(first, second)
    ]
    sizes = [len(left) + len(right) for left, right in rows]
    cells = [np.concatenate(pair) for pair in rows]
    signs = [np.repeat([1, -1], [len(left), len(right)]) for left, right in rows]
    nothing = [np.array([], dtype=np.int64)]
    return Equations(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate(cells or nothing).astype(np.int64),
        np.concatenate(signs or nothing).astype(np.int64),
        int(starts[-1]),
    )


def hidden_beside(relations: Equations, values: Integers, primary: Booleans, *, share: float) -> Booleans:
    """Sensitive numbers of every place, and others beside them until none can be told within a share.

    Shape (places, numbers).
    """
    hidden = primary.copy()
    if relations.rows:
        for place in np.flatnonzero(primary.any(axis=1)):
            hidden[place] = suppress(relations, values[place], primary[place], share=share)
    return hidden


def _common(one: Table, other: Table) -> Iterator[Part]:
    parts = []
    for first, second in zip(one.factors, other.factors, strict=True):
        levels = np.arange(first.size)
        if isinstance(first, Identity) and isinstance(second, Identity):
            parts.append([(level, level) for level in levels.reshape(-1, 1)])
        elif first.size > LARGEST_LINKED:
            return
        else:
            parts.append(_common_groups(first.columns(levels), second.columns(levels)))
    for chosen in product(*parts):
        yield _numbers(one, [left for left, _ in chosen]), _numbers(other, [right for _, right in chosen])


def _numbers(table: Table, rows: list[Integers]) -> Integers:
    """Where numbers stand in a table, by their rows on each attribute."""
    return np.ravel_multi_index(np.ix_(*rows), table.shape).reshape(-1)


def _common_groups(one: Integers, other: Integers) -> list[Part]:
    """Smallest sets of rows of two factors that count the same levels once each; factors as rows × levels."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if max(int(one.sum(axis=0).max()), int(other.sum(axis=0).max())) > 1 or min(int(one.min()), int(other.min())) < 0:
        return []
    touching = np.zeros((len(one) + len(other),) * 2, dtype=np.int64)
    touching[: len(one), len(one) :] = one @ other.T
    _, groups = connected_components(csr_array(touching), directed=False)
    found = []
    for group in range(groups.max() + 1):
        left = np.flatnonzero(groups[: len(one)] == group)
        right = np.flatnonzero(groups[len(one) :] == group)
        if len(left) and len(right) and np.array_equal(one[left].sum(axis=0), other[right].sum(axis=0)):
            found.append((left, right))
    return found


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
    possible: Booleans = field(repr=False)  # cells that may occur; shape (cells,)
    secret: int | None = None  # the attribute that an attacker is after; all others are known

    @property
    def ordered(self) -> Attribute | None:
        """The attribute that is grouped or cut: the ordered one with most levels, at least three, that tables tell."""
        factors = [table.factors for table in self.workload.tables]
        told = [any(not isinstance(factor, Total) for factor in axis) for axis in zip(*factors, strict=True)]
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
    yield _shown("exact", "exact tables", exact)
    places, records = record_list(subject.truth)
    alike = np.zeros(subject.truth.shape[1], dtype=np.int64)
    for share in SWAPPED:
        moved = swap(records, places, share=share, alike=alike, draws=generator(key, f"swap {share}"))
        counts = record_counts(moved, records, subject.truth.shape)
        yield _tabulated("swapping", f"{percent(share)} swapped", equations, exact, counts)
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
        method = _shown("differential privacy", f"ε = {epsilon:g}", drawn, law.mean_absolute)
        yield replace(method, loss=PrivacyLoss(Fraction(str(epsilon))), promised_error=law.mean_absolute)


def record_list(truth: Integers) -> tuple[Integers, Integers]:
    """The place and the cell of every record."""
    places, records = np.divmod(np.repeat(np.arange(truth.size), truth.reshape(-1)), truth.shape[1])
    return places.astype(np.int64), records.astype(np.int64)


def record_counts(places: Integers, records: Integers, shape: tuple[int, ...]) -> Integers:
    """How many records are in each place and cell."""
    return np.bincount(np.ravel_multi_index((places, records), shape), minlength=math.prod(shape)).reshape(shape)


def _shown(family: Family, name: str, printed: NDArray[Any], scale: float = 0.0) -> PublicationMethod:
    return PublicationMethod(family, name, printed.astype(np.float64), KnownNumbers.shown(printed, scale))


def _tabulated(family: Family, name: str, equations: Equations, exact: Integers, counts: Integers) -> PublicationMethod:
    """Tables of changed records: an attacker knows how large their errors are, and no bounds."""
    printed = equations.of(counts)
    return _shown(family, name, printed, float(np.abs(printed - exact).mean()))


def _bounded(
    family: Family, name: str, exact: Integers, printed: Integers, bounds: tuple[NDArray[Any], NDArray[Any]]
) -> PublicationMethod:
    """Numbers with errors of known size and known bounds: both are used, each as rows of its own."""
    near = _shown(family, name, printed, float(np.abs(printed - exact).mean()))
    least, largest = (each.astype(np.float64) for each in bounds)
    return replace(near, known=near.known.beside(KnownNumbers(least, largest, np.zeros(printed.shape))))


def _suppressed(relations: Equations, exact: Integers) -> Iterator[PublicationMethod]:
    """Thresholds with complementary suppression; the marks tell which is which, so each has its own bounds.

    A number that the rule hid lies from 1 to the threshold; one that was hidden beside it is at least the threshold,
    or the rule had hidden it too.
    """
    for least in THRESHOLDS:
        primary = (exact > 0) & (exact < least)
        hidden = hidden_beside(relations, exact, primary, share=PROTECTED)
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
    places, records = record_list(subject.truth)
    levels = Levels.of(subject.workload, attribute)
    for size in GROUP_SIZES:
        moved = levels.averaged(records, places, size)
        counts = record_counts(places, moved, subject.truth.shape)
        method = _tabulated("micro-aggregation", f"{attribute.name} averaged over {size}", equations, exact, counts)
        yield replace(method, recoding=levels.recoding(records, moved))
    for share in TOPS:
        coded = levels.top_coded(records, share)
        counting = Equations.of_matrix(equations.matrix[:, coded])
        printed = counting.of(subject.truth)
        name = f"{attribute.name} top-coded, {percent(share)}"
        yield replace(_shown("top-coding", name, printed), counting=counting)


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
        return np.asarray(np.unravel_index(cells, self.shape)[self.axis], dtype=np.int64)

    def moved(self, cells: Integers, levels: Integers) -> Integers:
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
