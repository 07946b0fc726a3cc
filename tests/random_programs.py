"""Random small programs: every key of the file that planning reads, in combinations that need not make sense together.

A program that is accepted plans, or is refused; nothing else may come of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Table = dict[str, Any]


def random_program(seed: int) -> str:
    """The text of a program file."""
    return RandomProgram(np.random.default_rng(seed)).text()


def fuller_program(seed: int) -> str:
    """The same, with more around the choice."""
    return FullProgram(np.random.default_rng(seed)).text()


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

    def _by(self, *, least: int = 0) -> list[str]:
        """Columns to divide by, seldom by one attribute in two ways."""
        found = self.some(self.columns, least)
        wide = self.hierarchy.get("wide", {}).get("attribute")
        return [name for name in found if name != "wide" or wide not in found or self.chance(0.05)]

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
            found["structural_zeros"] = [self._structural_zero() for _ in range(self.integer(1, 2))]
        if self.hierarchy:
            found["hierarchies"] = self.hierarchy
        if self.chance(0.15):
            found["records_changing_together"] = self.integer(1, 4)
        return found

    def _structural_zero(self) -> Table:
        """Levels that exclude each other; seldom so many that no record is left."""
        found = {name: self.some(self._levels(name), 1) for name in self.some(self.listed, 1)}
        if self.chance(0.9):
            for name, levels in found.items():
                del levels[max(len(self._levels(name)) - 1, 1) :]
        return found

    # What is published.

    def _invariants(self) -> list[Table]:
        count = self.one_of(0, 0, 1, 1, 2) if self.neighbors == "replace-one" or self.chance(0.05) else 0
        return [{"name": f"exact {k}", "by": self._by(), "where": self._where()} for k in range(count)]

    def _workload(self) -> list[Table]:
        tables = []
        for number in range(self.integer(1, 4)):
            loss = "absolute" if self.absolute else "squared"
            # Beside a public number of records one total is decided, and a program of such tables has nothing to plan.
            least = int(self.neighbors == "replace-one" and self.chance(0.8))
            table: Table = {"name": f"table {number}", "by": self._by(least=least), "where": self._where()}
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
                if levels and not any(table["weights"][name].values()) and self.chance(0.9):
                    table["weights"][name][levels[0]] = 1
            table["loss"] = loss
            table["value_of_accuracy"] = self.money(f"USD per {unit}" + "^2" * (loss == "squared"))
            if self.chance(0.1):
                table["fitness_for_use"] = {"largest_root_mean_squared_error": self.one_of(0.1, 2, 50)}
            tables.append(table)
        if self.chance(0.05):
            for table in tables:
                table["share"] = f"1/{len(tables)}"
        return tables

    def _ratios(self, tables: list[Table], invariants: list[Table]) -> list[Table]:
        units = {table["name"]: table.get("unit", "person") for table in (*invariants, *tables)}
        found = []
        for number in range(self.integer(1, 2)):
            parts = [self.one_of(*units) for _ in range(2)]
            plain = [table["name"] for table in tables if not table["by"]]
            if self.chance(0.8) and plain:  # what is added up over everything divides every table
                parts[1] = self.one_of(*plain)
            if parts[0] == parts[1]:
                continue
            ratio: Table = {"name": f"ratio {number}", "numerator": parts[0], "denominator": parts[1]}
            unit = " per ".join(units[part] for part in parts)
            if self.chance(0.8):
                ratio["typical_value"] = self.money(unit, -2, 2)
            if self.chance(0.6):
                ratio["value_of_accuracy"] = self.money(f"USD per ({unit})^2")
            found.append(ratio)
        for table in (*invariants, *tables):
            if self.chance(0.95):
                table["total"] = {"value": 900, "unit": units[table["name"]], "source": "drawn"}
        return found

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
        if "share" in tables[0] and self.chance(0.8):
            found["measured"] = "apart"
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
        endless = document["preferences"]["information_utility"] in ("bounded", "posterior")
        if self.chance(0.8 if endless else 0.4):  # without a cap, everything is worth more than a bounded cost
            document["limits"] = {f"largest_{self.measure}": self.one_of(0.01, 1, 20)}
        if self.chance(0.1):
            document["participation"] = {
                "rate_without_loss": self.one_of(0.6, 1),
                f"decline_per_{self.measure}": self.one_of(0, 0.1),
                "source": "drawn",
            }
            for table in tables:
                table["total"] = {"value": 900, "unit": table.get("unit", "person"), "source": "drawn"}
        if self.chance(0.3):
            document["ratios"] = self._ratios(tables, document["invariants"])
        if self.chance(0.15):
            document["mechanism"]["strategy"] = "workload"  # of sums of measured numbers most of them take long
            for table in self.some(tables, 1):
                self._count_otherwise(table)
        self._beside(document, tables)
        self._choose_bounds(document)
        text = to_toml(document)
        if not self.chance(0.3):
            return text
        currency = self.one_of("JPY", "CHF", "EUR")
        return text.replace("USD", currency).replace("[program]\n", f'[program]\ncurrency = "{currency}"\n')

    def _choose_bounds(self, document: Table) -> None:
        """Upper bounds of amounts that are left to the plan, by a distribution; of small ones, which plan at once."""
        for name in self.numeric:
            attribute = document["population"]["attributes"][name]
            if attribute.get("lower", -1) < 0 or not self.chance(0.2):
                continue
            grid = attribute["grid"]
            law = {"law": "lognormal", "median": self.one_of(1, 3) * grid, "spread": 0.5, "source": "drawn"}
            document["population"]["attributes"] |= {name: attribute | {"distribution": law}}
            if self.chance(0.7):
                multiples = [attribute["lower"] + grid * steps for steps in (1, 3, 6)]
                document["population"]["attributes"][name] |= {"upper": "best", "bounds": multiples}

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

    def _count_otherwise(self, table: Table) -> None:
        """Another loss than a squared one, now and then, or another way to state what errors cost."""
        unit = table.get("unit", "person")
        kind = self.one_of("squared", "relative", "tail", "tail", "worst-case", "wealth", "superpopulation")
        stated: dict[str, Table] = {
            "squared": {},
            "relative": {"expected_number": self.money(unit), "value_of_accuracy": self.money("USD", 0, 9)},
            "tail": {"threshold": self.money(unit, -1, 3), "value_of_accuracy": self.money("USD", 0, 7)},
            "worst-case": {"miss_probability": 0.1, "value_of_accuracy": self.money(f"USD per {unit}")},
            "superpopulation": {"estimates": "superpopulation"},
            "wealth": {
                "wealth": [
                    {
                        "name": "users",
                        "people": 1000,
                        "exposure": self.money(f"USD per {unit}", -2, 2),
                        "risk_aversion": self.money("1/USD", -6, -1),
                        "exposed_to": self.one_of("one", "all"),
                        "source": "drawn",
                    }
                ]
            },
        }
        table |= stated[kind]
        if kind == "wealth":
            del table["value_of_accuracy"]
            table["loss"] = "squared"
        elif kind in ("relative", "tail", "worst-case"):
            table["loss"] = kind


class FullProgram(RandomProgram):
    """Besides, what stands around the choice: other people, other readings, what is known of the numbers, markets."""

    USUAL = 0.15  # how often each part is there, where it can be

    def _choose_bounds(self, document: Table) -> None:
        super()._choose_bounds(document)
        parts = (
            self._divide_people,
            self._know_more_of_the_cost,
            self._read_otherwise,
            self._value_tables,
            self._count_at_a_bound,
            self._meet_markets,
            self._look_ahead,
            self._state_time,
        )
        for part in parts:
            if self.chance(self.USUAL):
                part(document)
        if self.chance(0.5):
            self._add_people_up(document)

    def _divide_people(self, document: Table) -> None:
        size = document["population"]["population_size"]["value"]
        if size == 1:
            return
        cost = document["preferences"].pop("mean_disclosure_cost")
        costs = {"few": (0.25, cost), "many": (0.75, self.money(cost["unit"]))}
        groups = [
            {
                "name": name,
                "size": {"value": part * size, "unit": "person", "source": "drawn"},
                "mean_disclosure_cost": cost,
            }
            for name, (part, cost) in costs.items()
        ]
        document["preferences"]["groups"] = groups

    def _amount(self, unit: str, low: float = -3, high: float = 5) -> Table:
        """Of what no error is carried into the choice, and so none may be stated."""
        return {key: part for key, part in self.money(unit, low, high).items() if key != "standard_error"}

    def _add_people_up(self, document: Table) -> None:
        if "groups" not in document["preferences"] and self.chance(0.9):
            return
        terms: Table = {
            "phantoms": [0.1, 2],
            f"disagreement_{self.measure}": self.one_of(0.05, 0.5),
            "status_quo": 0.3,
            "options": [0.1, 1, 3],
            "baseline": self._amount("USD per person"),
        }
        document["social_choice"] = {name: terms[name] for name in self.some(list(terms))}

    def _know_more_of_the_cost(self, document: Table) -> None:
        cost = document["preferences"].get("mean_disclosure_cost")
        if cost is None:
            return
        if self.chance(0.5):
            cost["standard_error"] = cost["value"] / 4
            document["uncertainty"] = {"spread_of_answers": 1, "respondents": 100, "source": "drawn"}
        elif "standard_error" not in cost:
            cost |= {"least": cost["value"] / 3, "largest": 3 * cost["value"]}

    def _read_otherwise(self, document: Table) -> None:
        document["program"]["public_total"] = self._amount("USD", 0, 9)
        if "mean_disclosure_cost" in document["preferences"]:
            reading = {"reading": "otherwise", "parameter": "mean_disclosure_cost", "source": "drawn"}
            document["readings"] = [reading | {"times": self.one_of(0.001, 0.5, 1000)}]

    def _value_tables(self, document: Table) -> None:
        for table in self.some(document["workload"], 1):
            table["value_of_publishing"] = self._amount("USD", 0, 8)
            if self.chance(0.3):
                table["details"] = [{"name": "all", "by": [], "value_of_publishing": self._amount("USD", 0, 8)}]
            if "estimates" not in table:
                table["existing_error"] = self._amount(table.get("unit", "person"), -1)

    def _count_at_a_bound(self, document: Table) -> None:
        amounts = [name for name in self.numeric if "grid" in self.attributes[name]]
        if amounts and "share" not in document["workload"][0]:
            worth = self.money("USD per person^2")
            table = {"name": "at the bound", "at_bound_of": self.one_of(*amounts), "value_of_accuracy": worth}
            document["workload"].append(table)

    def _meet_markets(self, document: Table) -> None:
        document["markets"] = {
            "largest_user_share": self.one_of(0.01, 0.5),
            "budget": self._amount("USD", -2, 7),
            "harm": self._amount("USD per person"),
            "target_error": self.one_of(1e-9, 0.05, 0.5),
            "source": "drawn",
        }

    def _look_ahead(self, document: Table) -> None:
        releases = {"releases": self.one_of([0], [0, 10, 80]), "largest_total": self.one_of(0.01, 2)}
        document["horizon"] = {"discount_factor": 0.9, "disclosure_after_years": 72, "source": "drawn", **releases}

    def _state_time(self, document: Table) -> None:
        time = self.one_of("per year", "once", "lifetime")
        for table in tables_of(document):
            if "value" in table and table.get("unit", "").startswith("USD"):
                table["time_base"] = time


def tables_of(document: Any) -> Iterator[Table]:
    """Every table in a document, however deep."""
    if isinstance(document, dict):
        yield document
        for part in document.values():
            yield from tables_of(part)
    elif isinstance(document, list):
        for part in document:
            yield from tables_of(part)


MOST_TINY_CELLS = 12


class TinyProgram(RandomProgram):
    """So few cells that every neighbor of every file can be written out; what is drawn exactly, and is no study."""

    def __init__(self, draws: np.random.Generator) -> None:
        super().__init__(draws)
        self.absolute = False
        while math.prod(map(self._size, self.attributes)) > MOST_TINY_CELLS:
            del self.attributes[max(self.attributes)]
        self.hierarchy = self._hierarchy() if self.chance(0.4) else {}
        self.strategy = self.one_of("workload", "workload", "identity", "optimized")
        self.noise = self.one_of("geometric", "gaussian") if self.measure == "epsilon" else "gaussian"
        self.measure = "epsilon" if self.noise == "geometric" else "rho"

    def _attribute(self, name: str) -> Table:
        odd: Table = {"missing": "?"} if self.chance(0.2) else {}
        if self.chance(0.3):
            return {"from": 0, "to": self.integer(1, 2), **odd}
        if self.chance(0.2):
            return {"lower": -5, "upper": 5, "grid": 5}
        return {"levels": [f"{name}{number}" for number in range(self.integer(2, 3) - bool(odd))], **odd}

    def _size(self, name: str) -> int:
        return len(self._levels(name)) or 3

    def _columns(self) -> list[str]:
        """What a table is broken down by: nothing twice, by itself and by its groups."""
        by: list[str] = self.some(self.columns)
        grouped = {name: each["attribute"] for name, each in self.hierarchy.items()}
        return [name for name in by if grouped.get(name) not in by]

    def _population(self) -> Table:
        found = super()._population() | {"dropping_is_public": True}
        for key in ("records_changing_together", "structural_zeros", "identifier", "most_records_per_unit"):
            found.pop(key, None)
        several = [name for name in self.listed if len(self._levels(name)) > 1]
        if self.chance(0.3) and len(several) > 1:
            found["structural_zeros"] = [
                {name: [self.one_of(*self._levels(name))] for name in several} for _ in range(self.integer(1, 2))
            ]
        if self.totals > 1:
            found["records_changing_together"] = self.integer(2, 4)
        elif self.totals == 0 and self.chance(0.4):  # beside exact totals publishing refuses an identifier
            found |= {"identifier": "name", "most_records_per_unit": self.integer(1, 3)}
        return found

    def text(self) -> str:
        tables, invariants = self._workload(), self._invariants()
        if self.neighbors == "replace-one" and self.chance(0.3):  # totals that cross
            invariants = [{"name": f"exact {name}", "by": [name], "where": {}} for name in self.attributes]
        self.totals = len(invariants)
        for table in tables:
            table["by"] = [name for name in self._columns() if name != table.get("sum_of")]
            table["where"] = {} if self.chance(0.5) else table["where"]
            for name in (*table["by"], *table["where"]):
                table.get("weights", {}).pop(name, None)
            if not table.get("weights", {"": 0}):
                del table["weights"]
            table.pop("fitness_for_use", None)
        mechanism = {"noise": self.noise, "strategy": self.strategy, "measured": self.one_of("together", "apart")}
        cost = self.money(f"USD per person per {self.measure}", -2, 2)
        return to_toml(
            {
                "program": {"schema": 1, "name": "tiny"},
                "population": self._population(),
                "invariants": invariants,
                "workload": tables,
                "mechanism": mechanism,
                "preferences": {"information_utility": "linear", "mean_disclosure_cost": cost},
                "limits": {f"largest_{self.measure}": self.one_of(1, 3)},
            }
        )

    def records(self) -> str:
        """A few records, some of them of the same person."""

        def value(name: str) -> str:
            attribute = self.attributes[name]
            if "levels" in attribute:
                return str(self.one_of(*attribute["levels"]))
            low, high = (attribute[key] for key in (("from", "to") if "from" in attribute else ("lower", "upper")))
            return str(self.integer(low, high))

        rows = [[*(value(name) for name in self.attributes), f"p{self.integer(0, 3)}"] for _ in range(6)]
        return "\n".join(",".join(row) for row in [[*self.attributes, "name"], *rows]) + "\n"


class EvenProgram(RandomProgram):
    """Counts, sums, means, shares and a hierarchy; every cell of its data holds the same number of records.

    What the file states of its levels is then true, and what is released can be held against the plan.
    """

    def __init__(self, draws: np.random.Generator) -> None:
        self.draws = draws
        self.regions = [f"r{number}" for number in range(self.integer(4, 8))]
        place, grid = self.integer(1, len(self.regions) - 1), self.one_of(1, 5, 100)
        self.states = {"east": self.regions[:place], "west": self.regions[place:]}
        self.amount = {"lower": 0, "upper": grid * self.integer(2, 4), "grid": grid}
        self.ages = ["young", "old"]
        self.records = self.integer(1000, 2000)  # in each cell: far more than the noise

    @property
    def population_size(self) -> int:
        steps: int = self.amount["upper"] // self.amount["grid"] + 1
        return self.records * len(self.regions) * len(self.ages) * steps

    def _even_tables(self) -> tuple[list[Table], list[Table]]:
        wide = self.one_of("region", "state")
        shares = {state: len(regions) / len(self.regions) for state, regions in self.states.items()}
        uneven: Table = {"denominator_shares": {"state": shares}, "source": "drawn"}
        tables: list[Table] = [
            {"name": "people", "by": ["region"]},
            {"name": "states", "by": ["state"]},
            {"name": "cost", "by": [wide], "sum_of": "amount", "unit": "USD"},
        ]
        below = "people" if wide == "region" else "states"
        typical = {"value": self.amount["upper"] / 2, "unit": "USD per person", "source": "drawn"}
        ratios: list[Table] = [
            {"name": "mean cost", "numerator": "cost", "denominator": below, "typical_value": typical}
        ]
        ratios[0] |= uneven if wide == "state" else {}
        ratios.append({"name": "in the state", "numerator": "people", "denominator": "states", **uneven})
        if self.chance(0.5):
            tables.append({"name": "ages", "by": ["region", "age"], "where": {"age": ["young"]}})
            young = {"value": self.population_size / 2, "unit": "person", "source": "drawn"}
            tables[-1]["total"] = young
            ratios.append({"name": "young", "numerator": "ages", "denominator": "people"})
        for table in tables:
            amount = "sum_of" in table
            unit, lowest = ("USD", -2 * math.log10(self.amount["upper"])) if amount else ("person", 0)
            table["value_of_accuracy"] = self.money(f"USD per {unit}^2", lowest, lowest + 2)
        for ratio in ratios:
            if self.chance(0.5):
                unit = "USD per person" if ratio["name"] == "mean cost" else "person per person"
                ratio["value_of_accuracy"] = self.money(f"USD per ({unit})^2", 0, 4)
        return tables, ratios

    def text(self) -> str:
        tables, ratios = self._even_tables()
        mechanism: Table = {"noise": self.one_of("geometric", "gaussian", "best"), "failure_probability": 1e-6}
        if self.chance(0.5):
            mechanism["strategy"] = self.one_of("workload", "optimized")
        if self.chance(0.3):
            mechanism["measured"] = "apart"
        population: Table = {
            "account": "people",
            "unit": "person",
            "neighbors": "add-or-remove",
            "population_size": {"value": self.population_size, "unit": "person", "source": "drawn"},
            "attributes": {"region": self.regions, "age": self.ages, "amount": self.amount},
            "hierarchies": {"state": {"attribute": "region", "groups": self.states}},
        }
        cost = {"value": 1e-6, "unit": "USD per person per epsilon", "source": "drawn"}
        return to_toml(
            {
                "program": {"schema": 1, "name": "even"},
                "population": population,
                "workload": tables,
                "ratios": ratios,
                "mechanism": mechanism,
                "preferences": {"information_utility": "linear", "mean_disclosure_cost": cost},
                "limits": {"largest_epsilon": self.one_of(1, 2, 4)},  # which decides: people hardly mind
            }
        )


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
