"""National accounts from an economic census: what is published, at which level, and what a firm may contribute."""

from __future__ import annotations

from dualmandate.gallery.national_accounts.establishments import establishments, write_establishments
from dualmandate.gallery.national_accounts.pipelines import (
    ACCOUNTS,
    DETAIL,
    AccountError,
    SuppressionOutcome,
    dominates,
    errors_of_accounts,
    suppressed,
    totals_within_bound,
)

__all__ = [
    "ACCOUNTS",
    "DETAIL",
    "AccountError",
    "SuppressionOutcome",
    "dominates",
    "errors_of_accounts",
    "establishments",
    "suppressed",
    "totals_within_bound",
    "write_establishments",
]
