"""What the law fixes for Title I grants, and what was appropriated by fiscal year: numbers with sources, of a file.

`title_i.toml` beside this module holds them. Another file of the same keys is another law: a threshold moved, a weight
changed, an appropriation proposed.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files as resources
from pathlib import Path

from dualmandate.errors import InvalidFile, InvalidValue, MissingKey, Place, UnknownKey, UnknownName, did_you_mean

Row = tuple[float, ...]


@dataclass(frozen=True)
class FiscalYear:
    """What Congress appropriated for a fiscal year, by grant, USD; and of which year the poverty estimates are."""

    poverty_year: float
    estimates: float  # USD of the basic grants that pay for the poverty estimates themselves
    basic: float
    concentration: float
    targeted: float
    incentive: float


@dataclass(frozen=True)
class Statute:
    """The numbers of 20 U.S.C. 6331 to 6337: thresholds, weights, bounds, floors. Shares are of children of 5 to 17."""

    least_children: float
    basic_share: float
    concentration_children: float
    concentration_share: float
    targeted_share: float
    expenditure_share: float
    expenditure_bounds: Row  # of the nation's expenditure a pupil
    incentive_bounds: Row
    share_brackets: Row
    child_brackets: Row
    equity_classes: Row
    share_weights: tuple[Row, ...]  # a row a class of equity, a number a bracket
    child_weights: tuple[Row, ...]
    most_weight_in_puerto_rico: float
    effort_bounds: Row
    equity_constant: float
    unstated_effort: float
    unstated_equity: float
    hold_harmless_shares: Row
    hold_harmless_rates: Row
    concentration_years: float
    base_year_minimum: float
    minimum: float
    average_payments: float
    concentration_minimum: float  # USD
    base_year_basic: float  # USD
    base_year_concentration: float  # USD
    reserved: float
    estimate_populations: Row
    estimate_errors: Row
    years: Mapping[int, FiscalYear]
    sources: Mapping[str, str]  # by key, as in `statute.minimum` or `years.2019.basic`

    def year(self, fiscal_year: int) -> FiscalYear:
        """The appropriations of a fiscal year."""
        if fiscal_year not in self.years:
            known = ", ".join(map(str, self.years))
            raise UnknownName(
                f"there are no appropriations for fiscal year {fiscal_year}",
                why=f"the file of the law holds {known}",
                instead="name one of these, or add the year to a copy of title_i.toml, with a source for each number",
            )
        return self.years[fiscal_year]


def read_statute(path: str | Path | None = None) -> Statute:
    """The law as it is, or as a file of the same keys has it."""
    own = resources(__package__) / "title_i.toml"
    name = "title_i.toml" if path is None else str(path)
    try:
        text = own.read_text(encoding="utf-8") if path is None else Path(path).read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except (OSError, ValueError) as caught:
        raise InvalidFile(
            f"'{name}' cannot be read as a law",
            why=str(caught),
            instead="start from a copy of title_i.toml",
            where=Place(name),
        ) from None
    sources: dict[str, str] = {}
    keys = [field.name for field in fields(Statute) if field.name not in ("years", "sources")]
    numbers = _numbers(tables.get("statute"), keys, "statute", name, sources)
    yearly = [field.name for field in fields(FiscalYear)]
    years = {
        int(year): FiscalYear(**_numbers(table, yearly, f"years.{year}", name, sources))  # type: ignore[arg-type]
        for year, table in tables.get("years", {}).items()
    }
    return Statute(**numbers, years=years, sources=sources)  # type: ignore[arg-type]


def _numbers(
    table: object, keys: list[str], where: str, file: str, sources: dict[str, str]
) -> dict[str, float | tuple[object, ...]]:
    """The values of a table of which every key is known, every number is stated and has a unit and a source."""
    stated = table if isinstance(table, dict) else {}
    for key in stated:
        if key not in keys:
            raise UnknownKey(
                f"'{key}' is no number of the law",
                why="a number that nobody reads would be taken for one that holds",
                instead=did_you_mean(key, keys, "take it out"),
                where=Place(file, key=f"{where}.{key}"),
            )
    found = {}
    for key in keys:
        place = Place(file, key=f"{where}.{key}")
        entry = stated.get(key)
        if not isinstance(entry, dict) or set(entry) != {"value", "unit", "source"} or not entry["source"]:
            raise MissingKey(
                f"'{key}' has no value with a unit and a source",
                why="every number of the law is stated, and says where it stands",
                instead=f'write {key} = {{ value = …, unit = "…", source = "…" }}',
                where=place,
            )
        found[key] = _value(entry["value"], place)
        sources[f"{where}.{key}"] = str(entry["source"])
    return found


def _value(value: object, place: Place) -> float | tuple[object, ...]:
    if isinstance(value, list):
        return tuple(_value(each, place) for each in value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InvalidValue(
            f"{value!r} is no number of the law",
            why="counts, shares, weights and amounts are finite and not below 0",
            instead="state what the section says",
            where=place,
        )
    return float(value)
