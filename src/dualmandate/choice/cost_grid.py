"""What society loses at every privacy loss, on a grid that is computed once and read for thousands of preferences.

Welfare is linear in its parameters: costs of groups and values of tables multiply parts that depend on the loss alone,
so that a thousand preferences are a thousand rows of multiples. Each part is computed on a grid of ln loss, with its
elasticity, and read off between grid points by a cubic in logarithms (exact for power laws). Cells in which the cubic
misses a computed midpoint are halved until it does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualmandate.choice.optimum import LARGEST_LOSS, SMALLEST_LOSS, Bounds
from dualmandate.choice.welfare import CostPart, SocialWelfare
from dualmandate.errors import InvalidLoss, NoOptimum
from dualmandate.frontier.frontier import Frontier
from dualmandate.frontier.numerics import lowest
from dualmandate.population.arrays import Booleans, Floats
from dualmandate.population.wording import number

if TYPE_CHECKING:
    from scipy.interpolate import CubicHermiteSpline

PartCosts = Callable[[float], tuple[Floats, Floats]]
"""From a loss to the cost of each part and its slope, USD and USD per unit; not numbers where a frontier ends."""

CELL = math.log(10) / 20  # A cell of ln loss is this wide before any halving.
AGREEMENT = 1e-10  # Cubics miss ln cost at the middle of a cell by at most this, over the part's share of all costs.
MOST_HALVINGS = 10
FEWEST_HALVINGS = 3  # Each divides what a smooth curve is missed by by 16.
MANY_CELLS = 100  # So many that still miss, no fewer than before they were halved, miss by what a curve itself is off.
LARGEST_LOG = 600.0  # Costs above its exponential leave the range of floats soon.
REACH = math.log(64)  # A new grid spans this much to either side of where it starts.
BLOCK = 4_000_000  # A matrix of states by grid points holds at most this many numbers.
EDGE = 1e-12  # A relative distance from a limit below this is none.
FAR_BELOW = 1e-6  # This share of the lowest grid point stands for no loss at all.
LEAST_COST = 1e-300  # What costs nothing is taken to cost this, in USD, so that its logarithm is a number.


def costs_of(parts: Sequence[CostPart], frontier: Frontier) -> PartCosts:
    """What each part costs at a loss, and its slope; the frontier is asked once a loss for all of them."""
    asked = frontier.remembered()

    def costs(loss: float) -> tuple[Floats, Floats]:
        try:
            found = [-part.at(asked, loss) for part in parts]
            rates = [-part.slope(asked, loss) for part in parts]
        except InvalidLoss:
            return np.full(len(parts), math.nan), np.full(len(parts), math.nan)
        return np.array(found), np.array(rates)

    return costs


def joined(parts: Sequence[CostPart], like: SocialWelfare) -> SocialWelfare:
    """One social welfare from parts, its groups and tables in the order of another."""
    groups = {group.name: group for part in parts for group in part.groups}
    values = {value.table: value for part in parts for value in part.table_values}
    return replace(
        like,
        groups=tuple(groups[group.name] for group in like.groups if group.name in groups),
        table_values=tuple(values[value.table] for value in like.table_values if value.table in values),
        other_losses=tuple(other for part in parts for other in part.other_losses),
    )


@dataclass(frozen=True)
class GridPoints:
    """Points of ln loss, with ln cost and elasticity of every part at each; shapes (points,) and (points, parts)."""

    points: Floats
    logs: Floats
    elasticities: Floats

    def read(self, at: Floats) -> tuple[Floats, Floats]:
        """Cost of every part at given ln losses, and its derivative in ln loss; shapes (len(at), parts)."""
        if len(self.points) == 1:
            costs = np.exp(np.repeat(self.logs, len(at), axis=0))
            return costs, costs * self.elasticities
        costs = np.exp(np.minimum(self._cubic(at), LARGEST_LOG))  # between points far apart a cubic may swing anywhere
        return costs, costs * self._cubic(at, 1)

    @cached_property
    def _cubic(self) -> CubicHermiteSpline:
        from scipy.interpolate import CubicHermiteSpline

        return CubicHermiteSpline(self.points, self.logs, self.elasticities)

    def joined(self, other: GridPoints) -> GridPoints:
        """Both grids as one, in order."""
        points = np.concatenate([self.points, other.points])
        order = np.argsort(points, kind="stable")
        logs = np.concatenate([self.logs, other.logs])[order]
        return GridPoints(points[order], logs, np.concatenate([self.elasticities, other.elasticities])[order])


@dataclass(frozen=True, eq=False)
class CostGrid:
    """The parts of what society loses, at every loss between the limits.

    `endless` holds each part's cost as the loss grows without limit; infinite where it has no bound.
    """

    grid: GridPoints
    bounds: Bounds
    endless: Floats  # (parts,)
    nothing: Floats  # cost of each part far below the grid, where next to no loss is allowed; (parts,)

    def costs(self, losses: Floats) -> Floats:
        """Cost of every part at given losses, USD; shape (losses, parts)."""
        return self.grid.read(np.log(losses))[0]

    def cheapest(self, multiples: Floats, *, open_ended: bool = False) -> tuple[Floats, Floats]:
        """For each row of multiples of the parts, the loss at which their sum is least, and that sum.

        Shapes (states,). Where for some row no loss is best, because the sum falls for ever, it is infinite or 0 in an
        open-ended question; otherwise that is refused.
        """
        best = self._lowest_points(multiples)
        found, least = self._polished(multiples, best)
        endless, hopeless = self._without_best(multiples, best, least)
        if not open_ended:
            _refuse_endless(endless, hopeless)
        found[endless], found[hopeless] = math.inf, -math.inf
        return self._within(np.exp(found)), least

    def at_limit(self, losses: Floats) -> tuple[Booleans, Booleans]:
        """Which losses stand at the lowest and which at the highest that the limits allow."""
        low, high = self.bounds.lowest, self.bounds.highest
        return (
            losses <= (0.0 if low is None else low * (1 + EDGE)),
            losses >= (math.inf if high is None else high * (1 - EDGE)),
        )

    def inside(self, loss: float, what: str) -> float:
        """The loss itself, refused where it was not looked at."""
        low, high = np.exp(self.grid.points[[0, -1]]).tolist()
        if not low * (1 - 1e-9) <= loss <= high * (1 + 1e-9):
            raise InvalidLoss(
                what,
                why=f"losses between {number(low)} and {number(high)} were looked at: others are outside the limits, "
                "or far from every best one",
                instead="state a loss between these",
            )
        return loss

    def lowest_worst(self, worst: Callable[[Floats], Floats]) -> float:
        """The loss at which `worst`, a function of the parts' costs at each loss, is least.

        `worst` maps shape (losses, parts) to (losses,); it may have kinks, as the largest of several costs has.
        """
        at = lowest(
            lambda point: float(worst(self.grid.read(np.array([point]))[0])[0]),
            self.grid.points,
            worst(np.exp(self.grid.logs)),
        )
        return float(self._within(np.exp([at]))[0])

    def _within(self, losses: Floats) -> Floats:
        """Losses inside the limits to the last digit, which logarithms do not keep."""
        return np.clip(losses, self.bounds.lowest, self.bounds.highest)

    @cached_property
    def _table(self) -> Floats:
        return np.exp(self.grid.logs)

    def _lowest_points(self, multiples: Floats) -> NDArray[np.intp]:
        """Index of the grid point at which each row's sum is least."""
        rows = max(1, BLOCK // len(self._table))
        pieces = [np.argmin(multiples[i : i + rows] @ self._table.T, axis=1) for i in range(0, len(multiples), rows)]
        return np.concatenate(pieces)

    def _polished(self, multiples: Floats, best: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """ln loss and sum at the lowest place of the cell beside each row's lowest grid point."""
        from scipy.optimize.elementwise import find_root

        points = self.grid.points
        at = points[best]
        least = np.einsum("sp,sp->s", multiples, self._table[best])
        if len(points) == 1:
            return at, least
        rising = np.einsum("sp,sp->s", multiples, self._table[best] * self.grid.elasticities[best]) > 0
        cell = np.clip(np.where(rising, best - 1, best), 0, len(points) - 2)

        def slope(point: Floats, row: NDArray[np.intp]) -> Floats:
            found: Floats = np.einsum("sp,sp->s", multiples[row], self.grid.read(point)[1])
            return found

        # Thousands of rows at once; where a sum does not turn inside its cell, the grid point stays.
        rows = np.arange(len(multiples))
        middle = np.nan_to_num(find_root(slope, (points[cell], points[cell + 1]), args=(rows,)).x)
        there = np.einsum("sp,sp->s", multiples, self.grid.read(middle)[0])
        at_end = (best == 0) & rising | (best == len(points) - 1) & ~rising
        keep = at_end | (there > least)
        return np.where(keep, at, middle), np.where(keep, least, there)

    def _without_best(self, multiples: Floats, best: NDArray[np.intp], least: Floats) -> tuple[Booleans, Booleans]:
        """Rows whose sum falls for ever as the loss grows, and as it shrinks."""
        limits = np.where(multiples > 0, multiples * np.where(multiples > 0, self.endless, 0.0), 0.0).sum(axis=1)
        above = (best == len(self.grid.points) - 1) | (limits <= least * (1 + EDGE))
        below = (best == 0) | (multiples @ self.nothing <= least * (1 + EDGE))
        endless = above if self.bounds.highest is None else np.zeros_like(above)
        hopeless = below & ~endless if self.bounds.lowest is None else np.zeros_like(below)
        return endless, hopeless


def _refuse_endless(endless: Booleans, hopeless: Booleans) -> None:
    if np.any(endless | hopeless):
        share = float(np.mean(endless | hopeless))
        direction = "rises without limit of loss" if np.any(endless) else "is highest as the loss falls to 0"
        raise NoOptimum(
            f"under {number(share, 3)} of the preferences considered welfare {direction}",
            why="for some of them no privacy loss is best, so nothing can be said about the best one",
            instead="state a legal cap on the loss, or leave out preferences that nobody holds",
        )


def cost_grid_of(costs: PartCosts, multiples: Floats, *, start: float, bounds: Bounds, endless: Floats) -> CostGrid:
    """Look up the parts around a loss, as far as the best losses of all rows of multiples reach, within the limits.

    `endless` is each part's cost as the loss grows without limit.
    """
    top = math.log(bounds.highest) if bounds.highest is not None else math.log(start) + REACH
    bottom = math.log(bounds.lowest) if bounds.lowest is not None else min(math.log(start), top) - REACH
    if bounds.lowest is not None and bounds.lowest == bounds.highest:
        grid = _at(costs, np.array([bottom]))
        return CostGrid(grid, bounds, endless, np.exp(grid.logs[0]))
    grid = _refined(costs, _readable(costs, _stretch(bottom, top), math.log(start)), multiples)
    while True:
        table = np.exp(grid.logs)
        best = np.argmin(multiples @ table.T, axis=1)
        open_top = bounds.highest is None and bool(np.any(best == len(grid.points) - 1))
        open_bottom = bounds.lowest is None and bool(np.any(best == 0))
        before = len(grid.points)
        if open_top and grid.points[-1] < math.log(LARGEST_LOSS):
            grid = _stretched(costs, grid, grid.points[-1] + REACH, multiples=multiples)
        if open_bottom and grid.points[0] > math.log(SMALLEST_LOSS):
            grid = _stretched(costs, grid, grid.points[0] - REACH, multiples=multiples)
        if len(grid.points) == before:
            break
    return CostGrid(grid, bounds, _leveled(grid, endless), _nothing(costs, grid))


def _stretch(low: float, high: float) -> Floats:
    """Evenly spaced ln losses from low to high."""
    return np.linspace(low, high, max(2, math.ceil((high - low) / CELL) + 1))


def _readable(costs: PartCosts, points: Floats, keep: float) -> GridPoints:
    """The grid at those points around `keep` at which every part is a positive, finite number."""
    grid = _at(costs, points)
    good = np.all(np.isfinite(grid.logs) & np.isfinite(grid.elasticities), axis=1)
    middle = int(np.searchsorted(points, keep))
    bad = np.flatnonzero(~good)
    low = int(bad[bad < middle].max()) + 1 if np.any(bad < middle) else 0
    high = int(bad[bad >= middle].min()) if np.any(bad >= middle) else len(points)
    kept = slice(low, high)
    return GridPoints(grid.points[kept], grid.logs[kept], grid.elasticities[kept])


def _stretched(costs: PartCosts, grid: GridPoints, to: float, *, multiples: Floats) -> GridPoints:
    """The grid carried on to a lower or higher ln loss, as far as the parts can be read."""
    edge = float(grid.points[-1] if to > grid.points[-1] else grid.points[0])
    further = _readable(costs, _stretch(min(edge, to), max(edge, to)), edge)
    if len(further.points) < 2:
        return grid
    further = _refined(costs, further, multiples)
    inside = further.points != edge
    return grid.joined(GridPoints(further.points[inside], further.logs[inside], further.elasticities[inside]))


def _refined(costs: PartCosts, grid: GridPoints, multiples: Floats) -> GridPoints:
    """The grid with cells halved until the cubics agree with what is computed in their middles.

    A part that is a small share of all costs need not be known as well as the others. Curves that are themselves known
    to a few digits only, as those of a split at kinks are, would be halved everywhere without end: that is stopped.
    """
    largest, mean = multiples.max(axis=0), multiples.mean(axis=0)
    cells = np.arange(len(grid.points) - 1)
    ends = np.stack([grid.points[cells], grid.points[cells + 1]], axis=1)
    missed = len(ends)
    for halving in range(MOST_HALVINGS):
        if not len(ends):
            break
        middles = ends.mean(axis=1)
        with np.errstate(divide="ignore"):  # a cubic below all floats is a wrong guess like others
            guessed = np.log(grid.read(middles)[0])
        computed = _at(costs, middles)
        shares = np.exp(computed.logs - computed.logs.max(axis=1, keepdims=True))
        shares = np.minimum(largest * shares / np.maximum(shares @ mean, 1e-300)[:, None], 1.0)
        wrong = np.any(~(np.abs(guessed - computed.logs) * shares <= AGREEMENT), axis=1)
        grid = grid.joined(computed)
        before, missed = missed, int(wrong.sum())
        # Halving a kink leaves one half that misses, and a smooth curve soon none.
        if halving >= FEWEST_HALVINGS and missed >= max(before, MANY_CELLS):
            break
        ends = np.concatenate(
            [np.stack([ends[wrong, 0], middles[wrong]], axis=1), np.stack([middles[wrong], ends[wrong, 1]], axis=1)]
        )
    return grid


def _at(costs: PartCosts, points: Floats) -> GridPoints:
    """Parts computed at ln losses; not a number where a frontier has ended."""
    losses = [math.exp(point) for point in points.tolist()]
    found = np.array([costs(loss) for loss in losses])  # (points, 2, parts)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Divided first: a slope times a loss may leave the numbers.
        logs, elasticities = np.log(found[:, 0]), found[:, 1] / found[:, 0] * np.array(losses)[:, None]
    free = ~found[:, 0].any(axis=0)  # a table that exact totals decide has no errors to pay for
    logs[:, free], elasticities[:, free] = math.log(LEAST_COST), 0.0
    return GridPoints(points, logs, elasticities)


def _leveled(grid: GridPoints, endless: Floats) -> Floats:
    """`endless`, or the cost at the top of the grid where a part has stopped falling before it came near to that."""
    top, elasticity = np.exp(grid.logs[-1]), grid.elasticities[-1]
    stuck = (elasticity <= 0) & (-elasticity * top <= 0.01 * (top - endless))
    return np.where(stuck, np.maximum(top, endless), endless)


def _nothing(costs: PartCosts, grid: GridPoints) -> Floats:
    loss = max(math.exp(float(grid.points[0])) * FAR_BELOW, SMALLEST_LOSS)
    found, _ = costs(loss)
    if np.isnan(found).all():
        found = np.exp(grid.logs[0])
    large = float(np.finfo(float).max) / len(found) / 1e6
    finite: Floats = np.where(np.isfinite(found), found, large)
    return finite
