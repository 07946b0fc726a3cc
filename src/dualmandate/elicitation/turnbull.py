"""A lower bound on what people would pay on average, without any assumption about the shape of their amounts.

Between two bids each amount is counted as the lower one. The share that would pay at least each bid is the most likely
one that never rises with the bid: shares that rise are pooled with their neighbors [Tur76, HM97].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.elicitation.bids import BidAnswers
from dualmandate.errors import NoEstimate
from dualmandate.population.wording import number

Floats = NDArray[np.float64]
MOST_ROUNDS = 200
STILL = 1e-9  # relative gain of a cell that is no gain
ROUNDING = 1e-13  # of a log likelihood
HEAVY = 1e3  # weight of the condition that masses sum to one, beside that of all people together


@dataclass(frozen=True, eq=False)
class Turnbull:
    """Shares of people at each bid, and the bound that follows from them; amounts in the bids' unit.

    The bound is no estimate of the mean: `standard_error` says how sure the bound is, and no interval around it covers
    the mean with a stated probability.
    """

    bids: Floats  # sorted; the first is 0 where people were asked whether they would pay anything
    refusing: Floats  # share whose amount is at most each bid, never falling
    pooled: tuple[tuple[float, ...], ...]  # bids that share one estimate because the raw shares fell
    lower_bound: float
    standard_error: float

    def survival(self, amount: float) -> float:
        """The share that would pay more than an amount, at least: a step at each bid."""
        place = int(np.searchsorted(self.bids, amount, side="left"))
        return float(1.0 - self.refusing[place]) if place < len(self.bids) else 0.0

    def __str__(self) -> str:
        error = number(self.standard_error, 2)
        return f"at least {number(self.lower_bound)} on average (standard error of the bound {error})"


def turnbull(answers: BidAnswers) -> Turnbull:
    """The lower bound Σ_j (t_j − t_{j−1})·(1 − F_j), t_0 = 0, with its standard error.

    After one question a person the shares F_j are pooled averages, independent of each other; after two they are the
    self-consistent solution for amounts between bounds, with the covariance of their likelihood.
    """
    bids = np.concatenate([[0.0], answers.bids]) if answers.spike else answers.bids
    below = np.isfinite(answers.lower)
    if not answers.spike and not (below & np.isfinite(answers.upper)).any():
        refusing, covariance = _pooled_shares(answers, bids)
    else:
        refusing, covariance = _self_consistent(answers, bids)
    widths = np.diff(np.concatenate([[0.0], bids]))
    groups = np.split(bids, np.flatnonzero(np.diff(refusing) > 1e-9) + 1)
    return Turnbull(
        bids,
        refusing,
        tuple(tuple(group.tolist()) for group in groups if len(group) > 1),
        float(widths @ (1.0 - refusing)),
        math.sqrt(max(float(widths @ covariance @ widths), 0.0)),
    )


def _pooled_shares(answers: BidAnswers, bids: Floats) -> tuple[Floats, Floats]:
    """Pool adjacent violators; bids in one pool share an estimate, so their errors are the same."""
    asked = np.where(np.isfinite(answers.lower), answers.lower, answers.upper)
    place = np.searchsorted(bids, asked)
    people = np.bincount(place, minlength=len(bids)).astype(np.float64)
    refused = np.bincount(place, weights=~np.isfinite(answers.lower), minlength=len(bids))
    blocks: list[tuple[float, float, int]] = []  # refusals, people, bids
    for no, count in zip(refused.tolist(), people.tolist(), strict=True):
        blocks.append((no, count, 1))
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            last, before = blocks.pop(), blocks.pop()
            blocks.append((before[0] + last[0], before[1] + last[1], before[2] + last[2]))
    sizes = [size for _, _, size in blocks]
    shares = np.array([no / count for no, count, _ in blocks])
    variances = shares * (1.0 - shares) / np.array([count for _, count, _ in blocks])
    member = np.repeat(np.arange(len(blocks)), sizes)
    together = member[:, None] == member[None, :]
    return np.repeat(shares, sizes), np.where(together, variances[member][:, None], 0.0)


def _self_consistent(answers: BidAnswers, bids: Floats) -> tuple[Floats, Floats]:
    """Most likely shares, from the masses between bids: each person's amount lies in one of the cells she allows."""
    starts = np.concatenate([[-np.inf], bids])
    ends = np.concatenate([bids, [np.inf]])
    kinds, count = np.unique(
        (starts >= answers.lower[:, None]) & (ends <= answers.upper[:, None]), axis=0, return_counts=True
    )
    allowed = kinds.astype(np.float64)
    masses = _most_likely_masses(allowed, count.astype(np.float64))
    return np.cumsum(masses)[:-1], _covariance(allowed, count, masses)


def _most_likely_masses(allowed: Floats, count: Floats) -> Floats:
    """Masses that sum to one and maximize Σ count·ln(allowed·masses), by constrained Newton steps [Wan07].

    Each step is a least-squares problem with masses of at least 0, so that empty cells become exactly empty.
    """
    from scipy.optimize import nnls

    people, roots = count.sum(), np.sqrt(count)
    masses = np.full(allowed.shape[1], 1.0 / allowed.shape[1])
    for _ in range(MOST_ROUNDS):
        shares = allowed @ masses
        slopes = allowed / shares[:, None]
        if (count @ slopes).max() < (1.0 + STILL) * people:  # no cell deserves more
            return masses
        held = math.sqrt(people) * HEAVY  # holds the sum at one
        table = np.vstack([roots[:, None] * slopes, np.full(len(masses), held)])
        aim = nnls(table, np.append(2.0 * roots, held))[0]
        aim /= aim.sum()
        step, level = 1.0, float(count @ np.log(shares))
        while step > STILL and _level(allowed, count, masses + step * (aim - masses)) < level - ROUNDING * abs(level):
            step /= 2.0
        masses = masses + step * (aim - masses)
    raise NoEstimate(
        f"the shares between bids did not settle in {MOST_ROUNDS} rounds",
        why="too few people were asked at some bids",
        instead="pool bids before the survey is analyzed",
    )


def _level(allowed: Floats, count: Floats, masses: Floats) -> float:
    shares = allowed @ masses
    return float(count @ np.log(shares)) if (shares > 0).all() else -math.inf


def _covariance(allowed: Floats, count: NDArray[np.int64], masses: Floats) -> Floats:
    """Covariance of cumulated shares: inverse information of the masses that are not zero, which sum to one."""
    held = np.flatnonzero(masses > 1e-8)
    basis = np.vstack([np.eye(len(held) - 1), -np.ones(len(held) - 1)])  # directions that keep the sum
    ratios = allowed[:, held] @ basis / (allowed @ masses)[:, None]
    spread = basis @ np.linalg.pinv(ratios.T @ (count[:, None] * ratios)) @ basis.T
    onto = np.zeros((len(masses), len(held)))
    onto[held, np.arange(len(held))] = 1.0
    cumulated = np.cumsum(onto, axis=0)[:-1]
    return cumulated @ spread @ cumulated.T
