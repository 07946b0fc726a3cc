"""Estimates with tables that cross the chain or the tree, against dense least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.publication.consistency.test_estimates import (
    FREE,
    PRODUCT,
    REGULAR,
    TREE,
    UNLIKE,
    WITH_ZEROS,
    indices,
    measure,
    only,
    queries,
)

from dualmandate.publication.consistency import strata
from dualmandate.publication.consistency.crossing import CrossedEstimates, estimate_crossed
from dualmandate.publication.consistency.estimates import Pair
from dualmandate.publication.consistency.partitions import PartitionChain, renumbered
from dualmandate.publication.consistency.strata import CrossingMeasurement, Strata

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
THIRDS = indices(0, 1, 2, 0, 1, 2)  # crosses two groups of three
SOME = indices(0, -1, 1, 0, -1, 1)
NODES = [indices(0), indices(0, 1), indices(0, 1, 2, 3, 4)]


def crossing(level: int, groups: Integers, variance: float, areas: Integers | None = None) -> CrossingMeasurement:
    own = NODES[level] if areas is None else areas
    return CrossingMeasurement(level, own, groups, (int(own.max()) + 1, int(groups.max()) + 1), variance)


def across(found: CrossingMeasurement) -> Floats:
    """The dense rows of a crossing table, over leaves × cells."""
    upward = np.kron(queries(TREE, REGULAR, (found.level, 2)), np.ones(1))
    nodes = upward.reshape(found.areas.size, 6, 5, 6)[:, 0, :, 0]
    areas = np.stack([(found.areas == area) @ nodes for area in range(found.shape[0])])
    groups = (np.arange(found.shape[1])[:, None] == found.groups).astype(np.float64)
    return np.asarray(np.kron(areas, groups), dtype=np.float64)


class Dense(NamedTuple):
    """Estimate and covariance of all cells of all leaves, and a projection on what nothing is known of."""

    cells: Floats
    covariance: Floats
    unknown: Floats

    def variances(self, matrix: Floats) -> Floats:
        """Of each row of a matrix, ∞ where it is not known."""
        found = np.einsum("ij,jk,ik->i", matrix, self.covariance, matrix)
        return np.where(np.abs(matrix @ self.unknown).max(axis=1) > 1e-6, np.inf, found)


def dense(
    chain: PartitionChain,
    measured: dict[Pair, Integers],
    variances: dict[Pair, float],
    *others: tuple[CrossingMeasurement, Floats],
) -> Dense:
    """Generalized least squares, exact numbers as linear equations."""
    cells = 30
    held = np.tile(np.ones(6, dtype=bool) if chain.zeros is None else ~chain.zeros, 5)
    rows: list[tuple[Floats, NDArray[Any], float]]
    rows = [(queries(TREE, chain, pair), measured[pair].reshape(-1), each) for pair, each in variances.items()]
    rows += [(across(one), numbers.reshape(-1), one.variance) for one, numbers in others]
    information, right, equations, known = np.zeros((cells, cells)), np.zeros(cells), [np.eye(cells)[~held]], []
    known.append(np.zeros(int((~held).sum())))
    for matrix, answer, variance in rows:
        possible = np.abs(matrix[:, held]).sum(axis=1) > 0
        if variance == 0:
            equations.append(matrix[possible])
            known.append(answer[possible])
        else:
            information += matrix[possible].T @ matrix[possible] / variance
            right += matrix[possible].T @ answer[possible] / variance
    wall = np.concatenate(equations)
    bordered = np.block([[information, wall.T], [wall, np.zeros((len(wall), len(wall)))]])
    inverse = np.linalg.pinv(bordered, rcond=1e-11)
    span = np.concatenate([information, wall])
    unknown = np.eye(cells) - np.linalg.pinv(span, rcond=1e-11) @ span
    return Dense((inverse @ np.concatenate([right, *known]))[:cells], inverse[:cells, :cells], unknown)


ORTHOGONAL: dict[str, tuple[PartitionChain, dict[Pair, float], tuple[CrossingMeasurement, ...]]] = {
    "one level": (REGULAR, FREE, (crossing(1, THIRDS, 2.0),)),
    "the root": (REGULAR, FREE, (crossing(0, THIRDS, 0.5),)),
    "leaves": (REGULAR, FREE, (crossing(2, THIRDS, 1.5),)),
    "every level, and twice": (REGULAR, FREE, tuple(crossing(i % 3, THIRDS, 1.0 + i) for i in range(4))),
    "a table that nests, measured once more": (REGULAR, FREE, (crossing(1, indices(0, 0, 0, 1, 1, 1), 2.0),)),
    "exact total": (REGULAR, FREE | {(0, 0): 0.0}, (crossing(1, THIRDS, 2.0),)),
    "exact groups of the middle": (REGULAR, FREE | {(1, 1): 0.0}, (crossing(1, THIRDS, 2.0), crossing(2, THIRDS, 3.0))),
    "cells of leaves alone": (REGULAR, only(FREE, (2, 2), (1, 0)), (crossing(0, THIRDS, 2.0),)),
    "cells of leaves are not measured": (REGULAR, only(FREE, (0, 0), (1, 1), (2, 1)), (crossing(1, THIRDS, 2.0),)),
    "cells are measured above only": (REGULAR, only(FREE, (0, 2), (1, 1), (2, 1)), (crossing(2, THIRDS, 2.0),)),
}
OTHERS: dict[str, tuple[PartitionChain, dict[Pair, float], tuple[CrossingMeasurement, ...]]] = {
    "unlike parts": (UNLIKE, PRODUCT, (crossing(1, THIRDS, 2.0), crossing(2, indices(0, 0, 1, 1, 1, 1), 3.0))),
    "structural zeros": (WITH_ZEROS, PRODUCT | {(0, 0): 0.0}, (crossing(1, THIRDS, 2.0),)),
    "some cells are not counted": (REGULAR, FREE, (crossing(1, SOME, 2.0),)),
    "areas that cross the tree": (REGULAR, FREE, (crossing(2, THIRDS, 2.0, indices(0, 1, 0, 1, -1)),)),
    "unlike parts of which nobody measured cells": (
        UNLIKE,
        {pair: each for pair, each in PRODUCT.items() if pair[1] < 2},
        (crossing(1, THIRDS, 2.0), crossing(2, indices(0, 0, 1, 1, 1, 1), 3.0)),
    ),
    "unlike groups": (REGULAR, FREE, (crossing(2, indices(0, 1, 1, 0, 0, 1), 2.0), crossing(1, THIRDS, 1.0))),
}


def numbers_of(crossings: Sequence[CrossingMeasurement], truth: NDArray[np.int64], seed: int = 5) -> list[Floats]:
    generator = np.random.default_rng(seed)
    exact = [(across(each) @ truth.reshape(-1)).reshape(each.shape) for each in crossings]
    return [
        np.rint(each + generator.normal(0, own.variance**0.5, each.shape))
        for each, own in zip(exact, crossings, strict=True)
    ]


@pytest.mark.parametrize("name", [*ORTHOGONAL, *OTHERS])
def test_estimates_are_those_of_dense_least_squares(name: str) -> None:
    chain, variances, crossings = (ORTHOGONAL | OTHERS)[name]
    truth, measured = measure(TREE, chain, variances)
    numbers = list(zip(crossings, numbers_of(crossings, truth), strict=True))
    found = estimate_crossed((TREE, chain), measured, variances, numbers)
    truly = dense(chain, measured, variances, *numbers)
    assert found.best
    near = 1e-4 if "unlike parts of which" in name else 1e-8
    for level in range(3):
        for k, table in enumerate(found.estimates.tables(level)):
            matrix = queries(TREE, chain, (level, k))
            variance = truly.variances(matrix)
            known = np.isfinite(variance)
            assert table.reshape(-1)[known] == pytest.approx((matrix @ truly.cells)[known], abs=near)
            alone = found.alone.standard_errors(level)[k].reshape(-1) ** 2
            assert np.all(alone >= variance - 1e-9)
    for number, each in enumerate(crossings):
        matrix = across(each)
        assert found.tables[number].reshape(-1) == pytest.approx(matrix @ truly.cells, abs=near)
        variance = truly.variances(matrix)
        assert np.all(found.bounds(number).reshape(-1) ** 2 >= variance - 1e-9)
        assert np.all(found.bounds(number) ** 2 <= each.variance + 1e-9)


@pytest.mark.parametrize("name", ORTHOGONAL)
def test_standard_errors_of_orthogonal_tables_are_those_of_dense_least_squares(name: str) -> None:
    chain, variances, crossings = ORTHOGONAL[name]
    truth, measured = measure(TREE, chain, variances)
    numbers = list(zip(crossings, numbers_of(crossings, truth), strict=True))
    strata = Strata.of(TREE, chain, variances, crossings)
    assert strata is not None
    truly = dense(chain, measured, variances, *numbers)
    labels = [indices(0, 0, 0, 0, 0, 0), indices(0, 0, 0, 1, 1, 1), indices(0, 1, 2, 3, 4, 5)]
    tables = [(level, labels[k], queries(TREE, chain, (level, k))) for level in range(3) for k in range(3)]
    tables += [(each.level, each.groups, across(each)) for each in crossings]
    for level, own, matrix in tables:
        variance = truly.variances(matrix)
        assert strata.standard_errors(level, own).reshape(-1) ** 2 == pytest.approx(variance, abs=1e-8)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_orthogonal_is_said_so(name: str) -> None:
    chain, variances, crossings = OTHERS[name]
    assert Strata.of(TREE, chain, variances, crossings) is None


def test_without_crossing_tables_estimates_are_the_nest_s() -> None:
    _, measured = measure(TREE, REGULAR, FREE)
    found = estimate_crossed((TREE, REGULAR), measured, FREE, [])
    assert isinstance(found, CrossedEstimates)
    assert found.tables == ()


def test_groupings_are_closed_under_what_holds_two_of_them_and_only_once() -> None:
    """Marginals of 2 × 3 × 4 cells: two that share an attribute hold that one's; ranks are of levels less 1."""
    shape = (2, 3, 4)
    places = np.indices(shape).reshape(3, -1)

    def marginal(*axes: int) -> bytes:
        flat = np.zeros(24, dtype=np.int64)
        for axis in axes:
            flat = flat * shape[axis] + places[axis]
        return renumbered(flat).tobytes()

    asked = marginal(0, 1), marginal(1, 2), marginal()
    closed = strata._closed(asked)
    assert closed is not None
    found = [each.tobytes() for each in closed[0]]
    ranks = dict(zip(found, closed[1], strict=True))
    assert ranks == {marginal(0, 1): 1 * 2 + 1, marginal(1, 2): 2 * 3 + 3, marginal(1): 2, marginal(): 1}
    coarser = {found[i]: [found[j] for j in above] for i, above in enumerate(closed[2])}
    assert coarser[marginal(1, 2)] == coarser[marginal(0, 1)] == [marginal(), marginal(1)]
    assert coarser[marginal(1)] == [marginal()]
    assert strata._closed(asked) is closed
