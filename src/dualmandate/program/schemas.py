"""JSON Schemas of what people write and of what the commands print, for editors and for other programs."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from dualmandate.errors import Refusal, UnknownName
from dualmandate.program.digest import PLAN_VERSION
from dualmandate.program.schema import ProgramFile

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
_AT_LEAST_0: Schema = {"type": "number", "minimum": 0}
_AT_MOST_0: Schema = {"type": "number", "maximum": 0}
_CURRENCY: Schema = {"enum": ["epsilon", "rho"]}
_EXACT_NUMBER: Schema = {"type": "string", "pattern": "^[0-9]+(/[0-9]+)?$"}
_DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_STRATEGY: Schema = {"enum": ["optimized", "workload", "identity"]}
_BOUND_BY: Schema = {"enum": ["preferences", "largest epsilon", "largest rho", "fitness for use", "ledger"]}


def names() -> tuple[str, ...]:
    """The documents that have a schema."""
    return tuple(_SCHEMAS)


def schema(name: str) -> Schema:
    """The JSON Schema of a document, by name: `program`, `plan`, `refusal` or `replicate`."""
    if name not in _SCHEMAS:
        near = difflib.get_close_matches(name, _SCHEMAS, n=1)
        raise UnknownName(
            f"there is no schema called '{name}'",
            why=f"the schemas are {', '.join(_SCHEMAS)}",
            instead=f"did you mean '{near[0]}'?" if near else "name one of them",
        )
    return {"$schema": DIALECT, **_SCHEMAS[name]()}


def _object(required: Schema, optional: Schema | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _by_name(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _program() -> Schema:
    """From the models that read program files, so that the two cannot differ; null is not TOML and is left out."""
    written = ProgramFile.model_json_schema()
    return {**_without_null(written), "title": "A program file of Dualmandate, read as TOML"}


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
        **_object(
            {
                "schema": {"const": f"plan/{PLAN_VERSION}"},
                "digest": _DIGEST,
                "program": _object(
                    {
                        "name": _TEXT,
                        "description": _MAYBE_TEXT,
                        "account": _TEXT,
                        "unit": _TEXT,
                        "population_size": _POSITIVE,
                        "digest": _DIGEST,
                    }
                ),
                "loss": _loss(),
                "choice": _choice(),
                "mechanism": _mechanism(),
                "frontier": _frontier(),
                "tables": _list(_table()),
                "groups": _list(_group()),
                "technologies": _list(_technology()),
                "strategies": _list(_strategy()),
                "saving": _saving(),
                "guarantee": _guarantee(),
                "regret": _list(_regret()),
                "tornado": _list(_tornado()),
                "notes": _list(_TEXT),
                "versions": _object(
                    {"program": {"type": "integer"}, "plan": {"type": "integer"}, "dualmandate": _TEXT}
                ),
                "exact": {"type": "object"},
            }
        ),
    }


def _loss() -> Schema:
    return _object(
        {
            "exact": _EXACT_NUMBER,
            "amount": _POSITIVE,
            "currency": _CURRENCY,
            "failure_probability": _MAYBE_NUMBER,
            "chosen": _object({"exact": _EXACT_NUMBER, "currency": _CURRENCY}),
            "allocation": _by_name(_EXACT_NUMBER),
        }
    )


def _choice() -> Schema:
    return _object(
        {
            "epsilon": _POSITIVE,
            "currency": _CURRENCY,
            "loss": _EXACT_NUMBER,
            "accuracy": _AT_MOST_0,
            "root_mean_squared_error": _MAYBE_NUMBER,
            "root_mean_squared_consequence": _MAYBE_NUMBER,
            "welfare": _AT_MOST_0,
            "privacy_cost": _AT_LEAST_0,
            "data_loss": _AT_LEAST_0,
            "marginal_rate_of_transformation": _AT_LEAST_0,
            "willingness_to_accept": _MAYBE_NUMBER,
            "local_optima": _list(
                _object(
                    {"epsilon": _POSITIVE, "welfare": _AT_MOST_0, "kind": _TEXT},
                    {"bound_by": {"anyOf": [_BOUND_BY, {"type": "null"}]}},
                )
            ),
            "bound_by": _BOUND_BY,
            "explanation": _TEXT,
        }
    )


def _mechanism() -> Schema:
    sensitivity = _object({"norm": _TEXT, "power": _EXACT_NUMBER, "exact": {"type": "boolean"}, "words": _TEXT})
    return _object(
        {
            "asked": _TEXT,
            "noise": _TEXT,
            "strategy": _STRATEGY,
            "measured": {"anyOf": [_TEXT, _list(_list(_TEXT))]},
            "sensitivity": _by_name(sensitivity),
        }
    )


def _frontier() -> Schema:
    point = _object(
        {
            "loss": _POSITIVE,
            "accuracy": _AT_MOST_0,
            "marginal_rate_of_transformation": _AT_LEAST_0,
            "willingness_to_accept": _AT_LEAST_0,
            "privacy_cost": _AT_LEAST_0,
            "data_loss": _AT_LEAST_0,
            "welfare": _AT_MOST_0,
            "technology": _TEXT,
        }
    )
    return _object({"name": _TEXT, "currency": _CURRENCY, "points": {**_list(point), "minItems": 1}})


def _table() -> Schema:
    return _object(
        {
            "name": _TEXT,
            "by": _list(_TEXT),
            "where": _by_name(_list(_TEXT)),
            "unit": _TEXT,
            "query_count": {"type": "integer", "minimum": 1},
            "measured_in": _TEXT,
            "loss_measure": {"enum": ["squared", "absolute"]},
            "root_mean_squared_error": _AT_LEAST_0,
            "half_width": _AT_LEAST_0,
            "root_mean_squared_consequence": _MAYBE_NUMBER,
            "data_loss": _AT_LEAST_0,
        }
    )


def _group() -> Schema:
    return _object(
        {
            "name": _TEXT,
            "size": _POSITIVE,
            "relative_privacy_weight": _AT_LEAST_0,
            "cost_per_member": _AT_LEAST_0,
            "privacy_cost": _AT_LEAST_0,
        }
    )


def _technology() -> Schema:
    return _object(
        {
            "noise": _TEXT,
            "strategy": _STRATEGY,
            "chosen": {"type": "boolean"},
            "why_not": _MAYBE_TEXT,
            "epsilon": _MAYBE_NUMBER,
            "welfare": _MAYBE_NUMBER,
            "root_mean_squared_error": _MAYBE_NUMBER,
            "root_mean_squared_consequence": _MAYBE_NUMBER,
            "bound_by": {"anyOf": [_BOUND_BY, {"type": "null"}]},
        }
    )


def _strategy() -> Schema:
    return _object(
        {
            "group": _TEXT,
            "words": _TEXT,
            "rows": {"type": "integer", "minimum": 1},
            "weights": {**_list(_EXACT_NUMBER), "minItems": 1},
            "digest": _DIGEST,
            "error_coefficient": _POSITIVE,
            "lower_bound": _AT_LEAST_0,
            "bound": _TEXT,
            "gap": _TEXT,
        }
    )


def _saving() -> Schema:
    naive = _object(
        {
            "noise": _TEXT,
            "strategy": _STRATEGY,
            "why_not": _MAYBE_TEXT,
            "epsilon": _MAYBE_NUMBER,
            "welfare": _MAYBE_NUMBER,
        }
    )
    costs = {"naive": _MAYBE_NUMBER, "used": _AT_LEAST_0, "optimized": _MAYBE_NUMBER, "least": _MAYBE_NUMBER}
    return _object(
        {
            "naive": naive,
            "dollars": _MAYBE_NUMBER,
            "at_choice": _object(costs),
            "least_valid_for": _MAYBE_TEXT,
            "points": _list(_object({"loss": _POSITIVE, **costs})),
        }
    )


def _guarantee() -> Schema:
    loss = _object(
        {
            "label": _TEXT,
            "units": {"type": "integer", "minimum": 1},
            "exact": {"anyOf": [_EXACT_NUMBER, {"type": "null"}]},
            "currency": {"anyOf": [_CURRENCY, {"type": "null"}]},
            "words": _TEXT,
        }
    )
    return _object(
        {
            "protected": _TEXT,
            "indistinguishable": _TEXT,
            "not_protected": _list(_TEXT),
            "losses": _list(loss),
            "beliefs": _list(_TEXT),
            "assumption": _TEXT,
        }
    )


def _regret() -> Schema:
    return _object(
        {"multiple": _POSITIVE, "epsilon": _POSITIVE, "welfare": _AT_MOST_0, "absolute": _NUMBER, "relative": _NUMBER}
    )


def _tornado() -> Schema:
    end = _object({"value": _NUMBER, "epsilon": _MAYBE_NUMBER, "refusal": _MAYBE_TEXT})
    return _object({"input": _TEXT, "value": _NUMBER, "unit": _TEXT, "epsilon": _POSITIVE, "low": end, "high": end})


def _refusal() -> Schema:
    place = _object({"file": _MAYBE_TEXT, "line": {"type": ["integer", "null"], "minimum": 1}, "key": _MAYBE_TEXT})
    return {
        "title": "A refusal: what was refused, where, why, and what to do instead",
        **_object(
            {
                "schema": {"const": "refusal/1"},
                "code": {"type": "string", "minLength": 1, "not": {"const": Refusal.code}},
                "what": _TEXT,
                "where": place,
                "why": _TEXT,
                "instead": _TEXT,
            }
        ),
    }


def _replicate() -> Schema:
    value: Schema = {"type": ["number", "string", "null"]}
    row = _object(
        {"id": _TEXT, "what": _TEXT, "paper": value, "from_its_inputs": value, "corrected": value, "why": _TEXT},
        {"section": _TEXT, "unit": _TEXT},
    )
    return {
        "title": "Every number of the paper, beside what follows from its inputs and what is right",
        **_object({"schema": {"const": "replicate/1"}, "rows": {**_list(row), "minItems": 1}}),
    }


_SCHEMAS: dict[str, Callable[[], Schema]] = {
    "program": _program,
    "plan": _plan,
    "refusal": _refusal,
    "replicate": _replicate,
}
