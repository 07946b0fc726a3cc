"""What has been spent, by whom, and how losses compose: accounts, approvals, reservations, in one chain of entries."""

from dualmandate.ledger.accounts import Account, AccountLimit, Earmark, Scope, UnitBound
from dualmandate.ledger.composition import Accountant
from dualmandate.ledger.entries import Event, EventKind, Head
from dualmandate.ledger.keys import LedgerKey, make_key, read_key
from dualmandate.ledger.ledger import Ledger, Verification, open_ledger
from dualmandate.ledger.releases import Approval, ReleaseEntry, ReleaseState, Request

__all__ = [
    "Account",
    "AccountLimit",
    "Accountant",
    "Approval",
    "Earmark",
    "Event",
    "EventKind",
    "Head",
    "Ledger",
    "LedgerKey",
    "ReleaseEntry",
    "ReleaseState",
    "Request",
    "Scope",
    "UnitBound",
    "Verification",
    "make_key",
    "open_ledger",
    "read_key",
]
