"""What one unit can change: compared with every pair of neighbors of a small domain, one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.measured import direct, optimized

from dualmandate.mechanism import GEOMETRIC, Noise, TableRows, changes, optimize_strategy
from dualmandate.mechanism.changes import Change, Measured, largest_changes, loss_of
from dualmandate.mechanism.strategy.strategy import NoiseName
from dualmandate.population import Attribute, Domain, Invariant, Neighbors, PrivacyMeasure, Protection, StructuralZero
from dualmandate.workload import Tabulation, Workload

DOMAIN = Domain(
    (Attribute("age", ("0-17", "18-64", "65+")), Attribute("sex", ("f", "m")), Attribute("works", ("n", "y")))
)
PLAIN, REPLACING = Protection(), Protection(neighbors=Neighbors.REPLACE_ONE)
PROTECTIONS = {
    "add or remove": PLAIN,
    "two records": Protection(identifier="name", most_records_per_unit=2),
    "replace": REPLACING,
    "exact": Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("by sex", ("sex",)),)),
    "crossing": Protection(
        neighbors=Neighbors.REPLACE_ONE,
        invariants=(Invariant("by sex", ("sex",)), Invariant("by work", ("works",))),
        records_changing_together=2,
    ),
}
WORKLOAD = Workload.from_tabulations(
    DOMAIN,
    [
        Tabulation.of("age by sex", ("age", "sex")),
        Tabulation.of("at work", ("works",), weights={"age": {"0-17": "0.5", "18-64": "1"}}),
        Tabulation.of("all"),
    ],
)
Integers = NDArray[np.int64]


def groups_of(kind: str, protection: Protection) -> list[Measured]:
    """Two groups: all of it in one way, and the ages once more."""
    if kind == "strategy":
        made = optimized(optimize_strategy(WORKLOAD, "laplace", protection=protection).exact, protection)
    else:
        made = direct(WORKLOAD, protection, PrivacyMeasure.PURE_DP, every_cell=kind == "cells")
    ages = Workload.from_tabulations(DOMAIN, [Tabulation.of("ages", ("age",))])
    other = direct(ages, protection, PrivacyMeasure.PURE_DP)
    return [(each.rows, each.noises(Fraction(1))) for each in (made, other)]


def neighbors(protection: Protection) -> Iterator[Integers]:
    """Every difference of two histograms that are neighbors."""
    cells = np.eye(DOMAIN.size, dtype=np.int64)
    if protection.neighbors is Neighbors.ADD_OR_REMOVE:
        single = [*cells, np.zeros(DOMAIN.size, dtype=np.int64)]
    else:
        single = [a - b for a, b in product(cells, cells)]
    records = protection.most_records_per_unit * protection.records_together
    for chosen in combinations_with_replacement(single, records):
        moved = np.sum(chosen, axis=0)
        table = moved.reshape(DOMAIN.shape)
        kept = {"sex": table.sum(axis=(0, 2)), "works": table.sum(axis=(0, 1))}
        if not any(kept[each.by[0]].any() for each in protection.invariants):
            yield moved


def shifted(groups: list[Measured], moved: Integers) -> Counter[tuple[Noise, int]]:
    """How many rows of a noise a difference shifts by how much."""
    found: Counter[tuple[Noise, int]] = Counter()
    for rows, noises in groups:
        sizes = np.abs(rows.count(moved.reshape(DOMAIN.shape)))
        found.update((noises[kind], int(size)) for kind, size in zip(rows.kinds(), sizes, strict=True))
    return Counter({shift: count for shift, count in found.items() if shift[1]})


def covers(change: Change, found: Counter[tuple[Noise, int]]) -> bool:
    """Whether the n-th largest shift of each noise is at least as large."""
    for noise in {noise for noise, _ in found}:
        large, small = (
            sorted((size for (other, size), count in each for _ in range(count) if other == noise), reverse=True)
            for each in (change, found.items())
        )
        if len(small) > len(large) or any(one > other for one, other in zip(small, large, strict=False)):
            return False
    return True


@pytest.mark.parametrize("name", PROTECTIONS)
@pytest.mark.parametrize("kind", ["strategy", "tables", "cells"])
def test_every_change_is_covered_and_those_kept_can_happen(kind: str, name: str) -> None:
    protection = PROTECTIONS[name]
    groups = groups_of(kind, protection)
    kept = largest_changes(groups, protection)
    assert kept
    every = {frozenset(shifted(groups, moved).items()) for moved in neighbors(protection)}
    assert set(kept) <= every
    assert all(any(covers(change, Counter(dict(found))) for change in kept) for found in every)
    assert not any(covers(one, Counter(dict(other))) for one in kept for other in kept if one != other)


@pytest.mark.parametrize("name", PROTECTIONS)
@pytest.mark.parametrize("kind", ["strategy", "tables", "cells"])
@pytest.mark.parametrize("privacy_measure", list(PrivacyMeasure))
def test_what_a_unit_loses_follows_from_the_changes_as_from_the_sensitivity(
    privacy_measure: PrivacyMeasure, kind: str, name: str
) -> None:
    """Two engines, one number: the largest loss of a change is the loss, where the sensitivity is no bound."""
    protection, loss = PROTECTIONS[name], Fraction(7, 5)
    if kind == "strategy":
        noise: NoiseName = "laplace" if privacy_measure is PrivacyMeasure.PURE_DP else "gaussian"
        made = optimized(optimize_strategy(WORKLOAD, noise, protection=protection).exact, protection)
    else:
        made = direct(WORKLOAD, protection, privacy_measure, every_cell=kind == "cells")
    kept = made.changes(loss)
    assert kept
    largest = max(map(loss_of, kept))
    charged = loss * protection.records_together ** (1 if privacy_measure is PrivacyMeasure.PURE_DP else 2)
    assert largest <= charged
    if made.sensitivity.exact and protection.records_together == 1:
        assert largest == loss


@pytest.mark.parametrize("name", ["add or remove", "replace", "exact"])
@pytest.mark.parametrize("kind", ["tables", "cells"])
def test_classes_of_levels_cover_every_change(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    protection = PROTECTIONS[name]
    groups = groups_of(kind, protection)
    exact = largest_changes(groups, protection)
    monkeypatch.setattr(changes, "MOST_NUMBERS", 0)
    kept = largest_changes(groups, protection)
    assert exact
    assert kept
    assert all(any(covers(change, Counter(dict(found))) for change in kept) for found in exact)
    if name == "add or remove":
        assert set(kept) == set(exact)


def test_a_record_that_is_replaced_moves_two_rows_of_each_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """But none of the table of everybody, which it leaves as it is."""
    tables = [Tabulation.of("ages", ("age",)), Tabulation.of("sexes", ("sex",)), Tabulation.of("everybody")]
    made = direct(Workload.from_tabulations(DOMAIN, tables), REPLACING, PrivacyMeasure.ZCDP)
    [noise] = made.noises(Fraction(1))
    groups: list[Measured] = [(made.rows, (noise,))]
    assert largest_changes(groups, REPLACING) == (frozenset({((noise, 1), 4)}),)
    monkeypatch.setattr(changes, "MOST_NUMBERS", 0)
    assert largest_changes(groups, REPLACING) == (frozenset({((noise, 1), 4)}),)


def test_cells_that_cannot_occur_change_nothing() -> None:
    domain = Domain(DOMAIN.attributes, structural_zeros=(StructuralZero.of({"age": "0-17", "works": "y"}),))
    tables = [Tabulation.of("young", where={"age": ("0-17",)}), Tabulation.of("workers", where={"works": ("y",)})]
    groups = []
    for each in (domain, DOMAIN):
        made = direct(Workload.from_tabulations(each, tables), PLAIN, PrivacyMeasure.PURE_DP)
        groups.append((made.rows, (Noise(GEOMETRIC, Fraction(2)),)))
    one, two = (largest_changes([group], PLAIN) for group in groups)
    assert one == (frozenset({((Noise(GEOMETRIC, Fraction(2)), 1), 1)}),)
    assert two == (frozenset({((Noise(GEOMETRIC, Fraction(2)), 1), 2)}),)


def test_large_domains_and_what_is_not_known_of_them() -> None:
    blocks = Domain((Attribute("block", tuple(f"b{n}" for n in range(3_000))), *DOMAIN.attributes))
    tables = [Tabulation.of("blocks", ("block",)), Tabulation.of("ages in blocks", ("block", "age"))]
    made = direct(Workload.from_tabulations(blocks, tables), PLAIN, PrivacyMeasure.ZCDP)
    [noise] = made.noises(Fraction(1))
    groups: list[Measured] = [(made.rows, (noise,))]
    assert largest_changes(groups, PLAIN) == (frozenset({((noise, 1), 2)}),)
    assert largest_changes(groups, REPLACING) == (frozenset({((noise, 1), 4)}),)
    assert largest_changes(groups, PROTECTIONS["two records"]) is None
    signs = Tabulation.of("balance", ("block",), weights={"sex": {"f": "1", "m": "-1"}})
    signed = direct(Workload.from_tabulations(blocks, [signs]), PLAIN, PrivacyMeasure.ZCDP)
    groups = [(signed.rows, (noise,))]
    assert largest_changes(groups, PLAIN) == (frozenset({((noise, 1), 1)}),)
    assert largest_changes(groups, REPLACING) is None  # +1 may become −1, a shift of 2


@pytest.mark.parametrize("kind", ["tables", "cells", "strategy"])
def test_what_a_record_changes_is_what_a_histogram_of_it_counts(kind: str) -> None:
    for rows, _ in groups_of(kind, PLAIN):
        for cell in range(DOMAIN.size):
            histogram = np.zeros(DOMAIN.shape, dtype=np.int64)
            histogram.reshape(-1)[cell] = 1
            changed, by = rows.changed(cell)
            written = np.zeros(rows.size, dtype=np.int64)
            written[changed] = by
            np.testing.assert_array_equal(written, rows.count(histogram))
            assert (by != 0).all()
            assert (np.diff(changed) > 0).all()


def test_what_a_record_changes_takes_no_look_at_the_domain() -> None:
    """A histogram of this domain would not fit into memory."""
    large = Domain(tuple(Attribute.numbers(name, 0, 9_999) for name in "abc"))
    workload = Workload.from_tabulations(large, [Tabulation.of("one", ("b",)), Tabulation.of("two", ("c", "a"))])
    rows, by = TableRows(workload).changed((7 * 10_000 + 8) * 10_000 + 9)
    assert rows.tolist() == [8, 10_000 + 7 * 10_000 + 9]
    assert by.tolist() == [1, 1]
