"""Cliques of attributes: sums over them are sums over the whole domain."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from dualmandate.mechanism.synthesis import junction_tree as module
from dualmandate.mechanism.synthesis.junction_tree import (
    Places,
    Propagation,
    TreeModel,
    junction_tree,
    tree_cells,
)
from dualmandate.population.arrays import Floats

SIZES = (2, 3, 4, 2, 3, 2)
SETS: list[Places] = [(0, 1), (1, 2), (2, 3), (0, 3), (4,)]  # a ring of four, one alone, one of no set


def test_a_ring_of_four_gets_a_chord_through_the_smallest_attributes() -> None:
    tree = junction_tree(SIZES, SETS)
    assert {(0, 1, 3), (1, 2, 3)} <= set(tree.cliques) or {(0, 1, 2), (0, 2, 3)} <= set(tree.cliques)
    assert tree.cells == tree_cells(SIZES, SETS) == 12 + 24 + 3 + 2
    assert all(tree.home(places) is not None for places in SETS)
    for number, (separator, parent) in enumerate(zip(tree.separators, tree.parents, strict=True)):
        assert parent < number
        if parent >= 0:
            assert set(separator) == set(tree.cliques[number]) & set(tree.cliques[parent])


def whole(logs: dict[Places, Floats]) -> Floats:
    """The product of all factors, cell by cell of the domain."""
    found = np.zeros(SIZES)
    for places, log in logs.items():
        found = found + np.expand_dims(log, tuple(axis for axis in range(len(SIZES)) if axis not in places))
    return np.exp(found)


def test_marginals_of_any_attributes_are_those_of_the_whole_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    logs = {places: generator.normal(size=[SIZES[place] for place in places]) for places in SETS}
    impossible = np.zeros((3, 4), dtype=np.bool_)
    impossible[1, 2] = impossible[0, 0] = True
    joint = whole(logs) * np.where(impossible[None, :, :, None, None, None], 0.0, 1.0)
    tree = junction_tree(SIZES, SETS)
    potentials = [np.zeros([SIZES[place] for place in clique]) for clique in tree.cliques]
    for places, log in logs.items():
        home = tree.home(places)
        assert home is not None
        outside = tuple(axis for axis, place in enumerate(tree.cliques[home]) if place not in places)
        potentials[home] += np.expand_dims(log, outside)
    masks = []
    for clique in tree.cliques:
        holds = {1, 2} <= set(clique)
        axes = tuple(axis for axis, place in enumerate(clique) if place not in (1, 2))
        shape = [SIZES[place] for place in clique]
        masks.append(np.broadcast_to(np.expand_dims(~impossible, axes), shape) if holds else None)
    beliefs, log_total = Propagation(tree).calibrated(potentials, masks)
    assert log_total == pytest.approx(math.log(joint.sum()), rel=1e-12)
    model = TreeModel(tree, tuple(beliefs))
    for count in range(len(SIZES) + 1):
        for places in combinations(range(len(SIZES)), count):
            dropped = tuple(axis for axis in range(len(SIZES)) if axis not in places)
            assert model.marginal(places) == pytest.approx(joint.sum(axis=dropped) / joint.sum(), rel=1e-10)
    assert model.marginal((4, 0)) == pytest.approx(model.marginal((0, 4)).T)
    whole_table = model.marginal((0, 2, 3, 4, 5))
    monkeypatch.setattr(module, "MOST_HELD", 7)  # level by level of one attribute after the other
    assert model.work((0, 2, 3, 4, 5)) > 7
    assert model.marginal((0, 2, 3, 4, 5)) == pytest.approx(whole_table, rel=1e-10)
    assert model.marginal((0, 2, 5)) == pytest.approx(whole_table.sum(axis=(2, 3)), rel=1e-10)


def test_factors_that_are_far_apart_do_not_run_out_of_numbers() -> None:
    tree = junction_tree((3, 3, 3), [(0, 1), (1, 2)])
    steep = np.array([[0.0, -4000.0, -9000.0]] * 3)
    beliefs, _ = Propagation(tree).calibrated([steep, steep.T + 5000.0], [None, None])
    model = TreeModel(tree, tuple(beliefs))
    assert all(np.isfinite(belief).all() for belief in beliefs)
    assert model.marginal((0, 1, 2)).sum() == pytest.approx(1.0)
