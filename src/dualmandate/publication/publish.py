"""Publishing: the loss is spent first, then the data are opened, measured, written, and the secret is destroyed.

A release that is killed at any instant is taken up again by `resume`: its noise is a function of its secret and of its
data, so that it becomes the release it would have been, and its loss is counted once. Other data under the same secret
are refused. What depends on confidential values never decides whether this succeeds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.errors import CannotWrite, NotApproved, Refusal, ReleaseConflict
from dualmandate.ledger import Ledger, ReleaseEntry, ReleaseState, Request
from dualmandate.ledger.books import STEPS, RecordState
from dualmandate.ledger.chain import RELEASE_FILE, found_head
from dualmandate.ledger.durable import make_folders, sync_folder
from dualmandate.population import Confidential
from dualmandate.publication.costs import check_affordable
from dualmandate.publication.measuring import exact_totals, fingerprint, measure, seal_key, tabulation_key
from dualmandate.publication.release_folder import (
    SEALED,
    Measured,
    Standing,
    is_complete,
    seal_measurements,
    sealed_measurements,
    write_measurements,
    write_release,
)
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.reserving import heed_all, open_records, reserve
from dualmandate.publication.sources import Source, check_source, has_pages
from dualmandate.publication.states import state_of
from dualmandate.publication.tabulating import Tabulated, TabulationSpec, check_readable, tabulate
from dualmandate.publication.transcripts import transcribed

if TYPE_CHECKING:
    from dualmandate.publication.post_processing import PostProcessed

Told = Callable[[str], None] | None  # is told what is being done
HERE = "The records were tabulated and measured, and the tables made consistent, on the machine that published."
ESTIMATING_THERE = "estimating and making the tables consistent on the cluster, writing them"


@dataclass(frozen=True)
class PublicationRequest:
    """Who publishes, from which state of the data, for whom and what; `again` spends anew on the same pair."""

    by: str
    snapshot: str
    group: str | None = None
    purpose: str | None = None
    again: bool = False
    other_ledger: str | None = None  # why it may be, where another ledger has spent from the same source
    sign: Path | None = None  # the publisher's ssh key, where it is to be signed
    folders: tuple[Path, ...] = ()  # with further releases, beside those in the folder that it is written to
    unchecked: bool = False  # the records need not have been checked in their state, and the release says so


def publish(
    order: ReleaseSpec, source: Source, ledger: Ledger, *, out: Path, request: PublicationRequest, progress: Told = None
) -> Path:
    """Carry an approved order out, once; the folder of the release. Whatever can be refused is refused beforehand."""
    _check(order, source, ledger, out)
    spent = order.account, order.plan_digest, request.snapshot, order.charge, order.protection.unit
    asked = Request(*spent, request.by, request.group, request.purpose, request.again, unchecked=request.unchecked)
    if not request.unchecked:
        asked = replace(asked, checked=ledger.as_checked(_state(order, source, ledger, progress)))
    folders, other = [out, *request.folders], request.other_ledger
    entry = reserve(ledger, source, asked, folders=folders, other_ledger=other, sign=request.sign)
    return _carry_out(_Work(order, source, ledger, out, request.by, progress), entry)


def resume(
    order: ReleaseSpec,
    source: Source,
    ledger: Ledger,
    *,
    release: str,
    out: Path,
    by: str,
    unchecked: bool = False,
    progress: Told = None,
) -> Path:
    """Take up a release where it was left; one that is finished already is left as it is.

    Until it is bound to its records, these must be checked in the state they are in, unless it was begun `unchecked`.
    """
    entry = ledger.release(release)
    if unchecked and not entry.unchecked:
        raise ReleaseConflict(
            f"release {release} was not begun unchecked",
            why="a release says whether its records were checked as it said when its loss was set aside",
            instead="check the records, and resume it without that word",
        )
    if (entry.plan_digest, entry.account, entry.loss) != (order.plan_digest, order.account, order.charge):
        raise ReleaseConflict(
            f"release {release} is of another plan",
            why="a release carries out exactly the plan that it was reserved for",
            instead="name the plan of this release, or publish this plan as a release of its own",
        )
    if entry.state is ReleaseState.SETTLED:
        return _settled(ledger, entry, out, by)
    if not entry.state.is_active:
        raise ReleaseConflict(
            f"release {release} is {entry.state}",
            why="it was given up, and what was spent stays spent",
            instead="publish the plan anew",
        )
    _check(order, source, ledger, out)
    if not entry.unchecked and entry.fingerprint is None:
        ledger.check_state(_state(order, source, ledger, progress))
    return _carry_out(_Work(order, source, ledger, out, by, progress), entry)


def _state(order: ReleaseSpec, source: Source, ledger: Ledger, progress: Told) -> RecordState:
    """The state that the records are in now, as a check would have recorded it."""
    if progress is not None:
        progress("seeing whether these records were checked")
    spec = TabulationSpec(order.domain, order.protection, order.rules)
    return state_of(source, spec, ledger, progress=progress)


@dataclass(frozen=True, eq=False)
class _Work:
    order: ReleaseSpec
    source: Source
    ledger: Ledger
    out: Path
    by: str
    progress: Told

    def tell(self, words: str) -> None:
        if self.progress is not None:
            self.progress(words)

    @contextmanager
    def on_cluster(self, words: str) -> Iterator[None]:
        """Tell what the cluster does, and how much of it is done."""
        from dualmandate.publication.spark.session import watched

        self.tell(words)
        with watched(words, self.progress):
            yield


def _check(order: ReleaseSpec, source: Source, ledger: Ledger, out: Path) -> None:
    order.check()
    _check_account(order, ledger)
    by_workers = order.engine == "spark" and has_pages(source) and _pages_are_whole(order, source)
    check_readable(source, order.domain, protection=order.protection, rules=order.rules, pages=not by_workers)
    make_folders(out)
    if not os.access(out, os.W_OK | os.X_OK):
        raise CannotWrite(
            f"'{out}' cannot be written", why="you may not write there", instead="name a folder you may write to"
        )
    check_affordable(order, out)
    heed_all(ledger, source, [out])


def _pages_are_whole(order: ReleaseSpec, source: Source) -> bool:
    """Whether workers of a cluster read the pages of a source to their end; refused where they are damaged."""
    from dualmandate.publication.spark.release import check_pages

    check_source(source)
    return check_pages(order, source)


def _check_account(order: ReleaseSpec, ledger: Ledger) -> None:
    """Refuse a plan that was made for an account of this name in another ledger."""
    if order.account_identifier not in (None, ledger.account_identifier(order.account)):
        raise NotApproved(
            f"the plan was made for the account '{order.account}' of another ledger",
            why=f"it names the account {order.account_identifier}, and this ledger's is another one of that name",
            instead="name the ledger that it was planned for, or plan it again",
        )


def _carry_out(work: _Work, entry: ReleaseEntry) -> Path:
    final = work.out / entry.name
    try:
        _tidy(work)
        with _claimed(work.out, entry.name, measured=_is_measured(work.ledger, entry.name)) as draft:
            _check_own(work.ledger, entry.name, final)
            _check_active(work.ledger, entry.name)
            open_records(work.ledger, work.source, entry.name, by=work.by)
            known = work.ledger.release(entry.name).written_digest
            if not is_complete(final, known):
                digest = _make(work, entry, draft)
                _check_same(entry.name, known, digest)
                _check_active(work.ledger, entry.name)
                _put_in_place(draft, final)
                _reach(work, entry.name, ReleaseState.WRITTEN, digest)
                _check_first(work.ledger, final, digest)
        _reach(work, entry.name, ReleaseState.SETTLED)
        work.ledger.destroy_secret(entry.name, by=work.by)
    except Refusal as refusal:
        raise _resumable(refusal, work.ledger, entry) from None
    work.tell("published")
    return final


def _tidy(work: _Work) -> None:
    """Releases that are over keep no secret and no draft; one that was given up for another has both."""
    for entry in work.ledger.releases():
        if entry.state.is_active:
            continue
        if work.ledger.holds_secret(entry.name):
            work.ledger.destroy_secret(entry.name, by=work.by)
        if _draft(work.out, entry.name).exists():
            with suppress(ReleaseConflict), _claimed(work.out, entry.name):
                pass  # whoever still makes it will be told that it was given up


def _check_own(ledger: Ledger, release: str, final: Path) -> None:
    """Refuse to replace anything but what was written for this very release."""
    if final.exists() and found_head(final / RELEASE_FILE) != ledger.head_of(release):
        raise CannotWrite(
            f"'{final}' is there already, and is not this release",
            why="a release of another ledger may have its name, and nothing of others is overwritten",
            instead="name another folder, or move away what stands there",
        )


def _check_same(release: str, known: str | None, digest: str) -> None:
    """Refuse to publish two forms of one release."""
    if known is not None and known != digest:
        raise ReleaseConflict(
            f"release {release} was written before, and would now be written differently",
            why="its folder is gone or damaged, and this machine or these versions round its estimates otherwise",
            instead="put its folder back, or use the machine and the versions that it was written with",
        )


def _check_first(ledger: Ledger, final: Path, digest: str) -> None:
    """Take a release away again that another process, in another folder, has written first and otherwise."""
    try:
        _check_same(final.name, ledger.release(final.name).written_digest, digest)
    except ReleaseConflict:
        shutil.rmtree(final, ignore_errors=True)
        raise


def _check_active(ledger: Ledger, release: str) -> None:
    """Refuse to go on with a release that was given up meanwhile."""
    state = ledger.release(release).state
    if not (state.is_active or state is ReleaseState.SETTLED):
        raise ReleaseConflict(
            f"release {release} is {state}",
            why="it was given up for another while it was being made",
            instead="read the release that was published in its place",
        )


def _make(work: _Work, entry: ReleaseEntry, draft: Path) -> str:
    """Tabulate, bind the release to its data, measure, and write everything into the draft, each step durably.

    The SHA-256 of its `release.json`.
    """
    found = _measured_before(work, entry, draft)
    if found is not None:
        return _resumed_on_cluster(work, entry, draft, found) or _finished(work, entry, draft, found)
    if work.order.engine == "spark":
        return _make_on_cluster(work, entry, draft)
    work.tell("tabulating the records")
    # Handed over without a name here: it is gone as soon as it was measured.
    return _measure_and_write(work, entry, draft, _tabulated(work, entry), words=HERE)


def _tabulated(work: _Work, entry: ReleaseEntry) -> Confidential[Tabulated]:
    order, key = work.order, tabulation_key(work.ledger.secret(entry.name))
    return tabulate(
        work.source,
        order.domain,
        protection=order.protection,
        rules=order.rules,
        key=key,
        sparse=order.sparse,
        marginals=order.marginals,
    )


def _measure_and_write(
    work: _Work, entry: ReleaseEntry, draft: Path, tabulated: Confidential[Tabulated], *, words: str
) -> str:
    """The steps of `_make` where the whole histogram comes here; no caller keeps it."""
    order, ledger = work.order, work.ledger
    secret = ledger.secret(entry.name)
    mac = fingerprint(order, tabulated, secret)
    ledger.bind(entry.name, mac, by=work.by)
    work.tell("measuring")
    totals = exact_totals(order, tabulated)
    if order.technology is None:
        found = Measured(tuple(measure(order, tabulated, secret, mac=mac)), totals, words)
    else:
        found = Measured((), totals, words, transcribed(order, tabulated, secret, mac=mac))
    del tabulated, secret  # nothing below may look at what is confidential, and memory holds it no longer
    _keep_measured(work, entry, draft, found)
    return _finished(work, entry, draft, found)


def _keep_measured(work: _Work, entry: ReleaseEntry, draft: Path, found: Measured) -> None:
    """Bring what was measured to the disk, sealed under the secret of the release, and say so in the ledger."""
    write_measurements(draft, work.order, found.rows, found.transcript)
    seal_measurements(draft, found, key=_seal_key(work, entry))
    _reach(work, entry.name, ReleaseState.MEASURED)


def _measured_before(work: _Work, entry: ReleaseEntry, draft: Path) -> Measured | None:
    """What the draft holds of a release that the ledger says is measured; None where it must be measured again."""
    if not _is_measured(work.ledger, entry.name):
        return None
    found = sealed_measurements(draft, work.order, key=_seal_key(work, entry))
    if found is None:
        _clear(draft, _replaced(work.out / entry.name), kept=())
    return found


def _is_measured(ledger: Ledger, release: str) -> bool:
    return ledger.release(release).state in STEPS[STEPS.index(ReleaseState.MEASURED) :]


def _seal_key(work: _Work, entry: ReleaseEntry) -> bytes:
    """Of the secret, the plan, the records and the sampler: measurements of any others are not taken for its own."""
    mac = work.ledger.release(entry.name).fingerprint
    assert mac is not None  # it was bound before it was measured
    return seal_key(work.order, work.ledger.secret(entry.name), mac=mac)


def _finished(work: _Work, entry: ReleaseEntry, draft: Path, found: Measured) -> str:
    """Estimates and tables of what was measured, all of it public, and everything written."""
    order, standing = _told(work.order, found.words), _standing(work.ledger, entry)
    work.tell("estimating, making the tables consistent, writing them")
    rows, transcript = found.rows, found.transcript
    return write_release(draft, order, rows, totals=found.totals, entry=entry, standing=standing, transcript=transcript)


def _resumed_on_cluster(work: _Work, entry: ReleaseEntry, draft: Path, found: Measured) -> str | None:
    """The same in subtrees on a cluster, where the release was begun so; what was measured is sent there."""
    if work.order.engine != "spark" or work.order.marginals is not None:
        return None
    from dualmandate.publication.spark import release as there

    division = there.divided(work.order)
    if not isinstance(division, there.SubtreeDivision):
        return None
    with (
        work.on_cluster(ESTIMATING_THERE),
        there.measured_before(division, found.rows, found.totals, folder=draft) as sent,
        sent.post_processed() as made,
    ):
        return _written(work, entry, draft, found, made)


def _written(work: _Work, entry: ReleaseEntry, draft: Path, found: Measured, made: PostProcessed) -> str:
    order, standing = _told(work.order, found.words), _standing(work.ledger, entry)
    return write_release(draft, order, (), totals=found.totals, entry=entry, standing=standing, made=made)


def _make_on_cluster(work: _Work, entry: ReleaseEntry, draft: Path) -> str:
    """The same on a cluster: in subtrees where the tables nest; else noise is drawn there where rows are counted so."""
    from dualmandate.publication.spark import release as there

    ledger, key = work.ledger, tabulation_key(work.ledger.secret(entry.name))
    if work.order.marginals is not None:
        with work.on_cluster("counting marginals of the records on the cluster"):
            words, *counted = there.marginals_on_cluster(work.order, work.source, key=key)
        # Handed over without a name here, too.
        return _measure_and_write(work, entry, draft, counted.pop(), words=f"{words}; {there.MARGINALS}")
    division = there.divided(work.order)
    with ExitStack() as until:
        with work.on_cluster("tabulating the records on the cluster"):
            histogram = until.enter_context(there.counted_on_cluster(work.order, work.source, key=key))
        del key  # a worker that reads its part again has it from the cluster
        if not (isinstance(division, there.SubtreeDivision) or there.is_counted_in_rows(work.order)):
            words = f"{histogram.words}; {there.NOT_IN_SUBTREES.format(why=division)}"
            return _measure_and_write(work, entry, draft, histogram.tabulated(), words=words)
        secret = ledger.secret(entry.name)
        mac = histogram.fingerprint(secret)
        ledger.bind(entry.name, mac, by=work.by)
        with work.on_cluster("measuring on the cluster"):
            if isinstance(division, there.SubtreeDivision):
                asked = there.measured_on_cluster(division, histogram, secret, mac=mac, folder=draft)
                found: there.ClusterMeasurements | there.RowValues = until.enter_context(asked)
                words = division.words
            else:
                found = there.rows_on_cluster(work.order, histogram, secret, mac=mac, folder=draft)
                words = there.IN_BLOCKS.format(why=division)
            # A worker may have died and its part been read again: what was measured is what was bound, or is refused.
            ledger.bind(entry.name, histogram.fingerprint(secret), by=work.by)
        del secret
        measured = Measured(tuple(found.measurements), found.totals, f"{histogram.words}; {words}")
        _keep_measured(work, entry, draft, measured)
        if not isinstance(found, there.ClusterMeasurements):
            return _finished(work, entry, draft, measured)
        with work.on_cluster(ESTIMATING_THERE), found.post_processed() as made:
            return _written(work, entry, draft, measured, made)


def _standing(ledger: Ledger, entry: ReleaseEntry) -> Standing:
    return Standing(ledger.head_of(entry.name), ledger.approvals_of(entry.name))


def _told(order: ReleaseSpec, words: str) -> ReleaseSpec:
    """The order, with where it was carried out among its facts."""
    return replace(order, facts={**order.facts, "engine": words})


def _reach(work: _Work, release: str, state: ReleaseState, digest: str | None = None) -> None:
    """Record a step that was not recorded yet."""
    _check_active(work.ledger, release)
    if STEPS.index(work.ledger.release(release).state) < STEPS.index(state):
        work.ledger.advance(release, state, by=work.by, digest=digest)


@contextmanager
def _claimed(out: Path, release: str, *, measured: bool = False) -> Iterator[Path]:
    """The folder in which a release is made, for one process at a time; one that is killed lets go.

    What a killed one left goes, but for measurements of a release that was `measured`.
    """
    draft, final = _draft(out, release), out / release
    handles: list[int] = []
    try:
        _hold(draft, final, handles)
        _clear(draft, _replaced(final), kept=SEALED if measured else ())
        yield draft
    finally:
        with suppress(OSError):  # it is gone, or holds what a resumed release replaces
            draft.rmdir()
        for handle in handles:
            os.close(handle)


def _draft(out: Path, release: str) -> Path:
    return out / f".{release}.draft"


def _hold(draft: Path, final: Path, handles: list[int]) -> None:
    """Lock the draft, and the release where it stands: who has put it there holds it until the ledger knows."""
    try:
        draft.mkdir(mode=0o700, exist_ok=True)
        for folder in (draft, final) if final.is_dir() else (draft,):
            handles.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
            fcntl.flock(handles[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ReleaseConflict(
            f"release {final.name} is being made by another process",
            why="one process at a time writes a release",
            instead="wait for it to end",
        ) from None
    except OSError as error:
        raise CannotWrite.because(error, draft) from None


def _clear(draft: Path, replaced: Path, kept: Collection[str]) -> None:
    """Away with what a killed process left: everything else is made again."""
    try:
        for path in draft.iterdir():
            if path.name in kept:
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if replaced.exists():
            shutil.rmtree(replaced)
    except OSError as error:
        raise CannotWrite.because(error, draft) from None


def _replaced(final: Path) -> Path:
    """Where a folder goes that is to be removed: half removed it must not bear the name of a release."""
    return final.with_name(f".{final.name}.replaced")


def _put_in_place(draft: Path, final: Path) -> None:
    """The draft under its own name, complete or not there; a folder that a killed process had put there is replaced."""
    try:
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o777 & ~mask)
        if final.exists():
            final.rename(_replaced(final))
        draft.rename(final)
        sync_folder(final.parent)
        if _replaced(final).exists():
            shutil.rmtree(_replaced(final))
    except OSError as error:
        raise CannotWrite.because(error, final) from None


def _resumable(refusal: Refusal, ledger: Ledger, entry: ReleaseEntry) -> Refusal:
    """The refusal, with what became of the release that was under way."""
    state = ledger.release(entry.name).state
    if not state.is_active:
        return refusal
    spent = "set aside" if state is ReleaseState.RESERVED else "spent"
    return refusal.advising(f"{refusal.instead}; then resume release {entry.name}, whose loss is {spent}")


def _settled(ledger: Ledger, entry: ReleaseEntry, out: Path, by: str) -> Path:
    if not entry.secret_destroyed:
        ledger.destroy_secret(entry.name, by=by)
    final = out / entry.name
    if not is_complete(final, entry.written_digest):
        raise ReleaseConflict(
            f"release {entry.name} is settled, and '{final}' does not hold it",
            why="its secret is destroyed, so that it cannot be made again",
            instead="name the folder that it was written to",
        )
    return final
