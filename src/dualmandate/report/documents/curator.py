"""JSON Schemas of what a curator's commands print inside the wall."""

from __future__ import annotations

from collections.abc import Callable

from dualmandate.report.documents.schema_words import MAYBE_TEXT, TEXT, Schema, by_name, list_of, object_of

_RECORDS: Schema = {"type": "integer", "minimum": 0}


def _tabulate_check() -> Schema:
    attribute = object_of(
        {
            "outside": _RECORDS,
            "outside_rule": {"enum": ["drop", "clamp", "missing", "refuse"]},
            "null": _RECORDS,
            "null_rule": {"enum": ["drop", "missing", "refuse"]},
        }
    )
    return {
        "title": "Confidential: what a check counted in a program's records, without noise",
        **object_of(
            {
                "schema": {"const": "tabulate-check/1"},
                "label": {"const": "confidential"},
                "source": TEXT,
                "records_read": _RECORDS,
                "attributes": by_name(attribute),
                "impossible": _RECORDS,
                "unknown_where_impossible": MAYBE_TEXT,
                "identifier": MAYBE_TEXT,
                "unidentified": _RECORDS,
                "most_records_per_unit": {"type": "integer", "minimum": 1},
                "excess": _RECORDS,
                "refused": list_of(TEXT),
            }
        ),
    }


CURATOR_SCHEMAS: dict[str, Callable[[], Schema]] = {"tabulate-check": _tabulate_check}
