"""The command line. Nothing heavy is imported before a command needs it: `dualmandate --help` must be quick."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualmandate.apps.options import (
    AskFlags,
    AuditFlags,
    By,
    CountedLedger,
    Json,
    LedgerPlace,
    MaybeAccountName,
    OtherLedger,
    ProgramPath,
    Publisher,
    ReleaseName,
    ServeFlags,
    SigningKey,
    argument,
    flag,
    with_groups,
)
from dualmandate.apps.output import Output

if TYPE_CHECKING:
    from dualmandate.ledger import Ledger

app = typer.Typer(
    name="dualmandate",
    help="Derive how much privacy loss a statistical agency should accept, and show why.",
    rich_markup_mode=None,  # plain help: it prints in half the time, and is the same text everywhere
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100},
)
ledgers = typer.Typer(name="ledger", help="The account of every privacy loss.", rich_markup_mode=None)
api_keys = typer.Typer(name="keys", help="Who may use the service.", rich_markup_mode=None)


def _program_names() -> list[str]:
    from dualmandate import gallery

    return list(gallery.names())


def _schema_names() -> list[str]:
    from dualmandate.report.documents import schemas

    return list(schemas.names())


def _benchmark_names() -> list[str]:
    from dualmandate import benchmarks

    return list(benchmarks.NAMES)


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
    out: Annotated[Path, flag("--out", "DIR", "The folder to write.", show_default=True)] = Path("demo"),
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
        str | None,
        argument(
            "NAME",
            "A worked program; or, with --from, what to call yours. The programs are listed where it is left out.",
            autocompletion=_program_names,
            show_default=False,
        ),
    ] = None,
    directory: Annotated[Path | None, argument("DIR", "The folder to write.", show_default="NAME")] = None,
    from_: Annotated[
        str | None,
        flag(
            "--from",
            "FILE",
            "Draft a program from your own records: .csv, .parquet, .sas7bdat, .dta or .sav; with --table, the URL "
            "of a database, or the variable that holds it. For the curator: what is written says something of them.",
        ),
    ] = None,
    table: Annotated[str | None, flag("--table", "TABLE", "With --from: the table or view of the database.")] = None,
    unit: Annotated[
        str | None, flag("--unit", "UNIT", "With --from: who is protected, person where not stated.")
    ] = None,
    account: Annotated[
        str | None, flag("--account", "NAME", "With --from: whose privacy is spent, an account of the ledger.")
    ] = None,
    identifier: Annotated[
        str | None,
        flag("--identifier", "COLUMN", "With --from: the column that names the unit, or none; else a likely one."),
    ] = None,
    by: Annotated[
        list[str] | None,
        flag("--by", "ATTRIBUTES", "With --from: a table by these attributes, as region,age; may be repeated."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --from: ask nothing, assume what is not stated, and say so.")
    ] = False,
    json: Json = False,
) -> None:
    """A program folder to start from.

    \b
    blank              a small program, commented key by key, to write over
    block              tables that somebody published of seven people, to attack
    national_accounts  payroll of businesses, published at the level of its use
    redistricting      counts by census block, from which districts are drawn
    survey             from the answers of a survey to an epsilon
    title_i            the paper's application: grants to school districts

    With --from, a program is drafted from your own records: what it takes from them is marked in it. Nothing is
    overwritten.
    """
    output = Output(json)
    if from_ is None:
        from dualmandate.apps.init import begin, check_only_from

        check_only_from(
            {
                "--table": table,
                "--unit": unit,
                "--account": account,
                "--identifier": identifier,
                "--by": by,
                "--yes": yes,
            }
        )
        begin(name, directory, output)
        return
    from dualmandate.apps.drafting import DraftAnswers, SourceFlags, at_a_terminal, draft, named

    answers = DraftAnswers(unit, account, identifier, tuple(by or ()))
    asking = not yes and at_a_terminal(output)
    folder = named(name, directory)
    output.tell(draft(*folder, SourceFlags(from_, table), answers=answers, asking=asking, output=output))


@app.command()
def plan(
    program: ProgramPath,
    out: Annotated[
        Path | None,
        flag(
            "--out",
            "DIR",
            "Write plan.json and the dossier with its figures there. Also DUALMANDATE_OUT, "
            "or `out` in dualmandate.toml.",
        ),
    ] = None,
    ledger: CountedLedger = None,
    full: Annotated[bool, typer.Option("--full", help="Print all that the plan says, not one screen of it.")] = False,
    json: Json = False,
) -> None:
    """The privacy loss to choose, and why.

    Prints the choice on one screen. Never opens confidential data. With --out, also writes plan.json and a dossier.
    With --ledger, the choice is no more than the account has left.
    """
    from dualmandate.apps.plan import carry_out

    carry_out(program, out, Output(json), ledger=ledger, full=full)


@app.command()
def approve(
    plan: Annotated[Path, argument("PLAN.json", "The plan.json that `plan --out` wrote.")],
    seen: Annotated[
        bool,
        typer.Option(
            "--seen", help="Approve although the program file says that some of it was seen in the data; recorded."
        ),
    ] = False,
    sign: SigningKey = None,
    by: By = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Approve a plan.

    Records its digest, its account and exactly its loss in the ledger, with the approver's name, and signature where
    it is signed. What the program took from the data is listed, and has to be accepted by --seen.
    """
    from dualmandate.apps.ledgers import approve, person

    output = Output(json)
    with output.progress(f"reading {plan.name}") as progress:
        notice = approve(plan, ledger, by=person(by), sign=sign, seen=seen, progress=progress)
    output.tell(notice)


@app.command()
def check(
    program: Annotated[
        Path, argument("PROGRAM.toml", "A program file, or a folder with one in it; or the plan.json of a program.")
    ],
    internal: Annotated[
        Path | None,
        flag("--internal", "DIR", "Where what is found is kept; else .dualmandate/checks beside the program."),
    ] = None,
    refuse: Annotated[
        list[str] | None,
        flag(
            "--refuse",
            "ATTRIBUTE",
            "Report the attribute as refused if any value is outside or not there; may be repeated.",
        ),
    ] = None,
    by: By = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """What in the records does not fit.

    For the curator inside the wall: values that are no level and how often, bounds that are met, units with too many
    records. Kept in a folder for its owner alone, and said on a terminal. Publishes nothing, spends nothing, and exits
    with 0 whatever it finds. The ledger learns that the records, as they are, were checked: `publish` asks for it.
    """
    from dualmandate.apps.check import CheckOptions, carry_out

    carry_out(CheckOptions(program, internal, refuse or (), by, ledger), Output(json))


@app.command()
def publish(
    plan: Annotated[Path, argument("PLAN.json", "An approved plan.json; or a program file, which is planned again.")],
    out: Annotated[
        Path | None,
        flag("--out", "DIR", "Where the folder of the release is written; else `releases` beside the program."),
    ] = None,
    resume: Annotated[str | None, flag("--resume", "RELEASE", "Take up a release where it was left.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Publish the same plan on the same data anew: a new secret, a new loss.")
    ] = False,
    unchecked: Annotated[
        bool,
        typer.Option(
            "--unchecked",
            help="Publish records that were not checked in the state they are in; it is recorded and published.",
        ),
    ] = False,
    other_ledger: OtherLedger = None,
    sign: SigningKey = None,
    by: Publisher = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Publish an approved plan.

    Spends exactly its loss, opens the confidential data, and writes the release: measurements, estimates, tables, and a
    page. Killed at any instant it can be resumed, and its loss counts once.
    """
    from dualmandate.apps.ledgers import spender_of
    from dualmandate.apps.publish import PublishOptions, carry_out

    who = spender_of(by or ())
    spent = who.by, resume, again, who.group, who.purpose, other_ledger, sign, unchecked
    carry_out(PublishOptions(plan, out, ledger, *spent), Output(json))


@app.command()
@with_groups
def ask(typed: AskFlags, *, json: Json = False) -> None:
    """One number, or one a group, within a budget.

    A question is a SELECT of COUNT(*), SUM, AVG, MEDIAN or QUANTILE from the declared records, with WHERE and GROUP BY.
    Its loss is booked before records are opened. The same question again gets the same answer, free.
    """
    from dualmandate.apps.ask import carry_out

    carry_out(typed, Output(json))


@app.command()
@with_groups
def audit(typed: AuditFlags, *, json: Json = False) -> None:
    """What an attacker learns.

    Attacks a program's tables (on a synthetic population), a release, or tables that anybody published. Every rate
    stands beside what a guess achieves. An attack gives a lower bound on risk.
    """
    from dualmandate.apps.audit import carry_out

    carry_out(typed, Output(json))


@app.command()
def index(
    folder: Annotated[Path, argument("FOLDER", "A folder of the project.", show_default=True)] = Path(),
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """One page of a project.

    Links its plans, releases and public audits, beside its accounts: index.html beside dualmandate.toml, written anew
    each time. Public information only.
    """
    from dualmandate.apps.index import write_index

    Output(json).tell(write_index(folder, ledger))


@ledgers.callback(invoke_without_command=True)
def ledger_door(context: typer.Context) -> None:
    """The account of every privacy loss.

    Open accounts, see what is spent and left, and check that nobody changed it.
    """
    if context.invoked_subcommand is None:
        Output().say(context.get_help())


def _books(place: str | None) -> Ledger:
    from dualmandate.apps.ledgers import find_ledger

    return find_ledger(Path.cwd(), place).open()


@ledgers.command("open")
def open_(
    population: Annotated[str, argument("POPULATION", "Whose account: `account` in their program files.")],
    unit: Annotated[
        list[str],
        flag(
            "--unit --unit-bound",
            "UNIT",
            "Who is protected: person, child, household, … Repeated, person=6 says that one household is in at "
            "most 6 persons, and so what a release that protects persons costs.",
        ),
    ],
    cap: Annotated[
        list[str],
        flag(
            "--cap --limit",
            "LOSS",
            "The most that may ever be lost: 10 or epsilon=10 counts in epsilon, and refuses Gaussian noise; "
            "rho=2.56 counts in rho. Repeated, for parts of it: user=2 for each user, user:NAME=2, group:NAME=1 or "
            "purpose:NAME=1/2 for one; reserve:PURPOSE=3 keeps a part for one purpose.",
        ),
    ],
    approver_differs: Annotated[
        bool, typer.Option("--approver-differs", help="Nobody publishes on their own approval alone.")
    ] = False,
    by: By = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Open the account of a population.

    The only act that creates an account; the first one also makes the ledger, its key and its anchor. Nothing is
    overwritten, and a cap is never raised.
    """
    from dualmandate.apps.ledgers import account_of, find_ledger, open_account, person

    account = account_of(population, unit, cap, approver_differs=approver_differs)
    Output(json).tell(open_account(account, find_ledger(Path.cwd(), ledger), by=person(by)))


@ledgers.command()
def show(account: MaybeAccountName = None, ledger: LedgerPlace = None, json: Json = False) -> None:
    """Accounts with their approvals and releases.

    Each with its cap, what is spent, what is left, the plans approved and the releases made.
    """
    from dualmandate.apps.statements import statement

    Output(json).tell(statement(_books(ledger), account))


@ledgers.command()
def accounts(ledger: LedgerPlace = None, json: Json = False) -> None:
    """One line an account: cap, spent, left."""
    from dualmandate.apps.statements import accounts_document, balances

    found, output = balances(_books(ledger)), Output(json)
    output.say("\n".join(balance.line() for balance in found))
    output.document(lambda: accounts_document(found))


@ledgers.command()
def events(account: MaybeAccountName = None, ledger: LedgerPlace = None, json: Json = False) -> None:
    """Every entry, in order.

    Accounts opened, plans approved, releases with every step they took, and refusals.
    """
    from dualmandate.apps.statements import event_lines, events, events_document

    books, output = _books(ledger), Output(json)
    found = events(books, account)
    output.say("\n".join(event_lines(books, found)))
    output.document(lambda: events_document(found))


@ledgers.command()
def verify(
    anchor: Annotated[
        list[Path] | None,
        flag(
            "--anchor",
            "PATH",
            "Check this too: an anchor, a release.json, a release, or a folder of releases; may be repeated.",
        ),
    ] = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Check every entry, the head and the anchors.

    Exit status 2 where an entry was changed, dropped or moved, where an older copy was restored, or where a release is
    not as it was written.
    """
    from dualmandate.apps.ledgers import anchor_files, check_releases, find_ledger
    from dualmandate.apps.statements import LedgerCheck

    place, output = find_ledger(Path.cwd(), ledger), Output(json)
    with output.progress("verifying the ledger"):
        files = anchor_files(anchor or ())
        books = place.open(anchors=files)
        verification = books.verify()
        releases = check_releases(books, files) if files else ()
    output.tell(LedgerCheck(verification, releases, place.same_disk()))


@ledgers.command()
def anchor(
    lost: Annotated[
        str | None,
        flag("--lost", "REASON", "What became of a place that is left out and does not answer; it is recorded."),
    ] = None,
    by: By = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Keep the head in a second place.

    In the places that dualmandate.toml names (anchor_file, anchor_append, anchor_database, anchor_command), from now
    on, and in no others. A ledger that is behind one of them spends nothing. A place that is left out is asked a last
    time.
    """
    from dualmandate.apps.ledgers import find_ledger, keep_head, person

    Output(json).tell(keep_head(find_ledger(Path.cwd(), ledger), by=person(by), lost=lost))


@ledgers.command()
def cancel(release: ReleaseName, by: By = None, ledger: LedgerPlace = None, json: Json = False) -> None:
    """Give a reservation back.

    Only before the data were opened: what is opened is spent. The secret of its noise is destroyed.
    """
    from dualmandate.apps.ledgers import person
    from dualmandate.apps.statements import canceled

    books = _books(ledger)
    Output(json).tell(canceled(books, books.cancel(release, by=person(by))))


@ledgers.command()
def export(
    release: ReleaseName,
    to: Annotated[str, flag("--to", "NAME", "Who or what received it.")],
    by: By = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Record that a release was handed out.

    Only a settled one; nothing is copied, and nothing is spent.
    """
    from dualmandate.apps.ledgers import person
    from dualmandate.apps.statements import ExportNotice

    books, who = _books(ledger), person(by)
    books.record_export(release, to, by=who)
    Output(json).tell(ExportNotice(books.release(release), to, who))


@ledgers.command()
def report(
    account: Annotated[str, argument("ACCOUNT", "An account of the ledger.")],
    failure_probability: Annotated[
        str, flag("--failure-probability", "PROBABILITY", "The δ to report at, such as 1e-10.")
    ],
    release: Annotated[
        list[Path] | None,
        flag(
            "--release",
            "FOLDER",
            "State also what this release alone has cost, by its exact noise; may be repeated, and a folder of "
            "releases stands for all of them.",
        ),
    ] = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """What is spent, as (ε, δ), for the public.

    By the tight conversion from rho, rounded up; an account in epsilon reports its epsilon, which needs no δ. What a
    release alone has cost is no balance: such numbers do not add up. Their exact noise needs dualmandate[accounting].
    """
    from dualmandate.apps.ledgers import anchor_files, check_releases, probability
    from dualmandate.apps.statements import report

    stated = probability(failure_probability)
    books, output = _books(ledger), Output(json)
    with output.progress("composing the noise of releases"):
        files = anchor_files(release or ())
        check_releases(books, files)
        reported = report(books, account, stated, [file.parent for file in files])
    output.tell(reported)


app.add_typer(ledgers)
app.add_typer(api_keys)


@ledgers.command()
def decide(
    request: Annotated[int, argument("REQUEST", "The number of a request for more: that of its entry.")],
    reason: Annotated[str, flag("--reason", "WORDS", "Why; it is recorded.")],
    grant: Annotated[
        str | None, flag("--grant", "AMOUNT", "Grant so much, in the account's currency; refused where left out.")
    ] = None,
    sign: SigningKey = None,
    by: By = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Decide on a request for more.

    Raises the limit of the user, group or purpose that it is for, or refuses to; by another person than who asked. The
    cap of the account stays as it is.
    """
    from dualmandate.apps.ledgers import decide, person

    Output(json).tell(decide(_books(ledger), request, grant, reason=reason, by=person(by), sign=sign))


@app.command()
@with_groups
def serve(typed: ServeFlags, *, json: Json = False) -> None:
    """Questions over HTTP, by many people.

    Serves the programs of a project within the accounts of its ledger, on this machine unless more is said. Needs a
    key for every request: `dualmandate keys make` makes them.
    """
    from dualmandate.apps.http.serving import serve

    serve(typed, Output(json))


@api_keys.callback(invoke_without_command=True)
def keys_door(context: typer.Context) -> None:
    """Who may use the service.

    Make keys, list them, revoke them. A key is of one person in one role, and is shown once.
    """
    if context.invoked_subcommand is None:
        Output().say(context.get_help())


@api_keys.command()
def make(
    name: Annotated[str, argument("NAME", "Whose key: the user that the ledger will name.")],
    role: Annotated[
        str,
        flag(
            "--role",
            "ROLE",
            "analyst: asks; curator: approves, and decides on requests for more; auditor: reads all; administrator: "
            "makes keys.",
        ),
    ],
    group: Annotated[str | None, flag("--group", "NAME", "The group whose limit counts.")] = None,
    purpose: Annotated[
        list[str] | None,
        flag("--purpose", "NAME", "A purpose that the key may spend for, with its reserve; may be repeated."),
    ] = None,
    by: By = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Make a key.

    Printed once; what is kept beside the ledger is its hash.
    """
    from dualmandate.apps.http.serving import make_key

    made = make_key(name, role, by=by, group=group, purposes=tuple(purpose or ()), ledger=ledger)
    Output(json).tell(made)


@api_keys.command("list")
def list_(ledger: LedgerPlace = None, json: Json = False) -> None:
    """Every key, without its secret."""
    from dualmandate.apps.http.serving import KeysNotice, key_ring

    Output(json).tell(KeysNotice(key_ring(Path.cwd(), ledger).all()))


@api_keys.command()
def revoke(
    identifier: Annotated[str, argument("KEY", "A key by its identifier: the digits between dm_ and the second _.")],
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Revoke a key: it opens nothing from now on, in every worker."""
    from dualmandate.apps.http.serving import KeyNotice, key_ring

    Output(json).tell(KeyNotice(key_ring(Path.cwd(), ledger).revoke(identifier)))


@app.command()
def preferences(
    survey: Annotated[Path, argument("SURVEY.toml", "A survey file, or a folder with a survey.toml in it.")],
    questionnaire: Annotated[
        bool,
        typer.Option("--questionnaire", help="Make what to ask: a web form, a sheet, and how many. Reads no answers."),
    ] = False,
    out: Annotated[
        Path | None,
        flag(
            "--out",
            "DIR",
            "Write preferences.toml and preferences.json there; with --questionnaire, the form and the design.",
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
    from dualmandate.apps.row_tables import paper_tables
    from dualmandate.gallery import paper
    from dualmandate.report.documents.commands import ReplicateDocument

    output = Output(json)
    with output.progress("replicating the paper"):
        rows = paper.rows()
    for table in paper_tables(rows):
        output.show(table)
    output.document(ReplicateDocument.made_of(rows=rows).as_json)


@app.command()
def benchmark(
    name: Annotated[
        str | None, argument("NAME", "One benchmark; all where left out.", autocompletion=_benchmark_names)
    ] = None,
    json: Json = False,
) -> None:
    """The project's benchmarks.

    Seconds, memory and errors against targets, side by side with peers that are installed.
    """
    from dualmandate import benchmarks
    from dualmandate.apps.row_tables import StageLog, benchmark_table
    from dualmandate.report.documents.commands import BenchmarkDocument

    output = Output(json)
    with output.progress("measuring") as progress:
        log = StageLog(progress)
        rows = benchmarks.run(name, progress=log)
    if rows:
        output.show(benchmark_table(rows))
    else:
        output.say(log.words())
    output.document(BenchmarkDocument.made_of(name=name, inputs=benchmarks.INPUTS, rows=rows).as_json)


@app.command()
def doctor(json: Json = False) -> None:
    """What this installation finds here.

    Versions, extras, Java, PostgreSQL, Chromium, and the settings with where each came from.
    """
    from dualmandate.apps.doctor import examine

    output = Output(json)
    with output.progress("examining"):
        examination = examine(Path.cwd(), every_file=json)
    output.tell(examination)


@app.command()
def schema(
    name: Annotated[
        str | None, argument("NAME", "A schema; without it, their names.", autocompletion=_schema_names)
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
    output = Output(json)
    output.say("\n".join(schemas.names()))
    output.document(SchemasDocument.made_of(names=schemas.names()).as_json)


def main() -> None:
    """Run the command that was typed, and leave with its exit status."""
    # Before numpy is loaded: threads of small products wait for each other, tenfold on a busy machine.
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    # A process that dies leaves no copy of its memory on the disk: records, keys and noise are in it.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from dualmandate.apps.output import run

    sys.exit(run(app, sys.argv[1:]))
