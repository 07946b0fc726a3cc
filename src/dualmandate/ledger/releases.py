"""Releases as the ledger knows them: asked for, approved, paid, and how far they have come."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dualmandate.errors import NotApproved
from dualmandate.ledger.accounts import Scope, checked_name
from dualmandate.population import PrivacyLoss, PrivacyMeasure

_DIGEST = re.compile(r"[0-9a-f]{64}")


class ReleaseState(StrEnum):
    """How far a release has come, durably. From `opened` on its loss is spent, whatever happens."""

    RESERVED = "reserved"
    OPENED = "opened"
    MEASURED = "measured"
    WRITTEN = "written"
    SETTLED = "settled"
    CANCELED = "canceled"
    ABANDONED = "abandoned"

    @property
    def is_active(self) -> bool:
        """Whether the release may still take a step."""
        return self in STEPS[:-1]


STEPS = (ReleaseState.RESERVED, ReleaseState.OPENED, ReleaseState.MEASURED, ReleaseState.WRITTEN, ReleaseState.SETTLED)


@dataclass(frozen=True)
class Approval:
    """One person's word that a plan may be published: its digest, the account that pays, and exactly which loss."""

    account: str
    plan_digest: str
    loss: PrivacyLoss
    unit: str
    by: str

    def __post_init__(self) -> None:
        checked_name(self.account, "an account")
        checked_name(self.unit, "a unit")
        checked_name(self.by, "an approver")
        _check_digest(self.plan_digest)


@dataclass(frozen=True)
class Request:
    """What a publisher asks to spend: an approved plan on one snapshot of the data, for one user, group and purpose.

    `loss` is the loss of one `unit`; `again` publishes the same pair anew, with a new secret and a new loss.
    """

    account: str
    plan_digest: str
    snapshot: str
    loss: PrivacyLoss
    unit: str
    user: str
    group: str | None = None
    purpose: str | None = None
    again: bool = False

    def __post_init__(self) -> None:
        for name in ("account", "snapshot", "unit", "user"):
            checked_name(getattr(self, name), f"the {name} of a request")
        for name in ("group", "purpose"):
            if getattr(self, name) is not None:
                checked_name(getattr(self, name), f"the {name} of a request")
        _check_digest(self.plan_digest)

    @property
    def parts(self) -> dict[Scope, str]:
        """The user, group and purpose whose limits it counts against."""
        return _parts(self.user, self.group, self.purpose)


@dataclass(frozen=True)
class ReleaseEntry:
    """A release in the ledger. `cost` is in the account's currency; `fingerprint` is the HMAC of what was tabulated."""

    name: str
    entry: int  # number of the entry that reserved it
    account: str
    plan_digest: str
    snapshot: str
    loss: PrivacyLoss
    unit: str
    cost: Fraction
    user: str
    group: str | None
    purpose: str | None
    reserved_at: str
    state: ReleaseState = ReleaseState.RESERVED
    fingerprint: str | None = None
    written_digest: str | None = None  # SHA-256 of its release.json
    secret_destroyed: bool = False

    @property
    def parts(self) -> dict[Scope, str]:
        """The user, group and purpose whose limits it counts against."""
        return _parts(self.user, self.group, self.purpose)


def _parts(user: str, group: str | None, purpose: str | None) -> dict[Scope, str]:
    named = {Scope.USER: user, Scope.GROUP: group, Scope.PURPOSE: purpose}
    return {scope: name for scope, name in named.items() if name is not None}


def request_document(request: Request, supersedes: str | None) -> dict[str, object]:
    """What the entry of a reservation records beside its account, its user and its cost."""
    return {
        "plan_digest": request.plan_digest,
        "snapshot": request.snapshot,
        **loss_document(request.loss, request.unit),
        "group": request.group,
        "purpose": request.purpose,
        "supersedes": supersedes,
    }


def loss_document(loss: PrivacyLoss, unit: str) -> dict[str, object]:
    """A loss as entries record it: exact, with its currency and the unit it protects."""
    return {"loss": loss.exact(), "currency": loss.privacy_measure.value, "unit": unit}


def read_loss(document: Mapping[str, Any]) -> PrivacyLoss:
    """The loss that an entry recorded."""
    return PrivacyLoss(Fraction(document["loss"]), PrivacyMeasure(document["currency"]))


def is_digest(text: object) -> bool:
    """Whether this is a SHA-256 digest, as 64 lowercase hexadecimal digits."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def _check_digest(plan_digest: object) -> None:
    if not is_digest(plan_digest):
        raise NotApproved(
            "a plan without a digest",
            why="a plan is approved and published by its SHA-256 digest, 64 lowercase hexadecimal digits",
            instead="state the digest that the plan holds",
        )
