"""Tabulation record by record in plain Python, without a database: what the fast one must equal."""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from dualmandate.population import Attribute, Domain, GridLevels, Protection
from dualmandate.publication import AttributeRule, Rules, ValueRule

Value = str | int | float | None
Record = Mapping[str, Value]
DROPPED = None


def reading(attribute: Attribute, value: Value) -> tuple[str, int | None]:
    """`null`, `outside` or `found`, and the position found, or the nearest one outside."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "null", None
    if not isinstance(attribute.levels, GridLevels) and attribute.edges is None:
        label = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        found = list(attribute.levels).index(label) if label in attribute.levels else None
        return ("outside" if found is None else "found"), found
    if isinstance(value, str):
        if value == attribute.missing:
            return "found", attribute.size - 1
        if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", value, re.ASCII):
            return "outside", None
        value = float(value)
    if attribute.edges is not None:
        edges = [float(edge) for edge in attribute.edges]
        nearest = sum(value >= edge for edge in edges[1:-1])
        return ("found" if edges[0] <= value <= edges[-1] else "outside"), nearest
    assert isinstance(attribute.levels, GridLevels)
    low, grid, last = attribute.levels.lower, attribute.levels.grid, attribute.levels.points - 1
    high = low + grid * last
    clamped = min(
        max(value, low if isinstance(value, int) else float(low)), high if isinstance(value, int) else float(high)
    )
    if isinstance(value, int) and low.denominator == grid.denominator == 1:
        nearest = math.floor((clamped - low) / grid + Fraction(1, 2))
    else:
        nearest = math.floor((float(clamped) - float(low)) / float(grid) + 0.5)
    return ("found" if low <= value <= high else "outside"), nearest


def level(attribute: Attribute, value: Value, rule: AttributeRule) -> int | None:
    what, position = reading(attribute, value)
    if what == "found":
        return position
    applied = rule.null if what == "null" else rule.outside
    if applied is ValueRule.CLAMP:
        if position is not None:
            return position
        applied = rule.null
    return attribute.size - 1 if applied is ValueRule.MISSING else DROPPED


def impossible(domain: Domain, levels: Sequence[int]) -> bool:
    return any(all(mask[levels[axis]] for axis, mask in masks.items()) for masks in domain.all_zero_masks)


def cell(domain: Domain, rules: Rules, record: Record) -> int | None:
    placed = [level(attribute, record[attribute.name], rules.of(attribute)) for attribute in domain.attributes]
    levels = [position for position in placed if position is not None]
    if len(levels) < len(placed):
        return DROPPED
    if impossible(domain, levels) and rules.unknown_where_impossible is not None:
        axis = domain.axis(rules.unknown_where_impossible)
        levels[axis] = domain.shape[axis] - 1
    if impossible(domain, levels):
        return DROPPED
    number = 0
    for size, position in zip(domain.shape, levels, strict=True):
        number = number * size + position
    return number


def tabulated(
    records: Sequence[Record], domain: Domain, protection: Protection, rules: Rules, key: bytes
) -> dict[int, int]:
    cells = [(record, found) for record in records if (found := cell(domain, rules, record)) is not None]
    if protection.identifier is None:
        return dict(Counter(found for _, found in cells))
    units: dict[str, list[int]] = defaultdict(list)
    for record, found in cells:
        if record[protection.identifier] is not None:
            units[str(record[protection.identifier])].append(found)
    kept: Counter[int] = Counter()
    for unit, held in units.items():
        numbered: list[tuple[int, int]] = []
        for found in held:
            numbered.append((found, 1 + sum(found == other for other, _ in numbered)))
        numbered.sort(key=lambda one: hmac.digest(key, f"{one[0]},{one[1]},{unit}".encode(), hashlib.sha256))
        kept.update(found for found, _ in numbered[: protection.most_records_per_unit])
    return dict(kept)
