"""JSON Schemas of the optional parts of a plan."""

from __future__ import annotations

from dualmandate.report.documents.schema_words import (
    AT_LEAST_0,
    AT_MOST_0,
    MAYBE_NUMBER,
    MAYBE_TEXT,
    NUMBER,
    POSITIVE,
    TEXT,
    WHETHER,
    Schema,
    list_of,
    object_of,
)

_WHY_NOT = object_of({"why_not": TEXT})


def extension_schemas() -> dict[str, Schema]:
    """By key of the plan."""
    return {
        "participation": _participation(),
        "offering": {"anyOf": [_offering(), _WHY_NOT]},
        "path": _path(),
        "markets": {**list_of(_institution()), "minItems": 1},
        "existing_errors": {**list_of(_existing()), "minItems": 1},
    }


def _participation() -> Schema:
    return object_of(
        {
            "rate": POSITIVE,
            "rate_without_loss": POSITIVE,
            "peak": MAYBE_NUMBER,
            "assumed_totals": list_of(TEXT),
            "source": TEXT,
        }
    )


def _offering() -> Schema:
    table = object_of(
        {
            "name": TEXT,
            "table": TEXT,
            "detail": MAYBE_TEXT,
            "value": AT_LEAST_0,
            "price": AT_LEAST_0,
            "published": WHETHER,
            "epsilon": MAYBE_NUMBER,
            "errors": MAYBE_NUMBER,
        }
    )
    return object_of(
        {
            "epsilon": AT_LEAST_0,
            "net": AT_LEAST_0,
            "bound": AT_LEAST_0,
            "exact": WHETHER,
            "tables": {**list_of(table), "minItems": 1},
        }
    )


def _path() -> Schema:
    release = object_of(
        {
            "year": AT_LEAST_0,
            "epsilon": POSITIVE,
            "alone": POSITIVE,
            "privacy_cost": AT_LEAST_0,
            "data_loss": AT_LEAST_0,
        }
    )
    return object_of(
        {
            "total": POSITIVE,
            "cap": MAYBE_NUMBER,
            "price": AT_LEAST_0,
            "welfare": AT_MOST_0,
            "releases": {**list_of(release), "minItems": 1},
        }
    )


def _institution() -> Schema:
    return object_of(
        {
            "institution": TEXT,
            "epsilon": MAYBE_NUMBER,
            "accuracy": MAYBE_NUMBER,
            "payment": MAYBE_NUMBER,
            "total": MAYBE_NUMBER,
            "welfare": MAYBE_NUMBER,
            "forgone": MAYBE_NUMBER,
            "one_count": WHETHER,
            "why": TEXT,
        }
    )


def _existing() -> Schema:
    return object_of({"table": TEXT, "unit": TEXT, "before": POSITIVE, "noise": AT_LEAST_0, "added": NUMBER})
