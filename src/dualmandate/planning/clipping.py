"""What clipping leaves out of the tables of a program, by the public distributions that it states, and the best bounds.

At the loss of a plan the noise of a sum grows as the largest amount that one record may add, and that of every table as
the most records of a unit; what is left out falls. Where the two together cost least is the bound that is recommended.
With `upper = "best"` bounds and loss are chosen in turn until neither moves: each step leaves society better off.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial, reduce
from itertools import pairwise

import numpy as np

from dualmandate.choice import Choice, SocialWelfare, TableValue
from dualmandate.errors import InvalidValue
from dualmandate.frontier import Measure, RelativeErrors
from dualmandate.frontier.clipping import (
    NOTHING,
    ONE_EACH,
    ONE_RECORD,
    Amounts,
    EvenPieces,
    LognormalLaw,
    ParetoTail,
    RecordCounts,
    left_out,
    left_out_of_unit,
    squared_bias,
)
from dualmandate.planning.release_spec import load_release
from dualmandate.population import Attribute
from dualmandate.population.arrays import Floats
from dualmandate.population.rational import rational
from dualmandate.population.shown import one_line
from dualmandate.population.wording import stated_amount
from dualmandate.program.domain import MOST_LEVELS
from dualmandate.program.file import Document, KeyPath
from dualmandate.program.program import ProgramFile
from dualmandate.program.schema import BEST, AttributeTable, DistributionTable, PopulationTable, ProgramKeys
from dualmandate.publication import ValueRule
from dualmandate.publication.writing import PublishedTable
from dualmandate.workload import Table, Total

FIRST_SHARE, LAST_SHARE, COMPARED = (
    0.5,
    1 - 1e-6,
    48,
)  # bounds are compared between these quantiles, evenly in logarithms
START_SHARE = 0.99  # the quantile at which the search for a bound begins
WIDEST = 1e4  # The largest bound that is compared is at most so many times the least.
MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of a bound, where no distribution is stated
RECORDS = "records"  # the name of the bound on the records of a unit
MOST_COUNTS = 50  # numbers of records of a unit that are compared
NOISE_ALONE = 2.0
BIN = re.compile(r"\[(-?[0-9.]+), (-?[0-9.]+)[)\]]")
HALVINGS = 50  # find a share to the last digit that matters


@dataclass(frozen=True)
class BoundRow:
    """What one bound would do at the loss of the plan; errors of one number of a table, in its unit."""

    bound: Fraction
    noise: float  # root mean squared
    bias: float | None  # root mean squared; None where it is not known
    cost: float  # USD: what noise, and bias as far as it is known, cost in all tables that rest on the bound

    @property
    def both(self) -> float | None:
        """Noise and bias together, root mean squared."""
        return None if self.bias is None else math.hypot(self.noise, self.bias)


@dataclass(frozen=True)
class BoundCurve:
    """Error against one bound: the upper one of an amount, or the most records of a unit."""

    name: str  # of the attribute, or "records"
    unit: str  # of the bound
    bound: Fraction  # in use
    chosen: bool  # by the plan
    table: str  # whose errors are shown: the costliest of those that rest on the bound
    table_unit: str
    rows: tuple[BoundRow, ...]  # by increasing bound
    source: str | None  # of the distribution; None where none is stated
    assumed: tuple[str, ...]  # attributes over whose levels records are taken to spread evenly
    uncounted: tuple[str, ...] = ()  # tables whose errors count in a way that a bias has no part in

    @property
    def recommended(self) -> BoundRow | None:
        """The bound at which errors cost least; None where what bounds leave out is not known, or does not count."""
        if self.uncounted:
            return None
        known = [row for row in self.rows if row.bias is not None]
        return min(known, key=lambda row: row.cost, default=None)

    @property
    def at_the_end(self) -> str:
        """Which end of all compared the recommended bound is, "largest" or "smallest": others may do better."""
        best = self.recommended
        if best is None or len(self.rows) == 1:
            return ""
        if best is self.rows[-1] and best.bias:
            return "largest"
        return "smallest" if best is self.rows[0] and best.noise > 0 and best.bound > 1 else ""


@dataclass(frozen=True, eq=False)
class Clipping:
    """What the bounds of a program leave out, by what it states; all public."""

    program: ProgramFile
    amounts: Mapping[str, Amounts]  # by attribute
    sources: Mapping[str, str]  # of these
    records: RecordCounts | None  # of units, where they are stated
    shares: Mapping[str, Floats]  # of records at the levels of attributes, where they are stated

    __repr__ = one_line

    def counted(self, welfare: SocialWelfare) -> SocialWelfare:
        """Social welfare with what clipping leaves out counted as an error that noise does not make."""
        values = tuple(
            value
            if value.parts  # of a ratio: what is left out of both of its tables partly cancels, and is not stated
            else replace(
                value,
                squared_bias=self.squared_bias(value.table) or 0.0,
                relative_bias=self.relative_bias(value),
                query_count=self.program.workload.table(value.table).query_count,
            )
            for value in welfare.table_values
        )
        return replace(welfare, table_values=values)

    def bias(self, table: str) -> float | None:
        """What clipping makes a number of a table be off by, root mean squared, in its unit; None where not known."""
        squared = self.squared_bias(table)
        return None if squared is None else math.sqrt(squared / self.program.workload.table(table).query_count)

    def relative_bias(self, value: TableValue, *, upper: Fraction | None = None, most: int | None = None) -> float:
        """Σ E[B²]/m² where errors count as shares of what is expected, m; 0 where they do not, or it is not known."""
        if not isinstance(value.measure, RelativeErrors):
            return 0.0
        expected = np.broadcast_to(value.measure.magnitudes, self.program.workload.table(value.table).query_count)
        shares = (expected * value.grid) ** -2.0
        return self.squared_bias(value.table, upper=upper, most=most, weights=shares) or 0.0

    def squared_bias(
        self, name: str, *, upper: Fraction | None = None, most: int | None = None, weights: Floats | None = None
    ) -> float | None:
        """Σ E[B²] over the numbers of a table, in its unit, also at other bounds; None where it is not known.

        `weights`, shape (query_count,), are 1 each where they are not stated.
        """
        table, protection = self.program.workload.table(name), self.program.protection
        assert table.tabulation is not None
        amount, clipped = table.tabulation.sum_of, NOTHING
        whole: tuple[float, float] | None = ONE_EACH
        if amount is not None:
            law, attribute = self.amounts.get(amount), self.program.domain.attribute(amount)
            bound = float(_upper(attribute) if upper is None else upper)
            if law is None or bound < law.least_bound or not self._sums_all(table, attribute):
                return None
            clipped, whole = left_out(law, float(attribute.lower or 0), bound), law.moments
        records = ONE_RECORD if protection.identifier is None else self.records
        if records is None:
            return None
        unit = left_out_of_unit(clipped, whole, records, most or protection.most_records_per_unit)
        if unit is None or unit == NOTHING:
            return None if unit is None else 0.0
        size = float(self.program.file.population.population_size.value)
        if weights is not None:
            once, twice = (float(_each(parts) @ weights) for parts in self._chances(table))
            return squared_bias(unit, size, (once, twice))
        if name not in self._known:
            sums = [math.prod(float(part.sum()) for part in parts) for parts in self._chances(table)]
            self._known[name] = sums[0], sums[1]
        return squared_bias(unit, size, self._known[name])

    @cached_property
    def _known(self) -> dict[str, tuple[float, float]]:
        return {}

    def _sums_all(self, table: Table, attribute: Attribute) -> bool:
        """Whether amounts of every size are added up, and clipped rather than left out."""
        clamped = self.program.rules.of(attribute).outside is ValueRule.CLAMP
        return clamped and attribute.name not in self._named(table)

    def _named(self, table: Table) -> list[str]:
        """The attributes that a table is broken down by, or selects by."""
        asked, domain = table.tabulation, self.program.domain
        assert asked is not None
        axes = {domain.resolve(name)[0] for name in (*asked.by, *(name for name, _ in asked.where))}
        return [domain.names[axis] for axis in sorted(axes)]

    def _chances(self, table: Table) -> tuple[list[Floats], list[Floats]]:
        """Attribute by attribute what p and p² of each number are products of, with weights squared in both.

        Attributes spread independently.
        """
        assert table.tabulation is not None
        once, twice = ([np.array([float(table.weight) ** 2])] for _ in range(2))
        for attribute, factor in zip(self.program.domain.attributes, table.factors, strict=True):
            if attribute.name != table.tabulation.sum_of and not isinstance(factor, Total):
                known = self.spread(attribute.name)
                shares = np.full(attribute.size, 1 / attribute.size) if known is None else known
                assert factor.scales is not None  # a tabulation has one number a level
                once.append(factor.apply(shares * factor.scales, 0))
                twice.append(np.square(factor.apply(shares, 0)))
        return once, twice

    def spread(self, name: str) -> Floats | None:
        """How records spread over the levels of an attribute: as stated, or by its distribution; None where neither."""
        law = self.amounts.get(name)
        if name in self.shares or law is None:
            return self.shares.get(name)
        return _shares_by_law(self.program, name, law)

    def curves(self, choice: Choice, welfare: SocialWelfare) -> tuple[BoundCurve, ...]:
        """Error against every bound that a table rests on, at the loss of a choice."""
        return tuple(self._curve(bound, choice, welfare) for bound in self._bounds())

    def best_bounds(self, choice: Choice, welfare: SocialWelfare) -> dict[str, Fraction]:
        """The recommended bound of each amount that leaves its bound to the plan."""
        recommended = {curve.name: curve.recommended for curve in self.curves(choice, welfare)}
        found = {}
        for name in self.program.bounds:
            best = recommended[name]
            assert best is not None  # `check` has refused the others
            found[name] = best.bound
        return found

    def check(self, welfare: SocialWelfare) -> None:
        """Refuse bounds that are left to the plan where a bias does not count beside noise: before a search."""
        for position, (asked, value) in enumerate(zip(self.program.file.workload, welfare.table_values, strict=False)):
            if asked.sum_of in self.program.bounds and not _counts_bias(value.measure):
                raise InvalidValue(
                    f"the bound of '{asked.sum_of}' cannot be chosen",
                    why=f"what a bound leaves out cannot be held against noise in table '{asked.name}': that is known "
                    "for squared, absolute and relative errors",
                    instead="state upper, or use one of these losses without a decision",
                    where=self.program.document.place(
                        ("workload", position, "loss" if asked.decision is None else "decision")
                    ),
                )
        amounts = {bound.name: bound for bound in self._bounds()}
        for name in self.program.bounds:
            if name not in amounts or not amounts[name].known:
                raise InvalidValue(
                    f"the bound of '{name}' cannot be chosen",
                    why="no table adds all of it up"
                    if name not in amounts
                    else "what a bound leaves out is not known of every table that adds it up: one selects by it, or "
                    "drops records of which nothing is stated",
                    instead="state upper, or tables and records_per_unit from which the best one follows",
                    where=self.program.document.place(("population", "attributes", name, "upper")),
                )

    def _bounds(self) -> Iterator[_Bound]:
        workload, protection, population = (
            self.program.file.workload,
            self.program.protection,
            self.program.file.population,
        )
        for name in dict.fromkeys(table.sum_of for table in workload if table.sum_of is not None):
            attribute, tables = self.program.domain.attribute(name), [t for t in workload if t.sum_of == name]
            if self.program.rules.of(attribute).outside is ValueRule.CLAMP:
                yield _Bound(
                    name,
                    tables[0].unit or "",
                    _upper(attribute),
                    bounds_of(population.attributes[name], attribute, self.amounts.get(name)),
                    tuple(table.name for table in tables),
                    partial(_amount_scale, attribute.lower or Fraction(0)),
                    lambda table, bound: self.squared_bias(table, upper=bound),
                    lambda value, bound: self.relative_bias(value, upper=bound),
                    self.sources.get(name),
                    chosen=population.attributes[name].upper == BEST,
                )
        if protection.identifier is not None:
            stated = population.records_per_unit
            counts = (1, 2, 3, 4) if self.records is None else sorted(self.records.shares)[:MOST_COUNTS]
            yield _Bound(
                RECORDS,
                "record",
                Fraction(protection.most_records_per_unit),
                tuple(map(Fraction, counts)),
                tuple(table.name for table in workload),
                lambda bound, used: float(bound / used),
                lambda table, bound: self.squared_bias(table, most=int(bound)),
                lambda value, bound: self.relative_bias(value, most=int(bound)),
                None if stated is None else stated.source,
            )

    def _curve(self, bound: _Bound, choice: Choice, welfare: SocialWelfare) -> BoundCurve:
        outcomes = {table.table: table for table in choice.tables}
        values = [value for value in welfare.table_values if value.table in bound.tables]
        counted = [value for value in values if _counts_bias(value.measure)]
        noise = {value.table: (outcomes[value.table].data_loss or 0.0) - value.least for value in counted}
        first = max(values, key=lambda value: outcomes[value.table].data_loss or 0.0)
        rows = []
        for at in sorted({*bound.others, bound.used}):
            scale = bound.scale(at, bound.used)
            squared = {value.table: bound.squared(value.table, at) for value in values}
            cost = math.fsum(
                noise[value.table] * scale ** (1 if value.measure == "absolute" else 2)
                + replace(
                    value,
                    existing_squared_error=0.0,
                    squared_bias=squared[value.table] or 0.0,
                    relative_bias=bound.relative(value, at),
                ).least
                for value in counted
            )
            shown = None if None in squared.values() else squared[first.table]
            bias = None if shown is None else math.sqrt(shown / first.query_count)
            rows.append(BoundRow(at, outcomes[first.table].root_mean_squared_error * scale, bias, cost))
        named = self._named(self.program.workload.table(first.table))
        assumed = tuple(name for name in named if self.spread(name) is None)
        stated = bound.name, bound.unit, bound.used, bound.chosen
        others = tuple(value.table for value in values if value not in counted)
        return BoundCurve(*stated, first.table, first.unit, tuple(rows), bound.source, assumed, others)


@dataclass(frozen=True, eq=False)
class _Bound:
    """A bound, others to compare it with, and how errors of the tables that rest on it move with it."""

    name: str
    unit: str
    used: Fraction
    others: tuple[Fraction, ...]
    tables: tuple[str, ...]
    scale: Callable[[Fraction, Fraction], float]  # noise at one bound, relative to that at another
    squared: Callable[[str, Fraction], float | None]  # Σ E[B²] of a table at a bound
    relative: Callable[[TableValue, Fraction], float]  # the same as shares of what is expected
    source: str | None
    chosen: bool = False

    @property
    def known(self) -> bool:
        """Whether it is known at some bound what is left out of every table."""
        return any(
            all(self.squared(table, at) is not None for table in self.tables) for at in {*self.others, self.used}
        )


def _amount_scale(lower: Fraction, bound: Fraction, used: Fraction) -> float:
    """One record moves a sum by at most the largest amount in size."""
    return float(max(abs(lower), abs(bound)) / max(abs(lower), abs(used)))


def _each(parts: Sequence[Floats]) -> Floats:
    """The products of one factor from each part, row-major: one for each number of a table."""
    return reduce(lambda product, part: np.multiply.outer(product, part).reshape(-1), parts)


def _counts_bias(measure: Measure) -> bool:
    """Whether it is known what a bias adds to errors that count so."""
    return isinstance(measure, str | RelativeErrors)


def _upper(attribute: Attribute) -> Fraction:
    assert attribute.upper is not None
    return attribute.upper


def bounds_of(table: AttributeTable, attribute: Attribute, amounts: Amounts | None) -> tuple[Fraction, ...]:
    """The bounds of an amount that are compared, on its grid: stated, by its distribution, or around the one in use."""
    if table.bounds is not None:
        return tuple(sorted(table.bounds))
    lower, grid = attribute.lower or Fraction(0), attribute.grid or Fraction(1)
    if amounts is None:
        around = [float(_upper(attribute)) * multiple for multiple in MULTIPLES]
    else:
        high = amounts.quantile(LAST_SHARE)
        low = max(amounts.quantile(FIRST_SHARE), amounts.least_bound, high / WIDEST)
        around = [low * (high / low) ** (place / (COMPARED - 1)) for place in range(COMPARED)] if low < high else [high]
    most = lower + grid * (MOST_LEVELS - 2)
    on_grid = {math.ceil(Fraction(bound) / grid) * grid for bound in around}
    return tuple(sorted(bound for bound in on_grid if lower < bound <= most))


def starting_bounds(file: ProgramKeys, document: Document) -> dict[str, Fraction]:
    """Where the search for every bound that a program leaves to its plan begins."""
    found = {}
    for name, table in file.population.attributes.items():
        if table.upper == BEST:
            with document.at("population", "attributes", name):
                assert table.lower is not None
                assert table.grid is not None
                assert table.distribution is not None
                law, _ = distribution_of(
                    table.distribution, document, ("population", "attributes", name, "distribution")
                )
                least = table.lower + table.grid
                known = bounds_of(table, Attribute.numbers(name, table.lower, least, table.grid), law)
                if not known:
                    raise InvalidValue(
                        f"no bound of '{name}' can be compared",
                        why=f"bounds lie on its grid above its lower bound, and leave at most {MOST_LEVELS:,} levels",
                        instead="state a grid that is small beside the amounts, or bounds = […]",
                    )
                start = law.quantile(START_SHARE)
                found[name] = next((bound for bound in known if bound >= start), known[-1])
    return found


def clipping_of(program: ProgramFile) -> Clipping:
    """What a program states of amounts and of records."""
    amounts, sources = {}, {}
    for name, table in program.file.population.attributes.items():
        if table.distribution is not None:
            key = ("population", "attributes", name, "distribution")
            amounts[name], sources[name] = distribution_of(table.distribution, program.document, key)
            for place, bound in enumerate(table.bounds or ()):
                with program.document.at("population", "attributes", name, "bounds", place):
                    Attribute.numbers(name, table.lower or 0, bound, table.grid or 1)
    return Clipping(
        program, amounts, sources, _records(program.file.population, program.document), expected_shares(program)
    )


def _shares_by_law(program: ProgramFile, name: str, law: Amounts) -> Floats | None:
    """How records spread over the levels of an amount by its distribution; None where that does not say it of all.

    Each amount counts as the nearest level of the grid, and those beyond the bounds as the bounds.
    """
    attribute = program.domain.attribute(name)
    if attribute.lower is None or attribute.grid is None or attribute.missing is not None:
        return None  # how many answers are missing is not stated
    if law.least_bound > attribute.lower or program.rules.of(attribute).outside is not ValueRule.CLAMP:
        return None
    between = [float((value + Fraction(1, 2)) * attribute.grid) for value in attribute.grid_values[:-1]]
    return np.diff([0.0, *(_share_up_to(law, amount) for amount in between), 1.0])


def _share_up_to(law: Amounts, amount: float) -> float:
    """The share of records whose amount is at most this one."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if law.quantile(middle) <= amount else (low, middle)
    return low


def expected_shares(program: ProgramFile) -> dict[str, Floats]:
    """How records are expected to spread over the levels of each attribute that states it; adding up to 1."""
    found = {}
    for name, table in program.file.population.attributes.items():
        if table.expected is not None:
            attribute = program.domain.attribute(name)
            shares = np.zeros(attribute.size)
            with program.document.at("population", "attributes", name, "expected", "shares"):
                for level, share in table.expected.shares.items():
                    shares[attribute.position(level)] = float(share)
            found[name] = shares / shares.sum()
    return found


def _records(population: PopulationTable, document: Document) -> RecordCounts | None:
    stated = population.records_per_unit
    if stated is None:
        return None
    if population.identifier is None:
        raise InvalidValue(
            "records_per_unit is stated, and nothing names a unit",
            why="records beyond most_records_per_unit are left out only where the records of a unit can be found",
            instead="state the identifier, or leave records_per_unit out",
            where=document.place(("population", "records_per_unit")),
        )
    total = float(sum(stated.shares.values()))
    for count in stated.shares:
        if not count.isdecimal() or int(count) == 0:
            raise InvalidValue(
                f"a {population.unit} with '{count}' records",
                why="units in the data have a whole number of records, at least 1",
                instead='write shares = { "1" = 0.8, "2" = 0.2 }',
                where=document.place(("population", "records_per_unit", "shares", count)),
            )
    return RecordCounts({int(count): float(share) / total for count, share in stated.shares.items()})


def distribution_of(table: DistributionTable, document: Document, key: KeyPath) -> tuple[Amounts, str]:
    """The distribution that a program states, and its source in words."""
    source, share = table.source or "", float(table.share)
    if table.quantiles is not None:
        return EvenPieces.of_quantiles({float(p): float(amount) for p, amount in table.quantiles.items()}), source
    if table.median is not None and table.spread is not None:
        return LognormalLaw(float(table.median), float(table.spread), share), source
    if table.least is not None and table.tail_index is not None:
        return ParetoTail(float(table.least), float(table.tail_index), share), source
    assert table.release is not None
    assert table.table is not None
    with document.at(*key):
        release = load_release(document.path.parent / table.release)
        pieces = _published(table.table, release.published(table.table))
        top = stated_amount(pieces.pieces[-1][1], None)
        return pieces, (
            f"table '{table.table}' of release {release.facts['release']} of {release.facts['program']}, which tells "
            f"nothing from noise beyond {top}"
        )


def _published(name: str, found: PublishedTable) -> EvenPieces:
    """Records by bins of an amount, from a table that was published; other levels (a missing answer) tell nothing.

    Noise alone fills some of the highest bins, and one person too many there is worth thousands below: bins from which
    on records are together no more than NOISE_ALONE standard errors are counted in the one below them.
    """
    bins = [BIN.fullmatch(label) for label in found.labels[0]] if len(found.labels) == 1 else []
    numbers = found.estimates if found.values is None else found.values
    known = [(each, max(float(count), 0.0)) for each, count in zip(bins, numbers, strict=False) if each is not None]
    edges = [(float(rational(each[1])), float(rational(each[2]))) for each, _ in known]
    if not any(count for _, count in known) or any(one[1] != other[0] for one, other in pairwise(edges)):
        raise InvalidValue(
            f"the table '{name}' does not say how an amount is distributed",
            why="it must count records by bins of the amount alone, and find some",
            instead="name a table by one attribute with edges, or logarithmic_bins",
        )
    places = [place for place, each in enumerate(bins) if each is not None]
    beyond = np.cumsum(found.estimates[places][::-1])[::-1]
    errors = np.sqrt(np.cumsum(np.square(found.standard_errors[places])[::-1])[::-1])
    told = np.flatnonzero((beyond > NOISE_ALONE * errors) & (np.array([count for _, count in known]) > 0))
    last = int(told.max(initial=0)) + 1
    counts = [count for _, count in known[:last]]
    counts[-1] += max(float(beyond[last]), 0.0) if last < len(known) else 0.0
    return EvenPieces.of_bins([edges[0][0], *(high for _, high in edges[:last])], counts)
