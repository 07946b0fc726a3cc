"""JSON Schemas of survey files, of measured preferences and of questionnaires."""

from __future__ import annotations

from collections.abc import Callable

from dualmandate.report.documents.schema_words import (
    AT_LEAST_0,
    MAYBE_NUMBER,
    MAYBE_TEXT,
    NUMBER,
    POSITIVE,
    TEXT,
    Schema,
    document_of,
    list_of,
    object_of,
)

_COUNT: Schema = {"type": "integer", "minimum": 1}
_INTERVAL: Schema = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}
_NUMBER: Schema = {
    "value": POSITIVE,
    "unit": TEXT,
    "source": TEXT,
    "standard_error": MAYBE_NUMBER,
    "time_base": MAYBE_TEXT,
}


def _preferences() -> Schema:
    estimate = object_of({"name": TEXT, "value": NUMBER, "standard_error": AT_LEAST_0})
    found = object_of({"key": TEXT, **_NUMBER, "interval": _INTERVAL, "level": POSITIVE, "method": TEXT, "of": TEXT})
    worth = object_of(
        {"attribute": TEXT, "value": NUMBER, "unit": TEXT, "standard_error": AT_LEAST_0, "interval": _INTERVAL}
    )
    conflict = object_of({"first": TEXT, "second": TEXT, "distance": NUMBER, "probability": AT_LEAST_0})
    pooled = object_of(
        {
            "key": TEXT,
            **_NUMBER,
            "interval": _INTERVAL,
            "median": POSITIVE,
            "between": AT_LEAST_0,
            "prior": object_of({"center": POSITIVE, "spread": POSITIVE, "source": TEXT}),
            "sources": list_of(object_of(_NUMBER)),
            "conflicts": list_of(conflict),
        }
    )
    correlation = object_of(
        {"first": TEXT, "second": TEXT, "correlation": NUMBER, "standard_error": AT_LEAST_0, "respondents": _COUNT}
    )
    head = document_of(
        "Preferences measured: costs and values with their uncertainty, or correlations of opinions",
        "preferences/1",
        {
            "survey": TEXT,
            "kind": {"enum": ["choice", "single-bounded", "double-bounded", "likert"]},
            "unit": TEXT,
            "respondents": _COUNT,
        },
    )
    head["properties"] |= {
        "answers": _COUNT,
        "model": TEXT,
        "information_utility": {"enum": ["linear", "exponential", "bounded", "posterior"]},
        "log_likelihood": NUMBER,
        "estimates": list_of(estimate),
        "found": list_of(found),
        "worths": list_of(worth),
        "pooled": list_of(pooled),
        "preferences": list_of(object_of({"key": TEXT, **_NUMBER})),
        "block": MAYBE_TEXT,
        "notes": list_of(TEXT),
        "correlations": list_of(correlation),
    }
    return {**head, "anyOf": [{"required": ["found", "preferences", "block"]}, {"required": ["correlations"]}]}


def _questionnaire() -> Schema:
    level = object_of({"words": TEXT, "recorded": NUMBER, "shown": {"type": "integer", "minimum": 0}})
    attribute = object_of({"name": TEXT, "role": TEXT, "levels": list_of(level)})
    return document_of(
        "A questionnaire: its tasks, how good they are, and how many must answer",
        "questionnaire/1",
        {
            "title": TEXT,
            "tasks": _COUNT,
            "alternatives": _COUNT,
            "blocks": _COUNT,
            "tasks_each": _COUNT,
            "d_error": POSITIVE,
            "attributes": list_of(attribute),
            "respondents": _COUNT,
            "coefficient_of_variation": POSITIVE,
            "within": POSITIVE,
            "confidence": POSITIVE,
        },
    )


SURVEY_SCHEMAS: dict[str, Callable[[], Schema]] = {"preferences": _preferences, "questionnaire": _questionnaire}
