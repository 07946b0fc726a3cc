"""How many records change together: against every file of a few records, and against numbers from the literature."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from scipy import optimize
from scipy.optimize import milp

from dualmandate.errors import InvalidInvariant
from dualmandate.population import Attribute, Domain, Invariant, Neighbors, Protection, StructuralZero
from dualmandate.population.moves import Together
from dualmandate.population.protection import _crossing, cross, group_labels, steps

MOST_RECORDS = 5


def domain_of(*sizes: int, zeros: tuple[StructuralZero, ...] = ()) -> Domain:
    letters = "abcd"[: len(sizes)]
    return Domain(
        tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in zip(letters, sizes, strict=True)),
        structural_zeros=zeros,
    )


def margins(*names: str) -> tuple[Invariant, ...]:
    return tuple(Invariant(name, tuple(name)) for name in names)


def found(domain: Domain, totals: tuple[Invariant, ...]) -> Together:
    return _crossing(domain, totals)[1]


def by_every_file(domain: Domain, totals: tuple[Invariant, ...], records: int) -> int:
    """The smallest m that links all files of up to so many records, written out; kinds of cells count as one cell."""
    cells = [
        np.array(cell)
        for cell, can in zip(product(*map(range, domain.shape)), domain.possible_cells(), strict=True)
        if can
    ]
    signatures = set()
    for cell in cells:
        told = []
        for total in totals:
            groups = [labels[cell[axis]] for axis, labels in group_labels(domain, total).items()]
            told.append(None if any(group < 0 for group in groups) else tuple(groups))
        signatures.add(tuple(told))
    kinds = sorted(signatures, key=repr)
    needed = 1
    for count in range(2, records + 1):
        alike: dict[object, list[tuple[int, ...]]] = {}
        for file in combinations_with_replacement(range(len(kinds)), count):
            counted = tuple(sorted(repr((place, kinds[kind][place])) for kind in file for place in range(len(totals))))
            alike.setdefault(counted, []).append(file)
        for files in alike.values():
            vectors = np.array([np.bincount(file, minlength=len(kinds)) for file in files])
            apart = np.abs(vectors[:, None] - vectors[None]).sum(axis=2) // 2
            reached, needed_here = {0}, 0
            while len(reached) < len(files):  # the widest gap on the way to everybody: a smallest spanning tree
                outside = [place for place in range(len(files)) if place not in reached]
                gap, nearest = min((apart[one, other], other) for one in reached for other in outside)
                reached.add(nearest)
                needed_here = max(needed_here, int(gap))
            needed = max(needed, needed_here)
    return needed


DIAGONAL = tuple(StructuralZero.of({"a": str(level), "b": str(level)}) for level in range(3))


@pytest.mark.parametrize(
    ("domain", "totals", "records"),
    [
        (domain_of(2, 2), margins("a", "b"), 2),
        (domain_of(3, 4), margins("a", "b"), 2),
        (domain_of(2, 2, 2), margins("a", "b"), 2),  # c alone changes, but a and b only together
        (domain_of(3, 3, zeros=DIAGONAL), margins("a", "b"), 3),  # around the triangle
        (domain_of(2, 2, 2), margins("ab", "ac", "bc"), 4),  # the attack
        (domain_of(2, 2, 2), margins("a", "b", "c"), 2),
        (domain_of(2, 2, 2), margins("ab", "bc"), 2),
        (domain_of(2, 2, 2), margins("ab", "c"), 2),
        (domain_of(3, 2), margins("a", "b", "ab"), 1),  # every cell is known: nothing can change
        (domain_of(3, 2, 2), margins("a", "ab", "b"), 1),  # a and b are known of everybody, and c changes alone
        (domain_of(2, 1, 2), margins("a", "c", "ab", "bc"), 2),
        (domain_of(2, 2, 3), margins("ab", "ac", "bc"), 4),
        (domain_of(2, 3, 3), margins("ab", "ac", "bc"), 6),  # the Graver basis of 3 × 3, lifted (Sturmfels 1996)
        (domain_of(2, 2, 2, 2), margins("abc", "abd", "acd", "bcd"), 8),  # one move alone: the parity of all four
        (domain_of(400, 300), margins("a", "b"), 2),
        (domain_of(4000, 300, 20, 2), margins("ab", "bc", "cd"), 2),  # a chain, of a size that is not written out
    ],
)
def test_known_numbers(domain: Domain, totals: tuple[Invariant, ...], records: int) -> None:
    assert found(domain, totals) == Together(records, records)


@pytest.mark.parametrize("seed", range(40))
def test_against_every_file(seed: int) -> None:
    draws = np.random.default_rng(seed)
    sizes = [(2, 2), (3, 3), (2, 3), (2, 2, 2)][int(draws.integers(4))]
    letters = "abc"[: len(sizes)]
    zeros: tuple[StructuralZero, ...] = ()
    if draws.random() < 0.5:
        drawn = [{name: str(draws.integers(size)) for name, size in zip(letters, sizes, strict=True)} for _ in range(3)]
        zeros = tuple(StructuralZero.of(cell) for cell in drawn[: int(draws.integers(1, 4))])
    domain = domain_of(*sizes, zeros=zeros)
    totals = []
    for number in range(int(draws.integers(2, 4))):
        by = tuple(name for name in letters if draws.random() < 0.5)
        kept = {
            name: tuple(str(level) for level in range(size) if draws.random() < 0.7)
            for name, size in zip(letters, sizes, strict=True)
        }
        where = tuple((name, levels) for name, levels in kept.items() if levels and draws.random() < 0.3)
        totals.append(Invariant(f"total {number}", by, where))
    if any(
        cross(domain, group_labels(domain, one), group_labels(domain, other)) for one, other in combinations(totals, 2)
    ):
        needed = found(domain, tuple(totals))
        assert needed.enough == needed.least  # all of these are small
        assert by_every_file(domain, tuple(totals), MOST_RECORDS) == needed.least


def test_a_number_too_small_is_refused_with_the_number_that_is_needed() -> None:
    domain, totals = domain_of(2, 2, 2), margins("ab", "ac", "bc")

    def stated(records: int | None) -> Protection:
        return Protection(neighbors=Neighbors.REPLACE_ONE, invariants=totals, records_changing_together=records)

    for records in (1, 2, 3):
        with pytest.raises(InvalidInvariant, match=f"records_changing_together = {records} is less") as caught:
            steps(domain, stated(records))
        assert "records_changing_together = 4 or more" in caught.value.instead
    assert steps(domain, stated(4)).established
    with pytest.raises(InvalidInvariant, match="cross") as caught:
        steps(domain, stated(None))
    assert "4 or more" in caught.value.instead


def test_what_is_not_established_is_bounded() -> None:
    """Three margins of 3 × 3 × 3 have 795 primitive moves and need 6 (Diaconis and Sturmfels 1998): not worked out."""
    # Files with records in two groups of one attribute alone are among all files: 2 × 3 × 3 needs 6.
    for sizes in ((3, 3, 3), (30, 20, 10), (2000, 2000, 2)):
        assert found(domain_of(*sizes), margins("ab", "ac", "bc")) == Together(6, None)


def test_a_ring_of_margins_needs_four() -> None:
    """A record of any cell can change with one other, and yet some files of four have none nearer [Geiger 2006]."""
    assert found(domain_of(3, 3, 3, 3), margins("ab", "bc", "cd", "ad")) == Together(4, None)


def test_of_cells_that_are_all_alike_one_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An integer program for each of many cells took a minute of a processor."""
    solved = list[object]()

    def counted(*words: object, **named: object) -> object:
        solved.append(words)
        return milp(*words, **named)

    monkeypatch.setattr(optimize, "milp", counted)
    every = margins(*map("".join, combinations("abcd", 2)))
    assert found(domain_of(12, 10, 8, 2), every) == Together(4, None)
    assert len(solved) == 1


def test_long_cycles_are_bounded_from_both_sides() -> None:
    """Two margins of n × n where only a band can occur: around the ring of n, and never more than there are rows."""
    size = 9
    band = [
        {"a": str(row), "b": [str(column) for column in range(size) if (column - row) % size > 1]}
        for row in range(size)
    ]
    ring = domain_of(size, size, zeros=tuple(StructuralZero.of(cell) for cell in band))
    assert found(ring, margins("a", "b")) == Together(size, size)
