"""Options that several commands share, each with the same words everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def folder(out: Path | None) -> Path | None:
    """A folder that was meant as one: `--out --json` would otherwise write a folder called `--json`."""
    if out is not None and str(out).startswith("-"):
        raise typer.BadParameter(f"'{out}' reads like another option; name a folder, or write ./{out}")
    return out


def value(text: str | None) -> str | None:
    """A value that was meant as one, and no option."""
    if text is not None and text.startswith("-"):
        raise typer.BadParameter(f"'{text}' reads like another option")
    return text


def values(texts: list[str] | None) -> list[str] | None:
    """Values that were each meant as one."""
    for text in texts or ():
        value(text)
    return texts


Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on standard output; words go to standard error."),
]
LedgerPlace = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="URL",
        help="The ledger: a file, or a PostgreSQL URL. Also DUALMANDATE_LEDGER, or `ledger` in dualmandate.toml; "
        "else .dualmandate/ledger.sqlite of the project.",
        callback=value,
    ),
]
CountedLedger = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="URL",
        help="Count what the program's account has left in this ledger: a file, or a PostgreSQL URL.",
        callback=value,
    ),
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who does this, for the record; else your login name.", callback=value),
]
Publisher = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        "--for",
        metavar="NAME",
        help="Who does this, for the record; else your login name. Repeated, for whom and for what: group:NAME, "
        "purpose:NAME, whose limits and reserves in the account then count.",
        callback=values,
    ),
]
AccountName = Annotated[str, typer.Argument(metavar="ACCOUNT", help="An account of the ledger.")]
MaybeAccountName = Annotated[
    str | None, typer.Argument(metavar="ACCOUNT", help="One account; all of them where left out.")
]
ReleaseName = Annotated[str, typer.Argument(metavar="RELEASE", help="A release, as its reservation named it: r000003.")]
