"""What the other commands print: refusals, the paper's numbers, benchmarks, and what a command finds or writes here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from dualmandate.errors import Refusal
from dualmandate.report.documents.document import (
    Count,
    DocumentModel,
    IfAny,
    Number,
    Plain,
    Schema,
    Several,
    Text,
    Whether,
)
from dualmandate.report.documents.plan import ChoicePart
from dualmandate.report.documents.release import PublicationDocument


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
