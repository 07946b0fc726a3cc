"""The (ε, δ) of one release by its exact noise: never below the truth, and hardly above it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.measured import direct

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, Noise
from dualmandate.mechanism.changes import Change, Measured
from dualmandate.population import Attribute, Domain, Neighbors, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.publication import release as releases
from dualmandate.publication.release import epsilon_of, release_privacy
from dualmandate.workload import Tabulation, Workload

Floats = NDArray[np.float64]
REACH = 140
TWO_SIDED, NORMAL = Noise(GEOMETRIC, Fraction(3, 2)), Noise(GAUSSIAN, Fraction(7, 3))


def masses(noise: Noise, shift: int = 0) -> Floats:
    """P(X + shift = k) for |k| ≤ REACH, from the formula."""
    places = np.abs(np.arange(-REACH, REACH + 1, dtype=np.float64) - shift)
    rate = float(1 / noise.parameter)
    found = np.exp(-rate * places) if noise.law == "laplace" else np.exp(-rate / 2 * places**2)
    whole = np.abs(np.arange(-40 * REACH, 40 * REACH + 1, dtype=np.float64))
    return np.asarray(found / np.exp(-rate * whole if noise.law == "laplace" else -rate / 2 * whole**2).sum())


def hockey_stick(one: Floats, other: Floats, epsilon: float) -> float:
    """Σ max(p − e^ε·q, 0)."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())


def smallest_epsilon(one: Floats, other: Floats, probability: float) -> float:
    """The least ε with Σ max(p − e^ε·q, 0) ≤ δ, outcomes in the order of how much they tell."""
    one, other = one[one > 0], other[one > 0]
    with np.errstate(divide="ignore"):
        losses = np.log(other) - np.log(one)
    order = np.argsort(losses)
    losses, ones, others = losses[order], np.cumsum(one[order]), np.cumsum(other[order])
    low, high = 0.0, 60.0
    for _ in range(80):
        middle = (low + high) / 2
        telling = int(np.searchsorted(losses, -middle))
        missed = ones[telling - 1] - math.exp(middle) * others[telling - 1] if telling else 0.0
        low, high = (low, middle) if missed <= probability else (middle, high)
    return high


def convolved(noise: Noise, count: int, probability: float) -> float:
    """The ε of rows that are shifted by 1: their losses are whole multiples of one number, added up by convolution."""
    places = np.arange(-REACH, REACH + 1)
    if noise.law == "laplace":
        step, losses = float(1 / noise.parameter), np.abs(places - 1) - np.abs(places)
    else:
        step, losses = float(1 / (2 * noise.parameter)), 1 - 2 * places
    one = np.zeros(losses.max() - losses.min() + 1)
    np.add.at(one, losses - losses.min(), masses(noise))
    every = np.ones(1)
    for _ in range(count):
        every = np.convolve(every, one)
    sums = step * (np.arange(len(every)) + count * losses.min())

    def missed(epsilon: float) -> float:
        above = sums > epsilon
        return float(-every[above] @ np.expm1(epsilon - sums[above]))

    low, high = 0.0, float(sums[-1])
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if missed(middle) <= probability else (middle, high)
    return high


@pytest.mark.parametrize("probability", [1e-3, 1e-6, 1e-10, 1e-12])
@pytest.mark.parametrize(
    ("noise", "count"),
    [
        (Noise(GAUSSIAN, 5 / Fraction("2.5562")), 10),
        (Noise(GEOMETRIC, Fraction(10)), 100),
        (TWO_SIDED, 7),
        (NORMAL, 30),
        (Noise(GAUSSIAN, Fraction(1, 5)), 3),
    ],
)
def test_many_rows_as_by_convolution(noise: Noise, count: int, probability: float) -> None:
    exact = convolved(noise, count, probability)
    found = epsilon_of(frozenset({((noise, 1), count)}), probability, fineness=2e-5 * exact)
    assert found is not None
    assert exact <= found < exact * 1.001 + 1e-3


@pytest.mark.parametrize("probability", [1e-3, 1e-6])
def test_rows_of_several_kinds_as_by_every_outcome(probability: float) -> None:
    """Three rows, of two laws, shifted by 2, 1 and 3: the joint distribution written out."""
    change: Change = frozenset({((TWO_SIDED, 2), 1), ((NORMAL, 1), 1), ((NORMAL, 3), 1)})
    middle = slice(REACH - 40, REACH + 41)
    one, other = np.ones(1), np.ones(1)
    for (noise, size), _ in change:
        one = np.multiply.outer(one, masses(noise)[middle]).reshape(-1)
        other = np.multiply.outer(other, masses(noise, size)[middle]).reshape(-1)
    exact = smallest_epsilon(one, other, probability)
    found = epsilon_of(change, probability, fineness=1e-4)
    assert found is not None
    assert exact - 1e-9 <= found < exact + 5e-3


@pytest.mark.parametrize("noise", [TWO_SIDED, NORMAL, Noise(GEOMETRIC, Fraction(1, 5)), Noise(GAUSSIAN, Fraction(40))])
def test_larger_shifts_are_easier_to_tell(noise: Noise) -> None:
    """What lets changes be left out that others cover, for every γ, also below 1."""
    for size in range(1, 6):
        for gamma in (0.1, 0.9, 1.0, 1.7, 20.0, 1e4):
            small, large = (hockey_stick(masses(noise), masses(noise, s), math.log(gamma)) for s in (size, size + 1))
            assert small <= large + 1e-15


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("privacy_measure", list(PrivacyMeasure))
def test_a_small_release_as_by_all_its_outcomes(neighbors: Neighbors, privacy_measure: PrivacyMeasure) -> None:
    """Four measured numbers, every change, every outcome; by symmetry all replaced records were once in one cell."""
    domain = Domain((Attribute("age", ("young", "old")), Attribute("sex", ("f", "m"))))
    tables = [Tabulation.of("ages", ("age",)), Tabulation.of("sexes", ("sex",))]
    protection = Protection(neighbors=neighbors)
    made = direct(Workload.from_tabulations(domain, tables), protection, privacy_measure)
    loss = PrivacyLoss(Fraction(3), privacy_measure)
    [noise] = made.noises(loss.amount)
    found = release_privacy([(made.rows, (noise,))], protection, loss, "0.0001")
    cells = [made.rows.count(cell.reshape(2, 2)) for cell in np.eye(4, dtype=np.int64)]
    none = np.zeros(4, dtype=np.int64)
    moves = [a - none for a in cells] if neighbors is Neighbors.ADD_OR_REMOVE else [a - cells[0] for a in cells[1:]]
    middle, worst = slice(REACH - 20, REACH + 21), 0.0
    for move in moves:
        one, other = np.ones(1), np.ones(1)
        for shift in move[move != 0].tolist():  # a row that is not shifted tells nothing
            one = np.multiply.outer(one, masses(noise)[middle]).reshape(-1)
            other = np.multiply.outer(other, masses(noise, shift)[middle]).reshape(-1)
        worst = max(worst, smallest_epsilon(one, other, 1e-4))
    assert found.by_distribution is not None
    assert worst - 1e-6 <= float(found.by_distribution) < worst + 2e-3
    assert found.by_distribution.amount < found.by_conversion.amount
    assert found.loss == found.by_distribution


def rows_of(noise: Noise, count: int) -> list[Measured]:
    """One record in each of some tables."""
    domain = Domain((Attribute("age", ("young", "old")),))
    tables = [Tabulation.of(f"ages {number}", ("age",)) for number in range(count)]
    privacy_measure = PrivacyMeasure.PURE_DP if noise.law == "laplace" else PrivacyMeasure.ZCDP
    return [(direct(Workload.from_tabulations(domain, tables), Protection(), privacy_measure).rows, (noise,))]


def test_figures_of_the_documentation() -> None:
    rho = PrivacyLoss.concentrated("2.5562")
    found = release_privacy(rows_of(Noise(GAUSSIAN, 5 / rho.amount), 10), Protection(), rho, "1e-10")
    assert (str(found.by_conversion), str(found.by_distribution)) == (
        "epsilon = 17.1435, δ = 1e-10",
        "epsilon = 16.4185, δ = 1e-10",
    )
    pure = PrivacyLoss.pure(10)
    found = release_privacy(rows_of(Noise(GEOMETRIC, Fraction(10)), 100), Protection(), pure, "1e-10")
    assert found.by_distribution is not None
    assert float(found.by_distribution) == pytest.approx(6.2953, abs=5e-4)
    assert float(found.by_conversion) == 10.0  # ρ = 50 would state more at this δ
    assert found.words == "the worst of 1 kinds of changes, composed numerically"


def test_where_nothing_is_known_beyond_the_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    rho, groups = PrivacyLoss.concentrated(1), rows_of(Noise(GAUSSIAN, Fraction(1)), 2)
    tiny = release_privacy(groups, Protection(), rho, Fraction(1, 10**13))
    assert (tiny.by_distribution, tiny.loss) == (None, tiny.by_conversion)
    assert "of at least 1e-12" in tiny.words
    broad = release_privacy(rows_of(Noise(GAUSSIAN, Fraction(2**33)), 2), Protection(), rho, "1e-9")
    assert (broad.by_distribution, broad.words) == (None, "noise as broad as this is not composed value by value")
    with monkeypatch.context() as patch:
        patch.setattr(releases, "MOST_COMPOSED", 0)
        assert "too many" in release_privacy(groups, Protection(), rho, "1e-9").words
    with monkeypatch.context() as patch:
        patch.setattr(releases, "find_spec", lambda _: None)
        absent = release_privacy(groups, Protection(), rho, "1e-9")
        assert absent.by_distribution is None
        assert absent.words == "dp-accounting is not installed: install dualmandate[accounting]"
    small = release_privacy(
        rows_of(Noise(GEOMETRIC, Fraction(1000)), 1), Protection(), PrivacyLoss.pure("1/1000"), "0.1"
    )
    assert small.by_distribution is None
    assert small.words == "δ alone covers the loss"
    for odd in (0, 1, "much", -0.5):
        with pytest.raises(InvalidRequest, match="a loss at a failure probability of"):
            release_privacy(groups, Protection(), rho, odd)


def test_the_worst_of_several_changes_counts() -> None:
    """The young are measured with more noise than the old: δ = (e^ε₀ − e^ε)/(1 + e^ε₀) for one shift of 1, ε₀ = 1."""
    domain = Domain((Attribute("age", ("young", "old")),))
    groups = []
    for age, scale in (("young", 2), ("old", 1)):
        table = Tabulation.of(age, where={"age": (age,)})
        made = direct(Workload.from_tabulations(domain, [table]), Protection(), PrivacyMeasure.PURE_DP)
        groups.append((made.rows, (Noise(GEOMETRIC, Fraction(scale)),)))
    found = release_privacy(groups, Protection(), PrivacyLoss.pure("3/2"), "0.01")
    assert found.words == "the worst of 2 kinds of changes, composed numerically"
    assert found.by_distribution is not None
    assert float(found.by_distribution) == pytest.approx(math.log(math.e - 0.01 * (1 + math.e)), abs=1e-3)
