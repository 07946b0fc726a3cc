"""Many random workloads from a seeded generator: larger, and less tidy, than a shrinking strategy draws them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from tests.conftest import Tell

from dualmandate.errors import InvalidDomain, Refusal, TooLarge
from dualmandate.population import Attribute, Domain, Invariant, Neighbors, Protection, StructuralZero
from dualmandate.workload import (
    AllRange,
    Dense,
    Factor,
    Groups,
    Identity,
    Prefix,
    Row,
    Table,
    Tabulation,
    Total,
    Workload,
)
from dualmandate.workload import sensitivity as engine

CASES = 150
SIZES = (1, 2, 3, 4, 5, 7, 10, 14)
MOST_CELLS = 80


def any_factor(generator: np.random.Generator, size: int) -> Factor:
    match int(generator.integers(11)):
        case 0:
            return Identity(size)
        case 1:
            return Total(size)
        case 2:
            return Prefix(size)
        case 3:
            return AllRange(size)
        case 4 | 5:
            return Row(generator.integers(-3, 4, size))
        case 6:
            return Row(generator.integers(0, 3, size))
        case 7:
            return Row(generator.integers(1, 6, size))
        case 8:
            labels, weights = generator.integers(0, 3, size), generator.choice([-2, -1, 1, 2], size)
            return Groups.of_labels(labels, ("a", "b", "c"), weights)
        case 9:
            lists = [generator.permutation(size)[: generator.integers(1, size + 1)] for _ in range(3)]
            return Groups.of_lists(size, [chosen.tolist() for chosen in lists])
        case _:
            return Dense(generator.integers(-2, 3, (int(generator.integers(1, 4)), size)))


def some_levels(generator: np.random.Generator, domain: Domain, axis: int) -> tuple[str, ...]:
    levels = domain.attributes[axis].levels
    return tuple(levels[i] for i in generator.permutation(len(levels))[: generator.integers(1, len(levels) + 1)])


def any_domain(generator: np.random.Generator) -> Domain:
    sizes: list[int] = [MOST_CELLS, 2]
    while np.prod(sizes) > MOST_CELLS:
        sizes = generator.choice(SIZES, int(generator.integers(1, 4))).tolist()
    attributes = tuple(Attribute.categories(f"x{i}", map(str, range(size))) for i, size in enumerate(sizes))
    plain = Domain(attributes)
    zeros = []
    for _ in range(int(generator.choice([0, 0, 1, 2]))):
        axes = generator.permutation(len(sizes))[: generator.integers(1, len(sizes) + 1)].tolist()
        zeros.append(StructuralZero.of({f"x{axis}": some_levels(generator, plain, axis) for axis in axes}))
    try:
        return Domain(attributes, structural_zeros=tuple(zeros))
    except InvalidDomain:
        return plain


def any_workload(generator: np.random.Generator) -> Workload:
    domain = any_domain(generator)
    tables = tuple(
        Table(
            f"table {number}",
            tuple(any_factor(generator, size) for size in domain.shape),
            Fraction(int(generator.integers(1, 5)), int(generator.integers(1, 4))),
        )
        for number in range(int(generator.integers(1, 5)))
    )
    return Workload(domain, tables)


def any_total(generator: np.random.Generator, domain: Domain) -> Invariant:
    axes = range(len(domain.shape))
    by = tuple(f"x{axis}" for axis in axes if generator.random() < 0.3)
    where = tuple((f"x{axis}", some_levels(generator, domain, axis)) for axis in axes if generator.random() < 0.2)
    return Invariant("total", by, where)


@pytest.mark.parametrize("written", [True, False], ids=["small tables written out", "sums of products alone"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_changing_a_record_moves_answers_as_far_as_brute_force_says(
    norm: Literal["l1", "l2"], written: bool, brute_force: Any, monkeypatch: pytest.MonkeyPatch, tell: Tell
) -> None:
    if not written:
        monkeypatch.setattr(engine, "LARGEST_COMPARISON", 0)
        monkeypatch.setattr(engine, "MOST_FORKS", 1)
    generator = np.random.default_rng([written, len(norm), int(norm[1])])
    compared = exact = 0
    while compared < CASES:
        workload = any_workload(generator)
        totals = (any_total(generator, workload.domain),) if generator.random() < 0.4 else ()
        try:
            found = workload.sensitivity(Protection(neighbors=Neighbors.REPLACE_ONE, invariants=totals), norm)
        except Refusal:
            continue
        true = brute_force(workload).replace_one(int(norm[1]), totals)
        assert found.power == true if found.exact else found.power >= true
        compared, exact = compared + 1, exact + found.exact
    tell("workloads against brute force", tried=compared)
    assert exact == CASES if written or norm == "l2" else CASES // 2 < exact < CASES


@pytest.mark.parametrize("factor", [Row(np.arange(7)), Row(np.arange(-6, 1)), Prefix(7)], ids=["up", "down", "prefix"])
def test_two_levels_at_one_end_of_a_run_can_be_the_farthest_pair(factor: Factor, brute_force: Any) -> None:
    """Cells of different groups add up what both levels move, and a table by level wants the two to differ."""
    tables = (Table("by group", (factor, Identity(2))), Table("by level", (Identity(7), Total(2))))
    workload = Workload(Domain.of_shape((7, 2)), tables)
    found = workload.sensitivity(Protection(neighbors=Neighbors.REPLACE_ONE))
    assert found.exact
    assert found.power == brute_force(workload).replace_one(1) == (13 if factor.rows == 1 else 15)


def test_products_of_unequal_weights_are_compared_as_wholes(brute_force: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells 5·1 and 1·3 differ by 2, not by 5 + 3 − 2·min(5, 1)·min(1, 3) = 6.

    Columns that mix several numbers, and tables beyond `MOST_FORKS`, are only bounded, and that is said.
    """
    levels = tuple(Attribute.categories(name, ["0", "1"]) for name in ("x", "y"))
    zeros = (StructuralZero.of({"x": "0", "y": "1"}), StructuralZero.of({"x": "1", "y": "0"}))
    domain = Domain(levels, structural_zeros=zeros)
    workload = Workload(domain, (Table("product", (Row(np.array([5, 1])), Row(np.array([1, 3])))),))
    mixed = Workload(domain, (Table("mixed", (Dense(np.array([[5, 1], [1, 2]])), Dense(np.array([[1, 3], [2, 1]])))),))
    protection = Protection(neighbors=Neighbors.REPLACE_ONE)
    monkeypatch.setattr(engine, "LARGEST_COMPARISON", 0)
    found, bound = workload.sensitivity(protection), mixed.sensitivity(protection)
    assert found.exact
    assert found.power == 2
    monkeypatch.setattr(engine, "MOST_FORKS", 0)
    again = Workload(domain, workload.tables)  # a workload knows its sensitivity once it was asked
    for each, at_most in ((mixed, bound), (again, again.sensitivity(protection))):
        assert not at_most.exact
        assert at_most.power >= brute_force(each).replace_one(1)


def test_weights_of_two_attributes_multiply() -> None:
    levels = tuple(Attribute.categories(name, ["0", "1"]) for name in ("x", "y"))
    weights = {"x": {"0": "0.5", "1": "1"}, "y": {"0": "0.2", "1": "0.4"}}
    workload = Workload.from_tabulations(Domain(levels), [Tabulation.of("t", weights=weights)])
    assert workload.answers(np.array([[1, 0], [0, 10]])).tolist() == pytest.approx([0.5 * 0.2 + 10 * 0.4])


def test_answers_that_might_not_fit_are_refused() -> None:
    workload = Workload(Domain.of_shape((2,)), (Table("sum", (Row(np.array([2**40, 1])),)),))
    assert workload.answers(np.array([2**21, 0])).tolist() == [2**61]
    with pytest.raises(TooLarge, match="64-bit"):
        workload.answers(np.array([2**23, 0]))
