"""Publishing what an audit found against confidential records: a query like any other, of a release alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from dualmandate.audit.claims.booked_rates import RateQuery, Spender, book
from dualmandate.audit.equations import Integers
from dualmandate.audit.finding import Finding
from dualmandate.audit.reconstruction.noisy import most_likely, whole_records
from dualmandate.audit.run import Asked
from dualmandate.audit.targets.of_release import noisy_tables
from dualmandate.audit.targets.targets import Floats
from dualmandate.errors import InvalidRelease, InvalidRequest, Place
from dualmandate.ledger import Ledger, State
from dualmandate.ledger.anchors import RELEASE_FILE
from dualmandate.population import PrivacyLoss
from dualmandate.program.program import read_program
from dualmandate.publication import source_file
from dualmandate.publication.release import Release
from dualmandate.publication.release_folder import is_complete


def publish_rate(
    release: Release,
    asked: Asked,
    ledger: Ledger,
    *,
    loss: PrivacyLoss,
    spender: Spender,
    write: Callable[[Finding], None],
) -> None:
    """Publish how many records the attack on a release gets right, and a guesser beside it, with noise for a loss.

    `asked.confidential` is the file that they are judged by. The loss is booked in the account of the release before
    anything is opened; `write` is handed the finding when it may be written down.
    """
    if asked.confidential is None:
        raise InvalidRequest(
            "a rate is to be published, and no records to judge by",
            why="the rate of an attack is counted against the true records",
            instead="name them with --confidential FILE",
        )
    _check_known(release, ledger)
    query = rate_query(release, asked, loss)
    book(query, source_file(asked.confidential), ledger, spender=spender, write=write)


def rate_query(release: Release, asked: Asked, loss: PrivacyLoss) -> RateQuery:
    """What is asked of the records; everything in it comes from the public files of the release."""
    program = read_program(release.folder / release.facts["program_file"])
    target, _, place = noisy_tables(release, program, replace(asked, confidential=None, tabulated=None))
    found = most_likely(target.equations, target.published, scales=target.scales, expected=target.expected)
    guess = _whole(target.expected)
    return RateQuery(
        release=target.name,
        release_digest=hashlib.sha256((release.folder / RELEASE_FILE).read_bytes()).hexdigest(),
        account=release.facts["account"],
        loss=loss,
        domain=program.domain,
        protection=program.protection,
        rules=program.rules,
        place=place,
        found=_whole(found),
        guess=guess,
        records=max(int(guess.sum()), 1),
        coarsening=target.coarsening,
        attacker_knows=f"the tables, how their errors were made, and {target.prior}",
    )


def _whole(counts: Floats) -> Integers:
    return np.array([whole_records(own) for own in counts])


def _check_known(release: Release, ledger: Ledger) -> None:
    """Refuse a release that this ledger did not settle: its reconstruction is public because it was published."""
    ledger.heed(sorted(release.folder.parent.glob(f"*/{RELEASE_FILE}")))
    entry = ledger.release(release.facts["release"])
    if entry.state is not State.SETTLED or not is_complete(release.folder, entry.written_digest):
        raise InvalidRelease(
            f"'{release.folder}' is not the release {entry.name} that the ledger knows",
            why="only what follows from a published release is public, and this one was not published as it stands",
            instead="name the release as it was published, or the ledger that it is booked in",
            where=Place(file=str(release.folder / RELEASE_FILE)),
        )


def check_publishable(target: Path) -> None:
    """Refuse to publish a rate of anything but a release: exact tables, and what is drawn, lead to no public rate."""
    if not (target / RELEASE_FILE).is_file():
        raise InvalidRequest(
            "a rate is to be published of something that is no release",
            why="what exact tables give away follows the records themselves, and noise on the rate would not cover it",
            instead="audit the folder of a release, or leave --publish-rates out",
            where=Place(file=str(target)),
        )
