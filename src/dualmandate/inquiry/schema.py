"""A question as JSON: the same language as its SQL, for programs that ask."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dualmandate.errors import InvalidQuery, Place
from dualmandate.inquiry.query import Condition, Negated, Picked, Query, Ranged, StatisticKind, Unanswered
from dualmandate.population.rational import rational, written

Stated = Annotated[str | int | float | Decimal, Field(description="A level, or a number.")]
MOST_KEYS = 10_000  # characters of a question


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=True)


class SelectionKeys(_Keys):
    """Which levels of one attribute or grouping are picked: exactly one of these keys, or the two ends of a range."""

    in_: tuple[Stated, ...] | None = Field(None, alias="in", description="These levels.")
    not_in: tuple[Stated, ...] | None = Field(None, description="All levels but these, and but a missing answer.")
    lower: Stated | None = Field(None, alias="from", description="From this number or ordered level on.")
    upper: Stated | None = Field(None, alias="to", description="Up to this number or ordered level, itself included.")
    below: Stated | None = Field(None, description="Up to this number or ordered level, itself left out.")
    missing: bool | None = Field(None, description="Records without an answer (true), or with one (false).")


class QueryKeys(_Keys):
    """One question to the records of a program."""

    statistic: StatisticKind = Field(description="count, sum, mean or quantile.")
    of: str | None = Field(None, description="The attribute that is added up, averaged or ranked.")
    level: Annotated[str | float | Decimal | None, Field(description="Of a quantile: 0.5 is the median.")] = None
    by: tuple[str, ...] = Field((), description="Attributes or groupings: one number a combination of their levels.")
    where: dict[str, SelectionKeys | tuple[Stated, ...]] = Field(
        default_factory=dict, description="By attribute or grouping: a list of levels, or a selection; all hold."
    )


def query_of(keys: Mapping[str, Any] | str) -> Query:
    """The question that a JSON object asks, as text or as read."""
    content = _read(keys) if isinstance(keys, str) else keys
    try:
        found = QueryKeys.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InvalidQuery(
            "a question whose keys cannot be meant",
            why="a key is missing, unknown, or of another kind than it should be",
            instead='write {"statistic": "count", "by": ["sex"], "where": {"age": {"from": 18}}}',
            where=Place(key=key or None),
        ) from None
    level = None if found.level is None else _level(found.level)
    conditions = tuple(_condition(name, each) for name, each in found.where.items())
    places = {name: Place(key=f"where.{name}") for name in found.where}
    places |= {name: Place(key="by") for name in found.by}
    places |= {} if found.of is None else {found.of: Place(key="of")}
    return Query(found.statistic, found.of, level, found.by, conditions, places)


def _read(text: str) -> Any:
    if len(text) <= MOST_KEYS:
        try:
            return json.loads(text, parse_float=Decimal)
        except (ValueError, RecursionError):
            pass
    raise InvalidQuery(
        "a question that is no JSON",
        why=f"it cannot be read, or has more than {MOST_KEYS:,} characters",
        instead='write {"statistic": "count"}',
    )


def _level(stated: str | float | Decimal) -> Any:
    try:
        return rational(stated)
    except ValueError:
        raise InvalidQuery(
            "a quantile at a level that is no number",
            why="a quantile divides the records in two parts",
            instead="state a number between 0 and 1: 0.5 is the median",
            where=Place(key="level"),
        ) from None


def _condition(name: str, stated: SelectionKeys | tuple[Any, ...]) -> Condition:
    if isinstance(stated, tuple):
        stated = SelectionKeys(in_=stated)
    asked = {key for key in SelectionKeys.model_fields if getattr(stated, key) is not None}
    ends = asked & {"lower", "upper", "below"}
    if not asked or (len(asked) > 1 and asked != ends) or {"upper", "below"} <= ends:
        raise InvalidQuery(
            f"a selection of '{name}' in no way, or in several",
            why="of two, it would be unclear which holds",
            instead='write one of {"in": […]}, {"not_in": […]}, {"from": …, "to": …} and {"missing": true}',
            where=Place(key=f"where.{name}"),
        )
    if stated.missing is not None:
        return Unanswered(name) if stated.missing else Negated(Unanswered(name))
    if ends:
        upper = stated.upper if stated.below is None else stated.below
        return Ranged(name, _text(stated.lower), _text(upper), open_upper=stated.below is not None)
    listed = stated.in_ if stated.in_ is not None else stated.not_in
    assert listed is not None
    picked = Picked(name, tuple(str(_text(each)) for each in listed))
    return picked if stated.in_ is not None else Negated(picked)


def _text(stated: str | float | Decimal | None) -> str | None:
    return stated if stated is None or isinstance(stated, str) else written(rational(stated))
