from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.errors import InvalidDomain, InvalidInvariant
from dualmandate.population import Attribute, Domain, Grouping, Hierarchy, Invariant, Neighbors, Protection
from dualmandate.population.protection import cross, group_labels, steps

BLOCK = Attribute.categories("block", ["A1", "A2", "B1", "none"])
DOMAIN = Domain(
    (BLOCK, Attribute.categories("age", ["child", "adult"]), Attribute.categories("sex", ["f", "m"])),
    (Hierarchy("block", (Grouping.of("tract", ["A", "A", "B", None]),)),),
)


def protection(*totals: Invariant, together: int | None = None) -> Protection:
    return Protection(neighbors=Neighbors.REPLACE_ONE, invariants=totals, records_changing_together=together)


def test_groups_of_an_exact_total() -> None:
    adults = Invariant("adults", ("tract",), (("age", ("adult",)), ("block", ("A2", "B1", "none"))))
    labels = group_labels(DOMAIN, adults)
    assert sorted(labels) == [0, 1]
    assert labels[0].tolist() == [-1, 0, 1, -1]
    assert labels[1].tolist() == [-1, 0]
    assert group_labels(DOMAIN, Invariant("all")) == {}


@pytest.mark.parametrize(
    ("one", "other", "crossing"),
    [
        (Invariant("a", ("block",)), Invariant("b", ("tract",)), False),
        (Invariant("a", ("block",)), Invariant("b"), False),
        (Invariant("a", ("block",)), Invariant("b", ("block", "age")), False),
        (Invariant("a", ("block",)), Invariant("b", ("age",)), True),
        (Invariant("a", ("block", "age")), Invariant("b", ("tract", "sex")), True),
        (Invariant("a", ("block",), (("age", ("adult",)),)), Invariant("b", ("tract",)), False),
        (Invariant("a", ("tract",), (("age", ("adult",)),)), Invariant("b", ("block",)), True),
        (Invariant("a", ("block",), (("age", ("adult",)),)), Invariant("b", ("sex",), (("age", ("child",)),)), False),
        (Invariant("a", (), (("age", ("adult",)),)), Invariant("b", (), (("sex", ("f",)),)), True),
        (Invariant("a", (), (("block", ("A1", "A2")),)), Invariant("b", (), (("block", ("A2", "B1")),)), True),
        (Invariant("a", (), (("block", ("A1", "A2")),)), Invariant("b", (), (("block", ("A2",)),)), False),
    ],
)
def test_totals_cross_or_nest(one: Invariant, other: Invariant, crossing: bool) -> None:
    labels = group_labels(DOMAIN, one), group_labels(DOMAIN, other)
    assert cross(DOMAIN, *labels) is crossing
    assert cross(DOMAIN, *reversed(labels)) is crossing


def test_totals_that_nest_one_way_here_and_the_other_way_there_do_not_cross() -> None:
    halves = Hierarchy("block", (Grouping.of("half", ["A", "A", "B", "C"]),))
    parts = Hierarchy("block", (Grouping.of("part", ["1", "2", "3", "3"]),))
    domain = Domain((BLOCK,), (halves, parts))
    one, other = (group_labels(domain, Invariant(name, (name,))) for name in ("half", "part"))
    assert not cross(domain, one, other)


def test_crossing_totals_need_the_number_of_records_that_change_together() -> None:
    rows, columns, tracts = (
        Invariant("rows", ("block",)),
        Invariant("columns", ("age",)),
        Invariant("tracts", ("tract",)),
    )
    assert steps(DOMAIN, protection(rows, tracts)).kept == (rows, tracts)
    assert steps(DOMAIN, protection(rows, tracts)).records == 1
    with pytest.raises(InvalidInvariant, match="'rows' and 'columns' cross"):
        steps(DOMAIN, protection(rows, columns))
    stated = steps(DOMAIN, protection(rows, columns, Invariant("all"), together=4))
    assert stated.records == 4
    assert [total.name for total in stated.kept] == ["all"]


def test_totals_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(InvalidInvariant, match="'block' twice"):
        group_labels(DOMAIN, Invariant("a", ("block", "tract")))
    with pytest.raises(InvalidInvariant, match="no cell is counted"):
        group_labels(DOMAIN, Invariant("a", ("tract",), (("block", ("none",)),)))
    with pytest.raises(InvalidDomain, match="'county' is not"):
        group_labels(DOMAIN, Invariant("a", ("county",)))


def cell_groups(domain: Domain, total: Invariant) -> list[object]:
    labels = group_labels(domain, total)
    return [
        None if any(labels[axis][cell[axis]] < 0 for axis in labels) else tuple(int(labels[a][cell[a]]) for a in labels)
        for cell in product(*(range(size) for size in domain.shape))
    ]


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_files_with_the_same_totals_are_one_record_at_a_time_apart_unless_totals_cross(data: st.DataObject) -> None:
    """All files of three records over a few cells: those with equal totals are connected by steps within groups."""
    sizes = data.draw(st.sampled_from([(4,), (2, 2), (3, 2), (2, 2, 2)]))
    domain = Domain.of_shape(sizes)
    totals = []
    for number in range(data.draw(st.integers(1, 3))):
        by = data.draw(st.lists(st.sampled_from(domain.names), max_size=2, unique=True))
        named = data.draw(st.lists(st.sampled_from(domain.names), max_size=2, unique=True))
        levels = {name: st.lists(st.sampled_from(list(domain.attribute(name).levels)), min_size=1) for name in named}
        where = tuple((name, tuple(dict.fromkeys(data.draw(levels[name])))) for name in named)
        totals.append(Invariant(f"total {number}", tuple(by), where))
    relation = protection(*totals, together=9)
    within = steps(domain, relation)
    groups = [cell_groups(domain, total) for total in totals]
    allowed = [cell_groups(domain, total) for total in within.kept]
    cells = range(domain.size)
    files: dict[object, list[tuple[int, ...]]] = {}
    for listed in combinations_with_replacement(cells, 3):
        key = tuple(tuple(sorted(map(repr, (group[cell] for cell in listed)))) for group in groups)
        files.setdefault(key, []).append(listed)
    step = np.array([[all(group[a] == group[b] for group in allowed) for b in cells] for a in cells])
    for members in files.values():
        reached: set[tuple[int, ...]] = {members[0]}
        frontier: list[tuple[int, ...]] = [members[0]]
        while frontier:
            file = frontier.pop()
            for place in range(3):
                for cell in cells:
                    moved = tuple(sorted((*file[:place], cell, *file[place + 1 :])))
                    if step[file[place], cell] and moved not in reached:
                        reached.add(moved)
                        frontier.append(moved)
        # every file with the same totals can be reached, and without crossing the totals hold along the way
        assert reached >= set(members)
        if within.records == 1:
            assert reached == set(members)
