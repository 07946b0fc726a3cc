from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.errors import InvalidDomain, TooLarge
from dualmandate.population import Attribute, Domain, Grouping, Hierarchy, Histogram, StructuralZero
from dualmandate.population import domain as domain_module

COUNTY = Attribute.categories("county", ["01001", "01002", "02001", "outside"], missing="outside")
SEX = Attribute.categories("sex", ["f", "m"])
STATES = Hierarchy.by_prefix(COUNTY, {"state": 2})
DOMAIN = Domain((COUNTY, SEX), (STATES,))


def test_shape_and_names() -> None:
    assert DOMAIN.names == ("county", "sex")
    assert (DOMAIN.shape, DOMAIN.size, DOMAIN.possible_size) == ((4, 2), 8, 8)
    assert DOMAIN.axes(["sex", "county"]) == (1, 0)
    assert Domain.of_shape((3, 2)).names == ("axis0", "axis1")
    assert Domain.of_shape((1000,) * 10).size == 10**30


def test_names_mean_attributes_or_groupings() -> None:
    assert DOMAIN.resolve("sex") == (1, None)
    axis, grouping = DOMAIN.resolve("state")
    assert axis == 0
    assert grouping is not None
    assert grouping.labels == ("01", "02")
    assert DOMAIN.mask("state", ["02"]).tolist() == [False, False, True, False]
    assert DOMAIN.mask("county", "01002").tolist() == [False, True, False, False]


def test_projection_keeps_what_still_makes_sense() -> None:
    ages = Attribute.ordered_levels("age", ["child", "adult"])
    zeros = (
        StructuralZero.of({"age": "child", "sex": "m"}),
        StructuralZero.of({"county": "outside", "sex": "f"}),
    )
    domain = Domain((COUNTY, SEX, ages), (STATES,), zeros)
    projected = domain.project(["age", "sex"])
    assert projected.names == ("age", "sex")
    assert projected.hierarchies == ()
    assert projected.structural_zeros == zeros[:1]
    assert domain.project(["county"]).hierarchies == (STATES,)


def test_a_structural_zero_is_a_product_of_level_sets() -> None:
    zero = StructuralZero.of({"state": "01", "county": ["01002", "02001"], "sex": "m"})
    masks = DOMAIN.zero_masks(zero)
    assert masks[0].tolist() == [False, True, False, False]
    assert masks[1].tolist() == [False, True]
    assert Domain((COUNTY, SEX), (STATES,), (zero,)).possible_size == 7


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_possible_cells_are_counted_as_by_brute_force(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    attributes = tuple(Attribute.categories(f"x{i}", map(str, range(size))) for i, size in enumerate(sizes))
    zeros = []
    for _ in range(data.draw(st.integers(0, 4))):
        named = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, unique=True))
        zeros.append({i: data.draw(st.sets(st.integers(0, sizes[i] - 1), min_size=1)) for i in named})
    within = {
        i: np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=np.bool_)
        for i, size in enumerate(sizes)
        if data.draw(st.booleans())
    }
    cells = list(product(*map(range, sizes)))
    possible = [cell for cell in cells if not any(all(cell[i] in zero[i] for i in zero) for zero in zeros)]
    listed = tuple(StructuralZero.of({f"x{i}": [str(level) for level in zero[i]] for i in zero}) for zero in zeros)
    if not possible:
        with pytest.raises(InvalidDomain, match="every cell"):
            Domain(attributes, (), listed)
        return
    try:
        domain = Domain(attributes, (), listed)
    except InvalidDomain:
        # one zero that names every level of its attributes rules out every cell by itself
        assert any(all(len(zero[i]) == sizes[i] for i in zero) for zero in zeros)
        return
    assert domain.possible_size == len(possible)
    assert domain.count_possible(within) == sum(all(within[i][cell[i]] for i in within) for cell in possible)


def test_many_zeros_on_a_large_domain_are_counted_exactly() -> None:
    attributes = tuple(Attribute.categories(f"x{i}", map(str, range(100))) for i in range(9))
    zeros = tuple(StructuralZero.of({f"x{i}": "0", f"x{i + 1}": "0"}) for i in range(8))
    domain = Domain(attributes, (), zeros)
    # cells without two zeros in a row: f(n) = 99 f(n-1) + 99 f(n-2)
    before, now = 1, 100
    for _ in range(8):
        before, now = now, 99 * now + 99 * before
    assert domain.possible_size == now


def test_zeros_that_overlap_in_too_many_ways_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = tuple(Attribute.categories(f"x{i}", ["a", "b", "c"]) for i in range(44))
    apart = tuple(StructuralZero.of({f"x{i}": "a", f"x{i + 22}": "b"}) for i in range(22))
    assert Domain(attributes, (), apart).possible_size == 8**22
    monkeypatch.setattr(domain_module, "MOST_ZERO_STATES", 2)
    crossed = tuple(StructuralZero.of({f"x{i}": "a", f"x{i + 1}": "b", f"x{i + 2}": "c"}) for i in range(22))
    with pytest.raises(TooLarge, match="22 structural zeros"):
        Domain(attributes, (), crossed)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Domain(()), "no attributes"),
        (lambda: Domain((SEX, SEX)), "'sex' is used twice"),
        (lambda: Domain((SEX, Attribute.categories("state", ["a"]), COUNTY), (STATES,)), "'state' is used twice"),
        (lambda: Domain((SEX,), (STATES,)), "'county' is not an attribute"),
        (lambda: Domain((Attribute.categories("county", ["1"]),), (STATES,)), "does not assign"),
        (lambda: Domain.of_shape(()), "has no cells"),
        (lambda: Domain.of_shape((2, 0)), "has no cells"),
        (lambda: DOMAIN.axis("sx"), "'sx' is not"),
        (lambda: DOMAIN.axis("state"), "'state' is not"),
        (lambda: DOMAIN.mask("sex", []), "no level of 'sex'"),
        (lambda: DOMAIN.mask("sex", ["x"]), "'x' is not a level"),
        (lambda: DOMAIN.mask("state", ["03"]), "'03' is not a group"),
        (lambda: Domain((SEX,), (), (StructuralZero(()),)), "rules out every cell"),
        (lambda: Domain((SEX,), (), (StructuralZero.of({"sex": ["f", "m"]}),)), "rules out every cell"),
        (
            lambda: Domain((SEX,), (), (StructuralZero.of({"sex": "f"}), StructuralZero.of({"sex": "m"}))),
            "together rule out every cell",
        ),
    ],
)
def test_what_cannot_describe_a_record_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidDomain) as refusal:
        make()
    assert words in refusal.value.what


def test_hierarchies_nest() -> None:
    codes = Attribute.categories("block", ["0101", "0111", "0211", "0212"])
    hierarchy = Hierarchy.by_prefix(codes, {"tract": 3, "state": 2})
    assert [grouping.name for grouping in hierarchy.groupings] == ["state", "tract"]
    state, tract = hierarchy.groupings
    assert tract.refines(state)
    assert not state.refines(tract)
    crossing = Grouping.of("district", ["a", "b", "a", "b"])
    assert not crossing.refines(state)
    with pytest.raises(InvalidDomain, match="'district' does not nest"):
        Hierarchy("block", (state, crossing))
    partial = Grouping.of("city", [None, "x", None, None])
    assert not partial.refines(state)
    assert partial.refines(Grouping.of("metro", [None, "y", None, None]))
    with pytest.raises(InvalidDomain, match="does not nest"):
        Hierarchy("block", (state, Grouping.of("short", ["a"])))


def test_groupings_from_codes() -> None:
    grouping = Grouping.of("place", ["b", None, "a", "b"])
    assert (grouping.labels, grouping.size) == (("b", "a"), 2)
    assert grouping.assignment.tolist() == [0, -1, 1, 0]
    assert grouping.position("a") == 1
    with pytest.raises(InvalidDomain) as refusal:
        Grouping.of("place", ["Springfield"]).position("Sprngfield")
    assert "Springfield" in refusal.value.instead


@pytest.mark.parametrize(
    "make",
    [
        lambda: Grouping.of("g", [None, None]),
        lambda: Grouping("g", ("a", "b"), np.array([0, 0])),
        lambda: Grouping("g", ("a", "a"), np.array([0, 1])),
        lambda: Grouping("g", ("a",), np.array([0, 1])),
        lambda: Grouping("g", ("a",), np.array([0, -2])),
        lambda: Hierarchy.by_prefix(SEX, {"g": 0}),
        lambda: Hierarchy.by_prefix(SEX, {"g": 2}),
    ],
)
def test_groupings_that_cannot_be_meant_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidDomain):
        make()


def test_histograms_project_and_never_print_their_counts() -> None:
    domain = Domain.of_shape((2, 3, 2))
    counts = np.arange(12).reshape(2, 3, 2) + 987_000
    histogram = Histogram(domain, counts)
    assert histogram.total == counts.sum()
    projected = histogram.project(["axis2", "axis0"])
    assert np.array_equal(projected.counts, counts.sum(axis=1).T)
    assert "987" not in repr(histogram)
    assert Histogram.zeros(domain).total == 0


def test_histograms_that_cannot_be_counts_are_refused() -> None:
    domain = Domain.of_shape((2, 2))
    with pytest.raises(InvalidDomain, match="do not fit"):
        Histogram(domain, np.zeros(4, dtype=np.int64))
    with pytest.raises(InvalidDomain, match="not whole numbers"):
        Histogram(domain, np.zeros((2, 2)))  # type: ignore[arg-type]
    with pytest.raises(InvalidDomain, match="not whole numbers") as refusal:
        Histogram(domain, np.full((2, 2), -987))
    assert "987" not in str(refusal.value)
    with pytest.raises(TooLarge):
        Histogram.zeros(Domain.of_shape((10**6, 10**6)))
