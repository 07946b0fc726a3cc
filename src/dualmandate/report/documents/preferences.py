"""JSON Schemas of what a plan says about preferences that are not known exactly, or that differ between people."""

from __future__ import annotations

from dualmandate.report.documents.schema_words import (
    AT_LEAST_0,
    MAYBE_NUMBER,
    NUMBER,
    POSITIVE,
    TEXT,
    WHETHER,
    Schema,
    by_name,
    list_of,
    object_of,
)

_PROBABILITY: Schema = {"type": "number", "minimum": 0, "maximum": 1}


def preference_schemas() -> dict[str, Schema]:
    """By key of the plan."""
    return {"uncertainty": _uncertainty(), "social_choice": _social_choice()}


def _uncertainty() -> Schema:
    number = object_of(
        {
            "name": TEXT,
            "unit": TEXT,
            "value": POSITIVE,
            "standard_error": MAYBE_NUMBER,
            "least": MAYBE_NUMBER,
            "largest": MAYBE_NUMBER,
        }
    )
    distribution = object_of(
        {
            "epsilon": POSITIVE,
            "level": _PROBABILITY,
            "interval": {**list_of(POSITIVE), "minItems": 2, "maxItems": 2},
            "median": POSITIVE,
            "mean": POSITIVE,
            "at_lowest": _PROBABILITY,
            "at_highest": _PROBABILITY,
            "quantiles": list_of(object_of({"probability": _PROBABILITY, "epsilon": POSITIVE})),
        }
    )
    regret = object_of(
        {
            "value_of_perfect_information": AT_LEAST_0,
            "expected_cost": AT_LEAST_0,
            "quantiles": list_of(object_of({"probability": _PROBABILITY, "regret": AT_LEAST_0})),
        }
    )
    survey = object_of(
        {
            "respondents": {"type": "integer", "minimum": 1},
            "spread_of_answers": POSITIVE,
            "parameter": TEXT,
            "value": AT_LEAST_0,
            "share_of_perfect": AT_LEAST_0,
        }
    )
    corner = object_of({"values": by_name(NUMBER), "epsilon": POSITIVE, "regret": NUMBER, "binding": WHETHER})
    robust = object_of({"epsilon": POSITIVE, "regret": NUMBER, "corners": {**list_of(corner), "minItems": 1}})
    return object_of(
        {"numbers": {**list_of(number), "minItems": 1}, "words": list_of(TEXT)},
        {
            "distribution": distribution,
            "regret": regret,
            "survey": survey,
            "best_survey": survey,
            "minimax_regret": robust,
            "minimax_relative_regret": robust,
            "why_not": TEXT,
        },
    )


def _social_choice() -> Schema:
    peak = object_of(
        {
            "group": TEXT,
            "size": POSITIVE,
            "epsilon": MAYBE_NUMBER,
            "wants": {"enum": ["this", "more", "none"]},
            "single_peaked": WHETHER,
        }
    )
    rule = object_of(
        {"rule": TEXT, "epsilon": MAYBE_NUMBER, "welfare": MAYBE_NUMBER, "gains": by_name(NUMBER), "words": TEXT}
    )
    majority = object_of(
        {
            "options": list_of(POSITIVE),
            "votes": list_of(list_of(AT_LEAST_0)),
            "winner": MAYBE_NUMBER,
            "cycle": {"anyOf": [list_of(POSITIVE), {"type": "null"}]},
        }
    )
    price = object_of({"group": TEXT, "charge": NUMBER, "payment": NUMBER, "demand": POSITIVE})
    return object_of(
        {
            "peaks": {**list_of(peak), "minItems": 1},
            "efficient": list_of({**list_of(MAYBE_NUMBER), "minItems": 2, "maxItems": 2}),
            "against": POSITIVE,
            "rules": {**list_of(rule), "minItems": 1},
            "gains_at_each_loss": list_of(object_of({"epsilon": POSITIVE, "gains": by_name(NUMBER)})),
            "majority": majority,
            "lindahl": object_of(
                {"epsilon": POSITIVE, "surplus": NUMBER, "supported": WHETHER, "prices": list_of(price)}
            ),
            "clarke_taxes": list_of(object_of({"group": TEXT, "epsilon_without": MAYBE_NUMBER, "tax": MAYBE_NUMBER})),
        }
    )
