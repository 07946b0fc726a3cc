"""Counts as lists of people, and the keys by which such lists are linked: levels as declared, then coarser ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Integers
from dualmandate.audit.linkage.linking import Keys, Reidentification, judge, put_names
from dualmandate.errors import InvalidRequest
from dualmandate.population import Attribute, Domain

if TYPE_CHECKING:
    import pyarrow

PLACE, PERSON, PROVED = "@place", "@person", "@proved"  # columns beside the attributes, which have no such names
BIN = 5  # levels of an ordered attribute that are linked as one, where no grouping is declared


@dataclass(frozen=True, eq=False)
class CoarserAttribute:
    """An attribute in groups: `assignment[i]` is the group of level i; shape (size,)."""

    name: str
    attribute: str
    assignment: Integers = field(repr=False)


@dataclass(frozen=True, eq=False)
class Stages:
    """By which columns lists are linked, stage after stage, and how the coarser columns are made."""

    stages: tuple[tuple[str, ...], ...]
    coarser: Mapping[str, CoarserAttribute] = field(repr=False)

    def keys(self, secret: Sequence[str]) -> Keys:
        """The stages as the keys of a linkage."""
        return Keys(PLACE, self.stages, tuple(secret), PERSON)

    def added(self, people: pyarrow.Table) -> pyarrow.Table:
        """People with a column for every coarser key; what is not there stays so."""
        import pyarrow

        for name, each in self.coarser.items():
            groups = pyarrow.array(each.assignment)
            people = people.append_column(name, groups.take(people.column(each.attribute).combine_chunks()))
        return people

    def words(self, place: str | None) -> str:
        """What an attacker must know of somebody; `place` is what a place is called, None where there is one."""
        listed = ", then ".join(" × ".join(stage) for stage in self.stages)
        return listed if place is None else f"{place} and {listed}"


def stages_of(domain: Domain, known: Sequence[str]) -> Stages:
    """First the attributes as they are, then all of them one step coarser, as long as one can be.

    An attribute takes the groupings that are declared for it, finest first; an ordered one without any takes bins of
    five levels.
    """
    ladders = {name: _ladder(domain, domain.attribute(name)) for name in known}
    steps = zip_longest(*([each.name for each in ladder] for ladder in ladders.values()))
    stages, last = [tuple(known)], list(known)
    for step in steps:
        last = [new or old for new, old in zip(step, last, strict=True)]
        stages.append(tuple(last))
    return Stages(tuple(stages), {each.name: each for ladder in ladders.values() for each in ladder})


def _ladder(domain: Domain, attribute: Attribute) -> list[CoarserAttribute]:
    declared = next((each for each in domain.hierarchies if each.attribute == attribute.name), None)
    if declared is not None:
        found = []
        for grouping in reversed(declared.groupings):
            alone = grouping.size + np.arange(attribute.size)  # a level in no group stands for itself
            assigned = np.where(grouping.assignment < 0, alone, grouping.assignment)
            found.append(CoarserAttribute(grouping.name, attribute.name, assigned))
        return found
    numbers = attribute.size - (attribute.missing is not None)
    if not attribute.ordered or numbers <= BIN:
        return []
    bins = np.arange(attribute.size) // BIN
    bins[numbers:] = bins.max() + 1
    return [CoarserAttribute(f"{attribute.name} in bins of {BIN}", attribute.name, bins)]


def listed(counts: Integers, domain: Domain, *, proved: NDArray[np.bool_] | None = None) -> pyarrow.Table:
    """One row a record: its place, its person (a number) and the position of each level.

    `counts` has shape (places, cells); `proved`, shape (places,), says whose every record is proved.
    """
    import pyarrow

    places, cells = np.nonzero(counts)
    times = counts[places, cells]
    columns = dict(zip(domain.names, np.unravel_index(cells, domain.shape), strict=True))
    found = {name: np.repeat(levels.astype(np.int64), times) for name, levels in columns.items()}
    homes = np.repeat(places, times)
    more = {PLACE: homes, PERSON: np.arange(len(homes)), PROVED: np.zeros(len(homes), dtype=np.bool_)}
    if proved is not None:
        more[PROVED] = proved[homes]
    return pyarrow.table({**more, **found})


def reidentify_counts(
    found: Integers,
    truth: Integers,
    domain: Domain,
    *,
    secret: Sequence[str],
    proved: NDArray[np.bool_] | None = None,
) -> Reidentification:
    """Names for the records of reconstructed counts, by an attacker who knows everything of everybody but the secret.

    `found` and `truth` have shape (places, cells): what was reconstructed and what is true; `secret` are attributes of
    `domain`, all others are the key. `proved`, shape (places,), says of which places every record is proved. For
    example, over generated blocks and what `reconstruct` gives of each:

        found = np.array([each.counts for each in solved])
        proved = np.array([each.unique for each in solved])
        links = reidentify_counts(found, truth, generated_blocks.domain(), secret=("hispanic", "race"), proved=proved)
        links.nonmodal_uniques.precision, links.nonmodal_uniques.guesses_on_links   # Rate; (modal, proportional)
    """
    stages = stages_of(domain, known_beside(domain, secret))
    keys = stages.keys(secret)
    names = stages.added(listed(truth, domain))
    claims = put_names(stages.added(listed(found, domain, proved=proved)), names, keys, proved=PROVED)
    return judge(claims, names, keys)


def known_beside(domain: Domain, secret: Sequence[str]) -> tuple[str, ...]:
    """All attributes but the secret; refused where nothing is secret, or nothing left."""
    for name in secret:
        domain.attribute(name)
    known = tuple(name for name in domain.names if name not in secret)
    if not known or not secret:
        raise InvalidRequest(
            f"an attacker who knows {'nothing' if not known else 'everything'} of a record",
            why="names are put to records by what is known, to learn what is not",
            instead=f"name some of {', '.join(domain.names)} as the secret, not all",
        )
    return known
