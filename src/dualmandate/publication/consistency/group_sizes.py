"""Counts of counts that add up over a geography: households by size, in every block, tract and county.

Each level is measured and fitted by itself. The root's table is taken as it is. Then, from the root down, the groups of
the children of an area change size so that together they are the area's, and as few persons as possible join or leave:
groups in rising order of size, those of the children among each other, are matched with those of the area one by one.
No other matching moves fewer persons, nor less by any cost that rises ever faster with the change of a group [Vil03].
Of children's groups of one size, each child's take their share of a larger and a smaller size. So tables are whole, add
up, and keep the number of groups of every area, at every level; nothing is rounded twice.

In [KCKHM18] matched groups get the mean of both sizes, by the inverse of their variances, and the leaves decide. Groups
of one size are as many times fewer in a child as their mean is worse there, so that the mean is nearly the area's; and
what is left of the children's errors adds up at the root.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.count_of_counts import GroupForm, MeasuredGroups, measure_groups
from dualmandate.mechanism.data_dependent import Keys
from dualmandate.population import PrivacyLoss, Protection
from dualmandate.population.arrays import Integers
from dualmandate.publication.consistency.partitions import Tree


def measured_levels(
    tree: Tree,
    leaves: Integers,
    *,
    loss: PrivacyLoss,
    protection: Protection,
    keys: Keys,
    form: GroupForm = GroupForm.RUNNING_COUNTS,
) -> tuple[MeasuredGroups, ...]:
    """Measure the groups of every level of a geography, each at the same part of the loss; root first.

    `leaves` are exact counts of counts of the last level, shape (areas, K + 1). `keys` gives each measurement a key
    of its own, by its name. The number of groups of each area is public.
    """
    if leaves.ndim != 2 or leaves.shape[1] < 2 or leaves.shape[0] != tree.sizes[-1]:
        raise InvalidMechanism(
            f"counts of groups of shape {leaves.shape} for {tree.sizes[-1]:,} areas",
            why="each area of the last level has a count for each size from 0 to the largest",
            instead="count groups by size, with counts_by_size",
        )
    share = PrivacyLoss(loss.amount / len(tree.sizes), loss.privacy_measure)
    levels = [leaves]
    for starts in reversed(tree.starts):
        levels.append(_sums(levels[-1], starts))
    return tuple(
        measure_groups(counts, form=form, loss=share, protection=protection, key=keys(f"level {level} {form}"))
        for level, counts in enumerate(reversed(levels))
    )


def consistent_groups(tree: Tree, fitted: Sequence[Integers]) -> tuple[Integers, ...]:
    """Whole counts of counts of every level, root first, that add up over the geography; [l], shape (areas, K + 1).

    `fitted` are those of each level by itself, with as many groups in an area as in its children together.
    """
    agree = len(fitted) == len(tree.sizes) and all(
        len(own) == size and own.shape[1:] == fitted[0].shape[1:] and own.min(initial=0) >= 0
        for own, size in zip(fitted, tree.sizes, strict=True)
    )
    if not agree or any(
        np.any(_sums(children, starts).sum(axis=1) != own.sum(axis=1))
        for own, children, starts in zip(fitted[:-1], fitted[1:], tree.starts, strict=True)
    ):
        raise InvalidMechanism(
            "counts of groups that are not those of the areas of one geography",
            why="every area has a count from 0 on for each size, and as many groups as its children together",
            instead="fit what was measured of every level of this geography",
        )
    found = [fitted[0]]
    for level, children in enumerate(fitted[1:]):
        matched = [
            matched_groups(own, children[slice(*tree.starts[level][node : node + 2])])
            for node, own in enumerate(found[-1])
        ]
        found.append(np.concatenate(matched))
    return tuple(found)


def matched_groups(area: Integers, children: Integers) -> Integers:
    """The children's counts after their groups became those of the area, shape (children, K + 1)."""
    found, left = np.zeros_like(children), children.copy()
    together, needed = children.sum(axis=0), area.copy()
    sizes, wanted = np.flatnonzero(together).tolist(), np.flatnonzero(needed).tolist()
    while sizes:
        size, target = sizes[0], wanted[0]
        moved = min(int(together[size]), int(needed[target]))
        taken = _shares(left[:, size], moved)
        found[:, target] += taken
        left[:, size] -= taken
        together[size] -= moved
        needed[target] -= moved
        if not together[size]:
            sizes.pop(0)
        if not needed[target]:
            wanted.pop(0)
    return found


def _shares(groups: Integers, moved: int) -> Integers:
    """So many of these groups, from each child as many as is its share, in whole numbers by the largest remainders."""
    total = int(groups.sum())
    whole, rest = np.divmod(groups * moved, total)
    whole[np.argsort(-rest, kind="stable")[: moved - int(whole.sum())]] += 1
    return np.asarray(whole)


def _sums(children: Integers, starts: Integers) -> Integers:
    """The sums over the children of each area."""
    running = np.concatenate([np.zeros((1, children.shape[1]), dtype=np.int64), np.cumsum(children, axis=0)])
    return np.asarray(running[starts[1:]] - running[starts[:-1]])
