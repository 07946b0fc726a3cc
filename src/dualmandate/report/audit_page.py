"""The page of an audit: every finding beside its baselines, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dualmandate.audit.disclosure_control.comparison import MethodEvaluation
from dualmandate.audit.finding import CLAIMED, LOWER_BOUND, OF_OWN_SIZE, Finding, Label, coarseness
from dualmandate.audit.run import Audit
from dualmandate.audit.verdict import CLAIM_QUESTION, QUESTIONS, advice, by_question, gain, passed, question_of, verdict
from dualmandate.population.wording import number
from dualmandate.report.figures import power, risk
from dualmandate.report.theme import Cell, Column, FigureTable, rendered, shown_figure, unbroken

KINDS = {"program": "a program", "release": "a release", "tables": "published tables"}
INSIDE = (
    "Internal: judged by confidential records, or naming single cells. To publish such a rate is a query like any "
    "other, and is booked in the ledger first."
)
NOTHING = "in which there is nothing to see"
RECORDS_QUESTIONS = {question for question, _ in QUESTIONS[:2]}
_CENSUS: list[dict[str, Cell]] = [
    {"what": what, "found": found, "beside": beside}
    for what, found, beside in (
        ("blocks with solution variability 0, of all blocks (with 31 % of the people)", "70 %", ""),
        ("records that can differ between two solutions, at most", "20.1 %", ""),
        ("records that agree with the file before swapping: exact age", "46.6 %", "18.9 % under DP"),
        ("the same, with age in bins", "91.9 %", "36.6 % under DP"),
        ("putative re-identifications by a commercial file", "166 million", ""),
        ("confirmed of these (precision)", "41.2 %", "45.9 % modal, 39.9 % proportional guesser"),
        ("putative re-identifications by a file of high quality", "268 million", ""),
        ("confirmed of these (precision)", "77.9 %", "76.6 % modal, 66.3 % proportional guesser"),
        (
            "precision for nonmodal uniques of blocks with solution variability 0, commercial file",
            "95.4 %",
            "3.3 % modal, 20.9 % proportional guesser; 21.7 % under DP",
        ),
    )
]
NATIONAL = FigureTable.of(
    _CENSUS,
    "The 2010 Census, attacked by its own bureau [ABCD23]: 308.7 million records in 6.2 million blocks. Other tables, "
    "places and files than these: for an order of magnitude, not for comparison",
    Column("what", "what", "text"),
    Column("found", "found", "text"),
    Column("beside", "beside it", "text"),
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
        power=_power(found),
        national=NATIONAL if any(question_of(each) in RECORDS_QUESTIONS for each in found) else None,
    )


def _power(found: Sequence[Finding]) -> dict[str, object] | None:
    """What the checks of the noise would have found, where that is known for more than one number of rows."""
    curves = [each.power for each in found if len({point.rows for point in each.power}) > 1]
    return shown_figure(power(curves[0])) if curves else None


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


def _section(
    findings: Sequence[Finding], coarsening: str | None
) -> tuple[list[str], list[dict[str, object]], dict[str, list[dict[str, object]]]]:
    """What is said of all findings of a question, once; each finding; and those that are folded, by what they are."""
    said = [list(_circumstances(finding, coarsening)) for finding in findings]
    common = [line for line in said[0] if len(said) > 1 and all(line in lines for lines in said)]
    alone = [[line for line in lines if line not in common] for lines in said]
    shown = list(_shown(findings, alone))
    folds: dict[str | None, list[dict[str, object]]] = {None: [], OF_OWN_SIZE: [], NOTHING: []}
    for each, finding in zip(shown, findings, strict=True):
        folds[NOTHING if passed(finding) else OF_OWN_SIZE if OF_OWN_SIZE in finding.claim else None].append(each)
    return common, folds[None], {str(what): each for what, each in folds.items() if what is not None and each}


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
