"""Reading a plan back: what was approved must be what was written, digit by digit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dualmandate.errors import InvalidFile, Place, Refusal
from dualmandate.planning.digest import PLAN_VERSION, digest_of
from dualmandate.planning.study import is_study, refuse_study
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.program.file import read_bytes

LARGEST_PLAN = 2**24  # bytes


@dataclass(frozen=True)
class SavedPlan:
    """A plan that was written down: its digest has been checked against its exact part."""

    document: dict[str, Any]

    @property
    def digest(self) -> str:
        """What an approver signs."""
        return str(self.document["digest"])

    @property
    def program(self) -> str:
        """The name of the program."""
        return str(self.document["exact"]["program"]["program"]["name"])

    @property
    def program_digest(self) -> str:
        """SHA-256 of what the program file says."""
        return digest_of(self.document["exact"]["program"])

    @property
    def account(self) -> str:
        """Whose privacy a release of it spends."""
        return str(self.document["exact"]["program"]["population"]["account"])

    @property
    def loss(self) -> PrivacyLoss:
        """What a release of it spends, exactly."""
        loss = self.document["exact"]["loss"]
        return PrivacyLoss(Fraction(loss["amount"]), PrivacyMeasure(loss["currency"]))

    @property
    def charge(self) -> PrivacyLoss:
        """What its account is charged: the loss for as many records as its exact totals let change together."""
        stated = self.document["exact"]["program"]["population"].get("records_changing_together")
        return self.loss if stated is None else self.loss.for_records(int(stated["number"]))

    @property
    def noise(self) -> str:
        """The kind of noise that it names."""
        return str(self.document["exact"]["mechanism"]["noise"])

    def check_publishable(self, where: Place | None = None) -> None:
        """Refuse a study: a plan whose noise is not drawn exactly is neither approved nor published."""
        refuse_study(self.noise, where)

    @property
    def strategies(self) -> dict[str, str]:
        """The digest of what is measured for each group of tables that has an optimized strategy, by its tables."""
        measured = self.document["exact"]["measurements"]
        return {" + ".join(each["tables"]): each["strategy"]["digest"] for each in measured if "strategy" in each}


def load_plan(path: str | Path) -> SavedPlan:
    """Read a plan.json back; refused where it was changed after it was written."""
    file = Path(path)
    try:
        content = read_bytes(file, largest=LARGEST_PLAN, what="plan")
        document = json.loads(content.decode("utf-8"))
    except InvalidFile as refusal:
        raise refusal.at(Place(str(file))) from None
    except (ValueError, RecursionError):
        raise _no_plan(file, "it is not JSON") from None
    if not isinstance(document, dict) or document.get("schema") != f"plan/{PLAN_VERSION}":
        raise _no_plan(file, f"it is not a document of schema plan/{PLAN_VERSION}")
    if not isinstance(document.get("exact"), dict) or digest_of(document["exact"]) != document.get("digest"):
        raise _changed(file)
    plan = SavedPlan(document)
    try:
        shown = [strategy["digest"] for strategy in document["strategies"]]
        stated = document["loss"]["exact"], document["loss"]["currency"], document["program"]["account"], shown
        signed = plan.loss.exact(), str(plan.loss.privacy_measure), plan.account, list(plan.strategies.values())
        shown_as_study = document.get("study", is_study(plan.noise))  # plans of earlier versions do not say
    except (KeyError, TypeError, ValueError, ZeroDivisionError, Refusal):
        raise _no_plan(file, "it lacks what a plan says") from None
    if stated != signed or shown_as_study is not is_study(plan.noise):
        raise _changed(file)
    return plan


def _no_plan(file: Path, why: str) -> InvalidFile:
    return InvalidFile(
        f"'{file.name}' is not a plan",
        why=why,
        instead="name the plan.json that `dualmandate plan --out` wrote",
        where=Place(str(file)),
    )


def _changed(file: Path) -> InvalidFile:
    return InvalidFile(
        f"the plan '{file.name}' was changed after it was made",
        why="its digest does not cover what it now says",
        instead="plan the program again: dualmandate plan PROGRAM.toml --out DIR",
        where=Place(str(file)),
    )
