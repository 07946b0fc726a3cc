"""One loss over groups of tables: the best shares, and stated ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.errors import InvalidLoss, InvalidWorkload, UnknownName
from dualmandate.frontier import (
    Frontier,
    Measure,
    TailMisses,
    WorstError,
    frontier_of,
    power_split,
    priced,
    split,
    stated_split,
)
from dualmandate.frontier.numerics import derivative
from dualmandate.frontier.split import SplitCurves
from dualmandate.mechanism import Measurement, Production, TableRows, laplace
from dualmandate.mechanism.gaussian import GAUSSIAN
from dualmandate.mechanism.geometric import GEOMETRIC
from dualmandate.mechanism.laplace import LAPLACE
from dualmandate.mechanism.mechanism import NoiseLaw
from dualmandate.mechanism.staircase import STAIRCASE
from dualmandate.population import Domain
from dualmandate.workload import Workload, identity
from dualmandate.workload.factor import Identity
from dualmandate.workload.table import Table

if TYPE_CHECKING:
    from tests.frontier.conftest import LawFrontier

CUBES = {"a": 1.0, "b": 8.0, "c": 27.0}
HALVES = {"a": Fraction(1, 2), "b": Fraction(1, 2)}


def curves_of(frontier: Frontier) -> SplitCurves:
    assert isinstance(frontier.curves, SplitCurves)
    return frontier.curves


def groups(of_law: LawFrontier, law: NoiseLaw, coefficients: dict[str, float]) -> list[Frontier]:
    return [of_law(law, {table: coefficient}) for table, coefficient in coefficients.items()]


def test_cube_roots_for_laplace(of_law: LawFrontier) -> None:
    """c/ε² with c = (1, 8, 27): Laplace has 2/ε², so half a draw stands for c = 1."""
    frontier = split(groups(of_law, LAPLACE, {table: c / 2 for table, c in CUBES.items()}))
    assert frontier.allocation(6) == pytest.approx({"a": 1, "b": 2, "c": 3})
    assert curves_of(frontier).weights.total(frontier, 6) == pytest.approx(6)
    assert frontier.expected_squared_error(6) == pytest.approx(6)
    assert frontier.marginal_rate_of_transformation(6) == pytest.approx(2)  # K = 2: ε = 6 is the chosen total
    assert power_split([1, 8, 27], 6, 2) == pytest.approx([1, 2, 3])
    assert sum(c / 2**2 for c in CUBES.values()) == 9  # an equal split


def test_a_floor_lifts_its_group_and_the_others_share_the_rest(of_law: LawFrontier) -> None:
    """c = (1, 8, 27): with a floor of 3 under the first, 1:2:3 of 8 becomes 3 and 2:3 of 5; two floors chain."""
    parts = groups(of_law, LAPLACE, {table: c / 2 for table, c in CUBES.items()})
    lifted = split(parts, floors={"a": 3.0})
    assert lifted.allocation(8) == pytest.approx({"a": 3, "b": 2, "c": 3})
    assert lifted.allocation(24) == pytest.approx({"a": 4, "b": 8, "c": 12})  # its share is more than the floor
    assert lifted.allocation(2.4) == pytest.approx({"a": 0.4, "b": 0.8, "c": 1.2})  # not enough: as without floors
    # The second is short only once the first is lifted: 12 is 2, 4, 6; then 5, 2.8, 4.2; then 5, 3.5, 3.5.
    chained = split(parts, floors={"a": 5.0, "b": 3.5})
    assert chained.allocation(12) == pytest.approx({"a": 5, "b": 3.5, "c": 3.5})
    # By the envelope theorem one more unit goes to the last alone.
    assert derivative(chained.expected_squared_error, 12) == pytest.approx(-2 * 27 / 3.5**3, rel=1e-6)
    assert sum(chained.table_slopes(12).values()) == pytest.approx(-2 * 27 / 3.5**3)


def test_square_roots_for_zcdp(of_law: LawFrontier) -> None:
    assert power_split([1, 4, 9], 6, 1) == pytest.approx([1, 2, 3])
    # Gaussian noise has 1/(2ρ); at small ρ the discrete one is the same to the last digit.
    frontier = split(groups(of_law, GAUSSIAN, {"a": 2, "b": 8, "c": 18}))
    assert frontier.allocation(0.06) == pytest.approx({"a": 0.01, "b": 0.02, "c": 0.03})
    assert curves_of(frontier).weights.total(frontier, 0.06) == pytest.approx(600)


@pytest.mark.parametrize(
    ("loss", "shares", "combined", "by_cube_roots"),
    [
        (6, (1.035251, 2.036653, 2.928096), 7.693582, 7.715208),
        (12, (2.424041, 4.200600, 5.375359), 0.712668, 0.800637),
    ],
)
def test_geometric_noise_is_not_split_by_cube_roots(
    of_law: LawFrontier, loss: float, shares: tuple[float, ...], combined: float, by_cube_roots: float
) -> None:
    frontier = split(groups(of_law, GEOMETRIC, CUBES))
    assert tuple(frontier.allocation(loss).values()) == pytest.approx(shares, abs=5e-7)
    assert curves_of(frontier).weights.total(frontier, loss) == pytest.approx(combined, abs=5e-7)
    naive = power_split(list(CUBES.values()), loss, 2)
    cost = sum(c * GEOMETRIC.variance(float(e)) for c, e in zip(CUBES.values(), naive, strict=True))
    assert cost == pytest.approx(by_cube_roots, abs=5e-7)


@settings(max_examples=40, deadline=None)
@given(
    loss=st.floats(1e-3, 60.0),
    coefficients=st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=7),
    laws=st.lists(st.sampled_from([LAPLACE, GEOMETRIC, STAIRCASE]), min_size=7, max_size=7),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_other_split_is_better_and_marginal_values_are_equal(
    of_law: LawFrontier, loss: float, coefficients: list[float], laws: list[NoiseLaw], seed: int
) -> None:
    parts = [of_law(law, {f"t{i}": c}) for i, (c, law) in enumerate(zip(coefficients, laws, strict=False))]
    frontier = split(parts)
    curves = curves_of(frontier)
    best = curves.best(loss)
    assert best.losses.sum() == pytest.approx(loss, rel=1e-12)
    assert best.growth.sum() == pytest.approx(1.0)
    marginals = [part.marginal_rate_of_transformation(spent) for part, spent in zip(parts, best.losses, strict=True)]
    assert marginals == pytest.approx([best.price] * len(parts), rel=1e-9)
    generator = np.random.default_rng(seed)
    for shares in generator.dirichlet(np.ones(len(parts)), 20):
        other = math.fsum(p.expected_squared_error(max(s * loss, 1e-9)) for p, s in zip(parts, shares, strict=True))
        assert curves.weights.total(frontier, loss) <= other * (1 + 1e-12)


def test_values_and_measures_decide_who_gets_how_much(of_law: LawFrontier) -> None:
    """b = 8 for one of two equal Laplace tables: twice the loss. Absolute errors fall like 1/ε: square roots of b."""
    parts = groups(of_law, LAPLACE, {"a": 1.0, "b": 1.0})
    assert split(parts, values={"b": 8.0}).allocation(3) == pytest.approx({"a": 1, "b": 2})
    absolute = split(parts, values={"b": 4.0}, measures={"a": "absolute", "b": "absolute"})
    assert absolute.allocation(3) == pytest.approx({"a": 1, "b": 2})
    mixed = split(parts, measures={"a": "absolute"})
    spent = mixed.allocation(3)
    assert 1 / spent["a"] ** 2 == pytest.approx(4 / spent["b"] ** 3)


def error_of(frontier: Frontier, table: str, loss: float) -> float:
    return frontier.table_errors(loss)[table]


def test_price_is_the_slope_of_the_combined_loss_and_tables_follow_the_split(of_law: LawFrontier) -> None:
    parts = {"counts": of_law(GEOMETRIC, {"a": 3.0, "b": 5.0}), "rates": of_law(STAIRCASE, {"c": 20.0})}
    values = {"a": 2.0, "b": 0.5, "c": 7.0}
    frontier = split(parts, values=values)
    curves = curves_of(frontier)
    for loss in (0.3, 2.0, 9.0):
        assert derivative(lambda at: curves.weights.total(frontier, at), loss) == pytest.approx(
            -curves.best(loss).price, rel=1e-9
        )
        slopes = frontier.table_slopes(loss)
        assert sum(values[t] * slope for t, slope in slopes.items()) == pytest.approx(-curves.best(loss).price)
        for table in frontier.tables:
            numeric = derivative(partial(error_of, frontier, table), loss)
            assert slopes[table] == pytest.approx(numeric, rel=1e-8)
    assert frontier.allocation(2.0).keys() == {"counts", "rates"}
    assert frontier.technology(2.0) == "geometric, staircase"


def test_losses_where_discrete_noise_vanishes_are_still_split(of_law: LawFrontier) -> None:
    frontier = split([of_law(LAPLACE, {"a": 1.0}), of_law(GEOMETRIC, {"b": 1e6}), of_law(STAIRCASE, {"c": 1e-3})])
    for loss in (1e-4, 1.0, 300.0, 3e3, 1e5):
        assert sum(frontier.allocation(loss).values()) == pytest.approx(loss)
    whole = split(groups(of_law, GEOMETRIC, {"a": 1.0, "b": 2.0}))
    assert whole.expected_squared_error(5e3) == 0.0
    assert sum(whole.allocation(5e3).values()) == pytest.approx(5e3)


def test_many_groups_are_split_at_once(of_law: LawFrontier) -> None:
    sizes = {f"t{i}": float(1 + i % 7) for i in range(60)}
    frontier = split(groups(of_law, GEOMETRIC, sizes))
    assert sum(frontier.allocation(30.0).values()) == pytest.approx(30.0)
    assert frontier.name == "split over 60 groups"
    alike = [spent for table, spent in frontier.allocation(30.0).items() if sizes[table] == 1.0]
    assert alike == pytest.approx([alike[0]] * len(alike))


def test_groups_that_cannot_share_a_loss_are_refused(of_law: LawFrontier) -> None:
    laplace, gaussian = of_law(LAPLACE, {"a": 1.0}), of_law(GAUSSIAN, {"b": 1.0})
    with pytest.raises(InvalidLoss, match="different currencies"):
        split([laplace, gaussian])
    with pytest.raises(InvalidLoss, match="no group"):
        split([])
    with pytest.raises(InvalidWorkload, match="two groups"):
        split({"one": laplace, "two": laplace})
    with pytest.raises(InvalidWorkload, match="two groups"):
        split([laplace, laplace])
    with pytest.raises(InvalidLoss, match="would get no privacy loss"):
        split([laplace, of_law(LAPLACE, {"c": 1.0})], values={"c": 0.0})
    with pytest.raises(UnknownName, match="'d' is not a table"):
        split([laplace], values={"d": 1.0})


def test_each_group_gets_its_share(of_law: LawFrontier) -> None:
    """Laplace noise has 2/ε²: with ε = 6 in shares of 1/6, 1/3 and 1/2, coefficients 1, 8 and 27 lose 6 in all."""
    groups = {name: of_law(LAPLACE, {name: c / 2}) for name, c in (("a", 1.0), ("b", 8.0), ("c", 27.0))}
    shares = {"a": Fraction(1, 6), "b": Fraction(1, 3), "c": Fraction(1, 2)}
    frontier = stated_split(groups, shares)
    assert frontier.allocation(6) == pytest.approx({"a": 1, "b": 2, "c": 3})
    assert frontier.table_errors(6) == pytest.approx({"a": 1, "b": 2, "c": 3})
    assert frontier.table_slopes(6) == pytest.approx({"a": -2 / 6, "b": -2 / 3, "c": -1})  # −2/ε of each
    assert frontier.table_curvatures(6) == pytest.approx({"a": 6 / 36, "b": 12 / 36, "c": 18 / 36})
    assert frontier.expected_squared_error(6) == pytest.approx(split(groups).expected_squared_error(6))


def test_no_shares_beat_the_best_ones(of_law: LawFrontier) -> None:
    groups = {"a": of_law(GAUSSIAN, {"a": 1.0}), "b": of_law(GAUSSIAN, {"b": 9.0})}
    best = split(groups)
    for part in range(1, 10):
        shares = {"a": Fraction(part, 10), "b": Fraction(10 - part, 10)}
        assert stated_split(groups, shares).expected_squared_error(0.5) >= best.expected_squared_error(0.5)


@pytest.mark.parametrize(
    "shares",
    [{"a": Fraction(1)}, {"a": Fraction(1, 2), "b": Fraction(1, 3)}, {"a": Fraction(3, 2), "b": Fraction(-1, 2)}],
)
def test_shares_that_are_not_the_whole_loss_are_refused(of_law: LawFrontier, shares: dict[str, Fraction]) -> None:
    groups = {name: of_law(LAPLACE, {name: 1.0}) for name in ("a", "b")}
    with pytest.raises(InvalidLoss, match="shares that add up to"):
        stated_split(groups, shares)


def test_groups_count_alike_and_share_no_table(of_law: LawFrontier) -> None:
    with pytest.raises(InvalidWorkload, match="in two groups"):
        stated_split({name: of_law(LAPLACE, {"t": 1.0}) for name in HALVES}, HALVES)
    with pytest.raises(InvalidLoss, match="different currencies"):
        stated_split({"a": of_law(LAPLACE, {"a": 1.0}), "b": of_law(GAUSSIAN, {"b": 1.0})}, HALVES)


def best_by_hand(parts: dict[str, Frontier], measures: dict[str, Measure], values: dict[str, float]) -> float:
    """The least that two groups lose at a loss of 1, over 600 splits."""
    (first, second), shares = parts, np.geomspace(1e-9, 1 - 1e-9, 300)
    losses = np.concatenate([shares, 1 - shares])

    def cost(table: str, loss: float) -> float:
        return values[table] * parts[table].table_errors(loss, measures[table])[table]

    return min(cost(first, float(loss)) + cost(second, float(1 - loss)) for loss in losses[(losses > 0) & (losses < 1)])


@pytest.mark.parametrize("law", [LAPLACE, GEOMETRIC, GAUSSIAN])
@pytest.mark.parametrize("worth", [1e-6, 1.0, 1e3, 1e7])
@pytest.mark.parametrize("measure", [TailMisses("b", 30.0), WorstError("b", 0.1)])
def test_errors_that_are_bounded_or_have_kinks_are_split_too(law: NoiseLaw, worth: float, measure: Measure) -> None:
    """Off by more than 30 at most once, a number is worth no first unit of the loss where others are dearer.

    Its group keeps next to nothing then, and nothing is refused.
    """
    workloads = [Workload(identity(2).domain, (replace(identity(2).tables[0], name=name),)) for name in ("a", "b")]
    parts = {workload.tables[0].name: priced(Measurement(TableRows(workload), law)) for workload in workloads}
    measures: dict[str, Measure] = {"a": "squared", "b": measure}
    values = {"a": 1.0, "b": worth}
    frontier = split(parts, values=values, measures=measures)
    best = curves_of(frontier).best(1.0)
    assert best.losses.sum() == pytest.approx(1.0, rel=1e-12)
    assert best.losses.min() > 0
    assert best.growth.sum() == pytest.approx(1.0)
    found = curves_of(frontier).weights.total(frontier, 1.0)
    assert found <= best_by_hand(parts, measures, values) * (1 + 1e-6)
    if isinstance(measure, TailMisses) and worth == 1e-6:
        assert best.losses[1] < 1e-6
    for loss in np.geomspace(1e-6, 1e4, 21):
        assert sum(frontier.allocation(float(loss)).values()) == pytest.approx(loss)


@dataclass(frozen=True, eq=False)
class _Thresholds:
    """Squared errors times a multiple with a bump in ln loss, as what a decision misallocates has."""

    table: str
    power = 0
    quick = True
    convex = False

    def unit(self, _unit: str, _currency: str, /) -> str:
        return ""

    def curve(self, production: Production, /) -> Callable[[float], float]:
        def at(loss: float) -> float:
            bump = 3.0 * math.exp(-((math.log(loss) / 0.4) ** 2))
            return production.table_errors(loss)[self.table] * (1.0 + bump)

        return at


def test_a_curve_that_bends_the_other_way_is_split_as_well_as_all_near_it() -> None:
    workloads = {name: Workload(Domain.of_shape((1,)), (Table(name, (Identity(1),)),)) for name in ("a", "b")}
    groups = {name: frontier_of(laplace(), workload) for name, workload in workloads.items()}
    bent: dict[str, Measure] = {"a": _Thresholds("a")}
    best = split(groups, measures=bent)
    slope = groups["a"].table_slopes(0.8, bent["a"])["a"], groups["a"].table_slopes(1.0, bent["a"])["a"]
    assert slope[1] < slope[0] < 0  # it falls faster and faster there

    def cost(part: float, loss: float) -> float:
        of_a = groups["a"].table_errors(part * loss, bent["a"])["a"]
        return of_a + groups["b"].table_errors((1 - part) * loss)["b"]

    for loss in (0.5, 1.5, 2.0, 2.5, 3.0, 6.0):
        part = best.allocation(loss)["a"] / loss
        near = [cost(part * math.exp(step), loss) for step in (-0.02, -0.002, 0.002, 0.02)]
        assert cost(part, loss) <= min(near)
        least = min(cost(each / 2000, loss) for each in range(1, 2000))
        assert cost(part, loss) <= 1.02 * least
