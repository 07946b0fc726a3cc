"""JSON Schemas of what people write and of what the commands print, for editors and for other programs."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from dualmandate.audit.targets.tables_schema import TablesFile
from dualmandate.errors import Refusal, UnknownName
from dualmandate.planning.digest import PLAN_VERSION
from dualmandate.program.schema import ProgramKeys
from dualmandate.report.documents.audit import AUDIT_SCHEMAS
from dualmandate.report.documents.curator import CURATOR_SCHEMAS
from dualmandate.report.documents.extensions import extension_schemas
from dualmandate.report.documents.ledger import LEDGER_SCHEMAS
from dualmandate.report.documents.preferences import preference_schemas
from dualmandate.report.documents.release import RELEASE_SCHEMAS
from dualmandate.report.documents.schema_words import (
    AT_LEAST_0,
    AT_MOST_0,
    CURRENCY,
    DIGEST,
    EXACT_NUMBER,
    MAYBE_NUMBER,
    MAYBE_TEXT,
    NUMBER,
    POSITIVE,
    TEXT,
    WHETHER,
    Schema,
    by_name,
    list_of,
    object_of,
)
from dualmandate.report.documents.survey import SURVEY_SCHEMAS
from dualmandate.survey.schema import SurveyFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_STRATEGY: Schema = {"enum": ["optimized", "workload", "identity"]}
_BOUND_BY: Schema = {
    "enum": ["preferences", "largest epsilon", "largest rho", "fitness for use", "ledger", "participation"]
}


def names() -> tuple[str, ...]:
    """The documents that have a schema."""
    return tuple(_SCHEMAS)


def schema(name: str) -> Schema:
    """The JSON Schema of a document, by name: `program`, `plan`, `refusal`, `ledger`, …"""
    if name not in _SCHEMAS:
        near = difflib.get_close_matches(name, _SCHEMAS, n=1)
        raise UnknownName(
            f"there is no schema called '{name}'",
            why=f"the schemas are {', '.join(_SCHEMAS)}",
            instead=f"did you mean '{near[0]}'?" if near else "name one of them",
        )
    return {"$schema": DIALECT, **_SCHEMAS[name]()}


def _program() -> Schema:
    """From the models that read program files, so that the two cannot differ; null is not TOML and is left out."""
    written = ProgramKeys.model_json_schema()
    return {**_without_null(written), "title": "A program file of Dualmandate, read as TOML"}


def _survey() -> Schema:
    """From the models that read survey files."""
    written = SurveyFile.model_json_schema()
    return {**_without_null(written), "title": "A survey file of Dualmandate, read as TOML"}


def _tables() -> Schema:
    """From the models that read `tables.toml`."""
    written = TablesFile.model_json_schema()
    return {**_without_null(written), "title": "What published tables a folder holds, read as TOML"}


def _without_null(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _without_null(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and value in (None, {}, []))
    }
    options = [option for option in kept.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:
        kept.pop("anyOf")
        kept = {**options[0], **kept}
    elif options:
        kept["anyOf"] = options
    return kept


def _plan() -> Schema:
    return {
        "title": "A plan: the privacy loss to choose, what it buys and costs, and why",
        **object_of(
            {
                "schema": {"const": f"plan/{PLAN_VERSION}"},
                "digest": DIGEST,
                "program": object_of(
                    {
                        "name": TEXT,
                        "description": MAYBE_TEXT,
                        "account": TEXT,
                        "unit": TEXT,
                        "population_size": POSITIVE,
                        "digest": DIGEST,
                    }
                ),
                "loss": _loss(),
                "choice": _choice(),
                "mechanism": _mechanism(),
                "frontier": _frontier(),
                "tables": list_of(_table()),
                "groups": list_of(_group()),
                "technologies": list_of(_technology()),
                "strategies": list_of(_strategy()),
                "saving": _saving(),
                "guarantee": _guarantee(),
                "regret": list_of(_regret()),
                "tornado": list_of(_tornado()),
                "notes": list_of(TEXT),
                "versions": object_of(
                    {"program": {"type": "integer"}, "plan": {"type": "integer"}, "dualmandate": TEXT}
                ),
                "exact": {"type": "object"},
            },
            # Plans of earlier versions do not say whether they are studies.
            {"study": WHETHER, "why_study": MAYBE_TEXT, **extension_schemas(), **preference_schemas()},
        ),
    }


def _loss() -> Schema:
    return object_of(
        {
            "exact": EXACT_NUMBER,
            "amount": POSITIVE,
            "currency": CURRENCY,
            "failure_probability": MAYBE_NUMBER,
            "chosen": object_of({"exact": EXACT_NUMBER, "currency": CURRENCY}),
            "allocation": by_name(EXACT_NUMBER),
        }
    )


def _choice() -> Schema:
    return object_of(
        {
            "epsilon": POSITIVE,
            "currency": CURRENCY,
            "loss": EXACT_NUMBER,
            "accuracy": AT_MOST_0,
            "root_mean_squared_error": MAYBE_NUMBER,
            "root_mean_squared_consequence": MAYBE_NUMBER,
            "welfare": AT_MOST_0,
            "privacy_cost": AT_LEAST_0,
            "data_loss": AT_LEAST_0,
            "marginal_rate_of_transformation": AT_LEAST_0,
            "willingness_to_accept": MAYBE_NUMBER,
            "local_optima": list_of(
                object_of(
                    {"epsilon": POSITIVE, "welfare": AT_MOST_0, "kind": TEXT},
                    {"bound_by": {"anyOf": [_BOUND_BY, {"type": "null"}]}},
                )
            ),
            "bound_by": _BOUND_BY,
            "explanation": TEXT,
        }
    )


def _mechanism() -> Schema:
    sensitivity = object_of({"norm": TEXT, "power": EXACT_NUMBER, "exact": WHETHER, "words": TEXT})
    return object_of(
        {
            "asked": TEXT,
            "noise": TEXT,
            "strategy": _STRATEGY,
            "measured": {"anyOf": [TEXT, list_of(list_of(TEXT))]},
            "sensitivity": by_name(sensitivity),
        }
    )


def _frontier() -> Schema:
    point = object_of(
        {
            "loss": POSITIVE,
            "accuracy": AT_MOST_0,
            "marginal_rate_of_transformation": AT_LEAST_0,
            "willingness_to_accept": AT_LEAST_0,
            "privacy_cost": AT_LEAST_0,
            "data_loss": AT_LEAST_0,
            "welfare": AT_MOST_0,
            "technology": TEXT,
        }
    )
    return object_of({"name": TEXT, "currency": CURRENCY, "points": {**list_of(point), "minItems": 1}})


def _table() -> Schema:
    return object_of(
        {
            "name": TEXT,
            "by": list_of(TEXT),
            "where": by_name(list_of(TEXT)),
            "unit": TEXT,
            "query_count": {"type": "integer", "minimum": 1},
            "measured_in": TEXT,
            "loss_measure": {"enum": ["squared", "absolute"]},
            "root_mean_squared_error": AT_LEAST_0,
            "half_width": AT_LEAST_0,
            "root_mean_squared_consequence": MAYBE_NUMBER,
            "data_loss": AT_LEAST_0,
        }
    )


def _group() -> Schema:
    return object_of(
        {
            "name": TEXT,
            "size": POSITIVE,
            "relative_privacy_weight": AT_LEAST_0,
            "cost_per_member": AT_LEAST_0,
            "privacy_cost": AT_LEAST_0,
        }
    )


def _technology() -> Schema:
    return object_of(
        {
            "noise": TEXT,
            "strategy": _STRATEGY,
            "chosen": WHETHER,
            "why_not": MAYBE_TEXT,
            "epsilon": MAYBE_NUMBER,
            "welfare": MAYBE_NUMBER,
            "root_mean_squared_error": MAYBE_NUMBER,
            "root_mean_squared_consequence": MAYBE_NUMBER,
            "bound_by": {"anyOf": [_BOUND_BY, {"type": "null"}]},
        },
        {"study": WHETHER},
    )


def _strategy() -> Schema:
    return object_of(
        {
            "group": TEXT,
            "words": TEXT,
            "rows": {"type": "integer", "minimum": 1},
            "weights": {**list_of(EXACT_NUMBER), "minItems": 1},
            "digest": DIGEST,
            "error_coefficient": POSITIVE,
            "lower_bound": AT_LEAST_0,
            "bound": TEXT,
            "gap": TEXT,
        }
    )


def _saving() -> Schema:
    naive = object_of(
        {
            "noise": TEXT,
            "strategy": _STRATEGY,
            "why_not": MAYBE_TEXT,
            "epsilon": MAYBE_NUMBER,
            "welfare": MAYBE_NUMBER,
        },
        {
            "study": WHETHER,
            "root_mean_squared_error": MAYBE_NUMBER,
            "root_mean_squared_consequence": MAYBE_NUMBER,
        },
    )
    costs = {"naive": MAYBE_NUMBER, "used": AT_LEAST_0, "optimized": MAYBE_NUMBER, "least": MAYBE_NUMBER}
    return object_of(
        {
            "naive": naive,
            "dollars": MAYBE_NUMBER,
            "at_choice": object_of(costs),
            "least_valid_for": MAYBE_TEXT,
            "points": list_of(object_of({"loss": POSITIVE, **costs})),
        },
        {"welfare_gained": MAYBE_NUMBER},
    )


def _guarantee() -> Schema:
    loss = object_of(
        {
            "label": TEXT,
            "units": {"type": "integer", "minimum": 1},
            "exact": {"anyOf": [EXACT_NUMBER, {"type": "null"}]},
            "currency": {"anyOf": [CURRENCY, {"type": "null"}]},
            "words": TEXT,
        }
    )
    return object_of(
        {
            "protected": TEXT,
            "indistinguishable": TEXT,
            "not_protected": list_of(TEXT),
            "losses": list_of(loss),
            "beliefs": list_of(TEXT),
            "assumption": TEXT,
        }
    )


def _regret() -> Schema:
    return object_of(
        {"multiple": POSITIVE, "epsilon": POSITIVE, "welfare": AT_MOST_0, "absolute": NUMBER, "relative": NUMBER}
    )


def _tornado() -> Schema:
    end = object_of({"value": NUMBER, "epsilon": MAYBE_NUMBER, "refusal": MAYBE_TEXT})
    return object_of({"input": TEXT, "value": NUMBER, "unit": TEXT, "epsilon": POSITIVE, "low": end, "high": end})


def _refusal() -> Schema:
    place = object_of({"file": MAYBE_TEXT, "line": {"type": ["integer", "null"], "minimum": 1}, "key": MAYBE_TEXT})
    return {
        "title": "A refusal: what was refused, where, why, and what to do instead",
        **object_of(
            {
                "schema": {"const": "refusal/1"},
                "code": {"type": "string", "minLength": 1, "not": {"const": Refusal.code}},
                "what": TEXT,
                "where": place,
                "why": TEXT,
                "instead": TEXT,
            }
        ),
    }


def _replicate() -> Schema:
    value: Schema = {"type": ["number", "string", "null"]}
    row = object_of(
        {"id": TEXT, "what": TEXT, "paper": value, "from_its_inputs": value, "corrected": value, "why": TEXT},
        {"section": TEXT, "unit": TEXT},
    )
    return {
        "title": "Every number of the paper, beside what follows from its inputs and what is right",
        **object_of({"schema": {"const": "replicate/1"}, "rows": {**list_of(row), "minItems": 1}}),
    }


_SCHEMAS: dict[str, Callable[[], Schema]] = {
    "program": _program,
    "survey": _survey,
    "plan": _plan,
    "refusal": _refusal,
    "replicate": _replicate,
    **LEDGER_SCHEMAS,
    **RELEASE_SCHEMAS,
    **CURATOR_SCHEMAS,
    **SURVEY_SCHEMAS,
    **AUDIT_SCHEMAS,
    "tables": _tables,
}
