"""Groups by size over a geography: they add up, keep every number of groups, and move as few persons as can be."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism import GEOMETRIC, GroupForm, counts_by_size, earth_movers_distance, simulation_keys
from dualmandate.population import PrivacyLoss, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency import Tree, consistent_groups, measured_levels
from dualmandate.publication.consistency.group_sizes import matched_groups

TREE = Tree((np.repeat(0, 5), np.repeat(np.arange(5), 8)))
EVERYBODY = Protection()


def counts_of_levels(tree: Tree, leaves: Integers) -> list[Integers]:
    levels = [leaves]
    for parents, size in zip(reversed(tree.parents), reversed(tree.sizes[:-1]), strict=True):
        sums = np.zeros((size, leaves.shape[1]), dtype=np.int64)
        np.add.at(sums, parents, levels[0])
        levels.insert(0, sums)
    return levels


@given(seed=st.integers(0, 2**20), form=st.sampled_from(GroupForm), epsilon=st.sampled_from([0.01, 0.5, 8.0]))
@settings(max_examples=30, deadline=None)
def test_tables_add_up_and_keep_the_number_of_groups(seed: int, form: GroupForm, epsilon: float) -> None:
    generator = np.random.default_rng(seed)
    tree, _ = Tree.of((np.sort(generator.integers(0, 3, 9)),))
    groups = int(generator.integers(1, 60))
    sizes, areas = generator.integers(0, 9, groups), generator.integers(0, 9, groups)
    leaves = counts_by_size(sizes, areas, area_count=9, largest=6)
    measured = measured_levels(
        tree,
        leaves,
        loss=PrivacyLoss.pure(epsilon),
        protection=EVERYBODY,
        keys=simulation_keys(1, seed),
        form=form,
    )
    found = consistent_groups(tree, [level.fitted() for level in measured])
    for tables, expected, exact in zip(
        found, counts_of_levels(tree, found[-1]), counts_of_levels(tree, leaves), strict=True
    ):
        assert np.array_equal(tables, expected)
        assert np.array_equal(tables.sum(axis=1), exact.sum(axis=1))
        assert tables.min() >= 0


@given(seed=st.integers(0, 2**20))
@settings(max_examples=100, deadline=None)
def test_no_matching_moves_fewer_persons(seed: int) -> None:
    """By optimal transport on a line, and by every matching of up to six groups."""
    generator = np.random.default_rng(seed)
    owners = generator.integers(0, 3, 6)
    children = counts_by_size(generator.integers(0, 5, 6), owners, area_count=3, largest=4)
    area = np.bincount(generator.integers(0, 5, 6), minlength=5)
    found = matched_groups(area, children)
    assert np.array_equal(found.sum(axis=0), area)
    assert np.array_equal(found.sum(axis=1), children.sum(axis=1))
    moved = int(earth_movers_distance(found, children).sum())
    assert moved == earth_movers_distance(children.sum(axis=0), area)
    own, wanted = (np.repeat(np.arange(5), counts) for counts in (children.sum(axis=0), area))
    assert moved == min(int(np.abs(own - each).sum()) for each in permutations(wanted.tolist()))


def test_groups_of_one_size_are_shared_evenly() -> None:
    """Sixty groups of two persons in two children: a third of each becomes three."""
    found = matched_groups(np.array([0, 0, 40, 20]), np.array([[0, 0, 30, 0], [0, 0, 30, 0]]))
    assert found.tolist() == [[0, 0, 20, 10], [0, 0, 20, 10]]


def by_means(tree: Tree, fitted: list[Integers]) -> list[Integers]:
    """The way of [KCKHM18]: matched groups get the mean of both sizes, weighted by the length of their runs."""
    largest = fitted[0].shape[1] - 1

    def groups_of(counts: Integers) -> tuple[Floats, Floats]:
        return np.repeat(np.arange(largest + 1.0), counts), np.repeat(counts, counts).astype(float)

    found = [groups_of(fitted[0][0])]
    for level, tables in enumerate(fitted[1:]):
        below = []
        for node, (sizes, weights) in enumerate(found):
            children = [groups_of(tables[child]) for child in tree.children(level, node)]
            own, trust = (np.concatenate(parts) for parts in zip(*children, strict=True))
            order, rank = np.argsort(own, kind="stable"), np.argsort(sizes, kind="stable")
            mean, sure = np.empty_like(own), np.empty_like(own)
            sure[order] = trust[order] + weights[rank]
            mean[order] = (own[order] * trust[order] + sizes[rank] * weights[rank]) / sure[order]
            cuts = np.cumsum([len(sizes) for sizes, _ in children])[:-1]
            below += list(zip(np.split(mean, cuts), np.split(sure, cuts), strict=True))
        found = below
    leaves = np.array([np.bincount(np.rint(mean).astype(int), minlength=largest + 1) for mean, _ in found])
    return counts_of_levels(tree, leaves)


@pytest.mark.parametrize("shape", ["households", "establishments"])
def test_errors_beside_those_of_means_and_of_the_naive_form(shape: str) -> None:
    generator, areas = np.random.default_rng(1), np.repeat(np.arange(40), 200)
    sizes = (
        generator.poisson(1.6, 8_000) + 1 if shape == "households" else (generator.pareto(1.2, 8_000) * 3).astype(int)
    )
    leaves = counts_by_size(sizes, areas, area_count=40, largest=60)
    exact = counts_of_levels(TREE, leaves)
    ours, means, naive = np.zeros(3), np.zeros(3), np.zeros(3)
    for number in range(6):
        fitted = {
            form: [
                level.fitted()
                for level in measured_levels(
                    TREE,
                    leaves,
                    loss=PrivacyLoss.pure(1),
                    protection=EVERYBODY,
                    keys=simulation_keys(2, number),
                    form=form,
                )
            ]
            for form in (GroupForm.COUNTS, GroupForm.RUNNING_COUNTS)
        }
        for errors, tables in (
            (ours, consistent_groups(TREE, fitted[GroupForm.RUNNING_COUNTS])),
            (means, by_means(TREE, fitted[GroupForm.RUNNING_COUNTS])),
            (naive, fitted[GroupForm.COUNTS]),
        ):
            errors += [earth_movers_distance(table, truth).sum() for table, truth in zip(tables, exact, strict=True)]
    assert np.all(ours < naive / 3)
    assert np.all(ours < means)


@pytest.mark.parametrize("form", [GroupForm.COUNTS, GroupForm.RUNNING_COUNTS])
def test_every_level_has_its_part_of_the_loss(form: GroupForm) -> None:
    """Three levels at ε = 3: noise of ε = 1 a level, of half that where a person changes two numbers."""
    leaves = np.full((40, 501), 10)
    measured = measured_levels(
        TREE, leaves, loss=PrivacyLoss.pure(3), protection=EVERYBODY, keys=simulation_keys(3, 0), form=form
    )
    running = form is GroupForm.RUNNING_COUNTS
    seen = []
    for level, exact in zip(measured, counts_of_levels(TREE, leaves), strict=True):
        seen.append(level.values - (exact.cumsum(axis=1)[:, :-1] if running else exact))
        assert np.square(seen[-1]).mean() == pytest.approx(
            GEOMETRIC.variance(1.0 if running else 0.5), rel=0.4 if len(exact) == 1 else 0.15
        )
    assert abs(np.corrcoef(seen[0][0], seen[1][0])[0, 1]) < 0.2  # noise of its own


def test_what_is_refused() -> None:
    leaves = np.ones((3, 4), dtype=np.int64)
    with pytest.raises(InvalidMechanism, match="for 40 areas"):
        measured_levels(TREE, leaves, loss=PrivacyLoss.pure(1), protection=EVERYBODY, keys=simulation_keys(0, 0))
    tree = Tree((np.array([0, 0]),))
    for fitted in (
        [np.array([[3, 1]])],
        [np.array([[3, 1]]), np.array([[1, 1], [1, 0]])],
        [np.array([[3, 1]]), np.array([[1, 1], [-1, 3]])],
    ):
        with pytest.raises(InvalidMechanism, match="of one geography"):
            consistent_groups(tree, fitted)
