"""JSON Schema of what an audit found."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from dualmandate.audit.finding import Reference
from dualmandate.report.documents.schema_words import (
    AT_LEAST_0,
    MAYBE_NUMBER,
    MAYBE_TEXT,
    NUMBER,
    TEXT,
    WHETHER,
    Schema,
    document_of,
    list_of,
    object_of,
)

_COUNT: Schema = {"type": "integer", "minimum": 0}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_RATE = {
    "value": _SHARE,
    "successes": _COUNT,
    "trials": {"type": "integer", "minimum": 1},
    "low": _SHARE,
    "high": _SHARE,
}
_RANGE: Schema = {"low": NUMBER, "high": NUMBER, "unit": TEXT}


_JUDGED = object_of(
    {
        "attack": _SHARE,
        "low": _SHARE,
        "high": _SHARE,
        "trials": {"type": "integer", "minimum": 1},
        "proportional_guesser": _SHARE,
        "modal_guesser": _SHARE,
    }
)
_COMPARED = object_of(
    {
        "method": TEXT,
        "family": TEXT,
        "loss": MAYBE_NUMBER,
        "currency": {"enum": ["epsilon", "rho", None]},
        "planned": WHETHER,
        "mean_absolute_error": AT_LEAST_0,
        "promised_mean_absolute_error": MAYBE_NUMBER,
        "records_right": _JUDGED,
        "nonmodal_uniques_right": {"anyOf": [_JUDGED, {"type": "null"}]},
    }
)


def _either(more: Schema | None = None) -> Schema:
    return {"anyOf": [object_of({**(more or {}), **_RATE}), object_of({**(more or {}), **_RANGE})]}


def _audit() -> Schema:
    finding = object_of(
        {
            "attack": TEXT,
            "claim": TEXT,
            "label": {"enum": ["public", "internal"]},
            "success": _either(),
            "baselines": {**list_of(_either({"who": TEXT})), "minItems": 1},
            "counted_in_full": WHETHER,
            "attacker_knows": TEXT,
            "coarsening": TEXT,
            "reference": {"enum": list(get_args(Reference))},
            "partial": MAYBE_TEXT,
            "booked": MAYBE_TEXT,
            "words": TEXT,
        },
        {"details": list_of(TEXT)},
    )
    return document_of(
        "What an audit found: claims, successes with intervals, and baselines",
        "audit/1",
        {
            "target": TEXT,
            "kind": {"enum": ["program", "release", "tables"]},
            "findings": list_of(finding),
            "compared": list_of(_COMPARED),
            "compared_notes": list_of(TEXT),
            "left_out": list_of(TEXT),
            "note": TEXT,
        },
    )


AUDIT_SCHEMAS: dict[str, Callable[[], Schema]] = {"audit": _audit}
