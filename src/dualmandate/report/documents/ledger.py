"""JSON Schemas of what the ledger's commands print, and of the anchor that lies beside a ledger."""

from __future__ import annotations

from collections.abc import Callable

from dualmandate.report.documents.schema_words import (
    AT_LEAST_0,
    CURRENCY,
    DIGEST,
    EXACT_NUMBER,
    MAYBE_TEXT,
    TEXT,
    WHETHER,
    Schema,
    document_of,
    list_of,
    object_of,
)

_COUNT: Schema = {"type": "integer", "minimum": 1}
_TIME: Schema = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T"}
_AMOUNT = object_of({"exact": EXACT_NUMBER, "amount": AT_LEAST_0})
_LOSS = object_of({"exact": EXACT_NUMBER, "amount": AT_LEAST_0, "currency": CURRENCY})
_HEAD = object_of({"ledger": TEXT, "sequence": {"type": "integer", "minimum": 0}, "digest": DIGEST})
_STATE: Schema = {"enum": ["reserved", "opened", "measured", "written", "settled", "canceled", "abandoned"]}
_KIND: Schema = {
    "enum": [
        *("account opened", "approved", "reserved", "canceled", "opened", "tabulated", "measured", "written"),
        *("published", "exported", "key destroyed", "refused"),
    ]
}
_OPENED: Schema = {
    "name": TEXT,
    "unit": TEXT,
    "currency": CURRENCY,
    "cap": _AMOUNT,
    "limits": list_of(
        object_of({"scope": {"enum": ["user", "group", "purpose"]}, "name": MAYBE_TEXT, "limit": _AMOUNT})
    ),
    "reserves": list_of(object_of({"purpose": TEXT, "kept": _AMOUNT})),
    "unit_bounds": list_of(object_of({"unit": TEXT, "most": _COUNT})),
    "approver_differs": WHETHER,
}
_BALANCE: Schema = {**_OPENED, "spent": _AMOUNT, "remaining": _AMOUNT}
_RELEASE = object_of(
    {
        "name": TEXT,
        "plan_digest": DIGEST,
        "snapshot": TEXT,
        "state": _STATE,
        "loss": _LOSS,
        "unit": TEXT,
        "cost": _AMOUNT,
        "user": TEXT,
        "group": MAYBE_TEXT,
        "purpose": MAYBE_TEXT,
        "reserved_at": _TIME,
        "secret_destroyed": WHETHER,
    }
)


def _account() -> Schema:
    keys = {**_OPENED, "by": TEXT, "ledger": TEXT, "key_file": TEXT}
    return document_of("An account that was just opened", "ledger-account/1", keys)


def _statement() -> Schema:
    approval = object_of({"plan_digest": DIGEST, "loss": _LOSS, "unit": TEXT, "by": TEXT, "recorded_at": _TIME})
    account = object_of({**_BALANCE, "approvals": list_of(approval), "releases": list_of(_RELEASE)})
    keys = {"ledger_head": _HEAD, "accounts": list_of(account)}
    return document_of("Accounts with their balances, approvals and releases", "ledger/1", keys)


def _accounts() -> Schema:
    keys = {"accounts": list_of(object_of(_BALANCE))}
    return document_of("The balance of every account", "ledger-accounts/1", keys)


def _events() -> Schema:
    event = object_of(
        {
            "sequence": _COUNT,
            "kind": _KIND,
            "recorded_at": _TIME,
            "by": TEXT,
            "account": MAYBE_TEXT,
            "release": MAYBE_TEXT,
            "amount": {"anyOf": [_AMOUNT, {"type": "null"}]},
            "details": {"type": "object"},
            "digest": DIGEST,
        }
    )
    return document_of("Every entry of the ledger, in order", "ledger-events/1", {"events": list_of(event)})


def _verification() -> Schema:
    anchors = {"anchors": {**list_of(TEXT), "minItems": 1}, "releases": list_of(TEXT)}
    keys = {"ledger_head": _HEAD, **anchors, "clock_set_back": list_of(_COUNT)}
    return document_of("What a complete check of the ledger found in order", "ledger-verification/1", keys)


def _report() -> Schema:
    spent = {"spent": _AMOUNT, "epsilon": _AMOUNT, "failure_probability": _AMOUNT}
    maybe: Schema = {"anyOf": [_AMOUNT, {"type": "null"}]}
    alone = object_of({"release": TEXT, "by_conversion": _AMOUNT, "by_distribution": maybe, "words": TEXT})
    keys = {"account": TEXT, "unit": TEXT, "currency": CURRENCY, **spent, "releases": list_of(alone)}
    return document_of("What an account has spent, as (ε, δ), for the public", "ledger-report/1", keys)


def _cancellation() -> Schema:
    keys = {"release": _RELEASE, "account": TEXT, "remaining": _AMOUNT}
    return document_of("A reservation that was given back before any data were opened", "ledger-cancellation/1", keys)


def _export() -> Schema:
    keys = {"release": TEXT, "account": TEXT, "to": TEXT, "by": TEXT}
    return document_of("A release that was handed out, and to whom", "ledger-export/1", keys)


def _approval() -> Schema:
    keys = {
        "account": TEXT,
        "program": TEXT,
        "plan_digest": DIGEST,
        "loss": _LOSS,
        "unit": TEXT,
        "by": TEXT,
        "currency": CURRENCY,
        "cost": _AMOUNT,
        "remaining": _AMOUNT,
    }
    return document_of("One person's word for a plan, at exactly its loss", "approval/1", keys)


def _anchor() -> Schema:
    title = "How far a ledger had come, kept outside its database; a release.json holds the same key"
    return document_of(title, "ledger-anchor/1", {"ledger_head": _HEAD})


LEDGER_SCHEMAS: dict[str, Callable[[], Schema]] = {
    "approval": _approval,
    "ledger": _statement,
    "ledger-account": _account,
    "ledger-accounts": _accounts,
    "ledger-anchor": _anchor,
    "ledger-cancellation": _cancellation,
    "ledger-events": _events,
    "ledger-export": _export,
    "ledger-report": _report,
    "ledger-verification": _verification,
}
