"""Re-identification: names for the records behind published tables, always beside those who guess.

Records are reconstructed, linked to a file of names by place and whatever both files hold, and judged by who knows.
Without a file of names, an attacker is assumed who has one as good as the agency's own, but for the secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.effort import Effort
from dualmandate.audit.equations import Integers
from dualmandate.audit.finding import Baseline, Finding, Rate, Reference
from dualmandate.audit.linkage.linking import (
    PROVED,
    Claims,
    LinkageCounts,
    Linker,
    Reidentification,
    Stages,
    judge,
    known_beside,
    listed,
    put_names,
    stages_of,
)
from dualmandate.audit.reconstruction.exact import AT_ONCE, reconstruct, uncovered
from dualmandate.audit.reconstruction.noisy import most_likely, whole_records
from dualmandate.audit.tables import ExactTables, NoisyTables, opened
from dualmandate.population import Confidential, Domain
from dualmandate.publication.wall import guarded

if TYPE_CHECKING:
    import pyarrow

Method = Literal["exact", "splink"]
METHODS: dict[Method, str] = {
    "exact": "equal keys",
    "splink": "probabilities of agreement (Fellegi and Sunter's weights, estimated by splink)",
}
AS_GOOD = "of everybody, from a file as good as the agency's own"
UNIQUES = "nonmodal uniques (alone with their key in their place, and unlike most of it)"
GUESSERS = "modal and proportional guesser, who name a value for everybody"
GUESSER = ("modal guesser, of what is most frequent in the place", "proportional guesser, by the shares of the place")
PROVED_UNIQUES = "nonmodal uniques of places whose every record is proved"


@dataclass(frozen=True, eq=False)
class Names:
    """A file of named people, in positions of levels: a row a name, with the place and the attributes that it has.

    `left_out` says which rows could not be used, in words; None where all could.
    """

    file: str
    people: pyarrow.Table = field(repr=False)
    known: tuple[str, ...]
    left_out: str | None = None


@dataclass(frozen=True, eq=False)
class Linkage:
    """Published tables whose records are to be given names.

    `judges` are the records of those who know, named like the outside file, by whose they are. Without `outside`, names
    are taken from the truths of the tables. `published` says that the tables are: then links alone tell nothing
    confidential.
    """

    tables: ExactTables | NoisyTables
    domain: Domain  # of one place
    secret: tuple[str, ...]
    place: str | None = None  # what a place is called; None where there is one
    outside: Names | None = None
    judges: Mapping[Reference, Confidential[pyarrow.Table]] = field(default_factory=dict, repr=False)
    published: bool = True
    method: Method = "exact"

    @property
    def name(self) -> str:
        """What is linked, in words."""
        noise = f" ({self.tables.protection})" if isinstance(self.tables, NoisyTables) else ""
        return f"{self.tables.name}{noise}"

    @property
    def stages(self) -> Stages:
        """By what records and names are linked."""
        known = known_beside(self.domain, self.secret) if self.outside is None else self.outside.known
        return stages_of(self.domain, known)


@dataclass(frozen=True, eq=False)
class ReconstructedCounts:
    """Whole counts of the records behind tables, shape (places, cells), and for which places they are proved.

    `left_open` says where no whole file was found, in words; None where one was everywhere.
    """

    counts: Integers = field(repr=False)
    proved: NDArray[np.bool_] = field(repr=False)  # (places,)
    left_open: str | None = None


def reconstructed_counts(tables: ExactTables | NoisyTables, effort: Effort) -> ReconstructedCounts:
    """Of exact tables one file that has them; of noisy ones the most likely file, in whole numbers."""
    if isinstance(tables, NoisyTables):
        likely = most_likely(tables.equations, tables.published, scales=tables.scales, expected=tables.expected)
        counts = np.array([whole_records(each) for each in likely])
        return ReconstructedCounts(counts, np.zeros(len(likely), dtype=np.bool_))
    found = np.zeros((len(tables.places), tables.equations.size), dtype=np.int64)
    proved = np.zeros(len(tables.places), dtype=np.bool_)
    unbounded = uncovered(tables.equations, tables.hidden, tables.impossible)
    chosen = np.flatnonzero(~np.broadcast_to(unbounded, len(tables.places)))
    solved = reconstruct(
        tables.equations,
        tables.values[chosen],
        hidden=None if tables.hidden is None else tables.hidden[chosen],
        impossible=tables.impossible,
        variability=False,
        seconds=effort.seconds,
        workers=effort.workers,
    )
    late = 0
    for done, (place, each) in enumerate(zip(chosen.tolist(), solved, strict=True), start=1):
        found[place] = each.least if each.counts is None else each.counts
        proved[place] = each.unique
        late += each.counts is None
        if done % AT_ONCE == 0:
            effort.count(f"reconstructing places of {tables.name} for names", done, len(chosen))
    bare = len(tables.places) - len(chosen)
    words = (
        (f"in {late:,} places no file was found in time: only records proved there were linked", late),
        (f"in {bare:,} places some cells are counted by no number that is shown: nobody was linked there", bare),
    )
    return ReconstructedCounts(found, proved, "; ".join(said for said, places in words if places) or None)


@dataclass(frozen=True)
class Reidentify:
    """Names for reconstructed records, linked by what both files hold."""

    effort: Effort = field(default_factory=Effort)
    name: str = "re-identification"
    needs: str = "published counts, and a file of names or the records themselves"

    def run(self, target: Linkage, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        """Putative and confirmed rates and precision, for everybody and for those unlike most of their place."""
        self.effort.say(f"linking the records of {target.name} to names")
        found, stages = reconstructed_counts(target.tables, self.effort), target.stages
        records = stages.added(listed(found.counts, target.domain, proved=found.proved))
        linked = partial(
            put_names, records, keys=stages.keys(target.secret), linker=_linker(target, stages), proved=PROVED
        )
        findings = guarded(lambda: tuple(self._found(target, stages, linked)), name=target.name)
        if found.left_open is None:
            return findings
        return tuple(
            replace(each, partial="; ".join(filter(None, (each.partial, found.left_open)))) for each in findings
        )

    def _found(self, target: Linkage, stages: Stages, linked: Any) -> Iterator[Finding]:
        keys, make = stages.keys(target.secret), partial(self._finding, target, stages)
        if target.outside is None:
            for reference, truth in opened(target.tables.truths).items():
                people = stages.added(listed(truth, target.domain))
                claims = linked(people)
                yield from _links(target, claims, partial(make, reference))
                yield from _judged(target, judge(claims, people, keys), partial(make, reference))
            return
        claims = linked(stages.added(target.outside.people))
        if target.published:
            yield from _links(target, claims, partial(make, "outside"))
        for reference, box in target.judges.items():
            if not target.published:
                yield from _links(target, claims, partial(make, reference))
            people = stages.added(box.open_for("judging links to names"))
            yield from _judged(target, judge(claims, people, keys), partial(make, reference))

    def _finding(
        self, target: Linkage, stages: Stages, reference: Reference, claim: str, success: Rate, *guesses: Baseline
    ) -> Finding:
        whose = AS_GOOD if target.outside is None else f"of the people in {target.outside.file}"
        return Finding(
            attack=self.name,
            claim=claim,
            success=success,
            baselines=guesses,
            attacker_knows=f"the tables, and {stages.words(target.place)} {whose}; linked by {METHODS[target.method]}",
            coarsening=target.tables.coarsening,
            reference=reference,
            partial=None if target.outside is None else target.outside.left_out,
        )


def _linker(target: Linkage, stages: Stages) -> Linker | None:
    if target.method == "exact":
        return None
    from dualmandate.audit.linkage.probabilistic import probabilistic

    return probabilistic(target.domain, stages)


def _links(target: Linkage, claims: Claims, make: Any) -> Iterator[Finding]:
    names = claims.names
    if names:
        yield make(
            f"putative rate: names that are linked to a record of {target.name}",
            Rate(claims.putative, names),
            Baseline("links by chance, to records like those of people everywhere", Rate(claims.by_chance, names)),
            Baseline(GUESSERS, Rate(names, names)),
        )


def _judged(target: Linkage, found: Reidentification, make: Any) -> Iterator[Finding]:
    uniques = found.nonmodal_uniques
    confirmed, precision = _rates(target, "names", found.everybody, make)
    yield from (*confirmed, *precision)
    if uniques.putative_rate is not None:
        yield make(
            f"putative rate: {UNIQUES} that are linked to a record of {target.name}",
            uniques.putative_rate,
            Baseline(GUESSERS, Rate(uniques.names, uniques.names)),
        )
    confirmed, precision = _rates(target, UNIQUES, uniques, make)
    yield from (*confirmed, *precision)
    yield from _rates(target, PROVED_UNIQUES, found.proved_uniques, make)[1]


def _rates(target: Linkage, who: str, group: LinkageCounts, make: Any) -> tuple[list[Finding], list[Finding]]:
    """The confirmed rate and the precision for some people, beside guessers who know the shares of every place.

    Each is empty where there is nobody to count.
    """
    secret = " and ".join(target.secret)
    claims = (
        (
            f"confirmed rate: {who} whose {secret} is told rightly from {target.name}",
            group.confirmed_rate,
            group.guesses,
        ),
        (
            f"precision: links of {who} to records of {target.name} that tell {secret} rightly",
            group.precision,
            group.guesses_on_links,
        ),
    )
    confirmed, precision = (
        [make(claim, success, *(Baseline(who, each) for who, each in zip(GUESSER, guesses, strict=True)))]
        if success is not None and guesses is not None
        else []
        for claim, success, guesses in claims
    )
    return confirmed, precision
