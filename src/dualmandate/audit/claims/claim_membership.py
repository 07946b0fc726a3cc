"""Membership in a release: tests on the rows that it measured, over draws of its own mechanism from the audit's key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.claims.attack import Change, ClaimedRelease, WorstChange, largest_loss
from dualmandate.audit.claims.mechanism_audit import meaning
from dualmandate.audit.claims.membership import Floats, Sought
from dualmandate.audit.claims.membership_attack import Frequencies
from dualmandate.audit.claims.own_noise import Law, audit_noise, log_weights
from dualmandate.audit.drawing import generator

CELLS = 16  # whose records are tried, to find one that is easy to recognize
MOST_ROWS = 2_048  # that tests on frequencies look at
RATES = (0.01, 0.1)


def membership_in(target: ClaimedRelease, key: bytes) -> Frequencies | None:
    """Looking for one record behind the rows of a release; None where nothing was measured, or two kinds of noise mix.

    What was measured stands for everybody else: it is public, and what the mechanism does to one record does not
    depend on the others. The record is the one, of some, that makes the largest loss.
    """
    laws = {noise.own_law for group in target.groups for noise in group.noises}
    law = laws.pop() if len(laws) == 1 else None
    if law is None or any(group.measured is None for group in target.groups) or target.records > 1:
        return None
    cells = np.flatnonzero(target.possible)
    draws = generator(key, f"membership: {target.name}")
    worst = largest_loss(target, np.sort(draws.choice(cells, min(CELLS, len(cells)), replace=False)))
    return _frequencies(target, worst, draws, law)


def _frequencies(target: ClaimedRelease, worst: WorstChange, draws: np.random.Generator, law: Law) -> Frequencies:
    sizes = [len(group.kinds) for group in target.groups]
    starts, every = np.cumsum([0, *sizes[:-1]]), sum(sizes)
    moved = np.concatenate([start + rows for start, (rows, _) in zip(starts, worst.apart, strict=True)])
    rows = _chosen(moved, every, draws)
    of_group = np.searchsorted(starts, rows, side="right") - 1
    places = [(target.groups[g], int(row - starts[g])) for g, row in zip(of_group, rows, strict=True)]
    measured = np.array([0 if group.measured is None else group.measured[row] for group, row in places], dtype=np.int64)
    apart = _spread(worst.apart, starts, rows)
    own = _spread([group.change(worst.cell) for group in target.groups], starts, rows)
    chosen = [group.noises[int(group.kinds[row])].parameter for group, row in places]
    absent, members = measured - apart, max(round(target.statistics.persons), 2)
    ones = np.ones(len(rows), dtype=np.int64)
    sought = Sought(absent, measured, own.astype(np.float64), absent / members, members, ones)

    def noise(key: bytes, purpose: str, shape: tuple[int, int]) -> Floats:
        drawn = np.empty(shape)
        for parameter in dict.fromkeys(chosen):
            at = np.flatnonzero([each == parameter for each in chosen])
            drawn[:, at] = audit_noise(key, f"{purpose}, {parameter}", law, parameter, (shape[0], len(at)))
        return drawn

    epsilon, delta = meaning(target.loss)
    weights = log_weights(law, np.array([float(each) for each in chosen]))
    part = "" if len(rows) == every else f"; {len(rows):,} of {every:,} measured rows"
    return Frequencies(
        target.name, sought, noise, epsilon, delta, log_pmf=weights, rates=RATES, coarsening=target.coarsening + part
    )


def _spread(changes: Sequence[Change], starts: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Changes of some rows of all groups, 0 where a row does not change; `starts` are the first row of each group."""
    found = np.zeros(len(rows), dtype=np.int64)
    for start, (moved, by) in zip(starts, changes, strict=True):
        kept = np.isin(start + moved, rows)
        found[np.searchsorted(rows, start + moved[kept])] = by[kept]
    return found


def _chosen(moved: NDArray[np.int64], every: int, draws: np.random.Generator) -> NDArray[np.int64]:
    """All rows, or where there are too many those that the record changes and some others; in their order."""
    if every <= MOST_ROWS:
        return np.arange(every)
    kept = moved[:MOST_ROWS]
    others = np.setdiff1d(draws.choice(every, MOST_ROWS, replace=False), moved)
    return np.sort(np.concatenate([kept, others[: MOST_ROWS - len(kept)]]))
