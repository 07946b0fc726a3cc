"""The Title I program and changed copies of it give every number of the worked cases, through `load().plan()`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dualmandate.errors import ConflictingLimits, NoOptimum
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load

WEIGHT = "relative_privacy_weight        = 1"
COST = "{ value = 1400, unit"
PRICE = "{ value = 1.0, unit"
NOISE = 'noise = "laplace"'
CONSEQUENCE = 'consequence = { value = 2.0e7, unit = "USD^2 per child^2", source'
CAP = "largest_epsilon = 10"
FORM = 'information_utility            = "linear"'
LINEAR_UNIT = "USD per child per epsilon"
FITNESS = ("[mechanism]", "fitness_for_use = { largest_root_mean_squared_consequence = 2000 }\n\n[mechanism]")

Pieces = tuple[tuple[str, str], ...]


def form(name: str, cost: int, *, cap: str = "", prior: str = "") -> Pieces:
    """The program with another information utility, whose cost is in USD per child."""
    stated = f'information_utility = "{name}"' + (f"\nprior_probability = {prior}" if prior else "")
    return ((FORM, stated), (COST, f"{{ value = {cost}, unit"), (LINEAR_UNIT, "USD per child"), (CAP, cap))


def planned(path: Path) -> Plan:
    return load(path).plan()


def test_the_paper(title_i: Path) -> None:
    choice = planned(title_i).choice
    assert choice.epsilon == pytest.approx(2.527644, abs=5e-7)
    assert choice.loss.exact() == "6319/2500"
    assert choice.root_mean_squared_error == pytest.approx(0.559499, abs=5e-7)
    assert choice.root_mean_squared_consequence == pytest.approx(2502.15, abs=0.005)
    assert choice.marginal_rate_of_transformation == pytest.approx(3220)
    assert choice.willingness_to_accept == pytest.approx(3220)
    assert choice.accuracy == pytest.approx(-4069.506, abs=5e-4)
    assert choice.welfare == pytest.approx(-2.441704e11, rel=5e-7)
    assert choice.privacy_cost == pytest.approx(1.627802e11, rel=5e-7)
    assert choice.data_loss == pytest.approx(8.139012e10, rel=5e-7)
    assert choice.privacy_cost == pytest.approx(2 * choice.data_loss)
    assert choice.bound_by == "preferences"


@pytest.mark.parametrize(
    ("pieces", "epsilon", "error", "dollars"),
    [
        (((WEIGHT, "relative_privacy_weight = 0.15"),), 4.757207, None, 1329.47),
        (((WEIGHT, "privacy_weight = 0.5"),), 2.527644, 0.559499, 2502.15),
        (((WEIGHT, f"relative_privacy_weight = {46e6 / (318.6e6 - 46e6)!r}"),), 4.574095, None, 1382.69),
        (((NOISE, 'noise = "geometric"'),), 2.444299, 0.456216, 2040.26),
        (((NOISE, 'noise = "best"'),), 2.444299, 0.456216, 2040.26),
        (((NOISE, 'noise = "geometric"'), (WEIGHT, "relative_privacy_weight = 0.15")), 4.055453, 0.189442, 847.21),
        ((('neighbors       = "add-or-remove"', 'neighbors = "replace-one"'),), 4.012384, None, None),
        (((COST, "{ value = 61, unit"),), 7.183155, None, None),
        (((PRICE, "{ value = 1e-3, unit"),), 0.252764, None, 25_021.5),
        (((PRICE, "{ value = 5e-8, unit"),), 0.00931192, None, 679_189),
        (((PRICE, "{ value = 5e-8, unit"), (COST, "{ value = 61, unit")), 0.0264630, None, None),
        (((COST, "{ value = 1540, unit"),), 2.448602, None, None),
        (((COST, "{ value = 1260, unit"),), 2.617992, None, None),
        (((CONSEQUENCE, CONSEQUENCE.replace("2.0e7", "2.2e7")),), 2.609236, None, None),
        (form("exponential", 1400), 1.521928, None, 4155.62),
        ((*form("exponential", 1400), (WEIGHT, "relative_privacy_weight = 0.15")), 2.248368, None, None),
        ((*form("exponential", 1400), (NOISE, 'noise = "geometric"')), 1.515679, None, None),
        (form("bounded", 50_000), 1.111900, None, None),
        (form("posterior", 1400, prior="0.01"), 4.095763, None, 1544.17),
        (form("posterior", 14_000, prior="0.01"), 2.529239, None, None),
        (form("posterior", 1400, prior="0.001"), 5.103784, None, None),
    ],
)
def test_variants(changed: Any, pieces: Pieces, epsilon: float, error: float | None, dollars: float | None) -> None:
    choice = planned(changed(*pieces)).choice
    assert choice.epsilon == pytest.approx(epsilon, rel=2e-6)  # the digits that are printed
    assert choice.bound_by == "preferences"
    if error is not None:
        assert choice.root_mean_squared_error == pytest.approx(error, abs=5e-7)
    if dollars is not None:
        assert choice.root_mean_squared_consequence == pytest.approx(dollars, rel=5e-6)


@pytest.mark.parametrize(
    ("pieces", "welfare"),
    [
        (form("exponential", 1400), -4.551189e11),
        (form("bounded", 50_000), -1.964056e12),
        (form("posterior", 1400, prior="0.01"), -5.467736e10),
        (form("posterior", 14_000, prior="0.01"), -1.472701e11),
        (form("posterior", 1400, prior="0.001"), -2.901022e10),
    ],
)
def test_welfare_of_the_forms(changed: Any, pieces: Pieces, welfare: float) -> None:
    assert planned(changed(*pieces)).choice.welfare == pytest.approx(welfare, rel=5e-7)


def test_absolute_loss(changed: Any) -> None:
    path = changed(
        ('loss        = "squared"', 'loss = "absolute"'),
        (CONSEQUENCE, 'consequence = { value = 4472.136, unit = "USD per child", source'),
    )
    choice = planned(path).choice
    assert choice.epsilon == pytest.approx(0.0300460, rel=2e-6)
    assert choice.epsilon == pytest.approx(math.sqrt(13_000 * 4472.136 / 6.44e10))
    assert choice.data_loss == pytest.approx(1.93496e9, rel=5e-6)
    assert choice.privacy_cost == pytest.approx(choice.data_loss)


def test_bounded_cost_without_a_cap_has_no_optimum(changed: Any) -> None:
    path = changed(*form("bounded", 1400))
    with pytest.raises(NoOptimum, match="without limit") as caught:
        planned(path)
    assert caught.value.where is not None
    assert caught.value.where.file == str(path)
    assert caught.value.where.key == "preferences"
    assert "largest_epsilon" in caught.value.instead


def test_bounded_cost_with_a_cap_stands_at_it(changed: Any) -> None:
    choice = planned(changed(*form("bounded", 1400, cap=CAP))).choice
    assert (choice.epsilon, choice.bound_by, choice.loss.exact()) == (10, "largest epsilon", "10")
    assert choice.welfare == pytest.approx(-6.959708e10, rel=5e-7)


@pytest.mark.parametrize(
    ("cap", "epsilon", "welfare", "bound_by"),
    [
        ("9", 2.092555, -9.252526e11, "preferences"),
        ("9.9066", 2.092555, -9.252526e11, "preferences"),
        ("9.9068", 9.9068, -9.252525e11, "largest epsilon"),
        ("10", 10, -9.251582e11, "largest epsilon"),
    ],
)
def test_bounded_cost_with_two_candidates(
    changed: Any, cap: str, epsilon: float, welfare: float, bound_by: str
) -> None:
    choice = planned(changed(*form("bounded", 20_000, cap=f"largest_epsilon = {cap}"))).choice
    assert choice.epsilon == pytest.approx(epsilon, rel=5e-7)
    assert choice.welfare == pytest.approx(welfare, rel=5e-7)
    assert choice.bound_by == bound_by
    turning = {point.kind: point for point in choice.local_optima}
    assert turning["minimum"].epsilon == pytest.approx(4.138129, rel=5e-7)
    assert turning["minimum"].welfare == pytest.approx(-9.356901e11, rel=5e-7)


def test_posterior_form_reports_its_minimum_and_its_belief(changed: Any) -> None:
    plan = planned(changed(*form("posterior", 1400, prior="0.01")))
    minimum = next(point for point in plan.choice.local_optima if point.kind == "minimum")
    assert minimum.epsilon == pytest.approx(7.9754, abs=5e-5)
    utility: Any = plan.welfare.groups[0].information_utility
    assert utility.belief(plan.choice.epsilon) == pytest.approx(0.377692, abs=5e-7)


@pytest.mark.parametrize("prior", ["0.1", "0.5"])
def test_posterior_form_that_needs_a_cap(changed: Any, prior: str) -> None:
    with pytest.raises(NoOptimum):
        planned(changed(*form("posterior", 1400, prior=prior)))


def test_fitness_for_use_decides(changed: Any) -> None:
    choice = planned(changed(FITNESS)).choice
    assert choice.epsilon == pytest.approx(3.162278, abs=5e-7)
    assert choice.bound_by == "fitness for use"
    assert choice.root_mean_squared_consequence == pytest.approx(2000)
    assert float(choice.loss) >= choice.epsilon


def test_a_cap_and_a_floor_that_conflict(changed: Any) -> None:
    path = changed(FITNESS, (CAP, "largest_epsilon = 2"))
    with pytest.raises(ConflictingLimits) as caught:
        planned(path)
    assert caught.value.where is not None
    assert caught.value.where.key == "limits"


def test_what_the_ledger_has_left_decides(title_i: Path) -> None:
    plan = load(title_i).plan(remaining=1.5)
    assert (plan.choice.epsilon, plan.choice.bound_by, plan.loss.exact()) == (1.5, "ledger", "3/2")


def test_regret_and_tornado_of_the_paper(title_i: Path) -> None:
    plan = planned(title_i)
    relative = {round(row.multiple, 2): row.relative for row in plan.regrets}
    expected = {
        0.25: 4.5, 0.5: 2 / 3, 0.8: 0.054167, 0.9: 0.011523, 1.1: 0.008815, 1.25: 0.046667, 2.0: 5 / 12, 4.0: 1.6875,
    }  # fmt: skip
    assert {key: relative[key] for key in expected} == pytest.approx(expected, abs=5e-7)
    ranged = title_i.read_text(encoding="utf-8").replace("value = 1400,", "value = 1400, least = 1260, largest = 1540,")
    title_i.write_text(ranged, encoding="utf-8")
    [cost] = planned(title_i).robustness.tornado
    assert cost.low.epsilon == pytest.approx(2.617992, abs=5e-7)
    assert cost.high.epsilon == pytest.approx(2.448602, abs=5e-7)


def test_two_groups_with_the_same_cost_choose_as_one(changed: Any) -> None:
    groups = "".join(
        f"""
[[preferences.groups]]
name = "{name}"
size = {{ value = {size}, unit = "children", source = "assumed" }}
mean_disclosure_cost = {{ value = 1400, unit = "USD per child per epsilon", source = "DOJ 2015" }}
"""
        for name, size in (("north", 20_000_000), ("south", 26_000_000))
    )
    choice = planned(changed(("mean_disclosure_cost ", "# "), ("[limits]", f"{groups}\n[limits]"))).choice
    assert choice.epsilon == pytest.approx(2.527644, abs=5e-7)
    assert [group.name for group in choice.groups] == ["north", "south"]
