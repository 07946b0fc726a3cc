from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.workload.norms import squared_norm

from dualmandate.errors import InvalidInvariant
from dualmandate.population import (
    Attribute,
    Domain,
    Grouping,
    Hierarchy,
    Invariant,
    Neighbors,
    Protection,
    StructuralZero,
)
from dualmandate.population.protection import steps
from dualmandate.workload import (
    Dense,
    Factor,
    Groups,
    Identity,
    Norm,
    Row,
    Sensitivity,
    Table,
    Tabulation,
    Total,
    Workload,
    all_range,
    explicit,
    extremum,
    groups,
    identity,
    kron,
    marginals,
    prefix,
    sensitivity,
    stack,
    total,
)

NORMS: tuple[Norm, ...] = ("l1", "l2")
REPLACE = Protection(neighbors=Neighbors.REPLACE_ONE)

AnyWorkload = Callable[..., st.SearchStrategy[Workload]]
AnyInvariant = Callable[[Domain], st.SearchStrategy[Invariant]]


def powers(workload: Workload, protection: Protection = REPLACE) -> tuple[Fraction | int, Fraction | int]:
    found = [workload.sensitivity(protection, norm) for norm in NORMS]
    assert all(each.exact for each in found)
    return found[0].power, found[1].power


# Brute force over the dense matrix


@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_add_or_remove_equals_brute_force(data: st.DataObject, any_workload: AnyWorkload, brute_force: Any) -> None:
    workload = data.draw(any_workload())
    for power, norm in enumerate(NORMS, start=1):
        found = workload.sensitivity(norm=norm)
        assert found.exact
        assert found.power == brute_force(workload).add_or_remove(power)


@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_replace_one_equals_brute_force(data: st.DataObject, any_workload: AnyWorkload, brute_force: Any) -> None:
    workload = data.draw(any_workload())
    for power, norm in enumerate(NORMS, start=1):
        found = workload.sensitivity(REPLACE, norm)
        assert found.exact
        assert found.power == brute_force(workload).replace_one(power)


@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_within_groups_equals_brute_force(
    data: st.DataObject, any_workload: AnyWorkload, any_invariant: AnyInvariant, brute_force: Any
) -> None:
    workload = data.draw(any_workload())
    drawn = st.lists(any_invariant(workload.domain), min_size=1, max_size=3, unique_by=lambda total: total.name)
    protection = Protection(
        neighbors=Neighbors.REPLACE_ONE, invariants=tuple(data.draw(drawn)), records_changing_together=99
    )
    kept = steps(workload.domain, protection).kept
    for power, norm in enumerate(NORMS, start=1):
        found = workload.sensitivity(protection, norm)
        assert found.exact
        assert found.power == brute_force(workload).replace_one(power, kept)


@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_large_attributes_equal_brute_force(data: st.DataObject, any_factor: Any, brute_force: Any) -> None:
    """Nested and crossing partitions, filters, prefix sums and sums of numbers on one attribute of up to 18 levels."""
    size = data.draw(st.integers(6, 18))
    random = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    fine = np.sort(random.integers(0, size // 2, size))
    values = np.arange(size, dtype=np.int64) - random.integers(0, size)
    names = tuple(map(str, range(size)))
    partitions = [
        np.unique(labels, return_inverse=True)[1] for labels in (fine, fine // 2, random.integers(0, 3, size))
    ]
    masked = [np.where(random.random(size) < 0.7, labels, -1) for labels in [np.arange(size), *partitions]]
    factors: list[Factor] = [
        Identity(size),
        Total(size),
        Row(values),
        prefix(size).tables[0].factors[0],
        *(Groups.of_labels(labels, names) for labels in partitions),
        *(Groups.of_labels(labels, names) for labels in masked if np.any(labels >= 0)),
        Groups.of_labels(partitions[1], names, values),
    ]
    zeros = (StructuralZero.of({"x0": names[::3], "x1": "0"}),) if data.draw(st.booleans()) else ()
    hierarchy = Hierarchy("x0", (Grouping.of("g0", [names[label] for label in partitions[0]]),))
    attributes = (Attribute.categories("x0", names), Attribute.categories("x1", ["0", "1"]))
    tables = tuple(
        Table(f"table {number}", (factor, data.draw(any_factor(2))))
        for number, factor in enumerate(data.draw(st.lists(st.sampled_from(factors), min_size=1, max_size=4)))
    )
    workload = Workload(Domain(attributes, (hierarchy,), zeros), tables)
    totals = data.draw(st.sampled_from([(), (Invariant("g", ("g0",)),), (Invariant("x", ("x0",), (("x1", ("1",)),)),)]))
    within = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=totals)
    for power, norm in enumerate(NORMS, start=1):
        assert workload.sensitivity(norm=norm).power == brute_force(workload).add_or_remove(power)
        found = workload.sensitivity(within, norm)
        assert found.exact
        assert found.power == brute_force(workload).replace_one(power, totals)


@given(data=st.data(), limits=st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(0, 1), st.integers(0, 1)))
@settings(max_examples=120, deadline=None)
def test_a_bound_is_never_too_small(
    data: st.DataObject, limits: tuple[int, int, int, int], any_workload: AnyWorkload, brute_force: Any
) -> None:
    workload = data.draw(any_workload())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extremum, "LARGEST_ENUMERATION", limits[0])
        patch.setattr(sensitivity, "LARGEST_COMPARED", 8 * limits[1])
        patch.setattr(sensitivity, "MOST_FORKS", limits[2])
        patch.setattr(sensitivity, "LARGEST_COMPARISON", limits[3])
        for power, norm in enumerate(NORMS, start=1):
            for protection, expected in (
                (Protection(), brute_force(workload).add_or_remove(power)),
                (REPLACE, brute_force(workload).replace_one(power)),
            ):
                found = workload.sensitivity(protection, norm)
                assert found.power >= expected
                if found.exact:
                    assert found.power == expected
                else:
                    assert str(found).startswith("at most")


def test_an_attained_bound_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extremum, "LARGEST_ENUMERATION", 1)
    workload = kron(all_range(4), identity(3))
    found = workload.sensitivity(REPLACE)
    assert found.power == 12
    assert found.exact
    assert found.method == "attained upper bound: twice the largest column"


# One unit, several records


@given(data=st.data(), records=st.integers(2, 3))
@settings(max_examples=30, deadline=None)
def test_a_unit_with_several_records_moves_answers_that_many_times_as_far(
    data: st.DataObject, records: int, any_workload: AnyWorkload, brute_force: Any
) -> None:
    workload = data.draw(any_workload(most_attributes=2))
    truth = brute_force(workload)
    columns = truth.columns()[truth.possible()]
    assume(len(columns) <= 6)
    protection = Protection(most_records_per_unit=records, identifier="id")
    contributions = {
        count: [columns[list(cells)].sum(axis=0) for cells in combinations_with_replacement(range(len(columns)), count)]
        for count in range(1, records + 1)
    }
    for power, norm in enumerate(NORMS, start=1):
        scale = truth.denominator**power
        added = max(int((np.abs(moved) ** power).sum()) for each in contributions.values() for moved in each)
        found = workload.sensitivity(protection, norm)
        assert found.power == Fraction(added, scale)
        replaced = max(
            int((np.abs(one - other) ** power).sum())
            for each in contributions.values()
            for one in each
            for other in each
        )
        found = workload.sensitivity(replace(protection, neighbors=Neighbors.REPLACE_ONE), norm)
        assert found.power == Fraction(replaced, scale)


# By hand


def test_words_by_hand() -> None:
    assert powers(identity(5), Protection()) == (1, 1)
    assert powers(identity(5)) == (2, 2)
    assert powers(identity(1)) == (0, 0)
    assert powers(prefix(5), Protection()) == (5, 5)
    assert powers(prefix(5)) == (4, 4)
    assert powers(all_range(5), Protection()) == (9, 9)
    assert powers(stack(identity(4), total(4)), Protection()) == (2, 2)
    assert powers(stack(identity(4), total(4))) == (2, 2)
    assert powers(marginals((3, 4, 5), (0, 1, 2, 3)), Protection()) == (8, 8)
    assert powers(marginals((3, 4, 5), (0, 1, 2, 3))) == (14, 14)


def test_title_i() -> None:
    """Eligible children by district: 1 when a child is added, 2 when it moves to another district."""
    district = Attribute.categories("district", (f"{number:05d}" for number in range(13_000)))
    domain = Domain((district, Attribute.categories("eligible", ["no", "yes"])))
    eligible = Tabulation("eligible children by district", by=("district",), where=(("eligible", ("yes",)),))
    workload = Workload.from_tabulations(domain, [eligible])
    assert workload.shape == (13_000, 26_000)
    assert powers(workload, Protection(unit="child")) == (1, 1)
    assert powers(workload, Protection(unit="child", neighbors=Neighbors.REPLACE_ONE)) == (2, 2)


def test_bounded_sums_by_hand() -> None:
    domain = Domain((Attribute.numbers("wage", -3, 10), Attribute.categories("sex", ["f", "m"])))
    workload = Workload.from_tabulations(domain, [Tabulation("wages", by=("sex",), sum_of="wage")])
    assert powers(workload, Protection()) == (10, 100)
    assert powers(workload) == (20, 200)
    total_only = Workload.from_tabulations(domain, [Tabulation("wages", sum_of="wage")])
    assert powers(total_only) == (13, 169)


def test_opposite_weights_move_one_answer_twice() -> None:
    domain = Domain((Attribute.categories("vote", ["yes", "no", "none"]),))
    workload = Workload.from_tabulations(domain, [Tabulation.of("lead", weights={"vote": {"yes": 1, "no": -1}})])
    assert powers(workload, Protection()) == (1, 1)
    assert powers(workload) == (2, 4)


def test_structural_zeros_carry_no_sensitivity() -> None:
    ages = Attribute.ordered_levels("age", map(str, range(20)))
    married = Attribute.categories("married", ["no", "yes"])
    zero = StructuralZero.of({"age": [str(age) for age in range(15)], "married": "yes"})
    table = Tabulation.of("young and married", where={"age": ["3", "16"], "married": "yes"})
    twice = Tabulation.of("children", where={"age": "3"})
    tables = [table, twice, Tabulation("married", by=("married",))]
    with_zero = Workload.from_tabulations(Domain((ages, married), (), (zero,)), tables)
    without = Workload.from_tabulations(Domain((ages, married)), tables)
    assert powers(without, Protection())[0] == 3
    assert powers(with_zero, Protection())[0] == 2


def test_what_neighbors_cannot_change_has_sensitivity_zero_and_says_so() -> None:
    found = total(5).sensitivity(REPLACE)
    assert found.power == 0
    assert (found.exact, found.value, str(found)) == (True, 0.0, "0")
    assert "no pair of neighbors changes any answer" in found.method
    blocks = Domain((Attribute.categories("block", map(str, range(9))), Attribute.categories("sex", ["f", "m"])))
    people = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("people by block", ("block",)),))
    decided = Workload.from_tabulations(blocks, [Tabulation("block", by=("block",)), Tabulation("all")])
    assert powers(decided, people) == (0, 0)
    half_decided = Workload.from_tabulations(blocks, [Tabulation("cells", by=("block", "sex")), Tabulation("all")])
    assert powers(half_decided, people) == (2, 2)


def test_crossing_totals_are_refused_unless_the_number_of_records_is_stated() -> None:
    domain = Domain.of_shape((3, 4))
    totals = (Invariant("rows", ("axis0",)), Invariant("columns", ("axis1",)))
    workload = marginals((3, 4), (2,))
    with pytest.raises(InvalidInvariant, match="'rows' and 'columns' cross"):
        workload.sensitivity(Protection(neighbors=Neighbors.REPLACE_ONE, invariants=totals))
    stated = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=totals, records_changing_together=2)
    assert steps(domain, stated).records == 2
    # Between two files with the same totals one record at a time changes freely; the loss is printed for two.
    assert powers(workload, stated) == powers(workload)


# Exact at scale


def summary_file_persons() -> Workload:
    """The person tables of the 2010 Census Summary File 1 over 2 × 2 × 64 × 17 × 115 cells."""
    counts = [race.bit_count() for race in range(64)]
    alone = [[race] for race in range(64) if counts[race] == 1]
    by_count = [[race for race in range(64) if counts[race] == count] for count in range(1, 7)]
    bins = [(0, 5), (5, 10), (10, 15), (15, 18), (18, 20), (20, 21), (21, 22), (22, 25), (25, 30), (30, 35), (35, 40)]
    bins += [(40, 45), (45, 50), (50, 55), (55, 60), (60, 62), (62, 65), (65, 67), (67, 70), (70, 75), (75, 80)]
    bins += [(80, 85), (85, 115)]
    singles = [(age, age + 1) for age in range(100)] + [(100, 105), (105, 110), (110, 115)]
    each, either = [[0], [1]], [[0], [1], [0, 1]]
    race = {
        "seven": [*alone, [race for race in range(64) if counts[race] != 1]],
        "all": [
            *([race] for race in range(1, 64)),
            *by_count,
            [race for race in range(64) if counts[race] > 1],
        ],
        "white": [[1]],
    }
    age = {"adult": [range(18, 115)], "bins": [range(*ends) for ends in bins], "years": [range(*e) for e in singles]}
    sex, hispanic = {"each": each, "either": either}, {"each": each, "either": either, "yes": [[0]], "no": [[1]]}

    def table(s: str = "", h: str = "", r: str = "", a: str = "") -> Workload:
        codings = [(2, sex.get(s)), (2, hispanic.get(h)), (64, race.get(r)), (17, None), (115, age.get(a))]
        return kron(
            *(total(size) if lists is None else groups(size, list(map(list, lists))) for size, lists in codings)
        )

    wide = [("seven", ""), ("", "yes"), ("white", "no")]
    tables = [
        table(),
        table(r="seven"),
        table(),
        table(h="each"),
        table(),
        table(h="each", r="seven"),
        table(h="either"),
    ]
    tables += [table(r="all"), table(), table(h="each"), table(h="no", r="all"), table()]
    tables += [
        table(r="all", a="adult"),
        table(a="adult"),
        table(h="each", a="adult"),
        table(h="no", r="all", a="adult"),
    ]
    tables += [table(a="adult")]
    for ages, groups_of in (("bins", wide), ("years", [*wide[:2], ("seven", "no")])):
        tables += [table(s="each", a=ages), table(s="either")]
        for r, h in groups_of:
            tables += [table(s="each", h=h, r=r, a=ages), table(s="either", h=h, r=r)]
    return stack(*tables)


def test_the_census_summary_file() -> None:
    """Queries, ‖Q‖²_F and ΔQ as computed elsewhere: 4,151, 18,998,554 and 41.

    Replacing one record: 58, from the dense matrix of its 26,368 merged cells, every pair compared.
    """
    workload = summary_file_persons()
    assert workload.shape == (4_151, 500_480)
    assert squared_norm(workload) == 18_998_554
    assert powers(workload, Protection()) == (41, 41)
    assert powers(workload) == (58, 58)
    states = kron(workload, stack(identity(51), total(51)))
    assert powers(states, Protection()) == (82, 82)


def test_a_census_hierarchy_of_25_181_blocks() -> None:
    block = Attribute.categories(
        "block", [f"{number // 2000:02d}{number // 40:05d}{number:07d}" for number in range(25_181)]
    )
    hierarchy = Hierarchy.by_prefix(block, {"county": 2, "tract": 7})
    crossing = Hierarchy("block", (Grouping.of("district", [f"d{number // 770}" for number in range(25_181)]),))
    domain = Domain(
        (block, Attribute.categories("race", map(str, range(63))), Attribute.categories("age", ["0", "18"]))
    )
    domain = Domain(domain.attributes, (hierarchy, crossing))
    tabulations = [Tabulation(place, by=(place, "race")) for place in ("county", "tract", "block")]
    tabulations += [Tabulation("adults", by=("block",), where=(("age", ("18",)),)), Tabulation("d", by=("district",))]
    tabulations += [Tabulation("one county", by=("tract",), where=(("county", ("03",)),)), Tabulation("all")]
    workload = Workload.from_tabulations(domain, tabulations)
    assert powers(workload, Protection()) == (7, 7)
    # Two adults of county 03 in different tracts and districts, of different race, share nothing but the grand total.
    assert powers(workload) == (12, 12)
    blocks = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("people", ("block",)),))
    # Within a block, race changes three tables, and age decides whether the block's adults are counted.
    assert powers(workload, blocks) == (3 * 2 + 1, 3 * 2 + 1)


def test_a_million_levels_of_a_number() -> None:
    domain = Domain((Attribute.numbers("income", -1000, 999_000), Attribute.categories("sex", ["f", "m"])))
    tabulations = [
        Tabulation("income", by=("sex",), sum_of="income"),
        Tabulation("each", by=("income",)),
        Tabulation("all", sum_of="income"),
    ]
    workload = Workload.from_tabulations(domain, tabulations)
    assert powers(workload, Protection())[0] == 2 * 999_000 + 1
    # The richest of one sex against the second richest of the other, or the richest against the poorest.
    assert powers(workload)[0] == max(999_000 + 998_999 + 1 + 2, 999_000 + 1000 + 1_000_000 + 2)
    ranges = stack(prefix(10**6), identity(10**6), total(10**6))
    assert powers(ranges, Protection()) == (10**6 + 2, 10**6 + 2)
    assert powers(ranges) == (10**6 - 1 + 2, 10**6 - 1 + 2)


def test_trade_offs_in_a_plane_are_exact_without_merging() -> None:
    def suffix(size: int) -> Workload:
        return groups(size, [list(range(first, size)) for first in range(size)])

    small = stack(kron(prefix(6), suffix(5)), kron(suffix(6), total(5)), kron(total(6), prefix(5)))
    columns = small.dense().T
    distances = np.abs(columns[:, None] - columns[None, :]).sum(axis=2)
    assert powers(small)[0] == distances.max()
    large = stack(kron(prefix(300), suffix(200)), kron(suffix(300), total(200)), kron(total(300), prefix(200)))
    assert powers(large, Protection())[0] == 300 * 200 + 1 + 200 - 199


# Exact numbers


def test_weights_give_exact_rational_sensitivities() -> None:
    weighted = stack(identity(7), total(7), weights=[0.862, "0.138"])
    assert powers(weighted, Protection()) == (1, Fraction(862**2 + 138**2, 10**6))
    assert powers(weighted) == (2 * Fraction(862, 1000), 2 * Fraction(862, 1000) ** 2)
    binary = Fraction(1, 3).limit_denominator(2**53)
    fine = stack(identity(7), prefix(7), total(7), weights=[binary, math.pi, math.sqrt(2)])
    expected = binary + 7 * Fraction(repr(math.pi)) + Fraction(repr(math.sqrt(2)))
    assert powers(fine, Protection())[0] == expected


def test_numbers_beyond_64_bits_stay_exact() -> None:
    big = 2**45 + 1
    workload = Workload(
        Domain.of_shape((3, 2)),
        (
            Table("a", (Row(np.array([big, -big, 7])), Row(np.array([1, big])))),
            Table("b", (Identity(3), Dense(np.array([[1, big], [big, 1]])))),
        ),
    )
    assert powers(workload, Protection()) == (big**2 + big + 1, big**4 + big**2 + 1)
    exact = [[Fraction(int(each)) for each in column] for column in _columns(workload)]
    for power in (1, 2):
        expected = max(
            sum(abs(a - b) ** power for a, b in zip(one, other, strict=True)) for one in exact for other in exact
        )
        assert powers(workload)[power - 1] == expected


def _columns(workload: Workload) -> list[list[int]]:
    found: list[list[int]] = []
    for cell in np.ndindex(*workload.domain.shape):
        column: list[int] = []
        for table in workload.tables:
            entries = [1]
            for factor, level in zip(table.factors, cell, strict=True):
                entries = [one * int(two) for one in entries for two in factor.columns(np.array([level]))[:, 0]]
            column += entries
        found.append(column)
    return found


def test_a_sensitivity_in_words_and_as_a_float_is_never_too_small() -> None:
    third = Sensitivity("l1", Fraction(1, 3), True, "by hand")
    assert Fraction(third.value) >= Fraction(1, 3)
    assert str(third) == "0.333334"
    two = Sensitivity("l2", Fraction(2), True, "by hand")
    assert Fraction(two.value) ** 2 >= 2
    assert two.value == pytest.approx(math.sqrt(2))
    assert str(Sensitivity("l2", Fraction(9), True, "by hand")) == "3"
    assert str(Sensitivity("l1", Fraction(12_345_678), False, "by hand")) == "at most 12,345,678 (an upper bound)"
    assert Sensitivity("l1", Fraction(41), True, "by hand").value == 41.0


def test_explicit_matrices_are_taken_as_written() -> None:
    matrix = explicit([[0.5, -1, 0], [1, 1, 0.25]])
    assert powers(matrix, Protection()) == (2, 2)
    assert powers(matrix) == (Fraction(7, 4), Fraction(9, 4))
