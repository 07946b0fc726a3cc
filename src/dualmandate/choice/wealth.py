"""The value of accuracy derived from what published numbers do to people's wealth.

Person i's wealth is a weighted sum Πᵢᵀ M(x, Q) of the published numbers, and utility U of wealth is concave, so noise
costs something. With strategy A, wealth moves by ΔA·Σ_j a_j·e_j, a = ΠᵀQA⁺ (the exposures), e_j independent noise.
A second-order Taylor expansion gives the paper's b_i; with constant absolute risk aversion r the cost is known exactly
and shows where Taylor fails. Source: Abowd and Schmutte 2019, section IV and the appendix on data utility (where QA
must read QA⁺).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from dualmandate.errors import InvalidPreferences, UnsupportedWorkload
from dualmandate.frontier.frontier import Frontier
from dualmandate.mechanism import Measurement
from dualmandate.population import PrivacyMeasure
from dualmandate.population.arrays import Floats
from dualmandate.population.wording import number

TAYLOR_TOLERANCE = 0.05  # A Taylor cost within this share of the exact one counts as close.
SUPPORT_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class Exposures:
    """How one unit of noise on each measurement moves a person's wealth."""

    amounts: Floats  # a = ΠᵀQA⁺, shape (rows of A,), USD per unit of noise
    share: float  # ‖ΠᵀQA⁺‖²/‖QA⁺‖²_F, USD² per squared unit of the tables

    @classmethod
    def of(cls, weights: Floats, workload: Floats, strategy: Floats | None = None) -> Exposures:
        """Exposures from wealth weights Π (queries,), Q (queries × cells) and A (measurements × cells).

        Without a strategy Q itself is measured. Dense matrices: for workloads of hand size.
        """
        if weights.shape != workload.shape[:1] or not np.all(np.isfinite(weights)):
            raise InvalidPreferences(
                f"wealth weights of shape {weights.shape} for {workload.shape[0]} queries",
                why="wealth is a finite sum with one weight a published number",
                instead="give one finite weight a query",
            )
        if strategy is None:
            reconstruction = np.eye(workload.shape[0])
        else:
            inverse = np.linalg.pinv(strategy)
            reconstruction = workload @ inverse
            if not np.allclose(reconstruction @ strategy, workload, atol=SUPPORT_TOLERANCE):
                raise UnsupportedWorkload(
                    "the strategy does not support the workload",
                    why="QA⁺A differs from Q: some queries are not sums of what is measured",
                    instead="measure queries that the workload can be computed from",
                )
        amounts = weights @ reconstruction
        return cls(amounts, float(amounts @ amounts) / float(np.sum(reconstruction**2)))


def expected_second_derivative(
    second_derivative: Callable[[Floats], Floats], wealth: Floats, probabilities: Floats | None = None
) -> float:
    """E[U''] over what a person believes about exact wealth ΠᵀQx; refused where U is not concave or not defined."""
    with np.errstate(all="ignore"):
        values = second_derivative(wealth)
    mean = float(np.average(values, weights=probabilities))
    if not (math.isfinite(mean) and np.all(values <= 0) and mean < 0):
        raise InvalidPreferences(
            f"the mean second derivative of utility is {mean:g}",
            why="who gains from noise, or has no utility at some wealth, does not value accuracy in this way",
            instead="use a utility that is strictly concave at every wealth believed possible",
        )
    return mean


def taylor_coefficient(
    exposures: Exposures, expected_second_derivative: float, *, marginal_utility: float = 1.0
) -> float:
    """b_i = −½·E[U'']·‖ΠᵀQA⁺‖²/‖QA⁺‖²_F: what a person loses by one unit of squared error.

    In units of utility, or in USD per squared unit when divided by the marginal utility E[U'] of wealth: with constant
    absolute risk aversion r it is ½·r·‖ΠᵀQA⁺‖²/‖QA⁺‖²_F. Sum it over people to get the value of accuracy.
    """
    return -0.5 * expected_second_derivative * exposures.share / marginal_utility


@dataclass(frozen=True)
class TaylorDiagnostic:
    """How far the Taylor value of accuracy can be trusted at one privacy loss."""

    largest_s: float  # s = r·|a|·Δ/ε of the most exposed measurement; the exact cost is infinite at 1
    exact: float  # USD; infinite where expected utility does not exist
    taylor: float  # USD

    @property
    def ratio(self) -> float:
        """Exact over Taylor cost; ≥ 1."""
        return self.exact / self.taylor if self.taylor > 0 else 1.0

    @property
    def trustworthy(self) -> bool:
        """Whether Taylor is within five percent."""
        return self.ratio <= 1 + TAYLOR_TOLERANCE

    def __str__(self) -> str:
        if math.isinf(self.exact):
            return f"s = {number(self.largest_s, 3)} ≥ 1: expected utility is minus infinity, and Taylor says nothing"
        verdict = "close" if self.trustworthy else "too low"
        times = f"{number(self.ratio, 6)} times the Taylor cost"
        return f"s = {number(self.largest_s, 3)}: the exact cost is {times}, which is {verdict}"


WealthNoise = Literal["laplace", "geometric", "gaussian"]
WEALTH_NOISES: tuple[WealthNoise, ...] = get_args(WealthNoise)


@dataclass(frozen=True, eq=False)
class WealthRisk:
    """The exact cost of noise to people with constant absolute risk aversion: what they would pay to be rid of it.

    (1/r)·Σ_j ln E[exp(r·a_j·noise_j)], USD, times the number of such people. Laplace: −Σ ln(1 − s_j²)/r with
    s_j = r·|a_j|·Δ/ε. Two-sided geometric: the same with its own generating function. Gaussian under zCDP: Taylor is
    exact (and an upper bound for the discrete Gaussian).
    """

    risk_aversion: float  # r, per USD, > 0
    exposures: Floats  # a, USD per unit of noise, shape (measurements,)
    sensitivity: float = 1.0  # Δ of what is measured: Δ₁, or Δ₂ for gaussian
    noise: WealthNoise = "laplace"
    people: float = 1.0  # how many have these exposures
    table = None
    least = 0.0

    def __post_init__(self) -> None:
        positive = (self.risk_aversion, self.sensitivity, self.people)
        if not all(math.isfinite(number) and number > 0 for number in positive):
            raise InvalidPreferences(
                f"risk aversion {self.risk_aversion}, sensitivity {self.sensitivity}, people {self.people}",
                why="each is a finite number above 0",
                instead="state the absolute risk aversion per unit of money, the sensitivity and the number of people",
            )

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        return PrivacyMeasure.ZCDP if self.noise == "gaussian" else PrivacyMeasure.PURE_DP

    def scaled(self, factor: float) -> WealthRisk:
        return replace(self, people=self.people * factor)

    def at(self, _frontier: Frontier, loss: float, /) -> float:
        return self.cost(loss)

    def slope(self, _frontier: Frontier, loss: float, /) -> float:
        return self.marginal_cost(loss)

    def cost(self, loss: float) -> float:
        """The cost, USD; infinite where s ≥ 1."""
        if self.noise == "gaussian":
            return self.taylor(loss)
        if self.largest_s(loss) >= 1:
            return math.inf
        logs = -np.log1p(-(self._s(loss) ** 2)) if self.noise == "laplace" else np.log1p(self._odds(loss))
        return self.people * float(np.sum(logs)) / self.risk_aversion

    def marginal_cost(self, loss: float) -> float:
        """Derivative of the cost, USD per unit of loss; −∞ where s ≥ 1."""
        if self.noise == "gaussian":
            return -self.taylor(loss) / loss
        if self.largest_s(loss) >= 1:
            return -math.inf
        if self.noise == "laplace":
            s = self._s(loss)
            slopes = -2 * s**2 / (1 - s**2) / loss
        else:
            slopes = -self._odds(loss) / math.tanh(loss / self.sensitivity / 2) / self.sensitivity
        return self.people * float(np.sum(slopes)) / self.risk_aversion

    def taylor(self, loss: float) -> float:
        """The second-order cost ½·r·Var(wealth), USD."""
        unit_loss = loss / self.sensitivity
        if self.noise == "gaussian":
            variance = self.sensitivity**2 / (2 * loss)
        elif self.noise == "laplace":
            variance = 2 / unit_loss**2
        else:
            variance = 2 * math.exp(-unit_loss) / math.expm1(-unit_loss) ** 2
        return self.people * 0.5 * self.risk_aversion * variance * float(self.exposures @ self.exposures)

    def largest_s(self, loss: float) -> float:
        """s = r·|a|·Δ/ε of the most exposed measurement; 0 for Gaussian noise, which never ruins."""
        return 0.0 if self.noise == "gaussian" else float(np.max(self._s(loss), initial=0.0))

    def diagnostic(self, loss: float) -> TaylorDiagnostic:
        """Whether the Taylor value of accuracy can be used at this loss."""
        return TaylorDiagnostic(self.largest_s(loss), self.cost(loss), self.taylor(loss))

    def _s(self, loss: float) -> Floats:
        return self.risk_aversion * np.abs(self.exposures) * (self.sensitivity / loss)

    def _odds(self, loss: float) -> Floats:
        """E[exp(t·X)] − 1 = sinh²(t/2)/(sinh((λ + t)/2)·sinh((λ − t)/2)), λ = ε/Δ, t = r·|a|, without overflow."""
        rate, tilt = loss / self.sensitivity, self.risk_aversion * np.abs(self.exposures)
        # sinh(y) = e^y·(1 − e^−2y)/2: the powers of e cancel down to e^(t − λ).
        top = np.expm1(-tilt) ** 2 * np.exp(tilt - rate)
        return np.asarray(top / (np.expm1(-(rate + tilt)) * np.expm1(-(rate - tilt))))


@dataclass(frozen=True)
class WealthGroup:
    """People whose wealth hangs on the numbers of a table, and who would pay to be rid of their errors."""

    name: str
    people: float  # > 0
    exposure: float  # Π, USD per unit of a number, > 0
    risk_aversion: float  # r, absolute, per USD, > 0
    to_all: bool = False  # whether each of them is exposed to every number, or to one; people are spread evenly then

    def value_of_accuracy(self, query_count: int) -> float:
        """½·r·Π² a person, USD per squared unit: on Σ E[error²] of a table, what all of them would pay (Taylor)."""
        persons = self.people if self.to_all else self.people / query_count
        return 0.5 * self.risk_aversion * self.exposure**2 * persons

    def diagnostic(self, measurement: Measurement, table: str, loss: float, *, grid: float) -> TaylorDiagnostic | None:
        """The exact cost of noise to one of them, of the noisiest number or of all, beside Taylor's; None for others.

        Σ over kinds of rows, each with its own noise; `grid` is the size in the table's unit of one step of an answer.
        """
        noise = next((each for each in WEALTH_NOISES if each == measurement.law.name), None)
        if noise is None:
            return None
        rows, count = measurement.rows, measurement.workload.table(table).query_count
        worst = int(np.argmax(measurement.query_variances(table, loss)))
        exposures = self.exposure * grid * rows.weights(table, range(count) if self.to_all else [worst])
        norm = float(measurement.sensitivity.power) ** (0.5 if noise == "gaussian" else 1.0)
        kinds = rows.kinds()
        parts = [
            WealthRisk(self.risk_aversion, exposures[kinds == kind], norm / float(step), noise).diagnostic(loss)
            for kind, step in enumerate(rows.steps)
        ]
        costs = [math.fsum(getattr(part, name) for part in parts) for name in ("exact", "taylor")]
        return TaylorDiagnostic(max(part.largest_s for part in parts), *costs)
