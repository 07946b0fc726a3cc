"""The words that the JSON Schemas of documents are made of."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
AT_LEAST_0: Schema = {"type": "number", "minimum": 0}
AT_MOST_0: Schema = {"type": "number", "maximum": 0}
WHETHER: Schema = {"type": "boolean"}
CURRENCY: Schema = {"enum": ["epsilon", "rho"]}
EXACT_NUMBER: Schema = {"type": "string", "pattern": "^[0-9]+(/[0-9]+)?$"}
DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def object_of(required: Schema, optional: Schema | None = None) -> Schema:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def list_of(items: Schema) -> Schema:
    """A list of one kind of thing."""
    return {"type": "array", "items": items}


def by_name(values: Schema) -> Schema:
    """An object whose keys are names of the user's."""
    return {"type": "object", "additionalProperties": values}


def document_of(title: str, name: str, keys: Schema) -> Schema:
    """A document that says which schema it keeps to and whom it is for."""
    label: Schema = {"enum": ["public", "internal", "confidential"]}
    return {"title": title, **object_of({"schema": {"const": name}, "label": label, **keys})}
