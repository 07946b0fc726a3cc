"""Which tables to publish: the reference cases, brute force over every set, and bounds that hold."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dualmandate.choice import (
    BoundedCost,
    Candidate,
    ExponentialCost,
    InformationUtility,
    LinearCost,
    PopulationGroup,
    SocialWelfare,
    TableValue,
    choose,
    choose_tables,
)
from dualmandate.errors import InvalidPreferences, NoOptimum
from dualmandate.frontier import Frontier, frontier_of, split
from dualmandate.mechanism import Mechanism, gaussian, geometric, laplace
from dualmandate.population import PrivacyMeasure
from dualmandate.workload import identity

LAPLACE_ONE = frontier_of(laplace(), identity(1))  # 2/ε²
ONE = LAPLACE_ONE.tables[0]


def society(utility: InformationUtility | None = None, population: float = 1.0) -> SocialWelfare:
    group = PopulationGroup("everybody", population, utility or LinearCost(2.0))
    return SocialWelfare((group,), (TableValue(ONE, 1.0),))


def candidate(name: str, value: float, coefficient: float, detail: str = "") -> Candidate:
    """A table whose errors cost coefficient/ε²."""
    return Candidate(name, value, LAPLACE_ONE, TableValue(ONE, coefficient / 2), detail)


THREE = [candidate("one", 4, 1), candidate("two", 5, 8), candidate("three", 10, 27)]


def test_prices_do_not_disturb_each_other_without_a_cap() -> None:
    offering = choose_tables(THREE, society())
    assert [verdict.price for verdict in offering.verdicts] == pytest.approx([3, 6, 9])
    assert offering.published == ("one", "three")
    assert offering.epsilon == pytest.approx(4)
    assert offering.net == pytest.approx(2)
    assert offering.exact
    closed = [1.5 * 2 ** (1 / 3) * 2 ** (2 / 3) * c ** (1 / 3) for c in (1, 8, 27)]
    assert [verdict.price for verdict in offering.verdicts] == pytest.approx(closed)


def test_a_cap_makes_them_compete() -> None:
    offering = choose_tables(THREE, society(), cap=3)
    assert len(offering.published) == 1
    assert offering.net == pytest.approx(1)
    pair = [each for each in THREE if each.table != "two"]
    both = choose_tables([Candidate("both", 14, LAPLACE_ONE, TableValue(ONE, 64 / 2))], society(), cap=3)
    assert both.net == pytest.approx(0.888889, abs=1e-6)  # (1 + 3)³/ε² is the split of c = 1 and 27
    assert choose_tables(pair, society(), cap=4).published == ("one", "three")


def test_in_rho_prices_are_twice_the_root() -> None:
    frontier = frontier_of(gaussian(), identity(1))
    worth = TableValue(frontier.tables[0], 5.0)
    coefficient = 5.0 * frontier.table_errors(1e-3)[frontier.tables[0]] * 1e-3  # 1/(2ρ) for a continuous Gaussian
    offering = choose_tables([Candidate("t", 100, frontier, worth)], society(LinearCost(1e6, PrivacyMeasure.ZCDP)))
    assert offering.verdicts[0].price == pytest.approx(2 * math.sqrt(1e6 * coefficient), rel=1e-3)
    assert offering.privacy_measure is PrivacyMeasure.ZCDP
    assert not offering.published
    assert offering.net == 0


def test_the_price_of_a_table_is_what_its_own_choice_loses() -> None:
    for mechanism in (laplace(), geometric()):
        frontier = frontier_of(mechanism, identity(7))
        worth = TableValue(frontier.tables[0], 3.0)
        offering = choose_tables([Candidate("t", 1e9, frontier, worth)], society())
        alone = choose(frontier, SocialWelfare(society().groups, (worth,)))
        assert offering.verdicts[0].price == pytest.approx(-alone.welfare)
        assert offering.epsilon == pytest.approx(alone.epsilon)


def net_of(chosen: list[Candidate], welfare: SocialWelfare, cap: float | None) -> float:
    """What a set is worth, by the frontier that splits one loss over its tables and a search for the best loss."""
    if not chosen:
        return 0.0
    parts: dict[str, Frontier] = {}
    values = {}
    for i, each in enumerate(chosen):
        frontier = each.frontier
        assert isinstance(frontier, Frontier)
        name = f"table {i}"
        parts[name] = Frontier(name, frontier.privacy_measure, {name: 1}, frontier.curves)
        values[name] = each.worth.value_per_step
    shared = split(parts, values=values)

    def cost(log_loss: float) -> float:
        loss = math.exp(log_loss)
        errors = math.fsum(values[table] * error for table, error in shared.table_errors(loss).items())
        return errors + welfare.privacy_cost(loss)

    found = minimize_scalar(cost, bounds=(-6.0, math.log(cap or 60.0)), method="bounded", options={"xatol": 1e-6})
    return math.fsum(each.value for each in chosen) - float(found.fun)


@pytest.mark.parametrize("mechanism", [laplace(), geometric()], ids=["laplace", "geometric"])
@pytest.mark.parametrize("utility", [LinearCost(2.0), ExponentialCost(0.8)], ids=["linear", "exponential"])
@pytest.mark.parametrize("cap", [None, 3.0])
def test_every_set_by_brute_force(mechanism: Mechanism, utility: InformationUtility, cap: float | None) -> None:
    frontier = frontier_of(mechanism, identity(1))
    generator = np.random.default_rng(4)
    candidates = [
        Candidate(
            f"table {i // 2}",
            float(generator.uniform(2, 9)),
            frontier,
            TableValue(frontier.tables[0], float(generator.lognormal(0.3, 1.2))),
            detail=f"detail {i % 2}",
        )
        for i in range(6)
    ]
    welfare = society(utility)
    offering = choose_tables(candidates, welfare, cap=cap)
    sets = product(*[(None, *pair) for pair in (candidates[:2], candidates[2:4], candidates[4:])])
    worths = {
        tuple(each.name for each in kept if each): net_of([each for each in kept if each], welfare, cap)
        for kept in sets
    }
    assert offering.exact
    assert offering.net == pytest.approx(max(worths.values()), abs=1e-5)
    assert worths[offering.published] == pytest.approx(offering.net, abs=1e-5)
    if cap is not None:
        assert offering.epsilon <= cap * (1 + 1e-9)


@given(st.integers(0, 10_000), st.floats(0.5, 8.0))
@settings(max_examples=6, deadline=None)
def test_nothing_is_gained_by_adding_or_dropping_a_table(seed: int, cap: float) -> None:
    generator = np.random.default_rng(seed)
    pool = [candidate(f"t{i}", float(generator.uniform(1, 10)), float(generator.lognormal(1, 1.5))) for i in range(6)]
    offering = choose_tables(pool, society(), cap=cap)
    kept = [each for each in pool if each.name in offering.published]
    assert choose_tables(kept, society(), cap=cap).net == pytest.approx(offering.net) if kept else offering.net == 0
    for each in pool:
        others = [one for one in pool if one is not each]
        assert choose_tables(others, society(), cap=cap).net <= offering.net + 1e-9


def test_twenty_tables_exactly_and_more_honestly() -> None:
    generator = np.random.default_rng(0)
    pool = [candidate(f"t{i}", float(generator.uniform(1, 10)), float(generator.lognormal(1, 1.5))) for i in range(60)]
    assert choose_tables(pool[:20], society(), cap=5).exact
    rushed = choose_tables(pool, society(), cap=5, most_nodes=70)
    patient = choose_tables(pool, society(), cap=5)
    assert not rushed.exact
    assert rushed.net <= patient.net <= rushed.bound


def test_refusals() -> None:
    with pytest.raises(InvalidPreferences, match="stated twice"):
        choose_tables([THREE[0], candidate("one", 1, 1)], society())
    with pytest.raises(InvalidPreferences, match="another currency"):
        choose_tables(THREE, society(LinearCost(1.0, PrivacyMeasure.ZCDP)))
    with pytest.raises(InvalidPreferences, match="bounded"):
        choose_tables(THREE, society(BoundedCost(1.0)))
    with pytest.raises(InvalidPreferences, match="cap"):
        choose_tables(THREE, society(), cap=0)
    with pytest.raises(InvalidPreferences, match="worth"):
        candidate("bad", -1, 1)
    with pytest.raises(NoOptimum, match="costs nothing"):
        choose_tables(THREE, society(LinearCost(0.0)))
