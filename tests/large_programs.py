"""Random programs over domains of up to 10¹² cells, with few records: what people have, in tables of modest size.

What they ask for need not make sense together; what is planned of it must be published.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tests.random_programs import RandomProgram, Table, to_toml

SMALLEST, LARGEST = 2.0, 12.0  # decimal digits of the number of cells, from which it is drawn evenly
MOST_NUMBERS = 20_000  # of a table
SIZES = (2, 2, 2, 3, 4, 5, 7, 10, 18, 40, 116)
RECORDS = 60


class LargeProgram(RandomProgram):
    """One draw: the number of cells first, then attributes until there are so many."""

    def __init__(self, draws: np.random.Generator) -> None:
        self.draws = draws
        self.measure = self.one_of("epsilon", "rho")
        self.neighbors = self.one_of("add-or-remove", "add-or-remove", "replace-one")
        self.attributes: dict[str, Table] = {}
        self.cells, most = 1, 10 ** draws.uniform(SMALLEST, LARGEST)
        while True:
            name = f"a{len(self.attributes)}"
            attribute = self._attribute(name)
            if self.cells * attribute[1] > most and self.attributes:
                break
            self.cells *= attribute[1]
            self.attributes[name] = attribute[0]
        self.hierarchy = self._hierarchy() if self.chance(0.5) else {}

    def _attribute(self, name: str) -> Any:
        size = int(self.one_of(*SIZES))
        if not self.attributes and self.chance(0.4):
            size = self.integer(20, 3000)  # a geography
        if self.chance(0.15):
            return {"from": 0, "to": size - 1}, size
        if self.chance(0.05):
            return {"lower": 0, "upper": 5 * (size - 1), "grid": 5}, size
        return {"levels": [f"{name}-{number}" for number in range(size)]}, size

    def size(self, name: str) -> int:
        """How many levels an attribute, or a grouping, has."""
        if name in self.hierarchy:
            return len(self.hierarchy[name]["groups"])
        attribute = self.attributes[name]
        if "levels" in attribute:
            return len(attribute["levels"])
        return int(attribute["to"] + 1 if "to" in attribute else attribute["upper"] // attribute["grid"] + 1)

    def _hierarchy(self) -> Table:
        able = [name for name, attribute in self.attributes.items() if len(attribute.get("levels", [])) > 5]
        if not able:
            return {}
        name = able[0]
        levels = self.attributes[name]["levels"]
        each = max(2, round(len(levels) ** 0.5))
        groups = {f"g{n}": levels[n * each : (n + 1) * each] for n in range(-(-len(levels) // each))}
        return {"wide": {"attribute": name, "groups": groups}}

    def _columns(self, most: int) -> list[str]:
        """What a table is broken down by: few columns, nothing twice, and not too many numbers."""
        own = self.hierarchy.get("wide", {}).get("attribute")
        found, numbers = list[str](), 1
        for place in self.draws.permutation(len(self.columns))[: self.integer(0, most)]:
            name = self.columns[int(place)]
            if numbers * self.size(name) > MOST_NUMBERS or (name in (own, "wide") and {own, "wide"} & {*found}):
                continue
            numbers *= self.size(name)
            found.append(name)
        return found

    def _zero(self) -> Table:
        names = [name for name in self.listed if self.size(name) > 1]
        chosen = [names[int(place)] for place in self.draws.permutation(len(names))[:2]]
        return {name: self._levels(name)[: self.integer(1, max(1, self.size(name) // 2))] for name in chosen}

    def _tables(self) -> list[Table]:
        tables = list[Table]()
        if self.chance(0.15) and sum(map(self.size, self.attributes)) <= 120:
            tables.append({"name": "two-way", "every": 2})
        kind = self.one_of("plain", "plain", "rich")
        for number in range(self.one_of(1, 2, 3, 5, 8, 20)):
            table: Table = {"name": f"table {number}", "by": self._columns(self.one_of(1, 2, 3, 4))}
            unit = "person"
            if kind == "rich":
                if self.chance(0.3) and (some := [name for name in self.listed if name not in table["by"]]):
                    name = self.one_of(*some)
                    table["where"] = {name: self._levels(name)[: self.integer(1, self.size(name))]}
                free = [name for name in self.numeric if name not in (*table["by"], *table.get("where", {}))]
                if free and self.chance(0.3):
                    unit = "USD"
                    table |= {"sum_of": self.one_of(*free), "unit": unit}
            table["value_of_accuracy"] = self.money(f"USD per {unit}^2")
            tables.append(table)
        if "every" in tables[0]:
            tables[0]["value_of_accuracy"] = self.money("USD per person^2")
        return tables

    def text(self) -> str:
        population: Table = {
            "account": "people",
            "unit": "person",
            "neighbors": self.neighbors,
            "population_size": {"value": self.one_of(1000, 2e5), "unit": "person", "source": "drawn"},
            "source": "data.csv",
            "attributes": self.attributes,
            "dropping_is_public": True,
        }
        if self.hierarchy:
            population["hierarchies"] = self.hierarchy
        if self.chance(0.2) and len(self.listed) > 1:
            population["structural_zeros"] = [self._zero() for _ in range(self.integer(1, 2))]
        invariants = []
        if self.neighbors == "replace-one" and self.chance(0.4):
            invariants = [{"name": f"exact {k}", "by": self._columns(1)} for k in range(self.integer(1, 2))]
            if len(invariants) > 1:
                population["records_changing_together"] = 4
        elif self.chance(0.15):
            population |= {"identifier": "name", "most_records_per_unit": self.integer(1, 3)}
        tables = self._tables()
        noise = self.one_of("geometric", "gaussian", "best") if self.measure == "epsilon" else "gaussian"
        mechanism: Table = {"noise": noise, "failure_probability": 1e-6}
        if self.chance(0.5):
            mechanism["strategy"] = self.one_of("optimized", "optimized", "workload", "identity")
        if self.chance(0.3):
            mechanism["measured"] = self.one_of("together", "apart")
        cost = self.money(f"USD per person per {self.measure}", -2, 2)
        return to_toml(
            {
                "program": {"schema": 1, "name": "large"},
                "population": population,
                "invariants": invariants,
                "workload": tables,
                "mechanism": mechanism,
                "preferences": {"information_utility": "linear", "mean_disclosure_cost": cost},
                "limits": {f"largest_{self.measure}": self.one_of(0.01, 1, 20)},
            }
        )

    def records(self) -> str:
        """A few records, some of them of the same person."""
        rows = [[*self.attributes, "name"]]
        for _ in range(RECORDS):
            levels = [int(self.draws.integers(self.size(name))) for name in self.attributes]
            rows.append([*map(self._value, self.attributes, levels), f"p{self.integer(0, RECORDS)}"])
        return "\n".join(map(",".join, rows)) + "\n"

    def _value(self, name: str, level: int) -> str:
        attribute = self.attributes[name]
        return str(attribute["levels"][level] if "levels" in attribute else level * attribute.get("grid", 1))


def cells_in_words(cells: int) -> str:
    return f"10^{math.log10(cells):.1f}"
