"""Random small programs: every key of the file that planning reads, in combinations that need not make sense together.

A program that is accepted plans, or is refused; nothing else may come of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

Table = dict[str, Any]


def random_program(seed: int) -> str:
    """The text of a program file."""
    return RandomProgram(np.random.default_rng(seed)).text()


class RandomProgram:
    """One draw: attributes first, then everything that names them."""

    def __init__(self, draws: np.random.Generator) -> None:
        self.draws = draws
        self.measure = self.one_of("epsilon", "epsilon", "epsilon", "rho")
        self.absolute = self.chance(0.05)  # of sums of measured numbers they take minutes: measured are the tables then
        self.neighbors = self.one_of("add-or-remove", "replace-one")
        self.attributes = {name: self._attribute(name) for name in "abc"[: self.integer(1, 3)]}
        self.hierarchy = self._hierarchy() if self.chance(0.25) else {}

    def chance(self, probability: float) -> bool:
        return bool(self.draws.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self.draws.integers(low, high + 1))

    def one_of(self, *options: Any) -> Any:
        return options[int(self.draws.integers(len(options)))]

    def some(self, options: Sequence[Any], least: int = 0) -> list[Any]:
        size = self.integer(least, len(options))
        return [options[int(place)] for place in sorted(self.draws.choice(len(options), size, replace=False))]

    def money(self, unit: str, low: float = -3, high: float = 5) -> Table:
        found: Table = {"value": float(f"{10 ** self.draws.uniform(low, high):.4g}"), "unit": unit, "source": "drawn"}
        if self.chance(0.1):
            found["standard_error"] = found["value"] / 5
        return found

    # Who is counted.

    def _attribute(self, name: str) -> Table:
        odd: Table = {"missing": "?"} if self.chance(0.3) else {}
        kind = self.one_of("levels", "levels", "number", "range", "edges")
        if kind == "levels":
            found: Table = {"levels": [f"{name}{number}" for number in range(self.integer(1, 4))], **odd}
            found |= {"ordered": True} if self.chance(0.2) else {}
            return found | ({"outside": self.one_of("drop", *odd and ("missing",))} if self.chance(0.3) else {})
        if kind == "number":
            grid = self.one_of(1, 5, 0.5)
            lower = grid * self.integer(-3, 1)
            return {"lower": lower, "upper": lower + grid * self.integer(1, 6), "grid": grid, **odd}
        if kind == "range":
            return {"from": 0, "to": self.integer(1, 5), **odd}
        return {"edges": [0, 1, 5, 20][: self.integer(2, 4)], **odd}

    def _levels(self, name: str) -> list[Any]:
        attribute = self.attributes[name]
        found: list[Any] = attribute.get("levels", [])
        if "from" in attribute:
            found = list(range(attribute["from"], attribute["to"] + 1))
        return found + (["?"] if "missing" in attribute else [])

    @property
    def listed(self) -> list[str]:
        """Attributes whose levels can be named."""
        return [name for name in self.attributes if self._levels(name)]

    @property
    def numeric(self) -> list[str]:
        return [name for name, attribute in self.attributes.items() if "grid" in attribute or "from" in attribute]

    @property
    def columns(self) -> list[str]:
        return [*self.attributes, *self.hierarchy]

    def _hierarchy(self) -> Table:
        able = [name for name, attribute in self.attributes.items() if len(attribute.get("levels", [])) > 1]
        if not able:
            return {}
        name = self.one_of(*able)
        levels = self._levels(name)
        middle = self.integer(1, len(levels) - 1)
        return {"wide": {"attribute": name, "groups": {"low": levels[:middle], "high": levels[middle:]}}}

    def _where(self) -> Table:
        return {name: self.some(self._levels(name), 1) for name in self.listed if self.chance(0.25)}

    def _population(self) -> Table:
        found: Table = {
            "account": "people",
            "unit": "person",
            "neighbors": self.neighbors,
            "population_size": {"value": self.one_of(1, 1000, 2e5), "unit": "person", "source": "drawn"},
            "source": "data.csv",
            "attributes": self.attributes,
        }
        if self.chance(0.8):
            found["dropping_is_public"] = True
        if self.chance(0.2):
            found |= {"identifier": "name", "most_records_per_unit": self.integer(1, 3)}
        if self.chance(0.2):
            found["household_size"] = self.integer(1, 4)
        if self.chance(0.25) and len(self.listed) > 1:
            found["structural_zeros"] = [
                {name: self.some(self._levels(name), 1) for name in self.some(self.listed, 1)}
                for _ in range(self.integer(1, 2))
            ]
        if self.hierarchy:
            found["hierarchies"] = self.hierarchy
        if self.chance(0.15):
            found["records_changing_together"] = self.integer(1, 4)
        return found

    # What is published.

    def _invariants(self) -> list[Table]:
        count = self.one_of(0, 0, 1, 1, 2) if self.neighbors == "replace-one" or self.chance(0.05) else 0
        return [{"name": f"exact {k}", "by": self.some(self.columns), "where": self._where()} for k in range(count)]

    def _workload(self) -> list[Table]:
        tables = []
        for number in range(self.integer(1, 4)):
            loss = "absolute" if self.absolute else "squared"
            table: Table = {"name": f"table {number}", "by": self.some(self.columns), "where": self._where()}
            unit = "person"
            free = [name for name in self.numeric if name not in table["by"] and name not in table["where"]]
            if free and self.chance(0.4):
                unit = self.one_of("person", "USD")
                table |= {"sum_of": self.one_of(*free), "unit": unit}
            weighed = [name for name in self.listed if name not in table["by"] and name != table.get("sum_of")]
            if weighed and self.chance(0.2):
                name = self.one_of(*weighed)
                table["where"].pop(name, None)
                levels = [level for level in self._levels(name) if isinstance(level, str)]
                table["weights"] = {name: {level: self.one_of(-1, -0.25, 0, 0.5, 1) for level in levels}}
            table["loss"] = loss
            table["value_of_accuracy"] = self.money(f"USD per {unit}" + "^2" * (loss == "squared"))
            if self.chance(0.1):
                table["fitness_for_use"] = {"largest_root_mean_squared_error": self.one_of(0.1, 2, 50)}
            tables.append(table)
        if self.chance(0.05):
            for table in tables:
                table["share"] = f"1/{len(tables)}"
        return tables

    def _mechanism(self, tables: list[Table]) -> Table:
        noises = ("laplace", "geometric", "staircase", "best", "best") if self.measure == "epsilon" else ("best",)
        found: Table = {"noise": self.one_of("gaussian", *noises)}
        if self.absolute or self.chance(0.4):
            found["strategy"] = "workload" if self.absolute else self.one_of("optimized", "workload", "identity")
        if self.chance(0.4):
            names = [table["name"] for table in tables]
            place = self.integer(1, len(names))
            groups = [part for part in (names[:place], names[place:]) if part]
            found["measured"] = self.one_of("together", "apart", groups)
        if self.chance(0.9 if found["noise"] == "gaussian" else 0.5):
            found["failure_probability"] = 1e-6
        return found

    def _preferences(self) -> Table:
        forms = ("exponential", "bounded", "posterior") if self.measure == "epsilon" else ()
        form = self.one_of("linear", "linear", *forms)
        unit = f"USD per person per {self.measure}" if form == "linear" else "USD per person"
        found: Table = {"information_utility": form, "mean_disclosure_cost": self.money(unit)}
        if form == "posterior":
            found["prior_probability"] = 0.1
        if self.chance(0.1):
            found["relative_privacy_weight"] = 2
        return found

    def text(self) -> str:
        tables = self._workload()
        document: Table = {
            "program": {"schema": 1, "name": "random"},
            "population": self._population(),
            "invariants": self._invariants(),
            "workload": tables,
            "mechanism": self._mechanism(tables),
            "preferences": self._preferences(),
        }
        if self.chance(0.4):
            document["limits"] = {f"largest_{self.measure}": self.one_of(0.01, 1, 20)}
        if self.chance(0.1):
            document["participation"] = {
                "rate_without_loss": self.one_of(0.6, 1),
                f"decline_per_{self.measure}": self.one_of(0, 0.1),
                "source": "drawn",
            }
            for table in tables:
                table["total"] = {"value": 900, "unit": table.get("unit", "person"), "source": "drawn"}
        self._beside(document, tables)
        return to_toml(document)

    def _beside(self, document: Table, tables: list[Table]) -> None:
        """What is computed beside a plan, and false reports; drawn last, so that a seed means the program it did."""
        if "participation" in document and self.chance(0.5):
            document["participation"][f"truthful_decline_per_{self.measure}"] = self.one_of(0, 0.01)
            document["participation"]["truthful_without_loss"] = self.one_of(0.9, 1)
            for table in tables:
                table |= {"falsely_counted": self.one_of(0, 0.5), "standard_deviation": self.money("person")}
        if self.chance(0.05):
            document["collection"] = {"cost_per_respondent": self.money("USD per person")}
            for table in tables:
                table.setdefault("total", {"value": 900, "unit": table.get("unit", "person"), "source": "drawn"})
        if self.chance(0.05):
            document["randomized_response"] = {"source": "drawn"}
        if self.chance(0.05):
            shares = self.one_of([0.5, 0.5], [0.1, 0.15, 0.5, 0.15, 0.1], [0, 0.5, 0.5], [0.2, 0, 0.8])
            document["secret"] = {"group": "household", "shares_counted": shares, "source": "drawn"}
        if self.chance(0.05):
            years = {"years_of_use": 3, "depreciation": self.one_of(0, 0.3), "yearly_value": self.money("USD")}
            document["horizon"] = {"discount_factor": 0.9, "releases": [0, 2], "source": "drawn", **years}
        if self.chance(0.05):
            stake = {"stake": self.money("USD per person"), "influence": self.money("USD per person")}
            document["markets"] = {"largest_user_share": 0.5, "source": "drawn", **stake}


def to_toml(document: Table) -> str:
    """A document of tables and lists of tables, each on a line of its own; JSON's texts and numbers are TOML's."""
    lines = []
    for name, value in document.items():
        for table in value if isinstance(value, list) else [value]:
            lines.append(f"\n[[{name}]]" if isinstance(value, list) else f"\n[{name}]")
            lines += [f"{key} = {_inline(entry)}" for key, entry in table.items()]
    return "\n".join(lines).lstrip() + "\n"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_inline(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)
