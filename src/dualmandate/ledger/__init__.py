"""What has been spent, by whom, and how losses compose: accounts, approvals, reservations, in one chain of entries."""

from dualmandate.ledger.books import Approval, OtherLedgers, ReleaseEntry, ReleaseState, Request, account_identifier
from dualmandate.ledger.chain import Event, EventKind, Head, LedgerKey, make_key, read_key
from dualmandate.ledger.composition import Account, Accountant, AccountLimit, Earmark, Scope, UnitBound
from dualmandate.ledger.ledger import Ledger, Verification, open_ledger
from dualmandate.ledger.places import AppendOnlyFile, CommandPlace, DatabasePlace, FilePlace, HeadPlace
from dualmandate.ledger.signatures import Signature, Signers

__all__ = [
    "Account",
    "AccountLimit",
    "Accountant",
    "AppendOnlyFile",
    "Approval",
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
