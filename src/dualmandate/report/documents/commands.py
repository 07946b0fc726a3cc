"""What the other commands print: refusals, what an audit found, the paper's numbers, benchmarks, and what is here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from dualmandate.audit.finding import Reference
from dualmandate.errors import Refusal
from dualmandate.report.documents.document import (
    Count,
    CurrencyName,
    DocumentModel,
    IfAny,
    Internal,
    NotNegative,
    Number,
    Plain,
    Schema,
    Several,
    Share,
    Text,
    Whether,
    Whole,
    Words,
)
from dualmandate.report.documents.ledger import PublicationDocument
from dualmandate.report.documents.plan import ChoicePart


def _of_its_own(code: str) -> str:
    if code == Refusal.code:
        raise ValueError("a refusal has a code of its own")
    return code


class PlacePart(DocumentModel):
    """Where the reason stands; null where that is not known."""

    file: Text | None = Field(description="The file.")
    line: Count | None = Field(description="The line in it.")
    key: Text | None = Field(description="The key in it.")


class RefusalDocument(DocumentModel):
    """A refusal: what was refused, where, why, and what to do instead."""

    schema_: Schema[Literal["refusal/1"]]
    code: Annotated[
        Text,
        Field(min_length=1),
        AfterValidator(_of_its_own),
        WithJsonSchema({"type": "string", "minLength": 1, "not": {"const": Refusal.code}}),
    ] = Field(description="The kind of refusal, for programs.")
    what: Text = Field(description="What was refused.")
    where: PlacePart
    why: Text = Field(description="Why.")
    instead: Text = Field(description="What to do instead.")


class ReplicationRowPart(DocumentModel):
    """A statement of the paper; null where the paper has no such number, or nothing is to be computed."""

    id: Text = Field(description="Its name.")
    section: IfAny[Text] = Field(None, description="Where the paper says it.")
    what: Text = Field(description="What it is about.")
    unit: IfAny[Text] = Field(None, description="Of the numbers.")
    paper: Plain | Text | None = Field(description="As printed.")
    from_its_inputs: Plain | Text | None = Field(description="Computed from the paper's inputs and formulas.")
    corrected: Plain | Text | None = Field(description="Computed with the mistake mended.")
    why: Text = Field(description="Why they differ.")


class ReplicateDocument(DocumentModel):
    """Every number of the paper, beside what follows from its inputs and what is right."""

    schema_: Schema[Literal["replicate/1"]]
    rows: Several[ReplicationRowPart]


class BenchmarkRowPart(DocumentModel):
    """One measured case."""

    case: Text = Field(description="What was measured.")
    ours: Plain | None = Field(description="In the unit; null: refused, which meets no target.")
    unit: Text = Field(description="Of all numbers of the row but the ratio.")
    peer: Text | None = Field(description="What it is compared with, with its version; null where nothing is there.")
    peer_value: Plain | None = Field(description="In the unit, measured in the same run.")
    ratio: Number | None = Field(description="Above 1, ours is better.")
    target: Plain | None = Field(description="In the unit; null: nothing was promised.")
    met: Whether | None = Field(description="Whether the target is met.")


class BenchmarkDocument(DocumentModel):
    """Benchmarks: ours beside a peer's, against targets that were stated before."""

    schema_: Schema[Literal["benchmark/1"]]
    name: Text | None = Field(description="Which one was run; null for all.")
    inputs: Text = Field(description="What data they ran on.")
    rows: tuple[BenchmarkRowPart, ...]


class PackagePart(DocumentModel):
    """A Python package that is needed, or used through an extra."""

    name: Text = Field(description="As it is installed.")
    version: Text | None = Field(description="Null: not installed.")
    extra: Text | None = Field(description="The extra that asks for it.")


class InstalledPart(DocumentModel):
    """A program of the operating system."""

    name: Text = Field(description="Its name.")
    path: Text | None = Field(description="Null: not found.")
    version: Text | None = Field(description="As it states it.")
    used_for: Text = Field(description="What for.")


class InstalledDistributionPart(DocumentModel):
    """A Python distribution of this environment, whoever asked for it."""

    name: Text = Field(description="As it is installed.")
    version: Text = Field(description="Exactly.")
    sha256: Text | None = Field(
        description="Over the names and hashes of the files that came with it: the same wherever the same file was "
        "installed. Of a link to sources, over those. Null: it was installed without a list of its files."
    )
    changed: tuple[Text, ...] | None = Field(description="Files that are not as they were installed, or are gone.")


class SettingPart(DocumentModel):
    """A setting, and where it came from."""

    name: Text = Field(description="As in dualmandate.toml.")
    value: Text | None = Field(description="Null: not set.")
    source: Text = Field(description="A flag, a variable, the project's file or the default.")
    origin: Text = Field(description="Which one.")


class DoctorDocument(DocumentModel):
    """What a command finds when it runs here."""

    schema_: Schema[Literal["doctor/1"]]
    version: Text = Field(description="Of the software.")
    python: Text = Field(description="Its version.")
    system: Text = Field(description="The operating system.")
    packages: tuple[PackagePart, ...]
    installed: tuple[InstalledDistributionPart, ...]
    programs: tuple[InstalledPart, ...]
    project: Text | None = Field(description="The folder with dualmandate.toml; null where there is none.")
    settings: tuple[SettingPart, ...]
    findings: tuple[Text, ...] = Field(description="What should be mended.")


class InitDocument(DocumentModel):
    """A program folder that was just written."""

    schema_: Schema[Literal["init/1"]]
    name: Text = Field(description="The program that it was made from.")
    directory: Text = Field(description="Where it lies.")
    files: tuple[Text, ...] = Field(description="What was written.")
    project: Text = Field(description="The folder of its project file.")
    next: Text = Field(description="The command to type next.")


class DraftDocument(Internal):
    """A program folder that was just drafted from the curator's own records."""

    schema_: Schema[Literal["draft/1"]]
    name: Text = Field(description="What the program is called.")
    directory: Text = Field(description="Where it lies.")
    files: tuple[Text, ...] = Field(description="What was written.")
    project: Text = Field(description="The folder of its project file.")
    seen_in_the_data: tuple[Text, ...] = Field(description="The keys under [population] that are marked so.")
    left_out: tuple[Text, ...] = Field(description="Columns that are no attributes.")
    next: Text = Field(description="The command to type next.")


class IndexDocument(DocumentModel):
    """The page of a project, and what it links."""

    schema_: Schema[Literal["index/1"]]
    page: Text = Field(description="Where it lies.")
    plans: Whole = Field(description="How many plans it links.")
    releases: Whole = Field(description="How many releases.")
    audits: Whole = Field(description="How many public audits.")
    accounts: Whole = Field(description="Of how many accounts it says what is left.")


class DemoDocument(DocumentModel):
    """The whole story on the embedded program: what was chosen, published and found."""

    schema_: Schema[Literal["demo/1"]]
    directory: Text = Field(description="Where all of it lies.")
    open: Text = Field(description="The page to open first.")
    report: Text = Field(description="The page of the plan.")
    kept: tuple[Text, ...] = Field(description="Files of an earlier demo that had been changed.")
    choice: ChoicePart
    publication: PublicationDocument
    audit: Text = Field(description="The page of the audit.")


class SchemasDocument(DocumentModel):
    """The names of the schemas."""

    schema_: Schema[Literal["schemas/1"]]
    names: tuple[Text, ...] = Field(description="What `dualmandate schema NAME` prints.")


class RatePart(DocumentModel):
    """How often something succeeded."""

    value: Share = Field(description="Successes over trials.")
    successes: Whole = Field(description="How often.")
    trials: Count = Field(description="Of how many.")
    low: Share = Field(description="The lower end of a 95 % interval.")
    high: Share = Field(description="The upper end of it.")


class RangePart(DocumentModel):
    """A number that is known to lie between two others."""

    low: Number = Field(description="The least, in the unit.")
    high: Number = Field(description="The largest, in the unit.")
    unit: Text = Field(description="Of both.")


class _Who(DocumentModel):
    """Somebody who does not attack."""

    who: Text = Field(description="A guesser, or what a claim allows.")


class BaselineRatePart(RatePart, _Who):
    """How often somebody succeeds who does not attack."""


class BaselineRangePart(RangePart, _Who):
    """What somebody achieves who does not attack."""


class PowerPart(DocumentModel):
    """How often a check would have found a fault."""

    what: Text = Field(description="The fault.")
    rows: Count = Field(description="Of what is judged: the more, the more is seen.")
    share: Share = Field(description="Of draws with this fault, those in which it is found.")


class FindingPart(DocumentModel):
    """One thing that an attack found."""

    attack: Text = Field(description="Its name.")
    claim: Text = Field(description="What was claimed.")
    label: Literal["public", "internal"] = Field(description="Whom it is for.")
    success: RatePart | RangePart = Field(description="How often the claim is right, or what it amounts to.")
    baselines: Several[BaselineRatePart | BaselineRangePart] = Field(description="What others achieve.")
    counted_in_full: Whether = Field(description="Whether everything was tried, so that the rate is no estimate.")
    attacker_knows: Text = Field(description="Besides what is published.")
    coarsening: Text = Field(description="What makes values coarser than they were recorded.")
    reference: Reference = Field(description="What success is judged by.")
    partial: Text | None = Field(description="What a limit of time left open.")
    booked: Text | None = Field(description="What was paid for a rate with noise.")
    power: tuple[PowerPart, ...] = Field(description="What would have been found, and how often.")
    words: Words
    details: IfAny[tuple[Text, ...]] = Field(None, description="Single cells or records; inside alone.")


class JudgedPart(DocumentModel):
    """How often an attack is right, beside two guessers who have no tables."""

    attack: Share = Field(description="The attack's share of right answers.")
    low: Share = Field(description="The lower end of a 95 % interval.")
    high: Share = Field(description="The upper end of it.")
    trials: Count = Field(description="Of how many.")
    proportional_guesser: Share = Field(description="Who guesses as often as values occur.")
    modal_guesser: Share = Field(description="Who guesses the most frequent value.")


class ComparedPart(DocumentModel):
    """One way to publish: risk beside accuracy."""

    method: Text = Field(description="Its name.")
    family: Text = Field(description="The methods that it belongs to.")
    loss: Number | None = Field(description="Its privacy loss; null where the method has none.")
    currency: CurrencyName | None
    planned: Whether = Field(description="Whether it is what the plan would publish.")
    mean_absolute_error: NotNegative = Field(description="Of its numbers, as drawn.")
    promised_mean_absolute_error: Number | None = Field(description="Of its numbers, as planned.")
    records_right: JudgedPart
    nonmodal_uniques_right: JudgedPart | None


class AuditDocument(DocumentModel):
    """What an audit found: claims, successes with intervals, and baselines."""

    schema_: Schema[Literal["audit/1"]]
    label: Literal["public", "internal"] = Field(description="Whom it is for.")
    target: Text = Field(description="What was audited.")
    kind: Literal["program", "release", "tables"] = Field(description="What that is.")
    findings: tuple[FindingPart, ...]
    compared: tuple[ComparedPart, ...]
    compared_notes: tuple[Text, ...] = Field(description="On what is compared.")
    left_out: tuple[Text, ...] = Field(description="What was not tried, and why.")
    promised: Text | None = Field(
        None, description="Of a program or a release: who is protected, and which files cannot be told apart."
    )
    standing: Text | None = Field(None, description="Of a release: who approved and published it, signed or not.")
    clipped: dict[str, Text] = Field({}, description="What is counted where amounts or records are clipped, by table.")
    note: Text = Field(description="What an audit can show, and what it cannot.")
