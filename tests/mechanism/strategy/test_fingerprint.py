"""The name of a strategy: the same for the same rows and weights, another for any other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dualmandate.mechanism import ExactStrategy, optimize_strategy
from dualmandate.mechanism.strategy.integer_rows import IntegerRows
from dualmandate.mechanism.strategy.partitions import IntegerPartitions
from dualmandate.mechanism.strategy.strategy_file import strategy_digest
from dualmandate.workload import Workload, identity, kron, marginals, prefix, stack, total


def exact(workload: Workload, noise: str = "laplace") -> ExactStrategy:
    return optimize_strategy(workload, noise).exact  # type: ignore[arg-type]


def test_the_same_strategy_has_the_same_name() -> None:
    for workload in (stack(identity(5), total(5)), prefix(6), marginals((3, 2, 2), 1), kron(prefix(3), identity(4))):
        for noise in ("laplace", "gaussian"):
            first, second = strategy_digest(exact(workload, noise)), strategy_digest(exact(workload, noise))
            assert first == second
            assert len(first) == 64
            assert set(first) <= set("0123456789abcdef")


def test_the_name_of_the_cells_themselves_is_known() -> None:
    """A change of this name is a change of what approvers have signed: raise VERSION with it."""
    assert strategy_digest(exact(identity(3))) == "e5a23356cf4ed9fd94b1256e42058148e70336c5de2453500cdc94f54efd1b81"


def test_other_strategies_have_other_names() -> None:
    asked = (
        identity(3),
        identity(4),
        total(3),
        stack(identity(40), total(40)),
        prefix(3),
        kron(identity(3), identity(1)),
    )
    names = {strategy_digest(exact(workload, noise)) for workload in asked for noise in ("laplace", "gaussian")}
    assert len(names) == 2 * len(asked)


def test_a_query_that_changes_nothing_about_the_strategy_leaves_its_name() -> None:
    """For so few cells their total is best read off them."""
    assert strategy_digest(exact(stack(identity(3), total(3)))) == strategy_digest(exact(identity(3)))


def test_a_weight_that_differs_in_its_last_bit_gives_another_name() -> None:
    found = exact(stack(identity(40), total(40)))
    [part] = found.parts
    assert isinstance(part, IntegerPartitions)
    moved = tuple(weights + np.ldexp(1.0, -18) for weights in part.weights)
    other = replace(found, parts=(replace(part, weights=moved),))
    reordered = replace(part, weights=part.weights[::-1], groupings=part.groupings[::-1])
    names = {strategy_digest(each) for each in (found, other, replace(found, parts=(reordered,)))}
    assert len(names) == 3


def test_a_row_or_a_weight_of_weighted_sums_gives_another_name() -> None:
    found = exact(prefix(6), "gaussian")
    [part] = found.parts
    assert isinstance(part, IntegerRows)
    [(sector, rows)] = part.sectors.items()
    numbers = rows.numbers.copy()
    numbers[-1, -1] += 1
    changes = (
        replace(rows, numbers=numbers),
        replace(rows, weights=(rows.weights[0] + Fraction(1, 2**40), *rows.weights[1:])),
    )
    others = [replace(found, parts=(replace(part, sectors={sector: change}),)) for change in changes]
    assert len({strategy_digest(each) for each in (found, *others)}) == 3
