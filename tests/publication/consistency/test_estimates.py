"""Estimates against dense generalized least squares, and against simulation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.errors import InvalidInvariant, InvalidRequest
from dualmandate.publication.consistency.estimates import Innovations, Pair, Weights, estimate, pass_down, pass_up
from dualmandate.publication.consistency.partitions import PartitionChain, Tree

Arrays = dict[Pair, NDArray[np.int64]]


def indices(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


TREE = Tree((indices(0, 0), indices(0, 0, 0, 1, 1)))  # one, two, five
REGULAR = PartitionChain((indices(0, 0), indices(0, 0, 0, 1, 1, 1)))
UNLIKE = PartitionChain((indices(0, 0, 0), indices(0, 0, 0, 1, 2, 2)))
WITH_ZEROS = PartitionChain(REGULAR.parents, zeros=np.array([False, False, True, True, True, False]))
ALL = [(level, k) for level in range(3) for k in range(3)]
PRODUCT = {(level, k): (2.0, 5.0, 3.0)[level] * (1.0, 4.0, 2.5)[k] for level, k in ALL}
FREE = {pair: 1.0 + 3.0 * number % 7.0 for number, pair in enumerate(ALL)}


def summing(parents: tuple[NDArray[np.int64], ...], level: int) -> NDArray[np.float64]:
    """The dense matrix that sums what is last up to a level."""
    matrix = np.eye(parents[-1].size)
    for each in reversed(parents[level:]):
        matrix = np.asarray(np.eye(each[-1] + 1)[each].T @ matrix, dtype=np.float64)
    return matrix


def queries(tree: Tree, chain: PartitionChain, pair: Pair) -> NDArray[np.float64]:
    return np.asarray(np.kron(summing(tree.parents, pair[0]), summing(chain.parents, pair[1])), dtype=np.float64)


def generalized_least_squares(
    tree: Tree, chain: PartitionChain, measured: Mapping[Pair, NDArray[np.int64]], variances: Mapping[Pair, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimate and covariance of all cells of all leaves, exact numbers as linear equations (bordered system)."""
    cells = tree.sizes[-1] * chain.sizes[-1]
    held = np.ones((tree.sizes[-1], chain.sizes[-1]), dtype=bool) & (True if chain.zeros is None else ~chain.zeros)
    information, right, rows, values = np.zeros((cells, cells)), np.zeros(cells), [], []
    for pair, variance in variances.items():
        matrix, answer = queries(tree, chain, pair), measured[pair].reshape(-1)
        possible = np.abs(matrix[:, held.reshape(-1)]).sum(axis=1) > 0
        matrix, answer = matrix[possible], answer[possible]
        if variance == 0:
            rows.append(matrix)
            values.append(answer)
        else:
            information += matrix.T @ matrix / variance
            right += matrix.T @ answer / variance
    rows.append(np.eye(cells)[~held.reshape(-1)])
    values.append(np.zeros(rows[-1].shape[0]))
    equations, known = np.concatenate(rows), np.concatenate(values)
    bordered = np.block([[information, equations.T], [equations, np.zeros((len(equations), len(equations)))]])
    inverse = np.linalg.pinv(bordered, rcond=1e-11)
    return (inverse @ np.concatenate([right, known]))[:cells], inverse[:cells, :cells]


def measure(
    tree: Tree, chain: PartitionChain, variances: Mapping[Pair, float], seed: int = 1
) -> tuple[NDArray[np.int64], Arrays]:
    generator = np.random.default_rng(seed)
    truth = generator.poisson(4.0, (tree.sizes[-1], chain.sizes[-1])).astype(np.int64)
    if chain.zeros is not None:
        truth[:, chain.zeros] = 0
    measured: Arrays = {}
    for pair, variance in variances.items():
        exact = (queries(tree, chain, pair) @ truth.reshape(-1)).reshape(tree.sizes[pair[0]], chain.sizes[pair[1]])
        measured[pair] = np.rint(exact + generator.normal(0, variance**0.5, exact.shape)).astype(np.int64)
    return truth, measured


def only(variances: Mapping[Pair, float], *pairs: Pair) -> dict[Pair, float]:
    return {pair: variances[pair] for pair in pairs}


DESIGNS: dict[str, tuple[PartitionChain, dict[Pair, float]]] = {
    "alike parts, any variances": (REGULAR, FREE),
    "unlike parts, a product of variances": (UNLIKE, PRODUCT),
    "structural zeros": (WITH_ZEROS, PRODUCT),
    "exact total of the root": (REGULAR, FREE | {(0, 0): 0.0}),
    "exact total of the root, unlike parts": (UNLIKE, PRODUCT | {(0, 0): 0.0}),
    "exact totals of the middle": (UNLIKE, PRODUCT | {(1, 0): 0.0}),
    "exact groups of the root and totals of leaves": (WITH_ZEROS, PRODUCT | {(0, 1): 0.0, (2, 0): 0.0}),
    "some not measured": (REGULAR, only(PRODUCT, (0, 0), (1, 1), (2, 2), (2, 0))),
    "leaves and cells only": (REGULAR, only(FREE, (2, 2))),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_estimates_and_standard_errors_are_those_of_dense_least_squares(name: str) -> None:
    chain, variances = DESIGNS[name]
    _, measured = measure(TREE, chain, variances)
    found = estimate(TREE, chain, measured, variances)
    cells, covariance = generalized_least_squares(TREE, chain, measured, variances)
    for level in range(3):
        tables, errors = found.tables(level), found.standard_errors(level)
        for k in range(3):
            matrix = queries(TREE, chain, (level, k))
            assert tables[k].reshape(-1) == pytest.approx(matrix @ cells, abs=1e-8)
            variance = np.einsum("ij,jk,ik->i", matrix, covariance, matrix)
            assert errors[k].reshape(-1) ** 2 == pytest.approx(variance, abs=1e-8)


def test_simulated_errors_are_the_standard_errors() -> None:
    variances = PRODUCT | {(0, 0): 0.0}
    errors = []
    for seed in range(400):
        truth, measured = measure(TREE, WITH_ZEROS, variances, seed)
        errors.append(estimate(TREE, WITH_ZEROS, measured, variances).tables(2)[2] - truth)
    expected = estimate(TREE, WITH_ZEROS, measured, variances).standard_errors(2)[2]
    assert np.mean(errors, axis=0) == pytest.approx(np.zeros_like(expected), abs=0.6)
    assert np.std(errors, axis=0) == pytest.approx(expected, rel=0.15)


def test_a_partition_in_subtrees_gives_the_same_bytes() -> None:
    variances = FREE | {(0, 0): 0.0}
    _, measured = measure(TREE, REGULAR, variances)
    whole = estimate(TREE, REGULAR, measured, variances)
    weights, parts = Weights.of(REGULAR, variances, levels=3), []
    for node in range(2):
        subtree, nodes = TREE.subtree(1, node)
        rows = [slice(each.start, each.stop) for each in nodes]
        own = {(level - 1, k): measured[level, k][rows[level - 1]] for level, k in ALL if level}
        parts.append(pass_up(subtree, weights.below(1), own))
    values = tuple(np.concatenate([part.root.values[k] for part in parts]) for k in range(3))
    spread = tuple(np.concatenate([part.root.variances[k] for part in parts]) for k in range(3))
    above = Tree(TREE.parents[:1])
    upward = pass_up(
        above, weights, {pair: each for pair, each in measured.items() if pair[0] == 0}, Innovations(values, spread)
    )
    top = pass_down(upward, upward.root)
    for node, part in enumerate(parts):
        told = pass_down(part, top.state(1).only(node))
        children = TREE.children(1, node)
        for k in range(3):
            assert told.tables(1)[k].tobytes() == whole.tables(2, children)[k].tobytes()
            assert told.standard_errors(1)[k].tobytes() == whole.standard_errors(2, children)[k].tobytes()


def test_what_nothing_tells_apart_is_split_equally_and_says_so() -> None:
    variances = only(PRODUCT, (0, 0), (1, 0))
    _, measured = measure(TREE, REGULAR, variances)
    found = estimate(TREE, REGULAR, measured, variances)
    tables, errors = found.tables(2), found.standard_errors(2)
    assert np.all(np.isinf(errors[0]))
    assert np.all(np.isinf(errors[2]))
    assert tables[2][0] == pytest.approx(np.full(6, found.tables(1)[0][0, 0] / 3 / 6))
    assert np.all(np.isfinite(found.standard_errors(1)[0]))


def test_other_proportions_from_level_to_level_are_unbiased_and_standard_errors_bounds() -> None:
    variances = FREE | {(0, 0): 0.0}
    truth, measured = measure(TREE, UNLIKE, variances)
    found = estimate(TREE, UNLIKE, measured, variances)
    assert not found.upward.weights.best
    exact = {
        (level, k): (queries(TREE, UNLIKE, (level, k)) @ truth.reshape(-1)).reshape(TREE.sizes[level], UNLIKE.sizes[k])
        for level, k in ALL
    }
    assert estimate(TREE, UNLIKE, exact, variances).tables(2)[2] == pytest.approx(truth, abs=1e-9)
    _, covariance = generalized_least_squares(TREE, UNLIKE, measured, variances)
    bound = found.standard_errors(2)[2].reshape(-1)
    assert np.all(bound**2 >= np.diag(covariance) - 1e-9)
    # The estimate is linear: its true variance from one measurement at a time.
    variance, empty = np.zeros(bound.size), {pair: np.zeros_like(each) for pair, each in exact.items()}
    for pair, each in empty.items():
        for place in np.ndindex(each.shape):
            one = each.copy()
            one[place] = 1
            if variances[pair]:
                moved = estimate(TREE, UNLIKE, empty | {pair: one}, variances).tables(2)[2].reshape(-1)
                variance += variances[pair] * moved**2
    assert np.all(variance <= bound**2 + 1e-9)


def test_designs_that_passes_cannot_serve_are_refused() -> None:
    some = only(PRODUCT, (0, 0), (1, 1), (2, 2), (2, 0))
    _, measured = measure(TREE, UNLIKE, some)
    with pytest.raises(InvalidRequest, match="some groupings at some levels only"):
        estimate(TREE, UNLIKE, measured, some)
    with pytest.raises(InvalidRequest, match="a variance of -1"):
        estimate(TREE, UNLIKE, measured, PRODUCT | {(1, 1): -1.0})
    with pytest.raises(InvalidRequest, match="do not fit"):
        estimate(TREE, UNLIKE, measured, only(PRODUCT, (0, 0)))


def test_exact_numbers_that_contradict_each_other_are_refused() -> None:
    variances = PRODUCT | {(0, 0): 0.0, (1, 1): 0.0}
    _, measured = measure(TREE, UNLIKE, variances)
    estimate(TREE, UNLIKE, measured, variances)
    with pytest.raises(InvalidInvariant, match="cannot be counts"):
        estimate(TREE, UNLIKE, measured | {(0, 0): measured[0, 0] + 1}, variances)
    with pytest.raises(InvalidInvariant, match="cannot be counts"):
        estimate(TREE, UNLIKE, measured | {(0, 0): measured[0, 0] * -1}, PRODUCT | {(0, 0): 0.0})
