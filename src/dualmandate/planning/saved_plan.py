"""What is signed: the exact part of a plan, the digest that an approver puts a name to, and reading a plan back.

The digest covers only exact things: what the program file says (numbers as decimal strings, never floats), the code
lists, the chosen loss and how it is shared out, the mechanism, and the versions of these formats. The same program
gives the same digest on every machine, and what was approved must be what was written, digit by digit.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from dualmandate.errors import InvalidFile, InvalidMechanism, InvalidRequest, NotApproved, Place, Refusal
from dualmandate.planning.study import drawn_instead, is_study
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.rational import read_exact
from dualmandate.program.file import PROGRAM_FILE, read_bytes
from dualmandate.program.schema import BEST

LARGEST_PLAN = 2**24  # bytes
NAME_A_PLAN = "name the plan.json that `dualmandate plan --out` wrote"
PLAN_VERSION = 1  # of the exact part: raised whenever a key of it changes its meaning

Exact: TypeAlias = "str | bool | list[Exact] | dict[str, Exact]"


def exact_content(value: object) -> Exact:
    """What a program file says, with each number as `{"number": "46000000"}` so that no reader rounds it."""
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int | Decimal):
        return {"number": decimal_string(value)}
    if isinstance(value, list):
        return [exact_content(item) for item in value]
    assert isinstance(value, dict)  # dates never pass the schema
    return {str(key): exact_content(item) for key, item in value.items()}


def stated_content(exact: Exact) -> Any:
    """What a program file says, from its exact content: the number that was written 4.6e7 is 46000000 here."""
    if isinstance(exact, list):
        return [stated_content(item) for item in exact]
    if not isinstance(exact, dict):
        return exact
    if set(exact) == {"number"} and isinstance(written := exact["number"], str):
        return Decimal(written) if "." in written else int(written)
    return {key: stated_content(item) for key, item in exact.items()}


def decimal_string(value: int | Decimal) -> str:
    """A number without exponent and without trailing zeros: 4.6e7 and 46000000.0 are the same."""
    sign, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)  # infinities never pass the schema
    kept = "".join(map(str, digits)).rstrip("0")
    if not kept:
        return "0"
    plain = Decimal(f"{'-' if sign else ''}{kept}E{exponent + len(digits) - len(kept)}")
    return f"{plain:f}"


def digest_of(exact: Exact) -> str:
    """SHA-256 of the exact part as JSON with sorted keys, no spaces and only ASCII: 64 hexadecimal digits."""
    text = json.dumps(exact, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def with_pages(document: Mapping[str, Any], pages: Mapping[str, bytes]) -> dict[str, Any]:
    """A plan's document with the digests of the files of its dossier, and of all that it says itself."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in pages.items()}
    said = {**document, **({"pages": digests} if digests else {})}
    said.pop("shown", None)
    return {**said, "shown": _shown(said)}


def _shown(document: Mapping[str, Any]) -> str:
    """SHA-256 of all that a plan says, as JSON with sorted keys, floats in the digits that they are written with."""
    said = {key: value for key, value in document.items() if key != "shown"}
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


@dataclass(frozen=True)
class SavedPlan:
    """A plan that was written down: its digest has been checked against its exact part."""

    document: dict[str, Any]

    @property
    def digest(self) -> str:
        """What an approver signs."""
        return str(self.document["digest"])

    @property
    def shown(self) -> str:
        """The digest of all that it says, and of its dossier."""
        return str(self.document["shown"])

    @property
    def program(self) -> str:
        """The name of the program."""
        return str(self.document["exact"]["program"]["program"]["name"])

    @property
    def program_file(self) -> str | None:
        """Where its program file lies, from its own folder; None where it was not written, or by an earlier version."""
        stated = self.document.get("program", {}).get("file")
        return None if stated is None else str(stated)

    @property
    def program_digest(self) -> str:
        """SHA-256 of what the program file says."""
        return digest_of(self.document["exact"]["program"])

    @property
    def account(self) -> str:
        """Whose privacy a release of it spends."""
        return str(self.document["exact"]["program"]["population"]["account"])

    @property
    def account_identifier(self) -> str | None:
        """Which account of that name it was planned for; None where no ledger was known."""
        stated = self.document.get("program", {}).get("account_identifier")
        return None if stated is None else str(stated)

    @property
    def loss(self) -> PrivacyLoss:
        """What a release of it spends, exactly."""
        loss = self.document["exact"]["loss"]
        return PrivacyLoss(read_exact(loss["amount"]), PrivacyMeasure(loss["currency"]))

    @property
    def charge(self) -> PrivacyLoss:
        """What its account is charged: the loss for as many records as its exact totals let change together."""
        stated = self.document["exact"]["program"]["population"].get("records_changing_together")
        return self.loss if stated is None else self.loss.for_records(int(stated["number"]))

    @property
    def bounds(self) -> dict[str, Fraction]:
        """The upper bounds of amounts that the program leaves to its plan."""
        return {name: read_exact(bound) for name, bound in self.document["exact"].get("bounds", {}).items()}

    @property
    def remaining(self) -> Fraction | None:
        """What the account had left when it was planned; None where that was not counted."""
        stated = self.document.get("remaining")
        return None if stated is None else read_exact(stated)

    @property
    def seen_in_the_data(self) -> tuple[str, ...]:
        """What its program took from the records, and from no public source."""
        return tuple(self.document["exact"]["program"]["population"].get("seen_in_the_data", ()))

    def check_seen(self, *, accepted: bool, where: Place | None = None, accepting: str = "seen=True") -> None:
        """Refuse what was seen in the data unless the approver says that they accept it, and that word if nothing was.

        Whoever approves for others by Python asks here too. `accepting` is how that is said.
        """
        seen = self.seen_in_the_data
        if seen and not accepted:
            raise NotApproved(
                f"the program takes from the confidential records: {', '.join(seen)}",
                why="noise does not cover what a program file states, and everything in it is public",
                instead="replace each by a public source, take it off seen_in_the_data and plan again; "
                f"or accept them, which is recorded and published: {accepting}",
                where=where,
            )
        if accepted and not seen:
            raise InvalidRequest(
                "nothing in the program was seen in the data",
                why="its seen_in_the_data is empty, so there is nothing of the kind to accept",
                instead="approve it without --seen",
                where=where,
            )

    @property
    def noise(self) -> str:
        """The kind of noise that it names."""
        return str(self.document["exact"]["mechanism"]["noise"])

    def check_publishable(self, where: Place | None = None) -> None:
        """Refuse a study: a plan whose noise is not drawn exactly is neither approved nor published."""
        if is_study(self.noise):
            drawn = drawn_instead(self.noise).name
            raise InvalidMechanism(
                f"the plan is a study: {self.noise} noise cannot be published",
                why="only noise that is drawn exactly, on whole numbers, keeps what a plan promises",
                instead=f'state noise = "{drawn}" or "{BEST}", plan again, and have that plan approved',
                where=where or Place(key="mechanism.noise"),
            )

    @property
    def strategies(self) -> dict[str, str]:
        """The digest of what is measured for each group of tables that has an optimized strategy, by its tables."""
        measured = self.document["exact"]["measurements"]
        return {" + ".join(each["tables"]): each["strategy"]["digest"] for each in measured if "strategy" in each}


def load_plan(path: str | Path) -> SavedPlan:
    """Read a plan.json back; refused where it was changed after it was written."""
    file = Path(path)
    document = read_json(file, "plan", largest=LARGEST_PLAN, instead=NAME_A_PLAN)
    if isinstance(document, dict):
        document.pop("publishing", None)  # of the machine that printed it
    if not isinstance(document, dict) or document.get("schema") != f"plan/{PLAN_VERSION}":
        raise _is_no("plan", file, f"it is not a document of schema plan/{PLAN_VERSION}", NAME_A_PLAN)
    if not isinstance(document.get("exact"), dict) or digest_of(document["exact"]) != document.get("digest"):
        raise _changed(file, file, document)
    if "shown" not in document:
        raise _is_no(
            "plan that can be followed",
            file,
            "it was made by an earlier version, or lost the digest of what it shows",
            planned_again(file, document),
        )
    plan = SavedPlan(document)
    try:
        followed = _shown_of(plan) == _signed(plan)
        _ = plan.bounds, plan.remaining
        for strategy in document["strategies"]:  # what publishing compares with the strategy's own file
            _ = strategy["group"], float(strategy["error_coefficient"])
        beside = {file.parent / name: digest for name, digest in document.get("pages", {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, Refusal):
        raise _is_no("plan", file, "it lacks what a plan says", NAME_A_PLAN) from None
    if not followed or document["shown"] != _shown(document):
        raise _changed(file, file, document)
    for page, digest in beside.items():
        if page.is_file() and hashlib.sha256(page.read_bytes()).hexdigest() != digest:
            raise _changed(page, file, document)
    return plan


def planned_again(file: Path, document: object) -> str:
    """What to do where a plan cannot be used: the command that makes it anew, where its program is found."""
    said = document.get("program") if isinstance(document, dict) else None
    stated = said.get("file") if isinstance(said, dict) else None
    known = [file.parent / stated] if isinstance(stated, str) else []
    above = [folder / PROGRAM_FILE for folder in (file.parent, *file.parent.parents)]
    program = next((path for path in (*known, *above) if is_there(path)), None)
    if program is None:
        return "plan the program again, with `dualmandate plan` and --out"
    command = ["dualmandate", "plan", os.path.normpath(program), "--out", str(file.parent)]
    return f"plan the program again: {shlex.join(command)}"


def is_there(path: Path) -> bool:
    """Whether a file stands at a path that a document states; one that no disk can have is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _signed(plan: SavedPlan) -> list[object]:
    """What follows from the exact part without planning again."""
    exact, loss, charge = plan.document["exact"], plan.loss, plan.charge
    return [
        (loss.exact(), str(loss.privacy_measure), float(loss.amount)),
        [str(read_exact(each["loss"])) for each in exact["measurements"]],
        plan.account,
        plan.program,
        plan.program_digest,
        exact["program"]["population"]["unit"],
        (exact["mechanism"]["noise"], exact["mechanism"]["strategy"]),
        list(plan.strategies.values()),
        is_study(plan.noise),
        {(charge.exact(), str(charge.privacy_measure))},
    ]


def _shown_of(plan: SavedPlan) -> list[object]:
    """The same as the plan shows it."""
    document = plan.document
    loss, program, mechanism = document["loss"], document["program"], document["mechanism"]
    return [
        (loss["exact"], loss["currency"], loss["amount"]),
        list(loss["allocation"].values()),
        program["account"],
        program["name"],
        program["digest"],
        program["unit"],
        (mechanism["noise"], mechanism["strategy"]),
        [strategy["digest"] for strategy in document["strategies"]],
        document["study"],
        {(each["exact"], each["currency"]) for each in document["guarantee"]["losses"] if each["units"] == 1},
    ]


def read_json(file: Path, what: str, *, largest: int, instead: str) -> Any:
    """The JSON document in a small file of ours, refused where it is none."""
    try:
        return json.loads(read_bytes(file, largest=largest, what=what).decode("utf-8"))
    except InvalidFile as refusal:
        raise refusal.at(Place(str(file))) from None
    except (ValueError, RecursionError):
        raise _is_no(what, file, "it is not JSON", instead) from None


def _is_no(what: str, file: Path, why: str, instead: str) -> InvalidFile:
    return InvalidFile(f"'{file.name}' is not a {what}", why=why, instead=instead, where=Place(str(file)))


def _changed(file: Path, plan: Path, document: object) -> InvalidFile:
    return InvalidFile(
        f"'{file.name}' was changed after it was made",
        why="what it shows is not what the digests of the plan stand for",
        instead=planned_again(plan, document),
        where=Place(str(file)),
    )
