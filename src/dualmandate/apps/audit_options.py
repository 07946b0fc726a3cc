"""What is typed after `dualmandate audit`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dualmandate.apps.options import LedgerPlace, Publisher, folder, value, values


@dataclass(frozen=True)
class AuditFlags:
    """The target, where findings go, the options of the audit, and a rate that is to be published."""

    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET", help="A program file, the folder of a release, or a folder with tables and a tables.toml."
        ),
    ]
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write audit.json and a page there, public ones.", callback=folder),
    ] = None
    internal: Annotated[
        Path | None,
        typer.Option(
            "--internal",
            metavar="DIR",
            help="Write what is judged by confidential records, and which cells follow, there: inside the wall.",
            callback=folder,
        ),
    ] = None
    confidential: Annotated[
        list[str] | None,
        typer.Option(
            "--confidential",
            metavar="FILE",
            help="The true records, to judge attacks by; needs --internal. Repeated as tabulated:FILE, the records "
            "that were tabulated (after swapping, say). Of amounts, a folder with the true tables.",
        ),
    ] = None
    place: Annotated[
        str | None, typer.Option("--place", metavar="ATTRIBUTE", help="The attribute that tells places apart.")
    ] = None
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="N", help="What a solver may take for one question; 10.")
    ] = None
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            "--beside", metavar="RELEASE", help="Another release, to see whether the two share noise; can be repeated."
        ),
    ] = None
    outside: Annotated[
        Path | None,
        typer.Option(
            "--outside",
            metavar="FILE",
            help="A file of named people (CSV or Parquet) to link reconstructed records to, by place and by the "
            "attributes that it has.",
        ),
    ] = None
    secret: Annotated[
        list[str] | None,
        typer.Option(
            "--secret",
            metavar="ATTRIBUTE",
            help="What an attacker is after; else whatever the outside file does not say. Without --outside, an "
            "attacker who knows all else of everybody. May be repeated.",
            callback=values,
        ),
    ] = None
    person: Annotated[
        str | None,
        typer.Option(
            "--person",
            metavar="COLUMN",
            help="The column that names people, in the outside file and in the true records; person.",
            callback=value,
        ),
    ] = None
    link: Annotated[
        str,
        typer.Option(
            "--link",
            metavar="METHOD",
            help="How: exact (equal keys, then coarser ones), or splink, which allows for errors in the outside file "
            "and needs dualmandate[linkage].",
            callback=value,
            show_default=False,
        ),
    ] = "exact"
    publish_rates: Annotated[
        str | None,
        typer.Option(
            "--publish-rates",
            metavar="LOSS",
            help="Publish the share of records right, and the guesser's, with noise for this loss (0.1, or rho=0.01), "
            "in --out; of a release, and booked in its account first.",
            callback=value,
        ),
    ] = None
    approved_by: Annotated[
        str | None,
        typer.Option(
            "--approved-by",
            metavar="NAME",
            help="Who approved that a rate is published; else whoever publishes it.",
            callback=value,
        ),
    ] = None
    by: Publisher = None
    ledger: LedgerPlace = None
