"""The command line. Nothing heavy is imported before a command needs it: `dualmandate --help` must be quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from dualmandate.apps import ledger_cli
from dualmandate.apps.audit_options import AuditFlags
from dualmandate.apps.option_groups import with_groups
from dualmandate.apps.options import By, CountedLedger, Json, LedgerPlace, Publisher, folder
from dualmandate.apps.output import Output

app = typer.Typer(
    name="dualmandate",
    help="Derive how much privacy loss a statistical agency should accept, and show why.",
    rich_markup_mode=None,  # plain help: it prints in half the time, and is the same text everywhere
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100},
)


def _program_names() -> list[str]:
    from dualmandate import gallery

    return list(gallery.names())


def _schema_names() -> list[str]:
    from dualmandate.report.documents import schemas

    return list(schemas.names())


def _benchmark_names() -> list[str]:
    from dualmandate import benchmarks

    return list(benchmarks.names())


def _version(asked: bool) -> None:
    if asked:
        from dualmandate import __version__

        Output().say(f"dualmandate {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def door(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Derive how much privacy loss a statistical agency should accept, and show why."""
    if context.invoked_subcommand is None and not version:
        Output().say(context.get_help())


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder to write.", callback=folder, show_default=True)
    ] = Path("demo"),
    json: Json = False,
) -> None:
    """The story on the embedded Title I program.

    Writes a program folder, plans, approves, publishes and attacks it, with pages to open. Can be run again.
    """
    from dualmandate.apps.demo import demonstrate

    demonstrate(out, Output(json))


@app.command()
def init(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A worked program, `blank`, or `block`: tables to attack.",
            autocompletion=_program_names,
        ),
    ],
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder to write.", show_default="NAME")
    ] = None,
    json: Json = False,
) -> None:
    """A program folder to start from.

    NAME is one of the worked programs, `blank`, or `block`, a folder of published tables. Nothing is overwritten.
    """
    from dualmandate.apps.init import start

    started = start(name, Path(name) if directory is None else directory)
    Output(json).tell(started)


@app.command()
def plan(
    program: Annotated[
        Path, typer.Argument(metavar="PROGRAM.toml", help="A program file, or a folder with a program.toml in it.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write plan.json and the dossier with its figures there. Also DUALMANDATE_OUT, "
            "or `out` in dualmandate.toml.",
            callback=folder,
        ),
    ] = None,
    ledger: CountedLedger = None,
    json: Json = False,
) -> None:
    """The privacy loss to choose, and why.

    Prints the choice in words. Never opens confidential data. With --out, also writes plan.json and a dossier. With
    --ledger, the choice is no more than the account has left.
    """
    from dualmandate.apps.plan import carry_out

    carry_out(program, out, Output(json), ledger=ledger)


@app.command()
def approve(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.json", help="The plan.json that `plan --out` wrote.")],
    by: By = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Approve a plan.

    Records its digest, its account and exactly its loss in the ledger, with the approver's name.
    """
    from dualmandate.apps import ledgers

    approved = ledgers.approve(plan, ledger, by=ledgers.person(by))
    Output(json).tell(approved)


@app.command()
def tabulate(
    program: Annotated[
        Path, typer.Argument(metavar="PROGRAM.toml", help="A program file, or a folder with a program.toml in it.")
    ],
    check: Annotated[bool, typer.Option("--check", help="Count what does not fit; nothing else is done.")] = False,
    refuse: Annotated[
        list[str] | None,
        typer.Option(
            "--refuse",
            metavar="ATTRIBUTE",
            help="Report the attribute as refused if any value is outside or not there; may be repeated.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check the records of a program.

    For the curator inside the wall: counts the records that do not fit the domain. What it prints is confidential.
    Publishes nothing, spends nothing, and exits with 0 whatever it finds.
    """
    from dualmandate.apps.tabulate import carry_out

    carry_out(program, Output(json), checking=check, refuse=refuse or ())


@app.command()
def publish(
    plan: Annotated[
        Path,
        typer.Argument(metavar="PLAN.json", help="An approved plan.json; or a program file, which is planned again."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where the folder of the release is written; else `releases` beside the program.",
            callback=folder,
        ),
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RELEASE", help="Take up a release where it was left.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Publish the same plan on the same data anew: a new secret, a new loss.")
    ] = False,
    by: Publisher = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Publish an approved plan.

    Spends exactly its loss, opens the confidential data, and writes the release: measurements, estimates, tables, and a
    page. Killed at any instant it can be resumed, and its loss counts once.
    """
    from dualmandate.apps.account_options import spender_of
    from dualmandate.apps.publish import PublishOptions
    from dualmandate.apps.publish import publish as carry_out

    who = spender_of(by or ())
    carry_out(PublishOptions(plan, out, ledger, who.by, resume, again, who.group, who.purpose), Output(json))


@app.command()
@with_groups
def audit(typed: AuditFlags, *, json: Json = False) -> None:
    """What an attacker learns.

    Attacks a program's tables (on a synthetic population), a release, or tables that anybody published. Every rate
    stands beside what a guess achieves. An attack gives a lower bound on risk.
    """
    from dualmandate.apps.audit import carry_out

    carry_out(typed, Output(json))


app.add_typer(ledger_cli.app)


@app.command()
def preferences(
    survey: Annotated[
        Path, typer.Argument(metavar="SURVEY.toml", help="A survey file, or a folder with a survey.toml in it.")
    ],
    questionnaire: Annotated[
        bool,
        typer.Option("--questionnaire", help="Make what to ask: a web form, a sheet, and how many. Reads no answers."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write preferences.toml and preferences.json there; with --questionnaire, the form and the design.",
            callback=folder,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """What people prefer, from a survey.

    Estimates what privacy loss costs and what accuracy is worth, with their uncertainty, and writes them as the
    [preferences] of a program. With --questionnaire, designs what to ask before any answers exist.
    """
    from dualmandate.apps.preferences import carry_out

    carry_out(survey, out, Output(json), questionnaire=questionnaire)


@app.command()
def replicate(json: Json = False) -> None:
    """Every number of the paper, beside what it should have been."""
    from dualmandate.apps.replicate import document, tables
    from dualmandate.gallery import paper

    voice = Output(json)
    with voice.progress("replicating the paper"):
        rows = paper.rows()
    for table in tables(rows):
        voice.show(table)
    voice.document(lambda: document(rows))


@app.command()
def benchmark(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="One benchmark; all where left out.", autocompletion=_benchmark_names),
    ] = None,
    json: Json = False,
) -> None:
    """The project's benchmarks.

    Seconds, memory and errors against targets, side by side with peers that are installed.
    """
    from dualmandate import benchmarks
    from dualmandate.apps.benchmark import StageLog, document, nothing, table

    voice = Output(json)
    with voice.progress("measuring") as progress:
        log = StageLog(progress)
        rows = benchmarks.run(name, progress=log)
    if rows:
        voice.show(table(rows))
    else:
        voice.say(nothing(log.stages))
    voice.document(lambda: document(name, rows))


@app.command()
def doctor(json: Json = False) -> None:
    """What this installation finds here.

    Versions, extras, Java, PostgreSQL, Chromium, and the settings with where each came from.
    """
    from dualmandate.apps.doctor import examine, words

    voice = Output(json)
    with voice.progress("examining"):
        examination = examine(Path.cwd())
    voice.say(words(examination))
    voice.document(examination.document)


@app.command()
def schema(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A schema; without it, their names.", autocompletion=_schema_names),
    ] = None,
    json: Json = False,
) -> None:
    """JSON Schemas of the files.

    Prints the schema called NAME, for editors and for other programs; without NAME, lists the names.
    """
    from dualmandate.apps.output import write_json
    from dualmandate.report.documents import schemas
    from dualmandate.report.documents.commands import SchemasDocument

    if name is not None:
        write_json(schemas.schema(name))
        return
    voice = Output(json)
    voice.say("\n".join(schemas.names()))
    voice.document(SchemasDocument.made_of(names=schemas.names()).as_json)


def main() -> None:
    """Run the command that was typed, and leave with its exit status."""
    # Before numpy is loaded: threads of small products wait for each other, tenfold on a busy machine.
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    from dualmandate.apps.exit_status import run

    sys.exit(run(app, sys.argv[1:]))
