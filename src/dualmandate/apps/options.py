"""What is typed after a command: options that several commands share, in the same words everywhere, and groups of them.

Every option that takes a value refuses one that reads like another option: `--out --json` would otherwise write a
folder called `--json`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer


def flag(names: str, metavar: str, words: str, **settings: Any) -> Any:
    """An option that takes a value, by its names ("--by --for"), what to write there, and its help."""
    return typer.Option(*names.split(), metavar=metavar, help=words, callback=_meant, **settings)


def argument(metavar: str, words: str, **settings: Any) -> Any:
    """An argument, by what to write there and its help."""
    return typer.Argument(metavar=metavar, help=words, **settings)


def _meant(value: Any) -> Any:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str | Path) and re.match(r"-(?![0-9.])", str(each)):  # a number may be below zero
            place = f"; name a folder, or write {each.absolute()}" if isinstance(each, Path) else ""
            raise typer.BadParameter(f"'{each}' reads like another option{place}")
    return value


Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output; words go to standard error.")
]
ProgramPath = Annotated[Path, argument("PROGRAM.toml", "A program file, or a folder with one program in it.")]
LedgerPlace = Annotated[
    str | None,
    flag(
        "--ledger",
        "URL",
        "The ledger: a file, or a PostgreSQL URL. Also DUALMANDATE_LEDGER, or `ledger` in dualmandate.toml; "
        "else .dualmandate/ledger.sqlite of the project.",
    ),
]
CountedLedger = Annotated[
    str | None,
    flag("--ledger", "URL", "Count what the program's account has left in this ledger: a file, or a PostgreSQL URL."),
]
By = Annotated[str | None, flag("--by", "NAME", "Who does this, for the record; else your login name.")]
SigningKey = Annotated[
    Path | None,
    flag(
        "--sign",
        "KEY",
        "Sign it with this ssh key: the file of a private key, or of a public one whose other half your agent holds. "
        "Who may is in dualmandate.toml: `approvers`, `publishers`.",
    ),
]
Publisher = Annotated[
    list[str] | None,
    flag(
        "--by --for",
        "NAME",
        "Who does this, for the record; else your login name. Repeated, for whom and for what: group:NAME, "
        "purpose:NAME, whose limits and reserves in the account then count.",
    ),
]
OtherLedger = Annotated[
    str | None,
    flag(
        "--other-ledger",
        "REASON",
        "Publish although another ledger has spent from the same source; the reason is recorded and published.",
    ),
]
MaybeAccountName = Annotated[str | None, argument("ACCOUNT", "One account; all of them where left out.")]
ReleaseName = Annotated[str, argument("RELEASE", "A release by its name: its account and number, such as residents-1.")]


@dataclass(frozen=True)
class AuditFlags:
    """What is typed after `audit`: the target, where findings go, what to attack with, and a rate to be published."""

    target: Annotated[
        Path,
        argument("TARGET", "A program file, the folder of a release, or a folder with tables and a tables.toml."),
    ]
    out: Annotated[Path | None, flag("--out", "DIR", "Write audit.json and a page there, public ones.")] = None
    internal: Annotated[
        Path | None,
        flag(
            "--internal",
            "DIR",
            "Write what is judged by confidential records, and which cells follow, there: inside the wall.",
        ),
    ] = None
    confidential: Annotated[
        list[str] | None,
        flag(
            "--confidential",
            "FILE",
            "The true records, to judge attacks by; needs --internal. Repeated as tabulated:FILE, the records "
            "that were tabulated (after swapping, say). Of amounts, a folder with the true tables.",
        ),
    ] = None
    place: Annotated[str | None, flag("--place", "ATTRIBUTE", "The attribute that tells places apart.")] = None
    seconds: Annotated[float | None, flag("--seconds", "N", "What a solver may take for one question; 10.")] = None
    beside: Annotated[
        list[Path] | None,
        flag("--beside", "RELEASE", "Another release, to see whether the two share noise; can be repeated."),
    ] = None
    outside: Annotated[
        Path | None,
        flag(
            "--outside",
            "FILE",
            "A file of named people (CSV or Parquet) to link reconstructed records to, by place and by the "
            "attributes that it has.",
        ),
    ] = None
    secret: Annotated[
        list[str] | None,
        flag(
            "--secret",
            "ATTRIBUTE",
            "What an attacker is after; else whatever the outside file does not say. Without --outside, an "
            "attacker who knows all else of everybody. May be repeated.",
        ),
    ] = None
    person: Annotated[
        str | None,
        flag(
            "--person", "COLUMN", "The column that names people, in the outside file and in the true records; person."
        ),
    ] = None
    link: Annotated[
        str,
        flag(
            "--link",
            "METHOD",
            "How: exact (equal keys, then coarser ones), or splink, which allows for errors in the outside file "
            "and needs dualmandate[linkage].",
            show_default=False,
        ),
    ] = "exact"
    publish_rates: Annotated[
        str | None,
        flag(
            "--publish-rates",
            "LOSS",
            "Publish the share of records right, and the guesser's, with noise for this loss (0.1, or rho=0.01), "
            "in --out; of a release, and booked in its account first.",
        ),
    ] = None
    approved_by: Annotated[
        str | None,
        flag("--approved-by", "NAME", "Who approved that a rate is published; else whoever publishes it."),
    ] = None
    approve_rates: Annotated[
        str | None,
        flag(
            "--approve-rates",
            "LOSS",
            "Approve that such a rate is published at this loss, and do nothing else: for who approves, with the same "
            "--place. Needs no records.",
        ),
    ] = None
    other_ledger: OtherLedger = None
    sign: SigningKey = None
    by: Publisher = None
    ledger: LedgerPlace = None


@dataclass(frozen=True)
class AskFlags:
    """What is typed after `ask`: the program, the question, what it may cost or how right it must be, and who asks."""

    program: Annotated[Path, argument("PROGRAM.toml", "A program file, or a folder with one in it; or its plan.json.")]
    question: Annotated[
        str,
        argument(
            "QUESTION",
            '"SELECT COUNT(*) FROM records WHERE …", or the same as JSON: what is asked of the declared records.',
        ),
    ]
    spend: Annotated[str | None, flag("--spend", "LOSS", "Spend exactly this: 0.1, or rho=0.01.")] = None
    within: Annotated[
        str | None,
        flag("--within", "HALF", "Spend what it takes for this half-width: 500 in its own unit, or 2% of --of."),
    ] = None
    of: Annotated[
        str | None,
        flag("--of", "SIZE", "The public size that a percentage is of; for counts the program's population."),
    ] = None
    probability: Annotated[str, flag("--probability", "P", "With which each interval holds.", show_default=True)] = (
        "0.95"
    )
    records: Annotated[
        str | None,
        flag("--records", "N", "For a mean: a public number of records to expect in it, or in each of its groups."),
    ] = None
    together: Annotated[
        bool, typer.Option("--together", help="With --within: of all numbers of the answer at once.")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it costs and gives: spends nothing, opens nothing.")
    ] = False
    answers: Annotated[
        Path | None, flag("--answers", "DIR", "Where answers are kept; else `answers` beside the program.")
    ] = None
    snapshot: Annotated[
        str | None,
        flag("--snapshot", "NAME", "The state that the records are in; else what their source is called."),
    ] = None
    approved_by: Annotated[
        str | None, flag("--approved-by", "NAME", "Who approved the question; else whoever asks it.")
    ] = None
    other_ledger: OtherLedger = None
    sign: SigningKey = None
    by: Publisher = None
    ledger: LedgerPlace = None


@dataclass(frozen=True)
class ServeFlags:
    """What is typed after `serve`: the project, where to listen, and within which limits."""

    folder: Annotated[Path, argument("FOLDER", "A folder of the project.", show_default=True)] = Path()
    host: Annotated[
        str, flag("--host", "ADDRESS", "Where to listen; anywhere but on this machine needs TLS.", show_default=True)
    ] = "127.0.0.1"
    port: Annotated[int, flag("--port", "N", "The port; 0 for one that is free.", show_default=True)] = 8000
    workers: Annotated[int, flag("--workers", "N", "Processes that answer.", show_default=True)] = 1
    host_name: Annotated[
        list[str] | None,
        flag(
            "--host-name", "NAME", "A name that the service is called by, such as dp.agency.example; may be repeated."
        ),
    ] = None
    certificate: Annotated[
        Path | None, flag("--certificate", "FILE", "For TLS: the certificate, with its chain, as PEM.")
    ] = None
    private_key: Annotated[Path | None, flag("--private-key", "FILE", "For TLS: its private key, as PEM.")] = None
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Listen without TLS beyond this machine: a proxy keeps it.")
    ] = False
    requests_a_minute: Annotated[
        int, flag("--requests-a-minute", "N", "That each key may make.", show_default=True)
    ] = 600
    seconds: Annotated[str, flag("--seconds", "N", "That a request may take.", show_default=True)] = "60"
    snapshot: Annotated[
        str | None,
        flag("--snapshot", "NAME", "The state that the records are in; else what their source is called."),
    ] = None
    ledger: LedgerPlace = None


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose dataclass parameters are filled from options of their own: one a field, annotated as such."""
    taken = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: each.annotation for name, each in taken.items() if is_dataclass(each.annotation)}
    fields = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    @wraps(command)
    def run(**typed: Any) -> None:
        for name, group in groups.items():
            typed[name] = group(**{field: typed.pop(field) for field in fields[name]})
        command(**typed)

    flat = [part for name, each in taken.items() for part in (fields[name].values() if name in fields else (each,))]
    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in flat]
    run.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]  # what `inspect` looks for
    run.__annotations__ = {each.name: each.annotation for each in keyword}
    return run
