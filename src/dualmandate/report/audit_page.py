"""The page of an audit: every finding beside its baselines, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dualmandate.audit.disclosure_control.comparison import MethodEvaluation
from dualmandate.audit.finding import CLAIMED, LOWER_BOUND, Finding, Label, coarseness
from dualmandate.audit.run import Audit
from dualmandate.audit.verdict import CLAIM_QUESTION, advice, by_question, gain, question_of, verdict
from dualmandate.population.wording import number
from dualmandate.report.figures import risk
from dualmandate.report.theme import Cell, Column, FigureTable, rendered, shown_figure, unbroken

KINDS = {"program": "a program", "release": "a release", "tables": "published tables"}
INSIDE = (
    "Internal: judged by confidential records, or naming single cells. To publish such a rate is a query like any "
    "other, and is booked in the ledger first."
)


def audit_page(audit: Audit, label: Label = "public") -> str:
    """The page, with a picture where methods were compared. The internal one has every finding."""
    found = audit.findings if label == "internal" else audit.labeled("public")
    coarsening = coarseness(found)
    return rendered(
        "audit.html",
        name=_heading(audit),
        kind=KINDS[audit.kind],
        label=label,
        warning=INSIDE if label == "internal" else None,
        note=LOWER_BOUND,
        verdict=verdict(found),
        advice=advice(found, audit.kind) if found else None,
        coarsening=coarsening,
        sections=[(question, *_section(each, coarsening)) for question, each in by_question(found)],
        details=_details(found) if label == "internal" else None,
        left_out=audit.left_out,
        counted=audit.counted(),
        promised=audit.promised,
        standing=audit.standing,
        picture=_picture(audit),
    )


def _picture(audit: Audit) -> dict[str, object] | None:
    """Risk beside accuracy: the headline, the units, the drawing, and the numbers behind it."""
    if not audit.compared:
        return None
    notes = [f"{note[:1].upper()}{note[1:]}." for note in (*audit.notes, *_frontier(audit.compared))]
    return shown_figure(risk(audit.compared)) | {"notes": notes}


def _frontier(compared: Sequence[MethodEvaluation]) -> Iterator[str]:
    """What the frontier says at the plan's loss, beside what came out here."""
    for each in compared:
        if each.planned and each.promised_error is not None:
            yield (
                f"at the loss of the plan, the frontier states a mean absolute error of {number(each.promised_error)} "
                f"for these tables; drawn here: {number(each.error)}"
            )


def _heading(audit: Audit) -> str:
    """What was attacked, as a heading begins; the name of a program or a folder stays as it is."""
    return f"R{audit.target[1:]}" if audit.kind == "release" else audit.target


def _section(findings: Sequence[Finding], coarsening: str | None) -> tuple[list[str], list[dict[str, object]]]:
    """What is said of all findings of a question, once; and each finding with what is said of it alone."""
    said = [list(_circumstances(finding, coarsening)) for finding in findings]
    common = [line for line in said[0] if len(said) > 1 and all(line in lines for lines in said)]
    alone = [[line for line in lines if line not in common] for lines in said]
    return common, list(_shown(findings, alone))


def _circumstances(finding: Finding, coarsening: str | None) -> Iterator[str]:
    yield f"Attack: {finding.attack}."
    yield f"The attacker knows {finding.attacker_knows}."
    yield f"Judged by {finding.judged(coarsening)}."


def _shown(findings: Sequence[Finding], said: Sequence[Sequence[str]]) -> Iterator[dict[str, object]]:
    for finding, circumstances in zip(findings, said, strict=True):
        yield {
            "claim": unbroken(finding.claim[:1].upper() + finding.claim[1:]),
            "rates": [
                (who, *_parted(finding.written(success)))
                for who, success in (
                    (_named(finding), finding.success),
                    *((_beside(each.who), each.success) for each in finding.baselines),
                )
            ],
            "said": circumstances,
            "nothing": gain(finding) == 0 and finding.partial is None,
            "partial": finding.partial,
            "booked": finding.booked,
            "label": finding.label,
        }


def _named(finding: Finding) -> str:
    if ": true-positive rate " in finding.claim:
        return "true-positive rate"
    return "found" if question_of(finding) == CLAIM_QUESTION else "the attack"


def _beside(who: str) -> str:
    """A baseline under that name, but for what has a name of its own."""
    return who if who.startswith(("false-positive rate", CLAIMED)) else f"baseline: {who}"


def _parted(written: str) -> tuple[str, str]:
    """A rate, and what it was counted from; a range has no more to say."""
    value, _, counted = written.partition(" (")
    return value, counted.removesuffix(")")


def _details(findings: Sequence[Finding]) -> FigureTable | None:
    rows: list[dict[str, Cell]] = [
        {"claim": finding.claim, "detail": detail} for finding in findings for detail in finding.details
    ]
    if not rows:
        return None
    columns = (Column("claim", "finding", "text"), Column("detail", "what follows", "text"))
    return FigureTable.of(rows, "Single cells and records that follow", *columns)
