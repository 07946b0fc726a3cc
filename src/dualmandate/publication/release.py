"""A release as its users meet it: tables, estimates, and how wrong any number or sum of numbers may be.

Everything comes from public files. Each is compared with its SHA-256 in `release.json` before it is used: small ones
when a release is opened, large ones when they are first read.

What one release alone loses, as (ε, δ), comes from the distribution of its privacy loss, composed numerically by
dp-accounting: for noise that was all fixed beforehand the exact curve, up to its discretization, which errs on the safe
side, a little below what the sum of ρ implies. Two of them do not add up, so that it is reported and never accounted
with. The worst is taken over the changes that a unit can make.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRelease, InvalidRequest, Place, UnknownName, did_you_mean
from dualmandate.ledger.chain import RELEASE_FILE
from dualmandate.mechanism import Measurement, Noise, Rows, StrategyRows
from dualmandate.mechanism.changes import Change, Measured, largest_changes
from dualmandate.mechanism.data_dependent import Draw
from dualmandate.mechanism.technologies import noise_named
from dualmandate.population import PrivacyLoss, PrivacyMeasure, Protection, plural
from dualmandate.population.arguments import checked_class, unexpected
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.loss import epsilon_at
from dualmandate.population.rational import Written, written_probability
from dualmandate.population.shown import cut_line, one_line, page_of, sentences
from dualmandate.population.shown import table as html_table
from dualmandate.population.wording import chosen_loss, counted, exact, number
from dualmandate.publication.intervals import (
    Interval,
    Probability,
    SimultaneousIntervals,
    asked_for,
    draws_of,
    interval_by_law,
    interval_of,
    simultaneous_of,
    simultaneous_of_cells,
    spread_of,
)
from dualmandate.publication.levels import Levels, levels_meant
from dualmandate.publication.nested_tables import NestWeights
from dualmandate.publication.number_errors import NumberErrors
from dualmandate.publication.ratios import JointError, interval_of_ratio, joint_error
from dualmandate.publication.superpopulation import COUNTED, COVERED, expected_number_interval
from dualmandate.publication.transcripts import read_transcript
from dualmandate.publication.writing import (
    COUNTED_COLUMN,
    EARLIER,
    ENDS,
    NUMBERS,
    OF_ESTIMATES,
    PERCENTS,
    RELEASE_SCHEMA,
    UNIT_COLUMN,
    NoisyRows,
    PublishedTable,
    damaged,
    ratio_numbers,
    read_measurements,
    read_table,
)
from dualmandate.workload import Ratio, Table

if TYPE_CHECKING:
    import pyarrow as pa

FORMS = ("estimates", "parquet", "csv", "sdmx-csv", "sdmx-ml")  # A table is published in these.
MOST_TOGETHER = 2**26  # At most so many numbers of query rows are held, where all rows of a table are needed at once.
LARGE = 2**22  # Files of more bytes are compared with their digests when they are first read.
MOST_INTERVALS = 2**10  # A ratio with at most so many numbers is published with all of its intervals.


@checked_class
@dataclass(frozen=True, eq=False)
class Release:
    """What was published: `facts` is release.json, `measurement` says how a group of tables was measured.

    Labels name one level of a column or several; a column that is left out is summed over all its levels. So
    `release.interval("by sex and age", sex="f")` is about all women, whatever their age.
    """

    folder: Path
    facts: Mapping[str, Any] = field(repr=False)
    measurement: Callable[[str], Measurement] = field(repr=False)  # of a group, by its name
    together: Callable[[], NestWeights] | None = field(default=None, repr=False)  # of all, where estimates rest on all
    ratio: Callable[[str], Ratio] | None = field(default=None, repr=False)  # by its name: which numbers it divides
    superpopulation: Callable[[], frozenset[str]] = field(default=frozenset, repr=False)  # tables that estimate one
    estimated: Callable[[str], PublishedTable] | None = field(default=None, repr=False)  # of large tables, made again
    again: Callable[[tuple[Draw, ...]], Floats] | None = field(default=None, repr=False)  # estimates by a transcript

    def __repr__(self) -> str:
        loss = f"{self.facts['loss']['currency']} = {chosen_loss(float(Fraction(self.facts['loss']['exact'])))}"
        names = ", ".join(f"'{name}'" for name in (*self.tables, *self.ratios))
        return cut_line(f"Release({self.facts['release']} of '{self.facts['program']}', {loss}: {names})")

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(each["name"] for each in self.facts["tables"])

    @property
    def ratios(self) -> tuple[str, ...]:
        """The names of the ratios of tables: means, shares and rates."""
        return tuple(each["name"] for each in self.facts.get("ratios", ()))

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups of tables that were measured together."""
        return tuple(each["name"] for each in self.facts["groups"])

    def __getitem__(self, name: str) -> ReleasedTable:
        """One table or ratio, to be taken along: `release["people by age"].to_pandas()`."""
        self._entry("ratios" if name in self.ratios else "tables", name)
        return ReleasedTable(name, self)

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.tables, *self.ratios]

    def _repr_html_(self) -> str:
        """What a notebook shows: the loss, and every table with its size and its unit."""
        facts, ratios = self.facts, self.facts.get("ratios", ())
        loss = f"{facts['loss']['currency']} = {chosen_loss(float(Fraction(facts['loss']['exact'])))}"
        rows = [
            (each["name"], ", ".join(each.get("columns", ())) or "–", each.get("unit", "–"), f"{each['cells']:,}")
            for each in (*facts["tables"], *ratios)
            if "cells" in each
        ]
        said = f"{counted(len(facts['tables']), 'table')}, at a privacy loss of {loss} of each {facts['unit']}."
        taken = f"release['{self.tables[0]}'].to_pandas() gives one of them with its errors." if self.tables else ""
        headings = ["table", "by", "unit", "numbers"]
        title = f"Release {facts['release']} of {facts['program']}"
        return page_of(title, sentences([said]), html_table(headings, rows, words=3), sentences([taken]))

    def table(self, name: str) -> pa.Table:
        """Labels, the whole numbers where there are any, the unbiased estimate and its standard error.

        Of a ratio: that of the estimates, its standard error and the ends of its intervals, and that of whole numbers.
        Whatever else its files say of each number (labels of levels, intervals, the unit) follows.
        """
        own = self._own_columns(name)
        return _with_labels(self._passed_through(name, own), self.published(name).columns)

    def _passed_through(self, name: str, own: pa.Table) -> pa.Table:
        """The same with the columns of its files that are not there yet, row by row in the same order."""
        from pyarrow import parquet

        known = {*own.column_names, "kind", *EARLIER}  # the last ones under their names of today
        for path in self._files_of(name):
            for column in parquet.read_schema(path).names:
                if column.rstrip("_") not in known and column not in known:
                    own = own.append_column(column, parquet.read_table(path, columns=[column]).column(0))
                    known.add(column)
        return own

    def _own_columns(self, name: str) -> pa.Table:
        import pyarrow as pa

        found = self.published(name)
        shape = [len(levels) for levels in found.labels]
        places = np.unravel_index(np.arange(len(found.estimates)), shape) if shape else ()
        columns: dict[str, Any] = {
            column: pa.DictionaryArray.from_arrays(pa.array(place, pa.int32()), pa.array(levels, pa.string()))
            for column, place, levels in zip(found.columns, places, found.labels, strict=True)
        }
        if name in self.ratios:
            return pa.table({**columns, **ratio_numbers(found)})
        values = {} if found.values is None else {"value": found.values}
        errors = {} if found.has_unknown_errors else {"standard_error": found.standard_errors}
        return pa.table({**columns, **values, "estimate": found.estimates, **errors})

    def published(self, name: str) -> PublishedTable:
        """The same with its labels apart from its numbers."""
        if name not in self._known:
            paths = self._files_of(name)
            found = read_table(paths[0], estimates=paths[1] if len(paths) > 1 else None)
            own = "tables" if name in self.tables else "ratios"
            if self._entry(own, name).get("estimates", "") is None and self.estimated is not None:
                again = self.estimated(name)
                found = replace(found, estimates=again.estimates, standard_errors=again.standard_errors)
            self._known[name] = found
        return self._known[name]

    def _files_of(self, name: str) -> list[Path]:
        files = self._entry("ratios" if name in self.ratios else "tables", name)
        return [self._checked(files[kind]) for kind in ("parquet", "estimates") if files.get(kind) is not None]

    def records(self) -> pa.Table:
        """The synthetic records that the tables in whole numbers are counted from, one row a record.

        Refused where the release has no such file: `synthetic_records = true` in its program asks for one.
        """
        from pyarrow import parquet

        said = self.facts.get("synthetic_records", {"none": "its program did not ask for such a file"})
        if "parquet" not in said:
            raise InvalidRequest(
                "no synthetic records",
                why=f"{said['none']}",
                instead="publish a program with synthetic_records = true in [publication]",
            )
        return parquet.read_table(self._checked(said["parquet"])).replace_schema_metadata(None)

    def check(self) -> None:
        """Compare every file with its digest, large ones too; refused where one is missing or was changed."""
        for name in self.facts["files"]:
            self._checked(name)

    def _checked(self, name: str) -> Path:
        """A file, compared with its digest where that was not done when the release was opened."""
        files = self.facts.get("files", {})  # none while a folder is written
        if name in files and name not in self._compared and _is_large(self.folder, name):
            _check_file(self.folder, name, files[name])
            self._compared.add(name)
        return self.folder / name

    @cached_property
    def _compared(self) -> set[str]:
        return set()

    @property
    def technology(self) -> str | None:
        """The technology whose errors depend on the data, by its word in a program file; None of measurements."""
        return self.facts["technology"]["name"] if "technology" in self.facts else None

    def transcript(self) -> tuple[Draw, ...]:
        """Every draw of the technology, in order: what it was of, with which noise, and what came out.

        All else in the release follows from it. Refused where numbers were measured by groups of tables.
        """
        if self.technology is None:
            raise InvalidRequest(
                "no transcript",
                why="its tables were measured in groups that the plan had fixed",
                instead="read release.measurements(group)",
            )
        return read_transcript(self._checked(self.facts["technology"]["measurements"]))

    def told(self) -> Floats:
        """The estimates of all tables that have noise, one after the other, made again from the transcript alone."""
        transcript = self.transcript()
        assert self.again is not None
        return self.again(transcript)

    def measurements(self, group: str) -> NoisyRows:
        """The measured numbers of a group, with the exact noise of each."""
        return read_measurements(self._checked(self._entry("groups", group)["measurements"]))

    def estimate(self, table: str, where: Mapping[str, Levels] | None = None, /, **labels: Levels) -> float:
        """The unbiased estimate of a number, or of a sum of numbers of a table; of a ratio, that of two such sums."""
        if table in self.ratios:
            numerator, denominator, _ = self.joint(table)(self._cells(table, _asked(where, labels)))
            return numerator / denominator if denominator else math.nan
        return float(self.published(table).estimates[self._cells(table, _asked(where, labels))].sum())

    def interval(
        self,
        table: str,
        where: Mapping[str, Levels] | None = None,
        /,
        *,
        probability: Probability = 0.95,
        **labels: Levels,
    ) -> Interval:
        """The interval about that estimate that holds the true number with at least this probability.

        Of a ratio it is Fieller's set, which is the whole line where the denominator may be 0.
        Where amounts or records were clipped, the true number is that of what was counted: `covers` says it.
        Where the program says that a table estimates a superpopulation, it holds the expected number.

        Levels are named as people type them: 20, "20", the code or the label of a level, or a list of them, which are
        added up: the interval is that of their exact sum.
        """
        cells = self._cells(table, _asked(where, labels))
        return replace(self._interval(table, cells, probability), covers=self._covers(table), unit=self._unit_of(table))

    def _unit_of(self, table: str) -> str | None:
        entry = self._entry("ratios" if table in self.ratios else "tables", table)
        unit = entry.get("unit")
        return unit if isinstance(unit, str) and unit != "share" else None

    def _interval(self, table: str, cells: NDArray[np.intp], probability: Probability) -> Interval:
        if self._is_told(table):
            return self._told_interval(table, cells, probability)
        if table in self.ratios:
            numerator, denominator, error = self.joint(table)(cells)
            found = interval_of_ratio(numerator, denominator, error, probability=probability)
            spread = error.spread(found.estimate) / abs(denominator) if denominator else None
            return replace(found, standard_error=spread)
        estimate = float(self.published(table).estimates[cells].sum())
        if table in self.superpopulation():
            return self._expected(table, cells.tolist(), probability)
        if self._entry("tables", table)["exact"]:
            nominal, words = float(asked_for(probability)), "published without noise"
            return Interval(estimate, estimate, estimate, nominal, 1.0, True, words, standard_error=0.0)
        errors = self._errors(table)
        draws = errors.draws(cells.tolist())
        exact = interval_by_law(estimate, draws, probability=probability)
        if exact is not None:
            return replace(exact, standard_error=spread_of(draws))
        weights = float(errors.table.grid) * errors.rows.weights(table, cells.tolist())
        simulated = interval_of(estimate, weights, _kinds(errors.rows), errors.noises, probability=probability)
        return replace(simulated, standard_error=spread_of(draws))

    def _is_told(self, table: str) -> bool:
        """Whether a table was told by a technology: its intervals are those of its files, and no more is known."""
        return self.technology is not None and not self._entry("tables", table)["exact"]

    def _told_interval(self, table: str, cells: NDArray[np.intp], probability: Probability) -> Interval:
        """The interval of one number, as it was published, at the asked probability or the next above."""
        if len(cells) != 1:
            raise self._not_told(f"the error of a sum of {len(cells):,} numbers of '{table}'")
        published, percent = self.published(table), self._told_percent(table, probability)
        [at] = cells.tolist()
        estimate = float(published.estimates[at])
        lower, upper = (float(published.intervals[f"{end}_{percent}"][at]) for end in ENDS)
        nominal, words = float(asked_for(probability)), str(self.facts["technology"]["covers"])
        return Interval(estimate, lower, upper, nominal, percent / 100, False, words)

    def _told_percent(self, table: str, probability: Probability) -> int:
        nominal = asked_for(probability)
        percent = next((each for each in PERCENTS if Fraction(each, 100) >= nominal), None)
        if percent is None or f"lower_{percent}" not in self.published(table).intervals:
            most = f"intervals of {PERCENTS[-1]} % are the widest that its files hold"
            raise InvalidRequest(
                f"an interval of '{table}' that holds with a probability of {float(nominal):g}",
                why=most if percent is None else "none is known of these numbers",
                instead=f"ask for at most {PERCENTS[-1] / 100:g}",
            )
        return percent

    def _not_told(self, what: str) -> InvalidRequest:
        return InvalidRequest(
            f"{what} is not known",
            why=f"'{self.technology}' states how far off each number is, and not how the errors of several go together",
            instead="ask the next program for a table of these sums; or add up whole numbers, without an interval",
        )

    def difference(
        self, table: str, more: Mapping[str, Levels], less: Mapping[str, Levels], *, probability: Probability = 0.95
    ) -> Interval:
        """The interval about what one number of a table has more than another, from the noise that both share.

        Of a cumulative table it is that of a range: `more` {"income": "up to 99"} and `less` {"income": "up to 9"} are
        incomes from 10 to 99. Both may be sums, as in `interval`.
        """
        if table in self.ratios or table in self.superpopulation():
            raise InvalidRequest(
                f"the difference of two numbers of '{table}'",
                why="it is a ratio, or estimates a superpopulation, and these have no noise alone as their error",
                instead="ask for the intervals of the two numbers, or for a table of counts",
            )
        if self._is_told(table):
            raise self._not_told(f"the error of the difference of two numbers of '{table}'")
        estimates = self.published(table).estimates
        above, below = self._cells(table, more), self._cells(table, less)
        estimate = float(estimates[above].sum() - estimates[below].sum())
        covers, unit = self._covers(table), self._unit_of(table)
        if self._entry("tables", table)["exact"]:
            nominal, words = float(asked_for(probability)), "published without noise"
            return Interval(estimate, estimate, estimate, nominal, 1.0, True, words, standard_error=0.0, unit=unit)
        errors = self._errors(table)
        taken = errors.rows.weights(table, above.tolist()) - errors.rows.weights(table, below.tolist())
        weights, kinds = float(errors.table.grid) * taken, _kinds(errors.rows)
        draws = draws_of(weights, kinds, errors.noises)
        found = interval_by_law(estimate, draws, probability=probability)
        if found is None:
            found = interval_of(estimate, weights, kinds, errors.noises, probability=probability)
        return replace(found, standard_error=spread_of(draws), covers=covers, unit=unit)

    def intervals(self, table: str, by: Sequence[str] | None = None, *, probability: Probability = 0.95) -> pa.Table:
        """Every number of a table with its standard error and its interval, as an Arrow table with one row a number.

        `by` names the columns to keep, all where it is not given; others are summed over all their levels, exactly.
        Each interval holds its own true number with at least this probability, not all of them together. What the truth
        is where amounts or records were clipped, and how intervals were found, stands in the table's metadata.
        """
        import pyarrow as pa

        found = self.published(table)
        kept = self._columns_by(table, by)
        shape = [len(levels) for levels in found.labels]
        own = [size for size, column in zip(shape, found.columns, strict=True) if column in kept]
        places = np.unravel_index(np.arange(math.prod(own)), own) if own else ()
        labels = [levels for levels, column in zip(found.labels, found.columns, strict=True) if column in kept]
        columns: dict[str, Any] = {
            column: pa.DictionaryArray.from_arrays(pa.array(place, pa.int32()), pa.array(levels, pa.string()))
            for column, place, levels in zip(kept, places, labels, strict=True)
        }
        summed = tuple(axis for axis, column in enumerate(found.columns) if column not in kept)
        numbers = np.arange(math.prod(own)).reshape([1 if i in summed else size for i, size in enumerate(shape)])
        sums = np.broadcast_to(numbers, shape).reshape(-1)
        estimates, spreads, ends, words = self._ends(table, sums, asked_for(probability))
        errors = {} if self._is_told(table) else {"standard_error": spreads}
        columns |= {"estimate": estimates, **errors, "lower": ends[0], "upper": ends[1]}
        covers = self._covers(table)
        told = {"probability": str(probability), "method": words, **({} if covers is None else {"covers": covers})}
        return pa.table(columns).replace_schema_metadata(told)

    def _columns_by(self, table: str, by: Sequence[str] | None) -> tuple[str, ...]:
        columns = self.published(table).columns
        asked = columns if by is None else [by] if isinstance(by, str) else by
        for column in asked:
            self._check_column(table, column)
        for column in columns:
            if column not in asked:
                self._check_added_up(table, column)
        return tuple(column for column in columns if column in asked)

    def _ends(
        self, table: str, sums: NDArray[np.intp], nominal: Fraction
    ) -> tuple[Floats, Floats, tuple[Floats, Floats], str]:
        """Estimates of sums of numbers, their standard errors, the ends of their intervals, and how these were found.

        `sums` says which sum each number goes into.
        """
        published = self.published(table)
        count = int(sums.max()) + 1
        if self._is_told(table):
            if count != len(published.estimates):
                raise self._not_told(f"the error of sums of numbers of '{table}'")
            percent = self._told_percent(table, nominal)
            ends = tuple(published.intervals[f"{end}_{percent}"][np.argsort(sums)] for end in ENDS)
            words = str(self.facts["technology"]["covers"])
            return published.estimates, np.full(count, np.nan), (ends[0], ends[1]), words
        if table in self.ratios or table in self.superpopulation():
            each = [self._interval(table, np.flatnonzero(sums == number), nominal) for number in range(count)]
            known = np.array([[one.estimate, one.standard_error or np.nan, one.lower, one.upper] for one in each]).T
            return known[0], known[1], (known[2], known[3]), each[0].method
        estimates: Floats = np.bincount(sums, weights=published.estimates, minlength=count).astype(np.float64)
        if self._entry("tables", table)["exact"]:
            return estimates, np.zeros(count), (estimates, estimates), "published without noise"
        errors = self._errors(table)
        spreads = errors.spreads(sums, published.standard_errors)
        (halves,), words = errors.halves(spreads, sums, [float(1 - nominal)])
        return estimates, spreads, (estimates - halves, estimates + halves), words

    def simultaneous(self, table: str, probability: Probability = 0.95) -> SimultaneousIntervals:
        """Intervals for all numbers of a table that hold together with at least this probability."""
        return replace(self._simultaneous(table, probability), covers=self._covers(table))

    def _simultaneous(self, table: str, probability: Probability) -> SimultaneousIntervals:
        if self._is_told(table):
            raise self._not_told(f"how often the intervals of all numbers of '{table}' hold together")
        estimates = self.published(table).estimates
        if table in self.ratios:
            each = 1 - (1 - asked_for(probability)) / len(estimates)
            found, joint = list[Interval](), self.joint(table)
            for number in range(len(estimates)):
                found.append(interval_of_ratio(*joint(np.array([number])), probability=each))
            return _added_up(estimates, found, probability, "each ratio by itself, the chances to miss added up")
        if table in self.superpopulation():
            each = 1 - (1 - asked_for(probability)) / len(estimates)
            found = [self._expected(table, [number], each) for number in range(len(estimates))]
            words = f"{found[0].method}, the chances to miss {COVERED} added up"
            return _added_up(estimates, found, probability, words)
        if self._entry("tables", table)["exact"]:
            return SimultaneousIntervals(
                estimates, estimates, estimates, float(asked_for(probability)), 1.0, True, "published without noise"
            )
        errors = self._errors(table)
        rows, noises, grid = errors.rows, errors.noises, float(errors.table.grid)
        if isinstance(rows, StrategyRows) and rows.strategy.marginals is not None:
            each_taken = [rows.taken(table, [number]) for number in range(len(estimates))]
            used = np.unique(np.concatenate([own for own, _ in each_taken]))
            if len(estimates) * len(used) <= MOST_TOGETHER:
                taken = np.zeros((len(estimates), len(used)))
                for here, (own, shares) in zip(taken, each_taken, strict=True):
                    here[np.searchsorted(used, own)] = grid * shares
                return simultaneous_of(estimates, taken, _kinds(rows)[used], noises, probability=probability)
        if not isinstance(rows, NestWeights) and rows.direct:
            kinds = _kinds(rows)[np.flatnonzero(rows.weights(table, range(len(estimates))))]
            factor = grid * float(errors.table.weight)
            return simultaneous_of_cells(estimates, kinds, noises, factor=factor, probability=probability)
        if len(estimates) * rows.size <= MOST_TOGETHER:
            weights = grid * np.stack([rows.weights(table, [number]) for number in range(len(estimates))])
            return simultaneous_of(estimates, weights, _kinds(rows), noises, probability=probability)
        nominal = asked_for(probability)
        each = 1 - (1 - nominal) / len(estimates)
        _, _, (lower, upper), words = self._ends(table, np.arange(len(estimates)), each)
        words = f"{words}, the chances to miss added up"
        return SimultaneousIntervals(estimates, lower, upper, float(nominal), float(nominal), False, words)

    def joint(self, ratio: str) -> Callable[[NDArray[np.intp]], tuple[float, float, JointError]]:
        """For some numbers of a ratio: its numerators and its denominators, added up, and the errors of both."""
        self._entry("ratios", ratio)
        return self._joint(ratio)

    def _joint(self, ratio: str) -> Callable[[NDArray[np.intp]], tuple[float, float, JointError]]:
        """The same, also while the folder is written that will name it."""
        assert self.ratio is not None
        asked = self.ratio(ratio)
        tables = asked.numerator, asked.denominator
        estimates = [self.published(table.name).estimates for table in tables]
        exact = [self._entry("tables", table.name)["exact"] for table in tables]
        rows = [None if known else self._rows_of(table.name) for table, known in zip(tables, exact, strict=True)]

        def weights(place: int, numbers: NDArray[np.intp]) -> Floats:
            found, table = rows[place], tables[place]
            return np.zeros(0) if found is None else float(table.grid) * found[0].weights(table.name, numbers.tolist())

        def of(cells: NDArray[np.intp]) -> tuple[float, float, JointError]:
            places = cells, np.unique(asked.denominators[cells])
            numerator, denominator = (float(each[here].sum()) for each, here in zip(estimates, places, strict=True))
            shared = rows[0] is not None and rows[1] is not None and rows[0][0] is rows[1][0]
            kinds = [np.zeros(0, dtype=np.int64) if each is None else _kinds(each[0]) for each in rows]
            noises = [() if each is None else each[1] for each in rows]
            error = joint_error(weights(0, places[0]), weights(1, places[1]), kinds, noises, shared=shared)
            return numerator, denominator, error

        return of

    def divided(self, ratio: str, unit: str) -> PublishedTable:
        """A ratio from its two tables, with a standard error and Fieller's intervals, where they are not too many.

        The intervals belong to the ratio of the estimates. That of the whole numbers is post-processed once more.
        """
        assert self.ratio is not None
        asked = self.ratio(ratio)
        above, below = self.published(asked.numerator.name), self.published(asked.denominator.name)
        quotients = None
        with np.errstate(divide="ignore", invalid="ignore"):  # nothing over nothing is not a number
            estimates = above.estimates / below.estimates[asked.denominators]
            if above.values is not None and below.values is not None:
                quotients = above.values / below.values[asked.denominators]
        count, rows = len(estimates), sum(group["rows"] for group in self.facts["groups"])
        ends: dict[str, Floats] = {}
        errors = np.full(count, np.nan)
        if count <= MOST_INTERVALS and count * rows <= MOST_TOGETHER:
            joint, ends = self._joint(ratio), {name: np.empty(count) for name in OF_ESTIMATES}
            for number in range(count):
                numerator, denominator, error = joint(np.array([number]))
                for percent in PERCENTS:
                    found = interval_of_ratio(numerator, denominator, error, probability=Fraction(percent, 100))
                    ends[f"lower_{percent}"][number], ends[f"upper_{percent}"][number] = found.lower, found.upper
                errors[number] = error.spread(estimates[number]) / abs(denominator) if denominator else np.nan
        own = ratio, unit, above.columns, above.labels
        words = above.level_labels
        return PublishedTable(*own, estimates, errors, quotients=quotients, level_labels=words, intervals=ends)

    def _expected(self, table: str, cells: list[int], probability: Probability) -> Interval:
        estimate = float(self.published(table).estimates[cells].sum())
        if self._entry("tables", table)["exact"]:
            none = np.zeros(0)
            return expected_number_interval(estimate, none, none.astype(np.int64), (), probability=probability)
        rows, noises = self._rows_of(table)
        weights = rows.weights(table, cells)
        return expected_number_interval(estimate, weights, _kinds(rows), noises, probability=probability)

    def privacy(self, failure_probability: Written) -> ReleasePrivacy:
        """What this release alone loses, as (ε, δ): by the tight conversion, and by its exact noise where it is known.

        Not a balance: such numbers of several releases do not add up. The account's report is `ledger report`.
        """
        if self.technology is not None:
            loss = PrivacyLoss(Fraction(self.facts["loss"]["exact"]), PrivacyMeasure(self.facts["loss"]["currency"]))
            words = "what it draws next depends on what it drew before, so that no one distribution is composed"
            return ReleasePrivacy(_converted(loss, _checked(failure_probability)), None, words)
        groups = [(self.measurement(group["name"]).rows, _noises(group)) for group in self.facts["groups"]]
        protection = self.measurement(self.groups[0]).protection
        loss = PrivacyLoss(Fraction(self.facts["loss"]["exact"]), PrivacyMeasure(self.facts["loss"]["currency"]))
        return release_privacy(groups, protection, loss.for_records(protection.records_together), failure_probability)

    @cached_property
    def _known(self) -> dict[str, PublishedTable]:
        return {}

    def _covers(self, table: str) -> str | None:
        entry, known = self._entry("ratios" if table in self.ratios else "tables", table), self.superpopulation()
        clipped, expected = entry.get("clipped"), COVERED if table in known else None
        if {entry.get("numerator"), entry.get("denominator")} & known:
            expected = COUNTED
        words = [expected, None if clipped is None else f"only {clipped}"]
        return "; ".join(each for each in words if each is not None) or None

    def _entry(self, what: str, name: str) -> Mapping[str, Any]:
        known = self.facts.get(what, ())  # a release may have no ratios
        found: Mapping[str, Any] | None = next((each for each in known if each["name"] == name), None)
        if found is None:
            names = [each["name"] for each in known]
            said = f"'{name}'" if isinstance(name, str) else f"of the type {type(name).__name__}"
            raise UnknownName(
                f"this release has no {what.removesuffix('s')} {said}",
                why=f"it has {', '.join(names[:12]) or 'none'}{', …' if len(names) > 12 else ''}",
                instead=did_you_mean(str(name), names, "name one of them"),
            )
        return found

    def _group_of(self, table: str) -> Mapping[str, Any]:
        return next(group for group in self.facts["groups"] if table in group["tables"])

    def _table(self, name: str) -> Table:
        return self.measurement(self._group_of(name)["name"]).workload.table(name)

    def _rows_of(self, table: str) -> tuple[Rows | NestWeights, tuple[Noise, ...]]:
        """The rows that the estimates of a table rest on, and the noise of each kind of these."""
        if self.facts.get("estimated_together") and self.together is not None:
            return self.together(), tuple(noise for group in self.facts["groups"] for noise in _noises(group))
        group = self._group_of(table)
        return self.measurement(group["name"]).rows, _noises(group)

    def _errors(self, table: str) -> NumberErrors:
        return NumberErrors(self._table(table), *self._rows_of(table))

    def _check_column(self, table: str, column: str) -> None:
        found = self.published(table)
        if column not in found.columns:
            raise UnknownName(
                f"the table '{table}' has no column '{column}'",
                why=f"it is by {', '.join(found.columns) or 'nothing: it is one number'}",
                instead=did_you_mean(column, found.columns, "name its columns; one that is left out is summed"),
            )

    def _cells(self, table: str, where: Mapping[str, Levels]) -> NDArray[np.intp]:
        """The numbers of a table that some labels choose, row-major."""
        found = self.published(table)
        for column in where:
            self._check_column(table, column)
        chosen = [
            np.array(levels_meant(column, levels, where[column], labels=self._labels(table, column)), dtype=np.intp)
            if column in where
            else np.arange(len(levels))
            for column, levels in zip(found.columns, found.labels, strict=True)
        ]
        for column, levels in zip(found.columns, chosen, strict=True):
            if len(levels) > 1:
                self._check_added_up(table, column)
        shape = tuple(len(levels) for levels in found.labels)
        return np.arange(len(found.estimates)).reshape(shape)[np.ix_(*chosen)].reshape(-1)

    def _check_added_up(self, table: str, column: str) -> None:
        """Refuse to add up numbers along a column that are sums along it already, and so count records twice."""
        if table in self.ratios or self._entry("tables", table)["exact"]:
            return
        if self._is_told(table):
            return  # sums have no interval, and estimates of them are refused nowhere else
        asked = self._table(table).tabulation
        if asked is not None and column in dict(asked.sums):
            raise InvalidRequest(
                f"numbers of '{table}' are not added up along '{column}'",
                why=f"each of them adds up levels of '{column}' already, so that records would count twice",
                instead=f"name one level of '{column}'; the difference of two numbers is release.difference(…)",
            )

    def _labels(self, table: str, column: str) -> dict[str, list[str]]:
        """What the levels of a column are called for readers, in each language, where its file says."""
        found = self.published(table)
        words = found.level_labels[found.columns.index(column)] if found.level_labels else {}
        levels = {level for of in words.values() for level in of}
        return {level: [of[level] for of in words.values() if level in of] for level in levels}


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """One table of a release, to be taken along; one row a number, with its errors."""

    name: str
    release: Release

    def __repr__(self) -> str:
        found = self.release.published(self.name)
        by = f" by {', '.join(found.columns)}" if found.columns else ""
        return cut_line(f"ReleasedTable('{self.name}'{by}: {len(found.estimates):,} numbers in {found.unit})")

    def __len__(self) -> int:
        return len(self.release.published(self.name).estimates)

    def intervals(self, by: Sequence[str] | None = None, *, probability: Probability = 0.95) -> pa.Table:
        """How wrong each of its numbers may be, or each sum over columns that `by` leaves out: `Release.intervals`."""
        return self.release.intervals(self.name, by, probability=probability)

    def interval(
        self, where: Mapping[str, Levels] | None = None, /, *, probability: Probability = 0.95, **labels: Levels
    ) -> Interval:
        """How wrong one of its numbers, or a sum of them, may be: see `Release.interval`."""
        return self.release.interval(self.name, where, probability=probability, **labels)

    def to_arrow(self) -> pa.Table:
        """An Arrow table."""
        return self.release.table(self.name)

    def to_pandas(self) -> Any:
        """A frame of pandas."""
        _check_installed("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A frame of polars."""
        _check_installed("polars")
        import polars

        return polars.from_arrow(self.to_arrow())

    def _repr_html_(self) -> str:
        """What a notebook shows: its first rows, by labels where there are any; what is the same for all, below."""
        rows, columns = self.to_arrow().slice(0, FIRST_ROWS).to_pydict(), self.release.published(self.name).columns
        of_all = {name: rows.pop(name)[0] for name in (UNIT_COLUMN, COUNTED_COLUMN) if rows.get(name)}
        texts = {column: rows.get(f"{column}_label", rows[column]) for column in columns}
        numbers = {name: of for name, of in rows.items() if name in NUMBERS}
        shown = [[_cell(each) for each in column] for column in (*texts.values(), *numbers.values())]
        left = len(self) - FIRST_ROWS
        said = [f"In {plural(of_all[UNIT_COLUMN])}."] if UNIT_COLUMN in of_all else []
        said += [f"What is counted: {of_all[COUNTED_COLUMN]}."] if COUNTED_COLUMN in of_all else []
        said += [f"And {counted(left, 'more row')}."] if left > 0 else []
        headings = [*texts, *numbers]
        return page_of(self.name, html_table(headings, zip(*shown, strict=True), words=len(texts)), sentences(said))


FIRST_ROWS = 8  # of a table, in a notebook


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return exact(value) if isinstance(value, int) else number(value) if isinstance(value, float) else str(value)


def _check_installed(package: str) -> None:
    if find_spec(package) is None:
        raise InvalidRequest(
            f"a frame of {package}",
            why=f"the package {package} is not installed here",
            instead=f"install {package}, or take an Arrow table: to_arrow()",
        )


def _with_labels(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The columns with the label of each level right after its code."""
    names = table.column_names
    order = [each for column in columns for each in (column, *(n for n in names if _is_label(n, column, columns)))]
    return table.select([*order, *(name for name in names if name not in order)])


def _is_label(name: str, column: str, columns: Sequence[str]) -> bool:
    return name not in columns and (name == f"{column}_label" or name.startswith(f"{column}_label_"))


def _asked(where: Mapping[str, Levels] | None, labels: Mapping[str, Levels]) -> dict[str, Levels]:
    """Levels by column, as they were named; `where` may be, too, as no level is a mapping."""
    named = labels.get("where")
    if where is None and isinstance(named, Mapping):
        where, labels = named, {column: of for column, of in labels.items() if column != "where"}
    if where is not None and not isinstance(where, Mapping):
        raise unexpected(where, what="levels by column", instead='write region="R31", or {"region": "R31"}')
    return {**(where or {}), **labels}


def _added_up(
    estimates: Floats, found: Sequence[Interval], probability: Probability, words: str
) -> SimultaneousIntervals:
    """Intervals that each miss so rarely that all of them hold together."""
    lower, upper = (np.array([getattr(one, end) for one in found]) for end in ("lower", "upper"))
    nominal = float(asked_for(probability))
    return SimultaneousIntervals(estimates, lower, upper, nominal, nominal, False, words)


def read_facts(folder: Path) -> dict[str, Any]:
    """What release.json says, after the files that it names were compared with their digests.

    Large files are only looked for: each is compared when it is first read, so that opening a release takes no longer
    the more it holds.
    """
    facts = _facts(folder)
    for name, digest in facts["files"].items():
        if not _is_large(folder, name):
            _check_file(folder, name, digest)
    try:
        stray = next((path for path in _used(facts) if path not in facts["files"]), None)
    except (KeyError, TypeError, AttributeError):
        raise _unreadable(folder) from None
    if stray is not None:
        why = f"its {RELEASE_FILE} names '{stray}' without a digest"
        raise damaged(f"the release in '{folder}'", why).at(Place(file=str(folder / RELEASE_FILE)))
    return facts


def _used(facts: Mapping[str, Any]) -> Iterator[str]:
    yield from ([facts["program_file"]] if "program_file" in facts else [])
    records = facts.get("synthetic_records", {})
    yield from (records[form] for form in ("parquet", "csv") if form in records)
    yield from ([facts["technology"]["measurements"]] if "technology" in facts else [])
    for group in facts["groups"]:
        yield from (group[key] for key in ("measurements", "strategy") if group.get(key) is not None)
    for table in (*facts["tables"], *facts.get("ratios", ())):
        yield from (table[key] for key in FORMS if table.get(key) is not None)


def _unreadable(folder: Path) -> InvalidRelease:
    file = folder / RELEASE_FILE
    why = f"its {RELEASE_FILE} is not there, damaged, or of another version"
    return damaged(f"the release in '{folder}'", why).at(Place(file=str(file)))


def _facts(folder: Path) -> dict[str, Any]:
    file = folder / RELEASE_FILE
    try:
        facts = json.loads(file.read_bytes())
        if facts["schema"] != RELEASE_SCHEMA or not isinstance(facts["files"], dict):
            raise ValueError
        _check_form(facts, FORM)
        _check_form(facts, {key: form for key, form in IF_ANY.items() if key in facts})
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        raise _unreadable(folder) from None
    return dict(facts)


def _check_form(found: Any, form: Any) -> None:
    """Raise where what was read has not the keys, or not the kinds of values, that every release has."""
    if isinstance(form, dict):
        for key, part in form.items():
            _check_form(found[key], part)
    elif isinstance(form, list):
        if not isinstance(found, list):
            raise TypeError
        for each in found:
            _check_form(each, form[0])
    elif isinstance(form, tuple):
        if type(found) not in form:
            raise TypeError
    elif isinstance(form, re.Pattern):
        if form.fullmatch(found) is None:
            raise ValueError
    elif type(found) is not form:
        raise TypeError


RATIONAL = re.compile(r"[0-9]{1,4000}(/[0-9]{0,3999}[1-9][0-9]{0,3999})?", re.ASCII)
MEASURE = re.compile("|".join(PrivacyMeasure))
FORM = {
    "release": str,
    "program": str,
    "plan_digest": str,
    "account": str,
    "unit": str,
    "loss": {"exact": RATIONAL, "currency": MEASURE},
    "groups": [
        {
            "name": str,
            "tables": [str],
            "loss": RATIONAL,
            "rows": int,
            "measurements": str,
            "noises": [{"law": str, "parameter": RATIONAL}],
        }
    ],
    "tables": [
        {"name": str, "unit": str, "columns": [str], "cells": int, "exact": bool, "estimates": (str, type(None))}
    ],
}
PERSON = {"by": (str, type(None)), "key": (str, type(None))}
IF_ANY = {  # what releases of some versions or programs say
    "guarantee": {"protected": str, "indistinguishable": str},
    "signatures": {"approvals": [PERSON], "publication": PERSON},
    "ratios": [{"name": str}],
    "program_file": str,
    "synthetic_records": dict,
    "estimated_together": bool,
    "technology": {"name": str, "format": str, "loss": RATIONAL, "covers": str, "measurements": str},
}


def _is_large(folder: Path, name: str) -> bool:
    try:
        return (folder / name).stat().st_size > LARGE
    except (OSError, ValueError):  # a name that no file can have
        return False


def _check_file(folder: Path, name: str, digest: str) -> None:
    inside = PurePosixPath(name)
    file, found = folder / name, None
    if not inside.is_absolute() and ".." not in inside.parts:
        try:
            with file.open("rb") as opened:
                found = hashlib.file_digest(opened, "sha256").hexdigest()
        except (OSError, ValueError):  # a name that no file can have
            found = None
    if found is None or found != digest:
        why = f"'{name}' is missing, or was changed since it was written: its digest is not the one in {RELEASE_FILE}"
        raise damaged(f"the release in '{folder}'", why).at(Place(file=str(file)))


def _kinds(rows: Rows | NestWeights) -> Integers:
    return rows.kinds().astype(np.int64)


def _noises(group: Mapping[str, Any]) -> tuple[Noise, ...]:
    return tuple(noise_named(each["law"], Fraction(each["parameter"])) for each in group["noises"])


LEAST_PROBABILITY = Fraction(1, 10**12)  # δ below which rounding errors of Fourier transforms would show
KEPT_BACK = 1e-3  # of δ, for these errors
FINENESS = 2e-5  # of the converted ε: how finely losses are told apart
MOST_COMPOSED = 64  # changes whose distributions are worked out


@dataclass(frozen=True)
class ReleasePrivacy:
    """What one protected unit loses by one release, at a failure probability.

    `by_conversion` follows from its ε or ρ. `by_distribution` is that of its exact noise, None where it is not known;
    `words` says why. Neither is a balance: such numbers of several releases do not add up.
    """

    by_conversion: PrivacyLoss
    by_distribution: PrivacyLoss | None
    words: str

    __repr__ = one_line

    @property
    def loss(self) -> PrivacyLoss:
        """The smaller of the two."""
        known = [self.by_conversion] + ([] if self.by_distribution is None else [self.by_distribution])
        return min(known, key=lambda each: each.amount)


def release_privacy(
    groups: Sequence[Measured], protection: Protection, charge: PrivacyLoss, failure_probability: Written
) -> ReleasePrivacy:
    """The loss of a release whose noise was all fixed in its plan, as (ε, δ)."""
    probability = _checked(failure_probability)
    converted = _converted(charge, probability)
    epsilon, words = _composed(groups, protection, probability, bound=float(converted))
    exact = None if epsilon is None else PrivacyLoss.reported(epsilon, probability)
    return ReleasePrivacy(converted, exact, words)


def _checked(failure_probability: Written) -> Fraction:
    found = written_probability(failure_probability)
    if found is None:
        raise InvalidRequest(
            f"a loss at a failure probability of {failure_probability}",
            why="δ is a probability strictly between 0 and 1",
            instead="state one, for example 1e-10",
        )
    return found


def _converted(charge: PrivacyLoss, probability: Fraction) -> PrivacyLoss:
    """The tight conversion of ρ; a pure ε stays what it is where that is less."""
    epsilon = epsilon_at(charge.in_rho().amount, probability)
    if charge.privacy_measure is PrivacyMeasure.PURE_DP and float(charge) <= epsilon:
        return charge
    return PrivacyLoss.reported(epsilon, probability) if epsilon > 0 else charge


def _composed(
    groups: Sequence[Measured], protection: Protection, probability: Fraction, *, bound: float
) -> tuple[float | None, str]:
    if find_spec("dp_accounting") is None:
        return None, "dp-accounting is not installed: install dualmandate[accounting]"
    if probability < LEAST_PROBABILITY:
        return None, f"distributions are composed for δ of at least {float(LEAST_PROBABILITY):g}"
    changes = largest_changes(groups, protection)
    if changes is None or len(changes) > MOST_COMPOSED:
        return None, "the changes that one unit can make are too many to go through"
    found = [epsilon_of(change, float(probability), fineness=FINENESS * bound) for change in changes]
    if any(each is None for each in found):
        return None, "noise as broad as this is not composed value by value"
    worst = max((each for each in found if each is not None), default=0.0)
    if not 0 < worst < math.inf:
        return None, "δ alone covers the loss" if worst <= 0 else "the discretized distribution has no end"
    return worst, f"the worst of {len(changes)} kinds of changes, composed numerically"


def epsilon_of(change: Change, probability: float, *, fineness: float) -> float | None:
    """The ε at this δ between a release and one whose rows are shifted so, an upper bound to `fineness` a row.

    None where the loss of a row is not worked out.
    """
    composed: Any = None
    for (noise, size), count in sorted(change, key=str):
        one = noise.family.loss_distribution(noise.parameter, size, fineness)
        if one is None:
            return None
        rows = one.self_compose(count) if count > 1 else one
        composed = rows if composed is None else composed.compose(rows)
    return 0.0 if composed is None else float(composed.get_epsilon_for_delta(probability * (1 - KEPT_BACK)))
