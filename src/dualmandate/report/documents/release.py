"""JSON Schemas of a release and of what `publish` prints."""

from __future__ import annotations

from collections.abc import Callable

from dualmandate.report.documents.schema_words import (
    AT_LEAST_0,
    CURRENCY,
    DIGEST,
    EXACT_NUMBER,
    MAYBE_TEXT,
    NUMBER,
    TEXT,
    WHETHER,
    Schema,
    by_name,
    document_of,
    list_of,
    object_of,
)

_COUNT: Schema = {"type": "integer", "minimum": 1}
_AMOUNT = object_of({"exact": EXACT_NUMBER, "amount": AT_LEAST_0})
_LOSS = object_of({"exact": EXACT_NUMBER, "amount": AT_LEAST_0, "currency": CURRENCY})
_HEAD = object_of({"ledger": TEXT, "sequence": {"type": "integer", "minimum": 0}, "digest": DIGEST})
_GROUP = object_of(
    {
        "name": TEXT,
        "tables": list_of(TEXT),
        "loss": EXACT_NUMBER,
        "rows": _COUNT,
        "measurements": TEXT,
        "strategy": MAYBE_TEXT,
        "noises": list_of(object_of({"law": {"enum": ["laplace", "gaussian"]}, "parameter": EXACT_NUMBER})),
    }
)
_TABLE = object_of(
    {
        "name": TEXT,
        "unit": TEXT,
        "columns": list_of(TEXT),
        "cells": _COUNT,
        "exact": WHETHER,
        "estimates": TEXT,
    },
    {"parquet": TEXT, "csv": TEXT, "sdmx-csv": TEXT, "sdmx-ml": TEXT},
)


def _release() -> Schema:
    return document_of(
        "A release: what was published, at which loss, with which promise, and the digest of every file",
        "release/1",
        {
            "release": TEXT,
            "program": TEXT,
            "plan_digest": DIGEST,
            "account": TEXT,
            "unit": TEXT,
            "snapshot": TEXT,
            "reserved_at": TEXT,
            "loss": _LOSS,
            "description": MAYBE_TEXT,
            "mechanism": object_of({"noise": TEXT, "strategy": {"enum": ["optimized", "workload", "identity"]}}),
            "guarantee": {"type": "object"},
            "invariants": list_of(TEXT),
            "failure_probability": {"anyOf": [EXACT_NUMBER, {"type": "null"}]},
            "program_file": TEXT,
            "engine": TEXT,
            "groups": list_of(_GROUP),
            "tables": list_of(_TABLE),
            "versions": by_name({"type": ["string", "integer"]}),
            "estimated_together": WHETHER,
            "consistency": TEXT,
            "consistency_effects": list_of(
                object_of(
                    {
                        "table": TEXT,
                        "least": {"type": "integer", "minimum": 0},
                        "most": {"type": ["integer", "null"]},
                        "cells": _COUNT,
                        "unbiased_bias": NUMBER,
                        "unbiased_error": AT_LEAST_0,
                        "consistent_bias": NUMBER,
                        "consistent_error": AT_LEAST_0,
                    }
                )
            ),
            "ledger_head": _HEAD,
            "files": by_name(DIGEST),
        },
    )


def _publication() -> Schema:
    return document_of(
        "What `publish` did: the release, where it lies, and what the account has left",
        "publication/1",
        {
            "release": TEXT,
            "directory": TEXT,
            "plan_digest": DIGEST,
            "account": TEXT,
            "snapshot": TEXT,
            "loss": _LOSS,
            "unit": TEXT,
            "currency": CURRENCY,
            "cost": _AMOUNT,
            "remaining": _AMOUNT,
        },
    )


RELEASE_SCHEMAS: dict[str, Callable[[], Schema]] = {"release": _release, "publication": _publication}
