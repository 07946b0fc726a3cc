"""What has been spent, by whom, and how losses compose: accounts, approvals, reservations, in one chain of entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualmandate.ledger.books import (
    Approval,
    BudgetDecision,
    BudgetRequest,
    OtherLedgers,
    ReleaseEntry,
    ReleaseState,
    Request,
    account_identifier,
)
from dualmandate.ledger.chain import Event, EventKind, Head, LedgerKey, make_key, read_key
from dualmandate.ledger.composition import Account, Accountant, AccountLimit, Earmark, Scope, UnitBound
from dualmandate.ledger.signatures import Signature, Signers

if TYPE_CHECKING:
    from dualmandate.ledger.ledger import Ledger, Verification, open_ledger
    from dualmandate.ledger.places import AppendOnlyFile, CommandPlace, DatabasePlace, FilePlace, HeadPlace

__all__ = [
    "Account",
    "AccountLimit",
    "Accountant",
    "AppendOnlyFile",
    "Approval",
    "BudgetDecision",
    "BudgetRequest",
    "CommandPlace",
    "DatabasePlace",
    "Earmark",
    "Event",
    "EventKind",
    "FilePlace",
    "Head",
    "HeadPlace",
    "Ledger",
    "LedgerKey",
    "OtherLedgers",
    "ReleaseEntry",
    "ReleaseState",
    "Request",
    "Scope",
    "Signature",
    "Signers",
    "UnitBound",
    "Verification",
    "account_identifier",
    "make_key",
    "open_ledger",
    "read_key",
]

_KEPT = frozenset(
    {
        "AppendOnlyFile",
        "CommandPlace",
        "DatabasePlace",
        "FilePlace",
        "HeadPlace",
        "Ledger",
        "Verification",
        "open_ledger",
    }
)


def __getattr__(name: str) -> object:
    """What keeps entries in a database, whose library takes as long to load as a plan to make: when first used."""
    if name not in _KEPT:
        raise AttributeError(f"module 'dualmandate.ledger' has no attribute '{name}'")
    from dualmandate.ledger import ledger, places

    found: object = getattr(ledger if hasattr(ledger, name) else places, name)
    globals()[name] = found
    return found
