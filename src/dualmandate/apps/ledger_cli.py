"""The commands `dualmandate ledger …`. Like all commands they import what is heavy only when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualmandate.apps.options import AccountName, By, Json, LedgerPlace, MaybeAccountName, ReleaseName
from dualmandate.apps.output import Output

app = typer.Typer(
    name="ledger",
    help="The account of every privacy loss.",
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def door(context: typer.Context) -> None:
    """The account of every privacy loss.

    Open accounts, see what is spent and left, and check that nobody changed it.
    """
    if context.invoked_subcommand is None:
        Output().say(context.get_help())


@app.command("open")
def open_(
    population: Annotated[
        str, typer.Argument(metavar="POPULATION", help="Whose account: `account` in their program files.")
    ],
    unit: Annotated[
        list[str],
        typer.Option(
            "--unit",
            "--unit-bound",
            metavar="UNIT",
            help="Who is protected: person, child, household, … Repeated, person=6 says that one household is in at "
            "most 6 persons, and so what a release that protects persons costs.",
        ),
    ],
    cap: Annotated[
        list[str],
        typer.Option(
            "--cap",
            "--limit",
            metavar="LOSS",
            help="The most that may ever be lost: 10 or epsilon=10 counts in epsilon, and refuses Gaussian noise; "
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
    from dualmandate.apps import ledgers
    from dualmandate.apps.account_options import AccountOptions

    account = AccountOptions(unit, cap, approver_differs).account(population)
    opened = ledgers.open_account(account, ledgers.find_ledger(Path.cwd(), ledger), by=ledgers.person(by))
    Output(json).tell(opened)


@app.command()
def show(account: MaybeAccountName = None, ledger: LedgerPlace = None, json: Json = False) -> None:
    """Accounts with their approvals and releases.

    Each with its cap, what is spent, what is left, the plans approved and the releases made.
    """
    from dualmandate.apps import ledgers, statements

    statement = statements.statement(ledgers.find_ledger(Path.cwd(), ledger).open(), account)
    Output(json).tell(statement)


@app.command()
def accounts(ledger: LedgerPlace = None, json: Json = False) -> None:
    """One line an account: cap, spent, left."""
    from dualmandate.apps import ledgers, statements

    balances = statements.balances(ledgers.find_ledger(Path.cwd(), ledger).open())
    voice = Output(json)
    voice.say("\n".join(balance.line() for balance in balances))
    voice.document(lambda: statements.accounts_document(balances))


@app.command()
def events(account: MaybeAccountName = None, ledger: LedgerPlace = None, json: Json = False) -> None:
    """Every entry, in order.

    Accounts opened, plans approved, releases with every step they took, and refusals.
    """
    from dualmandate.apps import ledgers, statements

    books = ledgers.find_ledger(Path.cwd(), ledger).open()
    found, counted_in = statements.events(books, account), statements.privacy_measures(books)
    voice = Output(json)
    voice.say("\n".join(statements.event_line(event, counted_in) for event in found))
    voice.document(lambda: statements.events_document(found))


@app.command()
def verify(
    anchor: Annotated[
        list[Path] | None,
        typer.Option(
            "--anchor",
            metavar="PATH",
            help="Check this too: an anchor, a release.json, a release, or a folder of releases; may be repeated.",
        ),
    ] = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Check every entry, the head and the anchors.

    Exit status 2 where an entry was changed, dropped or moved, where an older copy was restored, or where a release is
    not as it was written.
    """
    from dualmandate.apps import ledgers, statements

    place = ledgers.find_ledger(Path.cwd(), ledger)
    voice = Output(json)
    with voice.progress("verifying the ledger"):
        files = ledgers.anchor_files(anchor or ())
        books = place.open(anchors=files)
        verification = books.verify()
        releases = ledgers.check_releases(books, files) if files else ()
    voice.say(statements.verification_words(verification, releases))
    voice.document(lambda: statements.verification_document(verification, releases))


@app.command()
def cancel(release: ReleaseName, by: By = None, ledger: LedgerPlace = None, json: Json = False) -> None:
    """Give a reservation back.

    Only before the data were opened: what is opened is spent. The secret of its noise is destroyed.
    """
    from dualmandate.apps import ledgers, statements

    books = ledgers.find_ledger(Path.cwd(), ledger).open()
    canceled = statements.canceled(books, books.cancel(release, by=ledgers.person(by)))
    Output(json).tell(canceled)


@app.command()
def export(
    release: ReleaseName,
    to: Annotated[str, typer.Option("--to", metavar="NAME", help="Who or what received it.")],
    by: By = None,
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Record that a release was handed out.

    Only a settled one; nothing is copied, and nothing is spent.
    """
    from dualmandate.apps import ledgers, statements

    books = ledgers.find_ledger(Path.cwd(), ledger).open()
    books.record_export(release, to, by=ledgers.person(by))
    exported = statements.ExportNotice(books.release(release), to, ledgers.person(by))
    Output(json).tell(exported)


@app.command()
def report(
    account: AccountName,
    failure_probability: Annotated[
        str,
        typer.Option("--failure-probability", metavar="PROBABILITY", help="The δ to report at, such as 1e-10."),
    ],
    release: Annotated[
        list[Path] | None,
        typer.Option(
            "--release",
            metavar="FOLDER",
            help="State also what this release alone has cost, by its exact noise; may be repeated, and a folder of "
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
    from dualmandate.apps import ledgers, statements

    probability = ledgers.probability(failure_probability)
    books, voice = ledgers.find_ledger(Path.cwd(), ledger).open(), Output(json)
    with voice.progress("composing the noise of releases"):
        files = ledgers.anchor_files(release or ())
        ledgers.check_releases(books, files)
        reported = statements.report(books, account, probability, [file.parent for file in files])
    voice.tell(reported)
