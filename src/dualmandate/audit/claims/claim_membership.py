"""Membership in a release: tests on the rows that it measured, over draws of its own mechanism from the audit's key."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.claims.attack import ClaimedRelease, WorstChange, change_of, largest_loss
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
    laws = {noise.law for group in target.groups for noise in group.noises}
    if len(laws) != 1 or any(group.measured is None for group in target.groups) or target.records > 1:
        return None
    cells = np.flatnonzero(target.possible)
    draws = generator(key, f"membership: {target.name}")
    worst = largest_loss(target, np.sort(draws.choice(cells, min(CELLS, len(cells)), replace=False)))
    return _frequencies(target, worst, draws, laws.pop())


def _frequencies(target: ClaimedRelease, worst: WorstChange, draws: np.random.Generator, law: Law) -> Frequencies:
    apart = np.concatenate(worst.apart)
    rows = _chosen(apart, draws)
    measured = np.concatenate([np.asarray(group.measured) for group in target.groups])[rows].astype(np.int64)
    own = np.concatenate([change_of(group, worst.cell, target.possible.size) for group in target.groups])[rows]
    chosen = _parameters(target, rows)
    absent, members = measured - apart[rows], max(round(target.statistics.persons), 2)
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
    part = "" if len(rows) == len(apart) else f"; {len(rows):,} of {len(apart):,} measured rows"
    return Frequencies(
        target.name, sought, noise, epsilon, delta, log_pmf=weights, rates=RATES, coarsening=target.coarsening + part
    )


def _parameters(target: ClaimedRelease, rows: NDArray[np.intp]) -> list[Fraction]:
    """The parameter of the noise of some rows."""
    known = [noise.parameter for group in target.groups for noise in group.noises]
    before = np.cumsum([0, *(len(group.noises) for group in target.groups)])
    parts = zip(target.groups, before, strict=False)
    kinds = np.concatenate([group.kinds + first for group, first in parts])
    return [known[int(kind)] for kind in kinds[rows]]


def _chosen(apart: NDArray[np.int64], draws: np.random.Generator) -> NDArray[np.intp]:
    """All rows, or where there are too many those that the record changes and some others."""
    if len(apart) <= MOST_ROWS:
        return np.arange(len(apart))
    moved, others = np.flatnonzero(apart), np.flatnonzero(apart == 0)
    more = draws.choice(others, max(MOST_ROWS - len(moved), 0), replace=False)
    return np.sort(np.concatenate([moved[:MOST_ROWS], more]))
