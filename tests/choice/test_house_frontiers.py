"""The choice on the frontiers that the house itself produces, not on stand-ins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.choice import (
    BoundedCost,
    InformationUtility,
    Limits,
    LinearCost,
    PosteriorCost,
    SocialWelfare,
    TableValue,
    choose,
    regret_curve,
    tornado,
)
from dualmandate.errors import IncompatibleUnits, NoOptimum
from dualmandate.frontier import Frontier, Simulation, envelope, frontier_of, public_guess, simulated, split
from dualmandate.mechanism import gaussian, geometric, laplace, mechanism_named
from dualmandate.population import Domain, Histogram, Neighbors, PrivacyMeasure, Protection
from dualmandate.workload import Workload, identity

if TYPE_CHECKING:
    from tests.choice.conftest import TitleI


def counts(names: tuple[str, ...], cells: int = 1) -> dict[str, Workload]:
    """Workloads of one table each, by the table's name."""
    plain = identity(cells)
    return {name: replace(plain, tables=(replace(plain.tables[0], name=name),)) for name in names}


def districts(title_i: TitleI) -> Workload:
    return counts((title_i.table,), title_i.districts)[title_i.table]


@pytest.mark.parametrize("loss", [1e-4, 0.1, 2.5, 40.0])
def test_stand_ins_are_faithful(title_i: TitleI, loss: float) -> None:
    pairs = ((laplace(), title_i.laplace()), (geometric(), title_i.geometric()))
    for mechanism, stand_in in pairs:
        real = frontier_of(mechanism, districts(title_i))
        assert real.table_errors(loss) == pytest.approx(stand_in.table_errors(loss), rel=1e-12)
        assert real.table_slopes(loss) == pytest.approx(stand_in.table_slopes(loss), rel=1e-12)
    absolute = frontier_of(laplace(), districts(title_i)).table_errors(loss, "absolute")
    assert absolute == pytest.approx(title_i.laplace().table_errors(loss, "absolute"), rel=1e-12)


@pytest.mark.parametrize(("noise", "epsilon"), [("laplace", "2.527644"), ("geometric", "2.444299")])
def test_title_i(title_i: TitleI, noise: str, epsilon: str) -> None:
    choice = choose(frontier_of(mechanism_named(noise), districts(title_i)), title_i.welfare())
    assert f"{choice.epsilon:.6f}" == epsilon
    assert choice.technology == noise
    assert choice.willingness_to_accept == pytest.approx(choice.marginal_rate_of_transformation, rel=1e-12)


def test_replace_one_neighbors(title_i: TitleI) -> None:
    protection = Protection(unit="child", neighbors=Neighbors.REPLACE_ONE)
    frontier = frontier_of(laplace(), districts(title_i), protection=protection)
    assert f"{choose(frontier, title_i.welfare()).epsilon:.6f}" == "4.012384"


def test_the_best_noise(title_i: TitleI) -> None:
    members = [
        frontier_of(mechanism_named(noise), districts(title_i)) for noise in ("laplace", "staircase", "geometric")
    ]
    best = envelope(members, values={title_i.table: 2e7})
    choice = choose(best, title_i.welfare())
    assert (f"{choice.epsilon:.6f}", choice.technology) == ("2.444299", "geometric")
    half, double = regret_curve(best, title_i.welfare(), (0.5, 2))
    assert (half.relative, double.relative) == pytest.approx((0.827507, 0.507143), abs=5e-7)


def test_a_loss_split_over_tables() -> None:
    # Research note, section 3: c = (1, 8, 27), K = 2; Laplace noise has c = 2·b a count.
    values = {"a": 0.5, "b": 4.0, "c": 13.5}
    frontiers = {name: frontier_of(laplace(), workload) for name, workload in counts(("a", "b", "c")).items()}

    def rebuild(welfare: SocialWelfare) -> Frontier:
        return split(frontiers, values={value.table: value.value for value in welfare.table_values})

    stated = tuple(TableValue(table, value) for table, value in values.items())
    welfare = SocialWelfare.uniform(1.0, LinearCost(2), table_values=stated)
    choice = choose(rebuild(welfare), welfare)
    assert (choice.epsilon, choice.welfare) == pytest.approx((6, -18), rel=1e-12)
    assert dict(choice.allocation) == pytest.approx({"a": 1, "b": 2, "c": 3}, rel=1e-9)
    ranges = {"value_of_accuracy of c": (0.9 * values["c"], 1.1 * values["c"])}
    (row,) = tornado(rebuild(welfare), welfare, ranges=ranges, rebuild=rebuild)
    # ε* = Σ (2b)^⅓ at K = 2: the split follows the changed value.
    assert row.high.epsilon == pytest.approx(1 + 2 + 3 * 1.1 ** (1 / 3), rel=1e-10)


def test_geometric_noise_split_over_tables() -> None:
    frontiers = {name: frontier_of(geometric(), workload) for name, workload in counts(("a", "b")).items()}
    frontier = split(frontiers, values={"a": 1.0, "b": 8.0})
    values = (TableValue("a", 1.0), TableValue("b", 8.0))
    welfare = SocialWelfare.uniform(1.0, LinearCost(2), table_values=values)
    choice = choose(frontier, welfare)
    grid = np.geomspace(choice.epsilon / 2, choice.epsilon * 2, 200)
    assert choice.welfare >= max(welfare.at(frontier, float(loss)) for loss in grid)
    # The shares lose alike at the margin: each is chosen as if it stood alone at the same cost.
    for name, workload in counts(("a", "b")).items():
        alone = SocialWelfare.uniform(
            1.0, LinearCost(2), table_values=tuple(value for value in values if value.table == name)
        )
        apart = choose(frontier_of(geometric(), workload), alone)
        assert choice.allocation[name] == pytest.approx(apart.epsilon, rel=1e-9)


def test_gaussian_noise_in_rho_and_in_epsilon(title_i: TitleI) -> None:
    rho = frontier_of(gaussian(), districts(title_i))
    priced = title_i.welfare(LinearCost(title_i.cost, PrivacyMeasure.ZCDP))
    choice = choose(rho, priced)
    assert choice.privacy_measure is PrivacyMeasure.ZCDP
    # With σ² = 1/(2ρ): ρ* = √(L·C²/(2K)), while the noise is wide enough that whole numbers do not show.
    dear = choose(rho, title_i.welfare(LinearCost(title_i.cost * 1e3, PrivacyMeasure.ZCDP)))
    predicted = (title_i.districts * title_i.squared_cost / 2 / (title_i.children * title_i.cost * 1e3)) ** 0.5
    assert dear.epsilon == pytest.approx(predicted, rel=1e-6)
    with pytest.raises(IncompatibleUnits, match="per epsilon"):
        choose(rho, title_i.welfare())
    epsilon = frontier_of(gaussian(), districts(title_i), failure_probability=1e-10)
    converted = choose(epsilon, title_i.welfare())
    assert converted.privacy_measure is PrivacyMeasure.PURE_DP
    assert converted.willingness_to_accept == pytest.approx(converted.marginal_rate_of_transformation, rel=1e-9)


def test_publishing_nothing_new() -> None:
    # Laplace noise on one count, or a guess that is wrong by 2 in the square: W = −k·ε − 2/ε², or −2.
    workload = counts(("t",))["t"]
    noisy = frontier_of(laplace(), workload)
    frontier = envelope([noisy, public_guess(noisy, {"t": 2.0})])

    def welfare(cost: float) -> SocialWelfare:
        return SocialWelfare.uniform(1.0, LinearCost(cost), table_values=(TableValue("t", 1.0),))

    cheap = choose(frontier, welfare(0.1))
    assert cheap.epsilon == pytest.approx(40 ** (1 / 3), rel=1e-12)
    assert [(point.kind, round(point.epsilon, 6)) for point in cheap.local_optima] == [
        ("minimum", 1.0),
        ("maximum", round(40 ** (1 / 3), 6)),
    ]
    # 1.5·(4k²)^⅓ > 2 from k = 0.7698 on: the guess is better than any release.
    assert choose(frontier, welfare(0.769)).epsilon == pytest.approx((4 / 0.769) ** (1 / 3), rel=1e-12)
    with pytest.raises(NoOptimum, match=r"falls to 0; the best epsilon inside, 1\.731"):
        choose(frontier, welfare(0.771))


@pytest.mark.parametrize("utility", [BoundedCost(50_000), PosteriorCost(1400, 0.01)], ids=["bounded", "posterior"])
def test_costs_with_a_bound(title_i: TitleI, utility: InformationUtility) -> None:
    frontier = frontier_of(geometric(), districts(title_i))
    choice = choose(frontier, title_i.welfare(utility))
    grid = np.geomspace(1e-3, 1e2, 2000)
    best = max(title_i.welfare(utility).at(frontier, float(loss)) for loss in grid)
    assert choice.welfare >= best
    assert choice.welfare > -title_i.welfare(utility).most_privacy_cost


def test_a_simulated_frontier_with_a_floor() -> None:
    # A chain that is never better than an error of 4 in the square: exactness is not for sale.
    domain = Domain.of_shape((1,))
    workload = counts(("t",))["t"]

    def chain(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
        size = float(np.sqrt(4 + 2 / loss**2))
        return np.asarray(histogram.counts + size * np.sign(generator.laplace(size=1)), dtype=np.float64)

    simulation = Simulation(losses=tuple(np.geomspace(0.01, 1e4, 40)), repetitions=4, seed=3)
    frontier = simulated(chain, workload, histogram=Histogram.zeros(domain), simulation=simulation)
    table = (TableValue("t", 1.0),)
    linear = choose(frontier, SocialWelfare.uniform(1.0, LinearCost(1.0), table_values=table))
    assert linear.epsilon == pytest.approx(4 ** (1 / 3), rel=0.05)
    # Bounded cost: welfare still rises where simulation ends, and what it comes to beyond is not known.
    with pytest.raises(NoOptimum, match=r"towards larger losses at epsilon = 10,000"):
        choose(frontier, SocialWelfare.uniform(1.0, BoundedCost(1.5), table_values=(TableValue("t", 1.375),)))
    capped = SocialWelfare.uniform(1.0, BoundedCost(1.0), table_values=table)
    assert choose(frontier, capped, Limits(largest_epsilon=9)).bound_by == "largest epsilon"
