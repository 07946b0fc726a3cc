"""Opinions on ordered scales: how they hang together, and the working papers' own way from there to a privacy loss.

A polychoric correlation is that of two opinions as if both were measured without steps. Behind each answer stands a
normal variable, cut into levels at thresholds; the correlation of the two variables makes the observed table of answers
most likely [Ols79]. "two-step" takes the thresholds from the margins of the table and searches the correlation alone;
"full" searches everything together.

A polyserial correlation is the same between an amount and an ordered answer: the answer is an ordered probit on the
amount, and the correlation is ρ = β/√(1 + β²), β the probit's slope on the standardized amount [OCD82].

In the working papers people care about their own privacy and data, and about those of others in proportion to income.
Society's willingness to accept privacy loss for accuracy is then R = (1 + cov(γ, y))/(1 + cov(η, y)), γ the taste for
privacy, η the taste for accuracy, y income [ASWP]. The covariances come from opinions on ordered scales, as polychoric
correlations: all three variables have variance one there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincc, ndtr, ndtri, xlogy

from dualmandate.elicitation.likelihood import IntervalRows, Maximum, climb, most_likely
from dualmandate.elicitation.willingness import critical_value
from dualmandate.errors import InvalidPreferences, InvalidSurvey, NoEstimate, NoOptimum, UnknownName
from dualmandate.frontier.worst_case import PowerLawTechnology
from dualmandate.population.wording import exact, number

Floats = NDArray[np.float64]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
Steps = Literal["two-step", "full"]
Estimated = tuple[Floats, Floats, float]  # row and column thresholds, and the correlation
LARGEST = 0.99  # A correlation beyond this is taken for a perfect one, which has no estimate.
MOST_STEPS = 100
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
    def fit_probability(self) -> float | None:
        """How often a table at least as far off would be seen if the variables were normal; None for a 2×2 table."""
        rows, columns = self.counts.shape
        degrees = rows * columns - rows - columns  # cells that are free after thresholds and correlation
        return float(gammaincc(degrees / 2, self.likelihood_ratio / 2)) if degrees > 0 else None


def _fisher_interval(correlation: float, standard_error: float, level: float) -> tuple[float, float]:
    """An interval, symmetric after Fisher's transformation atanh(ρ), so that it stays within (−1, 1)."""
    width = critical_value(level) * standard_error / (1.0 - correlation**2)
    middle = math.atanh(correlation)
    return math.tanh(middle - width), math.tanh(middle + width)


def answer_table(first: ArrayLike, second: ArrayLike) -> Floats:
    """People by their two answers, levels sorted; rows where either is missing (not a number) are left out."""
    one, other, _ = _both_given(first, second)
    (rows, row), (columns, column) = (np.unique(answers, return_inverse=True) for answers in (one, other))
    table = np.zeros((len(rows), len(columns)))
    np.add.at(table, (row, column), 1.0)
    return table


def _both_given(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The two answers of those who gave both, and who these are."""
    one, other = (np.asarray(answers, dtype=np.float64) for answers in (first, second))
    if one.shape != other.shape or one.ndim != 1:
        raise InvalidSurvey(
            f"{one.size} and {other.size} answers",
            why="a correlation is between two answers of the same people",
            instead="give one row a person in both",
        )
    given = np.isfinite(one) & np.isfinite(other)
    return one[given], other[given], given


def polychoric(counts: ArrayLike, *, method: Steps = "two-step") -> Polychoric:
    """The correlation behind a table of people by two ordered answers, (rows, columns).

    The standard error allows for the estimated thresholds under both methods. Refused: a scale with one answer, and
    tables in which one answer foretells the other.
    """
    table = _checked(counts, method)
    people = table.sum()
    rows = ndtri(np.cumsum(table.sum(axis=1))[:-1] / people)
    columns = ndtri(np.cumsum(table.sum(axis=0))[:-1] / people)
    found = _searched(table, rows, columns, 0.0, full=False)
    if found is None:
        raise NoEstimate(
            "one of the two answers foretells the other",
            why="the correlation behind such a table is perfect, and has no standard error",
            instead="merge levels that few people chose, or leave one of the questions out",
        )
    if method == "full":
        found = _searched(table, *found, full=True)
    if found is None:
        raise NoEstimate(
            f"no most likely thresholds were found in {MOST_STEPS} steps",
            why="some answers are too rare",
            instead='merge levels that few people chose, or use method "two-step"',
        )
    rows, columns, correlation = found
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


def _searched(table: Floats, rows: Floats, columns: Floats, start: float, *, full: bool) -> Estimated | None:
    """The correlation that makes the table most likely, and the thresholds too where `full`; None where none does.

    Scoring steps in atanh(ρ), so that no step leaves (−1, 1).
    """
    people, cut = table.sum(), len(rows)
    given = np.concatenate([rows, columns])
    held = 0 if full else len(given)  # so many thresholds stay as they are

    def told(free: Floats) -> Estimated:
        place = np.concatenate([given[:held], free])
        return place[:cut], place[cut:-1], math.tanh(place[-1])

    def evaluated(free: Floats) -> Maximum:
        at = told(free)
        ordered = (np.diff(at[0]) > 0).all() and (np.diff(at[1]) > 0).all()
        if not ordered or abs(at[2]) > LARGEST:
            return Maximum(free, -math.inf, np.zeros((1, len(free))), np.eye(len(free)))
        cells, slopes = _cells(*at), _scores(*at)[held:]
        slopes[-1] *= 1.0 - at[2] ** 2
        flat = slopes.reshape(len(free), -1)
        scores = (flat * (table / cells).ravel()).T
        return Maximum(free, _log_likelihood(table, cells), scores, people * (flat / cells.ravel()) @ flat.T)

    top = climb(evaluated, np.append(given[held:], math.atanh(start)), MOST_STEPS)
    return None if top is None else told(top.point)


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
    amount, answer, _ = _both_given(amounts, answers)
    levels, place = np.unique(answer, return_inverse=True)
    people = len(place)
    if len(levels) < 2 or np.ptp(amount) == 0:
        raise InvalidSurvey(
            "the amount or the answer is the same for everybody",
            why="what never varies cannot hang together with anything",
            instead="leave it out",
        )
    standard = (amount - amount.mean()) / amount.std()
    cuts = ndtri(np.cumsum(np.bincount(place))[:-1] / people)
    # u = threshold above − slope·amount, v = threshold below − slope·amount.
    upper, lower = np.zeros((people, len(levels))), np.zeros((people, len(levels)))
    has_upper, has_lower = place < len(levels) - 1, place > 0
    upper[has_upper, place[has_upper]], lower[has_lower, place[has_lower] - 1] = 1.0, 1.0
    upper[:, -1] = lower[:, -1] = -standard
    found = most_likely(IntervalRows(upper, lower, has_upper, has_lower), np.append(cuts, 0.0), "normal")
    slope = float(found.point[-1])
    length = math.sqrt(1.0 + slope**2)
    own = people * found.scores @ np.linalg.inv(found.curvature)[-1]
    influence = (own + slope * (standard**2 - 1.0) / 2.0) / length**3  # the second part: the amount's own spread
    return Polyserial(
        correlation=slope / length,
        standard_error=math.sqrt(float(influence @ influence)) / people,
        thresholds=found.point[:-1] / length,
        influence=influence,
        observations=people,
    )


@dataclass(frozen=True)
class InterdependentChoice:
    """The privacy loss at which the technology's rate equals society's, with its interval from the covariances."""

    epsilon: float
    accuracy: float  # I = 1 − α, a share
    willingness_to_accept: float
    epsilon_interval: tuple[float, float] | None  # None where the covariances have no stated errors
    accuracy_interval: tuple[float, float] | None
    level: float = 0.95

    def __str__(self) -> str:
        rate = number(self.willingness_to_accept)
        words = f"ε = {number(self.epsilon)} and I = {number(self.accuracy)}, where MRT = WTA = {rate}"
        if self.epsilon_interval is None:
            return words
        low, high = self.epsilon_interval
        return f"{words} ({100 * self.level:g} % interval of ε {number(low)} to {number(high)})"


@dataclass(frozen=True, eq=False)
class InterdependentPreferences:
    """Covariances of tastes with income, and how sure they are."""

    privacy_income_covariance: float  # cov(γ, y) > −1
    accuracy_income_covariance: float  # cov(η, y) > −1
    covariance: NDArray[np.float64] | None = None  # (2, 2), of the two estimates; None where they are only stated

    def __post_init__(self) -> None:
        for name, stated in (
            ("privacy", self.privacy_income_covariance),
            ("accuracy", self.accuracy_income_covariance),
        ):
            if not (math.isfinite(stated) and stated > -1.0):
                raise InvalidPreferences(
                    f"a covariance of {exact(stated)} between the taste for {name} and income",
                    why="at −1 and below society would want less of it for nothing",
                    instead="state a covariance above −1; income and tastes are measured in standard deviations",
                )

    @classmethod
    def of_answers(
        cls, income: ArrayLike, privacy: ArrayLike, accuracy: ArrayLike, *, method: Steps = "two-step"
    ) -> InterdependentPreferences:
        """From answers on ordered scales, one row a person, not a number where missing.

        The two correlations share people and their incomes; how far their errors hang together is worked out from the
        influence of each person on both.
        """
        pairs = [(income, privacy), (income, accuracy)]
        found = [polychoric(answer_table(*pair), method=method) for pair in pairs]
        influences = [_influence(each, *pair) for each, pair in zip(found, pairs, strict=True)]
        sizes = np.array([each.observations for each in found])
        joint = np.array([[one @ other for one in influences] for other in influences]) / np.outer(sizes, sizes)
        return cls(found[0].correlation, found[1].correlation, joint)

    @property
    def willingness_to_accept(self) -> float:
        """R = (1 + cov(γ, y))/(1 + cov(η, y)): accuracy for a unit of privacy loss."""
        return (1.0 + self.privacy_income_covariance) / (1.0 + self.accuracy_income_covariance)

    @property
    def standard_error(self) -> float | None:
        """The standard error of R, by the delta method."""
        return None if self.covariance is None else self.willingness_to_accept * self._log_error()

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """An interval for R, symmetric in its logarithm."""
        if self.covariance is None:
            return None
        width = critical_value(level) * self._log_error()
        return self.willingness_to_accept * math.exp(-width), self.willingness_to_accept * math.exp(width)

    def choose(self, technology: PowerLawTechnology, *, level: float = 0.95) -> InterdependentChoice:
        """ε* = (b·K/R)^(1/(1+b)); refused where the technology guarantees nothing there."""
        epsilon = technology.optimum(self.willingness_to_accept)
        accuracy = technology.accuracy(epsilon)
        if accuracy <= 0.0:
            raise NoOptimum(
                f"at ε = {number(epsilon)} the technology guarantees no accuracy",
                why="its worst error is at least the whole population",
                instead="count more people, ask fewer queries, or publish nothing",
            )
        band = self.interval(level)
        if band is None:
            return InterdependentChoice(epsilon, accuracy, self.willingness_to_accept, None, None, level)
        losses = technology.optimum(band[1]), technology.optimum(band[0])  # a higher R means a lower ε
        gains = technology.accuracy(losses[0]), technology.accuracy(losses[1])
        return InterdependentChoice(epsilon, accuracy, self.willingness_to_accept, losses, gains, level)

    def welfare_change(self, technology: PowerLawTechnology, *, before: float, after: float) -> float:
        """Mean change of utility when the privacy loss goes from `before` to `after`: (1 + cov η)ΔI − (1 + cov γ)Δε."""
        gained = technology.accuracy(after) - technology.accuracy(before)
        return (1.0 + self.accuracy_income_covariance) * gained - (1.0 + self.privacy_income_covariance) * (
            after - before
        )

    def _log_error(self) -> float:
        assert self.covariance is not None
        gradient = np.array(
            [1.0 / (1.0 + self.privacy_income_covariance), -1.0 / (1.0 + self.accuracy_income_covariance)]
        )
        return math.sqrt(float(gradient @ self.covariance @ gradient))


def _influence(found: Polychoric, first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """(people,): influence of each person on a correlation; 0 for those who did not answer."""
    *answers, given = _both_given(first, second)
    row, column = (np.unique(each, return_inverse=True)[1] for each in answers)
    each = np.zeros(len(given))
    each[given] = found.influence[row, column]
    return each
