"""Polychoric correlations: how two opinions on ordered scales hang together, as if both were measured without steps.

Behind each answer stands a normal variable, cut into levels at thresholds; the correlation of the two variables makes
the observed table of answers most likely [Ols79]. "two-step" takes the thresholds from the margins of the table and
searches the correlation alone; "full" searches everything together.

A polyserial correlation is the same between an amount and an ordered answer: the answer is an ordered probit on the
amount, and the correlation is ρ = β/√(1 + β²), β the probit's slope on the standardized amount [OCD82].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincc, ndtr, ndtri, xlogy

from dualmandate.elicitation.interval_model import IntervalRows, most_likely
from dualmandate.elicitation.willingness import critical_value
from dualmandate.errors import InvalidSurvey, NoEstimate, UnknownName

Floats = NDArray[np.float64]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
Steps = Literal["two-step", "full"]
LARGEST = 0.9999  # A correlation beyond this is taken for a perfect one, which has no estimate.
MOST_STEPS = 100
STILL = 1e-10
SMALLEST = 1e-300  # No probability is smaller, so that the logarithm of an impossible cell exists.


def bivariate_cdf(first: Floats, second: Floats, correlation: float) -> Floats:
    """P(X ≤ first, Y ≤ second), of any shape that broadcasts; limits may be infinite, |correlation| < 1.

    Φ(h)Φ(k) + ∫₀^{asin ρ} exp(−(h² + k² − 2hk·sin θ)/(2cos²θ)) dθ/2π [Dre78]: Gauss and Legendre's rule with 48 nodes
    is good to 10⁻¹⁵ up to |ρ| = 0.99 and to 10⁻¹² up to 0.999.
    """
    product = ndtr(first) * ndtr(second)
    h, k = np.broadcast_arrays(first, second)
    inside = np.isfinite(h) & np.isfinite(k)
    extra = np.zeros(h.shape)
    half = math.asin(correlation) / 2.0
    angles = half * (NODES + 1.0)
    sines, squares = np.sin(angles), 2.0 * np.cos(angles) ** 2
    u, v = h[inside][:, None], k[inside][:, None]
    extra[inside] = np.exp(-(u * u + v * v - 2.0 * u * v * sines) / squares) @ WEIGHTS * (half / (2.0 * math.pi))
    probability: Floats = product + extra
    return probability


def bivariate_density(first: Floats, second: Floats, correlation: float) -> Floats:
    """The joint density; also the derivative of the probability with respect to the correlation. 0 at infinity."""
    h, k = np.broadcast_arrays(first, second)
    inside = np.isfinite(h) & np.isfinite(k)
    density = np.zeros(h.shape)
    rest = 1.0 - correlation**2
    u, v = h[inside], k[inside]
    density[inside] = np.exp(-(u * u + v * v - 2.0 * correlation * u * v) / (2.0 * rest))
    density /= 2.0 * math.pi * math.sqrt(rest)
    return density


def edge_density(at: Floats, other: Floats, correlation: float) -> Floats:
    """φ(at)·P(Y ≤ other | X = at): the derivative of the probability with respect to a limit. 0 at infinity."""
    x, y = np.broadcast_arrays(at, other)
    inside = np.isfinite(x)
    density = np.zeros(x.shape)
    u = x[inside]
    within = ndtr((y[inside] - correlation * u) / math.sqrt(1.0 - correlation**2))
    density[inside] = np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi) * within
    return density


@dataclass(frozen=True, eq=False)
class Polychoric:
    """A correlation between two ordered answers, with its standard error and how well two normal variables fit."""

    correlation: float
    standard_error: float
    row_thresholds: Floats  # (rows − 1,), in standard deviations
    column_thresholds: Floats
    counts: Floats  # (rows, columns), people by their two answers
    log_likelihood: float
    influence: Floats  # (rows, columns): by how much one more person in a cell moves the estimate, times people
    method: Steps

    @property
    def observations(self) -> int:
        """How many people gave both answers."""
        return int(self.counts.sum())

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        return _fisher_interval(self.correlation, self.standard_error, level)

    @property
    def fitted(self) -> Floats:
        """(rows, columns): expected people in each cell."""
        return float(self.counts.sum()) * _cells(self.row_thresholds, self.column_thresholds, self.correlation)

    @property
    def likelihood_ratio(self) -> float:
        """G² = 2·Σ n·ln(n/expected): how far the table is from what two normal variables would give."""
        return 2.0 * float(xlogy(self.counts, self.counts / np.maximum(self.fitted, SMALLEST)).sum())

    @property
    def degrees_of_freedom(self) -> int:
        """Cells that are free after thresholds and correlation: rows·columns − rows − columns."""
        rows, columns = self.counts.shape
        return int(rows * columns - rows - columns)

    @property
    def fit_probability(self) -> float | None:
        """How often a table at least as far off would be seen if the variables were normal; None for a 2×2 table."""
        degrees = self.degrees_of_freedom
        return float(gammaincc(degrees / 2, self.likelihood_ratio / 2)) if degrees > 0 else None


def _fisher_interval(correlation: float, standard_error: float, level: float) -> tuple[float, float]:
    """An interval, symmetric after Fisher's transformation atanh(ρ), so that it stays within (−1, 1)."""
    width = critical_value(level) * standard_error / (1.0 - correlation**2)
    middle = math.atanh(correlation)
    return math.tanh(middle - width), math.tanh(middle + width)


def answer_table(first: ArrayLike, second: ArrayLike) -> Floats:
    """People by their two answers, levels sorted; rows where either is missing (not a number) are left out."""
    columns = [np.asarray(answers, dtype=np.float64) for answers in (first, second)]
    if columns[0].shape != columns[1].shape or columns[0].ndim != 1:
        raise InvalidSurvey(
            f"{columns[0].size} and {columns[1].size} answers",
            why="a correlation is between two answers of the same people",
            instead="give one row a person in both",
        )
    given = np.isfinite(columns[0]) & np.isfinite(columns[1])
    codes = [np.unique(answers[given], return_inverse=True) for answers in columns]
    table = np.zeros([len(levels) for levels, _ in codes])
    np.add.at(table, tuple(places for _, places in codes), 1.0)
    return table


def polychoric(counts: ArrayLike, *, method: Steps = "two-step") -> Polychoric:
    """The correlation behind a table of people by two ordered answers, (rows, columns).

    The standard error allows for the estimated thresholds under both methods. Refused: a scale with one answer, and
    tables in which one answer foretells the other.
    """
    table = _checked(counts, method)
    people = table.sum()
    rows = ndtri(np.cumsum(table.sum(axis=1))[:-1] / people)
    columns = ndtri(np.cumsum(table.sum(axis=0))[:-1] / people)
    correlation = _searched(table, rows, columns)
    if method == "full":
        rows, columns, correlation = _full(table, rows, columns, correlation)
    score = _scores(rows, columns, correlation)
    cells = _cells(rows, columns, correlation)
    influence = _full_influence(score, cells) if method == "full" else _two_step_influence(score, cells, table)
    return Polychoric(
        correlation=correlation,
        standard_error=math.sqrt(float((table * influence**2).sum())) / people,
        row_thresholds=rows,
        column_thresholds=columns,
        counts=table,
        log_likelihood=_log_likelihood(table, cells),
        influence=influence,
        method=method,
    )


def _checked(counts: ArrayLike, method: str) -> Floats:
    if method not in get_args(Steps):
        raise UnknownName(
            f"there is no method '{method}'", why="there are two ways", instead=f"choose {' or '.join(get_args(Steps))}"
        )
    table: Floats = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any():
        raise InvalidSurvey(
            "this is no table of people by two answers",
            why="a cell holds how many people gave both answers",
            instead="give a table of numbers of at least 0",
        )
    chosen: Floats = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]  # levels that nobody chose say nothing
    if min(chosen.shape) < 2:
        raise InvalidSurvey(
            "everybody gave the same answer to one of the questions",
            why="what never varies cannot hang together with anything",
            instead="leave the question out",
        )
    return chosen


def _edges(thresholds: Floats) -> Floats:
    return np.concatenate([[-np.inf], thresholds, [np.inf]])


def _cells(rows: Floats, columns: Floats, correlation: float) -> Floats:
    """(rows, columns): probability of each pair of answers."""
    below = bivariate_cdf(_edges(rows)[:, None], _edges(columns)[None, :], correlation)
    cells: Floats = np.maximum(np.diff(np.diff(below, axis=0), axis=1), SMALLEST)
    return cells


def _log_likelihood(table: Floats, cells: Floats) -> float:
    return float(xlogy(table, cells).sum())


def _searched(table: Floats, rows: Floats, columns: Floats) -> float:
    """The correlation that makes the table most likely at given thresholds: scoring steps in atanh(ρ), halved."""
    people, place = table.sum(), 0.0
    best = _log_likelihood(table, _cells(rows, columns, 0.0))
    for _ in range(MOST_STEPS):
        correlation = math.tanh(place)
        rise = _density_differences(rows, columns, correlation) * (1.0 - correlation**2)
        cells = _cells(rows, columns, correlation)
        step = float((table * rise / cells).sum() / (people * (rise**2 / cells).sum()))
        if abs(step) < STILL:
            return correlation
        for _ in range(40):
            tried = _log_likelihood(table, _cells(rows, columns, math.tanh(place + step)))
            if abs(math.tanh(place + step)) < LARGEST and tried >= best - 1e-12 * abs(best):
                break
            step /= 2
        else:
            break
        place, best = place + step, tried
        if abs(math.tanh(place)) > 0.99 * LARGEST:
            break
    raise NoEstimate(
        "one of the two answers foretells the other",
        why="the correlation behind such a table is perfect, and has no standard error",
        instead="merge levels that few people chose, or leave one of the questions out",
    )


def _density_differences(rows: Floats, columns: Floats, correlation: float) -> Floats:
    """(rows, columns): derivative of each cell's probability with respect to the correlation."""
    corners = bivariate_density(_edges(rows)[:, None], _edges(columns)[None, :], correlation)
    return np.diff(np.diff(corners, axis=0), axis=1)


def _scores(rows: Floats, columns: Floats, correlation: float) -> Floats:
    """(parameters, rows, columns): derivatives of cells' probabilities by row and column thresholds, then by ρ."""
    upright, across = _edges(rows)[:, None], _edges(columns)[None, :]
    by_row = np.diff(edge_density(upright, across, correlation), axis=1)  # one strip an edge
    by_column = np.diff(edge_density(across, upright, correlation), axis=0)
    shape = (len(rows) + 1, len(columns) + 1)
    found = np.zeros((len(rows) + len(columns) + 1, *shape))
    for edge in range(len(rows)):
        found[edge, edge], found[edge, edge + 1] = by_row[edge + 1], -by_row[edge + 1]
    for edge in range(len(columns)):
        place = len(rows) + edge
        found[place, :, edge], found[place, :, edge + 1] = by_column[:, edge + 1], -by_column[:, edge + 1]
    found[-1] = _density_differences(rows, columns, correlation)
    return found


def _full(table: Floats, rows: Floats, columns: Floats, correlation: float) -> tuple[Floats, Floats, float]:
    """Scoring steps in thresholds and atanh(ρ) together, from the two-step answer."""
    people, cut = table.sum(), len(rows)
    place = np.concatenate([rows, columns, [math.atanh(correlation)]])

    def told(at: Floats) -> tuple[Floats, Floats, float]:
        return at[:cut], at[cut:-1], math.tanh(at[-1])

    best = _log_likelihood(table, _cells(*told(place)))
    for _ in range(MOST_STEPS):
        slopes, cells = _scores(*told(place)), _cells(*told(place))
        slopes[-1] *= 1.0 - math.tanh(place[-1]) ** 2
        flat = slopes.reshape(len(place), -1)
        information = people * (flat / cells.ravel()) @ flat.T
        step = np.linalg.solve(information, flat @ (table / cells).ravel())
        if np.abs(step).max() < STILL:
            return told(place)
        while True:
            tried = place + step
            ordered = (np.diff(tried[:cut]) > 0).all() and (np.diff(tried[cut:-1]) > 0).all()
            level = _log_likelihood(table, _cells(*told(tried))) if ordered else -math.inf
            if level >= best - 1e-12 * abs(best):
                break
            step = step / 2
        place, best = tried, level
    raise NoEstimate(
        f"no most likely thresholds were found in {MOST_STEPS} steps",
        why="some answers are too rare",
        instead='merge levels that few people chose, or use method "two-step"',
    )


def _full_influence(score: Floats, cells: Floats) -> Floats:
    """Influence of one person on ρ when everything is estimated together: the last row of I⁻¹ times her score."""
    flat = score.reshape(len(score), -1) / np.sqrt(cells.ravel())
    last = np.linalg.inv(flat @ flat.T)[-1]
    return np.tensordot(last, score / cells, axes=1)


def _two_step_influence(score: Floats, cells: Floats, table: Floats) -> Floats:
    """The same when thresholds come from the margins: (s_ρ − I_ρτ·influence on τ)/I_ρρ, s_ρ the score of ρ.

    A threshold's own influence is (1{answer ≤ level} − share)/φ(threshold).
    """
    rows, columns = table.shape
    own = score[-1] / cells
    crossed = np.tensordot(score[:-1] / cells, score[-1], axes=2)
    shares = np.cumsum(table.sum(axis=1))[:-1] / table.sum(), np.cumsum(table.sum(axis=0))[:-1] / table.sum()
    moved = np.zeros((rows, columns))
    for axis, (size, share, part) in enumerate(
        zip((rows, columns), shares, (crossed[: rows - 1], crossed[rows - 1 :]), strict=True)
    ):
        heights = np.exp(-0.5 * ndtri(share) ** 2) / math.sqrt(2.0 * math.pi)
        at_most = np.arange(size)[:, None] <= np.arange(size - 1)[None, :]
        along = ((at_most - share) / heights) @ part
        moved += along[:, None] if axis == 0 else along[None, :]
    influence: Floats = (own - moved) / float((score[-1] * own).sum())
    return influence


@dataclass(frozen=True, eq=False)
class Polyserial:
    """A correlation between an amount and an ordered answer, with its standard error."""

    correlation: float
    standard_error: float  # robust: also where the amount is not normal
    thresholds: Floats  # (levels − 1,), of the opinion, in its standard deviations
    influence: Floats  # (people,): by how much each moves the estimate, times people
    observations: int

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        return _fisher_interval(self.correlation, self.standard_error, level)


def polyserial(amounts: ArrayLike, answers: ArrayLike) -> Polyserial:
    """The correlation between an amount and an ordered answer of the same people; missing rows are left out."""
    amount, answer = (np.asarray(column, dtype=np.float64) for column in (amounts, answers))
    if amount.shape != answer.shape or amount.ndim != 1:
        raise InvalidSurvey(
            f"{amount.size} amounts and {answer.size} answers",
            why="a correlation is between an amount and an answer of the same people",
            instead="give one row a person in both",
        )
    given = np.isfinite(amount) & np.isfinite(answer)
    levels, place = np.unique(answer[given], return_inverse=True)
    people = len(place)
    if len(levels) < 2 or np.ptp(amount[given]) == 0:
        raise InvalidSurvey(
            "the amount or the answer is the same for everybody",
            why="what never varies cannot hang together with anything",
            instead="leave it out",
        )
    standard = (amount[given] - amount[given].mean()) / amount[given].std()
    cuts = ndtri(np.cumsum(np.bincount(place))[:-1] / people)
    # u = threshold above − slope·amount, v = threshold below − slope·amount.
    upper, lower = np.zeros((people, len(levels))), np.zeros((people, len(levels)))
    has_upper, has_lower = place < len(levels) - 1, place > 0
    upper[has_upper, place[has_upper]], lower[has_lower, place[has_lower] - 1] = 1.0, 1.0
    upper[:, -1] = lower[:, -1] = -standard
    found = most_likely(IntervalRows(upper, lower, has_upper, has_lower), np.append(cuts, 0.0), "normal")
    slope = float(found.parameters[-1])
    length = math.sqrt(1.0 + slope**2)
    own = people * found.scores @ np.linalg.inv(-found.hessian)[-1]
    influence = (own + slope * (standard**2 - 1.0) / 2.0) / length**3  # the second part: the amount's own spread
    return Polyserial(
        correlation=slope / length,
        standard_error=math.sqrt(float(influence @ influence)) / people,
        thresholds=found.parameters[:-1] / length,
        influence=influence,
        observations=people,
    )
