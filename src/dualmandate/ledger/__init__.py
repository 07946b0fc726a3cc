"""What has been spent, by whom, and how losses compose: accounts, approvals, reservations, in one chain of entries."""

from dualmandate.ledger.accounts import Account, Earmark, Limit, Scope, UnitBound
from dualmandate.ledger.composition import Accountant
from dualmandate.ledger.entries import Event, EventKind, Head
from dualmandate.ledger.keys import LedgerKey, make_key, read_key
from dualmandate.ledger.ledger import Ledger, Verification, open_ledger
from dualmandate.ledger.releases import Approval, Release, Request, State

__all__ = [
    "Account",
    "Accountant",
    "Approval",
    "Earmark",
    "Event",
    "EventKind",
    "Head",
    "Ledger",
    "LedgerKey",
    "Limit",
    "Release",
    "Request",
    "Scope",
    "State",
    "UnitBound",
    "Verification",
    "make_key",
    "open_ledger",
    "read_key",
]
