"""Whole records of a model: dealt clique by clique, then moved until their small tables are the model's.

Dealing gives each cell of a clique its share of its records, up to one; which records of different cliques go together
is chance, and what chance takes from tables across cliques is mended level by level, without a look at anything but the
model.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from dualmandate.mechanism.synthesis.junction_tree import MOST_HELD, Places, TreeModel, cells_of
from dualmandate.population.arrays import Floats, Integers

PUBLIC_SEED = 2022  # records are dealt from it: a model is all that they show, so that nothing here is secret
MENDED = (3, 2)  # tables of so many attributes, the most that can be afforded
MOST_TABLES = 2_000
MOST_MENDING = 2**28  # numbers looked at in a pass over all records


def dealt_records(model: TreeModel, count: int) -> Integers:
    """Levels of so many records whose tables of up to three attributes are the model's as nearly as records can be.

    Shape (count, attributes); deterministic. Of many attributes or records tables of two are looked at, or none.
    """
    from dualmandate.mechanism.synthesis.records_fit import Target, fitted_records, looked_at

    sizes, dealt = model.tree.sizes, dealt_by_cliques(model, count)
    for order in MENDED:
        sets = [places for places in combinations(range(len(sizes)), order) if cells_of(places, sizes) <= MOST_HELD]
        if len(sets) <= MOST_TABLES and count * looked_at(sizes, sets) <= MOST_MENDING:
            break
    else:
        return dealt
    targets = [Target(places, count * model.marginal(places), 1.0) for places in sets]
    moved = fitted_records(sizes, targets, count, start=dealt.T.astype(np.uint16, order="C")).levels.T.astype(np.int64)
    for clique, belief in zip(model.tree.cliques, model.beliefs, strict=True):
        # What the model gives no mass, as it does where nothing can occur, no record comes to.
        never = belief[tuple(moved[:, place] for place in clique)] == 0.0
        moved[never] = dealt[never]
    return moved


def dealt_by_cliques(model: TreeModel, count: int) -> Integers:
    """Levels of so many records, shape (count, attributes); deterministic.

    A clique shares out the records that have each combination of levels of its separator, by systematic sampling, and
    which of them get which of its other levels is chance.
    """
    sizes, generator = model.tree.sizes, np.random.default_rng(PUBLIC_SEED)
    levels = np.zeros((count, len(sizes)), dtype=np.int64)
    for clique, separator, belief in zip(model.tree.cliques, model.tree.separators, model.beliefs, strict=True):
        new = tuple(place for place in clique if place not in separator)
        if not new or not count:
            continue
        shares = belief.transpose([clique.index(place) for place in (*separator, *new)])
        table = shares.reshape(cells_of(separator, sizes), -1)
        groups = _cells(levels, separator, sizes)
        shuffled = generator.permutation(count)
        order = shuffled[np.argsort(groups[shuffled], kind="stable")]
        held = np.bincount(groups, minlength=len(table))
        cells = np.tile(np.arange(table.shape[1]), len(table))
        taken = np.repeat(cells, _allotted(table, held, generator.random(len(table))).reshape(-1))
        for place in reversed(new):
            taken, levels[order, place] = np.divmod(taken, sizes[place])
    return levels


def _cells(levels: Integers, places: Places, sizes: tuple[int, ...]) -> Integers:
    found = np.zeros(len(levels), dtype=np.int64)
    for place in places:
        found = found * sizes[place] + levels[:, place]
    return found


def _allotted(shares: Floats, held: Integers, starts: Floats) -> Integers:
    """Whole numbers that add up to what each row holds, each within one of its share: systematic sampling."""
    sums = np.cumsum(shares, axis=1)
    whole = sums[:, -1:]
    # Where a model has no mass, records that came there by rounding are spread evenly.
    even = np.arange(1, shares.shape[1] + 1) / shares.shape[1]
    reached = np.where(whole > 0.0, sums / np.where(whole > 0.0, whole, 1.0), even) * held[:, None]
    reached[:, -1] = held
    ends = np.floor(reached + starts[:, None]).astype(np.int64)
    return np.diff(ends, axis=1, prepend=0)


def marginal_of(levels: Integers, places: Places, sizes: tuple[int, ...]) -> Integers:
    """How many records have each combination of some attributes' levels."""
    shape = [sizes[place] for place in places]
    return np.bincount(_cells(levels, places, sizes), minlength=cells_of(places, sizes)).reshape(shape)
