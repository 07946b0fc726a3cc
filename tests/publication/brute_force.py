"""A second opinion on every charge: neighbors are written out one by one, and none is farther away than was charged.

Nothing here knows a sensitivity, an exact total's step or a norm of the package. What can be recorded, who is protected
and what is published exactly are read from the program file that a release carries along; kinds of rows, noise and
losses from its `release.json` and its measurements. What a record adds to each measured row is found by counting a file
with this record alone, by the code that counts files before noise is added.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dualmandate import load_release

MOST_RECORDS = 4  # that change together and are written out, where totals are published exactly
KINDS = (
    "add-or-remove",
    "replace-one",
    "several records of a unit",
    "several records of a unit, replaced",
    "exact totals",
    "exact totals that cross",
    "sums",
    "weights",
    "hierarchies",
    "hierarchies in exact totals",
    "structural zeros",
    "structural zeros beside exact totals",
)
Integers = NDArray[np.int64]
Cell = tuple[int, ...]


@dataclass(frozen=True)
class Stated:
    """Who is counted and what is published exactly, as a program file says it."""

    program: dict[str, Any]

    @cached_property
    def levels(self) -> dict[str, list[str]]:
        return {name: _levels(stated) for name, stated in self.program["population"]["attributes"].items()}

    @cached_property
    def groupings(self) -> dict[str, tuple[str, dict[str, str]]]:
        """Of each grouping its attribute, and the group of each level that has one."""
        stated = self.program["population"].get("hierarchies", {})
        return {
            name: (each["attribute"], {str(level): group for group, some in each["groups"].items() for level in some})
            for name, each in stated.items()
        }

    def label(self, cell: Cell, name: str) -> str | None:
        """What a cell says under an attribute or a grouping."""
        attribute, groups = self.groupings.get(name, (name, None))
        level = self.levels[attribute][cell[list(self.levels).index(attribute)]]
        return level if groups is None else groups.get(level)

    def within(self, cell: Cell, selection: dict[str, Any]) -> bool:
        return all(self.label(cell, name) in _listed(levels) for name, levels in selection.items())

    @cached_property
    def cells(self) -> list[Cell]:
        """Those that can occur."""
        zeros = self.program["population"].get("structural_zeros", [])
        every = product(*(range(len(levels)) for levels in self.levels.values()))
        return [cell for cell in every if not any(self.within(cell, zero) for zero in zeros)]

    # What is published exactly.

    @cached_property
    def totals(self) -> list[tuple[object, ...]]:
        """Of each cell the group that it is counted in, of each exact total."""
        return [tuple(self._group(cell, each) for each in self.program.get("invariants", [])) for cell in self.cells]

    def _group(self, cell: Cell, total: dict[str, Any]) -> object:
        labels = tuple(self.label(cell, name) for name in total.get("by", []))
        return None if None in labels or not self.within(cell, total.get("where", {})) else labels

    @cached_property
    def crossing(self) -> bool:
        """Whether two groups that are counted exactly overlap, and neither holds the other."""
        groups = [
            {cell for cell in self._numbers if self.totals[cell][place] == group}
            for place in range(len(self.program.get("invariants", [])))
            for group in {told[place] for told in self.totals} - {None}
        ]
        return any(one & other and one - other and other - one for one, other in combinations(groups, 2))

    @cached_property
    def kinds(self) -> set[str]:
        """What gives a file neighbors, and a measured row its numbers, in one more way."""
        population, totals = self.program["population"], self.program.get("invariants", [])
        tables = self.program["workload"]
        asked, held = ({name for each in some for name in (*each["by"], *each["where"])} for some in (tables, totals))
        several, replaced = population.get("most_records_per_unit", 1) > 1, population["neighbors"] == "replace-one"
        zeros = bool(population.get("structural_zeros"))
        found = {
            "add-or-remove": not replaced,
            "replace-one": replaced and not totals,
            "several records of a unit": several and not replaced,
            "several records of a unit, replaced": several and replaced,
            "exact totals": bool(totals) and not self.crossing,
            "exact totals that cross": self.crossing,
            "sums": any("sum_of" in table for table in tables),
            "weights": any("weights" in table for table in tables),
            "hierarchies": bool(asked & self.groupings.keys()),
            "hierarchies in exact totals": bool(held & self.groupings.keys()),
            "structural zeros": zeros and not totals,
            "structural zeros beside exact totals": zeros and bool(totals),
        }
        assert tuple(found) == KINDS
        return {name for name, there in found.items() if there}

    # Who is a neighbor.

    def changes(self) -> Iterator[tuple[int, ...]]:
        """Every difference between two files that the guarantee is about, as a number of records of each cell."""
        population = self.program["population"]
        most = population.get("most_records_per_unit", 1)
        if self.program.get("invariants"):
            assert most == 1  # refused: which records of a unit are left out would show in the totals
            yield from self._changes_within_totals(population.get("records_changing_together", 1))
            return
        for records in range(1, most + 1):
            files = np.stack([self._file(some) for some in combinations_with_replacement(self._numbers, records)])
            if population["neighbors"] == "replace-one":
                files = (files[:, None] - files[None]).reshape(-1, len(self.cells))
            yield from map(tuple, files.tolist())

    @property
    def _numbers(self) -> range:
        return range(len(self.cells))

    def _file(self, records: tuple[int, ...]) -> Integers:
        return np.bincount(records, minlength=len(self.cells))

    def _changes_within_totals(self, stated: int) -> Iterator[tuple[int, ...]]:
        """Files that differ in as many records as are stated, and of any file the nearest ones: whatever is stated."""
        smaller: list[Counter[int]] = []  # what goes in a move of fewer records
        for records in range(1, max(MOST_RECORDS, stated) + 1):
            alike: dict[object, list[Counter[int]]] = defaultdict(list)
            for some in combinations_with_replacement(self._numbers, records):
                counted = [Counter(self.totals[cell][place] for cell in some) for place in range(len(self.totals[0]))]
                alike[tuple(frozenset(each.items()) for each in counted)].append(Counter(some))
            going = []
            for files in alike.values():
                for one, other in product(files, files):
                    if one == other or one & other:
                        continue
                    going.append(one)
                    if records <= stated or not any(less <= one for less in smaller):
                        yield self._difference(other, one)
            smaller += going

    def _difference(self, coming: Counter[int], going: Counter[int]) -> tuple[int, ...]:
        return tuple(coming[cell] - going[cell] for cell in self._numbers)


@dataclass(frozen=True)
class Written(Stated):
    """A release, as its folder says it."""

    folder: Path
    facts: dict[str, Any]

    @classmethod
    def of(cls, folder: Path) -> Written:
        facts = json.loads((folder / "release.json").read_text(encoding="utf-8"))
        return cls(tomllib.loads((folder / facts["program_file"]).read_text(encoding="utf-8")), folder, facts)

    @property
    def charge(self) -> Fraction:
        """What one unit loses, as the guarantee says."""
        return Fraction(self.facts["guarantee"]["losses"][0]["exact"])

    # What is measured.

    @cached_property
    def rows(self) -> list[tuple[str, Fraction, Integers]]:
        """Law, parameter and rows of each kind of noise; what a record of each cell adds to each row."""
        release, shape, found = load_release(self.folder), [len(levels) for levels in self.levels.values()], []
        for group in self.facts["groups"]:
            columns = []
            for cell in self.cells:
                alone = np.zeros(shape, dtype=np.int64)
                alone[cell] = 1
                columns.append(release.measurement(group["name"]).rows.count(alone))
            matrix = np.stack(columns, axis=1)
            kinds = pq.read_table(self.folder / group["measurements"]).column("kind").to_numpy()
            assert len(kinds) == len(matrix)
            for kind, noise in enumerate(group["noises"]):
                found.append((noise["law"], Fraction(noise["parameter"]), matrix[kinds == kind].astype(np.int64)))
        return found

    def losses(self, changes: Integers) -> list[Fraction]:
        """What each change of a file costs, exactly: Σ|Δ|/scale, or Σ Δ²/(2σ²); shape of `changes` (changes, cells)."""
        whole = math.lcm(*(2 * parameter.numerator for _, parameter, _ in self.rows))
        sums = np.zeros(len(changes), dtype=object)
        for law, parameter, matrix in self.rows:
            moved = changes @ matrix.T
            if law == "laplace":
                cost, price = np.abs(moved).sum(axis=1), whole / parameter
            else:
                assert law == "gaussian"
                cost, price = np.square(moved).sum(axis=1), whole / (2 * parameter)
            assert price.denominator == 1
            sums += cost.astype(object) * int(price)
        return [Fraction(int(each), whole) for each in sums]

    @property
    def farthest(self) -> Fraction:
        """The most that any neighbor costs; 0 where nothing can change."""
        changes = np.array(sorted(set(self.changes())), dtype=np.int64).reshape(-1, len(self.cells))
        return max(self.losses(changes), default=Fraction(0))

    # The tables, once more: what is measured where the strategy is the tables themselves, or the cells.

    def tables_again(self) -> set[tuple[int, ...]]:
        """Every number of every table as a row over the cells, without its scale and without rows of zeros."""
        found = set()
        for table in self.program["workload"]:
            for labels in product(*(self._labels(name) for name in table.get("by", []))):
                found.add(_scaled([self._counted(cell, table, labels) for cell in self.cells]))
        return {row for row in found if any(row)}

    def measured_again(self) -> set[tuple[int, ...]]:
        every = (_scaled([Fraction(int(each)) for each in row]) for _, _, matrix in self.rows for row in matrix)
        return {row for row in every if any(row)}

    def _labels(self, name: str) -> list[str]:
        attribute, groups = self.groupings.get(name, (name, None))
        return self.levels[attribute] if groups is None else list(dict.fromkeys(groups.values()))

    def _counted(self, cell: Cell, table: dict[str, Any], labels: tuple[str, ...]) -> Fraction:
        here = tuple(self.label(cell, name) for name in table.get("by", []))
        if here != labels or not self.within(cell, table.get("where", {})):
            return Fraction(0)
        worth = Fraction(1)
        if "sum_of" in table:
            said = self.label(cell, table["sum_of"])
            worth = Fraction(0) if said is None or said == "?" else Fraction(said)
        for name, weights in table.get("weights", {}).items():
            worth *= Fraction(str(weights.get(self.label(cell, name), 0)))
        return worth


def _levels(stated: Any) -> list[str]:
    if isinstance(stated, list):
        return [str(level) for level in stated]
    missing = [stated["missing"]] if "missing" in stated else []
    if "levels" in stated:
        return [*(str(level) for level in stated["levels"] if level not in missing), *missing]
    if "from" in stated:
        return [*(str(level) for level in range(stated["from"], stated["to"] + 1)), *missing]
    low, high, grid = (Fraction(str(stated[key])) for key in ("lower", "upper", "grid"))
    return [*(str(low + grid * step) for step in range(int((high - low) / grid) + 1)), *missing]


def _listed(levels: Any) -> list[str]:
    return [str(level) for level in (levels if isinstance(levels, list) else [levels])]


def _scaled(row: list[Fraction]) -> tuple[int, ...]:
    whole = math.lcm(*(each.denominator for each in row))
    numbers = [int(each * whole) for each in row]
    common = math.gcd(*numbers) or 1
    return tuple(number // common for number in numbers)
