"""Every way to add people up: the reference society of three, and what must hold for every society."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualmandate.choice import (
    BoundedCost,
    InformationUtility,
    Limits,
    LinearCost,
    PopulationGroup,
    RootMeanSquaredLoss,
    SocialChoices,
    SocialChoiceTerms,
    SocialWelfare,
    Society,
    TableValue,
    choose,
    clarke_taxes,
    lindahl,
    majority,
    median_vote,
    nash_bargain,
    phantom_vote,
    profile,
    rawlsian,
    social_choices,
)
from dualmandate.choice.social_choice import RULES, generalized_median
from dualmandate.choice.society import Profile
from dualmandate.errors import InvalidLoss, InvalidPreferences, InvalidValue, MissingKey, NoOptimum, UnknownName

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier

NAMES = ("one", "two", "three")


def people(
    costs: tuple[float, ...] = (1.0, 2.0, 16.0),
    values: tuple[float, ...] = (4.0, 1.0, 1.0),
    *,
    sizes: tuple[float, ...] | None = None,
    weights: dict[str, float] | None = None,
) -> Society:
    """Groups with v = −k·ε − b/ε² a member; the reference society unless said otherwise."""
    names = NAMES if len(costs) == 3 else tuple(f"g{i}" for i in range(len(costs)))
    sizes = sizes or (1.0,) * len(costs)
    groups = tuple(PopulationGroup(n, s, LinearCost(k)) for n, s, k in zip(names, sizes, costs, strict=True))
    total = math.fsum(b * s for b, s in zip(values, sizes, strict=True))
    shares = {n: b * s / total for n, b, s in zip(names, values, sizes, strict=True)}
    return Society.of(SocialWelfare(groups, (TableValue("t", total),)), shares, weights)


@pytest.fixture(scope="module")
def three(power_frontier: type[PowerFrontier]) -> Profile:
    return profile(power_frontier({"t": 1.0}), people())


@pytest.fixture(scope="module")
def circular(power_frontier: type[PowerFrontier]) -> Profile:
    """Research note, section 5: A −ε − 4/ε², B −ε − 400/ε², C −(1 − e^−ε) − .6/ε²."""
    forms: tuple[InformationUtility, ...] = (LinearCost(1.0), LinearCost(1.0), BoundedCost(1.0))
    groups = tuple(PopulationGroup(name, 1.0, form) for name, form in zip("ABC", forms, strict=True))
    shares = {"A": 4 / 404.6, "B": 400 / 404.6, "C": 0.6 / 404.6}
    return profile(power_frontier({"t": 1.0}), Society.of(SocialWelfare(groups, (TableValue("t", 404.6),)), shares))


def test_peaks_and_the_pareto_set(three: Profile) -> None:
    assert [peak.epsilon for peak in three.peaks] == pytest.approx([2, 1, 0.5])
    assert three.single_peaked
    assert three.pareto_set[0] == pytest.approx((0.5, 2))


def test_the_reference_table(three: Profile, power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": 1.0})
    terms = SocialChoiceTerms(baseline=0.0, disagreement_epsilon=0.25, phantoms=(0.4, 0.6))
    found = social_choices(frontier, people(weights={"three": 0.5}), terms=terms)
    assert {row.rule: row.epsilon for row in found.rows} == {
        "utilitarian": pytest.approx(0.857977, abs=5e-7),
        "weighted": pytest.approx(1.0),
        "median": pytest.approx(1.0),
        "phantoms": pytest.approx(0.6),
        "majority": pytest.approx(1.0),
        "rawlsian": pytest.approx(0.584804, abs=5e-7),
        "rawlsian against own peak": pytest.approx(0.866422, abs=5e-7),
        "nash": pytest.approx(0.627593, abs=5e-7),
    }
    assert tuple(row.rule for row in found.rows) == tuple(RULES)
    assert three.value(0.8579774660996805) == pytest.approx([-6.291835, -3.074419, -15.086104], abs=5e-7)
    assert found.row("utilitarian").welfare == pytest.approx(-24.452358, abs=5e-7)
    assert found.row("median").welfare == pytest.approx(-25)
    assert three.value(1.0) == pytest.approx([-5, -3, -17])
    assert three.value(0.584804) == pytest.approx([-12.2808, -4.0936, -12.2808], abs=2e-4)
    assert found.row("utilitarian").gains == dict.fromkeys(NAMES, 0.0)


def test_from_the_median_to_the_sum_two_lose_and_one_gains(three: Profile) -> None:
    gains = three.gains((12 / 19) ** (1 / 3), 1.0)
    assert gains == pytest.approx({"one": -1.291835, "two": -0.074419, "three": 1.913896}, abs=5e-7)
    assert sum(gains.values()) > 0


def test_losses_against_own_peaks_are_shared_by_the_worst(three: Profile) -> None:
    at = rawlsian(three, "own peak")
    assert 5 * at**3 - 3 * at**2 - 1 == pytest.approx(0, abs=1e-7)
    losses = [three.value(peak.epsilon)[i] - three.value(at)[i] for i, peak in enumerate(three.peaks)]
    assert losses == pytest.approx([3.194871, 0.064956, 3.194871], abs=2e-6)


def test_baselines_move_the_worst_off(three: Profile) -> None:
    assert rawlsian(three, 0.0) == pytest.approx(0.2 ** (1 / 3), abs=5e-7)
    assert rawlsian(three, 7.0) == pytest.approx(0.2 ** (1 / 3), abs=5e-7)  # the same for all changes nothing
    rich = rawlsian(three, {"one": 1e6, "two": 0.0, "three": 1e6})
    assert rich == pytest.approx(1.0, abs=1e-6)  # then two is worst off everywhere


def test_bargains(three: Profile) -> None:
    # The note prints .604039 and 1.727075; the roots of Σ v'/(v − v₀) are .6040381 and 1.7270739.
    for disagreement, epsilon in ((0.25, 0.627593), (0.3, 0.604038), (3.0, 1.727074)):
        found = nash_bargain(three, disagreement)
        assert found.epsilon == pytest.approx(epsilon, abs=5e-7)
        assert found.common_gain
        assert min(found.gains.values()) > 0
    assert nash_bargain(three, 0.25).gains == pytest.approx({"one": 53.4669, "two": 12.7059, "three": 7.4196}, abs=1e-4)
    for inside in (0.5, 0.7, 1.0, 2.0):
        stuck = nash_bargain(three, inside)
        assert (stuck.epsilon, stuck.common_gain) == (inside, False)
    near = nash_bargain(three, 0.4999)
    assert near.common_gain
    assert near.epsilon == pytest.approx(0.5, abs=2e-4)


def test_phantoms(three: Profile) -> None:
    assert phantom_vote(three, (0.4, 0.6)) == 0.6
    assert phantom_vote(three, (0.0, 0.0)) == pytest.approx(0.5)
    assert phantom_vote(three, (math.inf,)) == pytest.approx(2.0)
    assert phantom_vote(three, (1.5, 1.7)) == 1.5


def test_lindahl_prices(three: Profile) -> None:
    found = lindahl(three)
    assert [price.charge for price in found.prices] == pytest.approx([11.666667, 1.166667, -12.833333], abs=5e-7)
    assert [price.payment for price in found.prices] == pytest.approx([10.009737, 1.000974, -11.010711], abs=5e-7)
    assert math.fsum(price.group_payment for price in found.prices) == pytest.approx(0, abs=1e-12)
    assert found.supported
    assert found.surplus == 0
    # Each faces v − τ·ε with v' = 2b/ε³ − k: the demand solves 2b/ε³ = k + τ.
    for (cost, value), price in zip(((1, 4), (2, 1), (16, 1)), found.prices, strict=True):
        assert (2 * value / (cost + price.charge)) ** (1 / 3) == pytest.approx(0.857977, abs=5e-7)
    assert "three: each member receives USD 12.83 per unit of loss." in str(found)


def test_people_who_are_alike_pay_each_other_nothing(power_frontier: type[PowerFrontier]) -> None:
    groups = tuple(PopulationGroup(name, size, LinearCost(0.7)) for name, size in (("few", 4e6), ("many", 6e6)))
    society = Society.of(SocialWelfare(groups, (TableValue("t", 3e5),)))
    found = lindahl(profile(power_frontier({"t": 1.0}), society))
    assert [price.charge for price in found.prices] == [0, 0]
    assert "many: each member pays USD 0 per unit of loss." in str(found)


def test_clarke_taxes(three: Profile) -> None:
    found = clarke_taxes(three)
    assert [tax.epsilon_without for tax in found] == pytest.approx([0.605707, 0.837884, 1.493802], abs=5e-7)
    assert [tax.tax for tax in found] == pytest.approx([1.806438, 0.011907, 2.644147], abs=5e-7)


def test_a_circle_of_majorities(circular: Profile) -> None:
    found = majority(circular, (2.2, 4, 40))
    assert found.winner is None
    assert found.cycle == (2.2, 4.0, 40.0)
    for one, other in ((2.2, 4.0), (4.0, 40.0), (40.0, 2.2)):
        assert found.beats(one, other)
        i, j = found.options.index(one), found.options.index(other)
        assert (found.votes[i, j], found.votes[j, i]) == (2, 1)
    assert "Majorities run in a circle: they prefer 2.2 over 4 over 40 over 2.2" in str(found)
    assert not circular.single_peaked
    for rule in (median_vote, lambda p: phantom_vote(p, (1.0,))):
        with pytest.raises(InvalidPreferences, match="'C' is not single-peaked"):
            rule(circular)
    assert "Not single-peaked: C" in circular.explain()


def test_rules_without_an_answer_say_so(circular: Profile) -> None:
    found = social_choices(circular.frontier, circular.society, terms=SocialChoiceTerms(options=(2.2, 4, 40)))
    for rule in ("median", "majority"):
        assert found.row(rule).epsilon is None
    assert "circle" in found.row("majority").words
    assert found.row("rawlsian against own peak").epsilon is None  # C wants ever more
    assert "no answer" in str(found)
    assert not found.lindahl.supported  # C is not concave: it demands something else


def test_the_pareto_set_without_single_peaks(circular: Profile) -> None:
    intervals = circular.pareto_set
    assert intervals[0][0] == pytest.approx(2.0, rel=0.06)
    assert intervals[-1][1] > 9.28  # C likes ever more


def test_the_mean_of_peaks_can_be_manipulated_and_the_median_cannot() -> None:
    peaks = [2.0, 1.0, 0.5]
    assert np.mean(peaks) == pytest.approx(1.166667, abs=5e-7)
    assert np.mean([2.0, 1.0, 0.0]) == pytest.approx(1)  # three is better off
    assert generalized_median([2.0, 1.0, 0.0], [1, 1, 1]) == 1.0


def test_ties_go_to_less_privacy_loss() -> None:
    assert generalized_median([2.0, 1.0], [1, 1]) == 1.0
    assert generalized_median([3.0, 1.0, 2.0, 4.0], [1, 1, 1, 1]) == 2.0
    assert generalized_median([1.0, 2.0], [1, 1.001]) == 2.0


def test_a_large_group_outvotes_a_small_one(power_frontier: type[PowerFrontier]) -> None:
    found = profile(power_frontier({"t": 1.0}), people(sizes=(5.0, 1.0, 1.0)))
    vote = majority(found)
    assert vote.winner == pytest.approx(2.0)
    assert vote.votes.max() == 6.0


Reals = st.floats(0.05, 20)


@settings(deadline=None, max_examples=40)
@given(
    costs=st.lists(Reals, min_size=3, max_size=5),
    data=st.data(),
    phantoms=st.lists(st.just(0.0) | st.floats(0.01, 5), min_size=0, max_size=3),
)
def test_nobody_gains_by_misstating_a_peak(
    costs: list[float], data: st.DataObject, phantoms: list[float], power_frontier: type[PowerFrontier]
) -> None:
    count = len(costs)
    values = data.draw(st.lists(Reals, min_size=count, max_size=count))
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    found = profile(power_frontier({"t": 1.0}), people(tuple(costs), tuple(values), sizes=tuple(map(float, sizes))))
    peaks = [peak.epsilon for peak in found.peaks]
    ballots = [*(float(size) for size in sizes), *((sum(sizes) - 1) / len(phantoms) for _ in phantoms)]

    def outcome(stated: list[float]) -> float:
        return generalized_median([*stated, *phantoms], ballots)

    honest = outcome(peaks)
    assert honest == (phantom_vote(found, phantoms) if phantoms else median_vote(found))
    for i in range(count):
        lies = [0.0, math.inf, *peaks, *phantoms, *(0.5 * (a + b) for a in peaks for b in peaks)]
        for lie in lies:
            other = outcome([*peaks[:i], lie, *peaks[i + 1 :]])
            if 0 < other < math.inf and 0 < honest < math.inf:
                assert found.value(other)[i] <= found.value(honest)[i] * (1 - 1e-12)


@settings(deadline=None, max_examples=12)
@given(costs=st.lists(Reals, min_size=3, max_size=4), data=st.data())
def test_what_must_hold_for_every_society(
    costs: list[float], data: st.DataObject, power_frontier: type[PowerFrontier]
) -> None:
    """Every rule is efficient and anonymous; the median beats everything by majority; Lindahl charges add up to 0."""
    count = len(costs)
    values = data.draw(st.lists(Reals, min_size=count, max_size=count))
    sizes = [float(n) for n in data.draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))]
    frontier = power_frontier({"t": 1.0})
    society = people(tuple(costs), tuple(values), sizes=tuple(sizes))
    found = profile(frontier, society)
    low, high = found.pareto_set[0]
    terms = SocialChoiceTerms(baseline=0.0, disagreement_epsilon=low / 1.5, phantoms=(low * 1.2,))
    rules = social_choices(frontier, society, terms=terms)
    for row in rules.rows:
        assert row.epsilon is not None
        assert low * (1 - 1e-6) <= row.epsilon <= high * (1 + 1e-6), row.rule
    options = np.geomspace(low / 2, high * 2, 40).tolist()
    votes = majority(found, [*options, median_vote(found)])
    assume(len(set(costs)) == count)
    assert votes.winner is not None
    assert not any(votes.beats(option, median_vote(found)) for option in options)
    assert math.fsum(price.group_payment for price in rules.lindahl.prices) == pytest.approx(
        0, abs=1e-9 * sum(abs(price.group_payment) for price in rules.lindahl.prices) + 1e-12
    )
    assert rules.lindahl.supported
    assert all(tax.tax >= 0 for tax in rules.clarke)
    turned = people(tuple(costs[::-1]), tuple(values[::-1]), sizes=tuple(sizes[::-1]))
    again = social_choices(frontier, turned, terms=terms)
    for row in rules.rows:
        assert again.row(row.rule).epsilon == pytest.approx(row.epsilon, rel=1e-6), row.rule


@settings(deadline=None, max_examples=8)
@given(costs=st.tuples(Reals, Reals, Reals), values=st.tuples(Reals, Reals, Reals), data=st.data())
def test_honesty_pays_under_clarke_taxes(
    costs: tuple[float, float, float],
    values: tuple[float, float, float],
    data: st.DataObject,
    power_frontier: type[PowerFrontier],
) -> None:
    frontier = power_frontier({"t": 1.0})
    i = data.draw(st.integers(0, 2))
    truth = profile(frontier, people(costs, values))

    def payoff(society: Society) -> float:
        stated = profile(frontier, society)
        chosen = choose(frontier, society.like).epsilon
        return float(truth.value(chosen)[i]) - clarke_taxes(stated)[i].tax

    honest = payoff(truth.society)
    for factor in (0.1, 0.5, 2.0, 10.0):
        lie = list(costs)
        lie[i] *= factor
        assert payoff(people(tuple(lie), values)) <= honest + 1e-9 * abs(honest)


def test_a_group_counts_as_many_people(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": 1.0})
    grouped = people((1.0, 2.0, 16.0), (4.0, 1.0, 1.0), sizes=(2.0, 1.0, 1.0))
    apart = people((1.0, 1.0, 2.0, 16.0), (4.0, 4.0, 1.0, 1.0))
    terms = SocialChoiceTerms(baseline=0.0, disagreement_epsilon=0.25, phantoms=(0.7,))
    together, single = (social_choices(frontier, society, terms=terms) for society in (grouped, apart))
    for row in together.rows:
        assert row.epsilon == pytest.approx(single.row(row.rule).epsilon, rel=1e-6), row.rule
        assert row.welfare == pytest.approx(single.row(row.rule).welfare, rel=1e-9)
    # A member of a group pays what she would pay as a person.
    charges = [price.charge for price in single.lindahl.prices][1:]
    assert [price.charge for price in together.lindahl.prices] == pytest.approx(charges, rel=1e-5)


def test_accuracy_is_shared_by_head_unless_stated(power_frontier: type[PowerFrontier]) -> None:
    groups = (PopulationGroup("many", 3.0, LinearCost(1.0)), PopulationGroup("few", 1.0, LinearCost(4.0), 0.5))
    losses = (RootMeanSquaredLoss("u", 2.0),)
    welfare = SocialWelfare(groups, (TableValue("t", 8.0), TableValue("u", 1.0)), losses)
    frontier = power_frontier({"t": 1.0, "u": 3.0})
    heads = Society.of(welfare)
    assert [c.table_values[0].value for c in heads.citizens] == [6.0, 2.0]
    by_table = Society.of(welfare, {"t": {"many": 0.1, "few": 0.9}})
    assert [c.table_values[0].value for c in by_table.citizens] == pytest.approx([0.8, 7.2])
    assert [c.table_values[1].value for c in by_table.citizens] == [0.75, 0.25]
    for society in (heads, by_table):
        found = profile(frontier, society)
        for loss in (0.3, 1.0, 4.0):
            whole = found.value(loss) @ society.sizes
            assert whole == pytest.approx(welfare.at(frontier, loss), rel=1e-12)
            rest = society.without("few")
            assert rest is not None
            assert rest.at(frontier, loss) == pytest.approx(3 * found.value(loss)[0], rel=1e-12)
        chosen = social_choices(frontier, society).row("utilitarian").epsilon
        assert chosen == pytest.approx(choose(frontier, welfare).epsilon, rel=1e-12)
    weighted = Society.of(welfare, weights={"few": 3.0}).weighted()
    assert weighted.at(frontier, 0.7) == pytest.approx(
        profile(frontier, heads).value(0.7) @ np.array([3.0, 3.0]), rel=1e-12
    )


def test_limits_bind_for_everybody(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": 1.0})
    found = social_choices(frontier, people(), Limits(largest_epsilon=0.8), terms=SocialChoiceTerms(phantoms=(5.0,)))
    assert [peak.epsilon for peak in found.profile.peaks] == pytest.approx([0.8, 0.8, 0.5])
    assert all(row.epsilon is not None and row.epsilon <= 0.8 for row in found.rows)
    # At the cap the charges leave W' = 12/ε³ − 19 over.
    assert found.lindahl.surplus == pytest.approx(12 / 0.8**3 - 19)
    assert "what the limit costs at the margin" in str(found.lindahl)


def test_people_who_want_none_or_ever_more(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": 1.0})
    groups = (
        PopulationGroup("users", 2.0, LinearCost(0.0)),
        PopulationGroup("shy", 1.0, LinearCost(1.0)),
        PopulationGroup("both", 2.0, LinearCost(1.0)),
    )
    society = Society.of(SocialWelfare(groups, (TableValue("t", 3.0),)), {"users": 0.5, "shy": 0.0, "both": 0.5})
    found = profile(frontier, society)
    assert [peak.epsilon for peak in found.peaks][:2] == [math.inf, 0.0]
    assert median_vote(found) == pytest.approx((2 * 0.75 / 1.0) ** (1 / 3))
    with pytest.raises(NoOptimum, match="ever more"):
        rawlsian(found, "own peak")
    taxes = clarke_taxes(found)
    assert all(tax.tax >= 0 for tax in taxes)
    assert "none at all" in found.explain()


def test_where_nobody_has_a_best_loss_the_sum_still_has_one(power_frontier: type[PowerFrontier]) -> None:
    groups = (PopulationGroup("users", 1.0, LinearCost(0.0)), PopulationGroup("shy", 1.0, LinearCost(1.0)))
    society = Society.of(SocialWelfare(groups, (TableValue("t", 4.0),)), {"users": 1.0})
    found = social_choices(power_frontier({"t": 1.0}), society)
    assert found.row("utilitarian").epsilon == pytest.approx(2.0)
    assert list(found.majority.options) == pytest.approx([2.0])
    assert found.row("median").welfare is None  # half want none at all
    # Alone the users would have exact tables, and the shy no release: each takes from the other what it costs them.
    assert [tax.tax for tax in found.clarke] == pytest.approx([2.0, 1.0])
    assert [tax.epsilon_without for tax in found.clarke] == [0.0, math.inf]


def test_status_quo(power_frontier: type[PowerFrontier]) -> None:
    found: SocialChoices = social_choices(power_frontier({"t": 1.0}), people(), terms=SocialChoiceTerms(status_quo=1.0))
    assert found.row("utilitarian").gains == pytest.approx(
        {"one": -1.291835, "two": -0.074419, "three": 1.913896}, abs=5e-7
    )
    assert (
        "Against 1, one of one loses USD 1.29, one of two loses USD 0.07, one of three gains USD 1.91."
        in found.explain()
    )
    assert found.clarke
    assert all(f"Clarke tax of {tax.name}: without it" in found.explain() for tax in found.clarke)


def test_refusals(three: Profile, power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": 1.0})
    for rule, match in (("rawlsian", "baseline"), ("nash", "disagreement_epsilon"), ("phantoms", "phantoms")):
        with pytest.raises(MissingKey, match=match):
            social_choices(frontier, people(), rules=[rule])
    for baseline in ({"one": 1.0}, {"one": 1.0, "two": math.nan, "three": 1.0}, "elsewhere"):
        with pytest.raises(MissingKey):
            rawlsian(three, baseline)
    with pytest.raises(UnknownName):
        social_choices(frontier, people(), rules=["dictator"])
    with pytest.raises(UnknownName):
        social_choices(frontier, people()).row("nash")
    for loss in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidLoss):
            three.value(loss)
        with pytest.raises(InvalidLoss):
            nash_bargain(three, loss)
        with pytest.raises(InvalidLoss):
            social_choices(frontier, people(), terms=SocialChoiceTerms(status_quo=loss))
        with pytest.raises(InvalidValue):
            majority(three, [1.0, loss])
    for phantoms in ([], [-1.0], [math.nan]):
        with pytest.raises(InvalidValue):
            phantom_vote(three, phantoms)
    welfare = people().like
    for shares in ({"one": 0.5}, {"one": 2.0, "two": -1.0}, {"four": 1.0}):
        with pytest.raises(InvalidPreferences, match="value of accuracy"):
            Society.of(welfare, shares)
    with pytest.raises(InvalidPreferences, match="no group"):
        Society.of(welfare, weights={"four": 1.0})
    with pytest.raises(InvalidPreferences, match="weight"):
        Society.of(welfare, weights={"one": -1.0})
    nobody = SocialWelfare((*welfare.groups, PopulationGroup("four", 1.0, LinearCost(0.0))), welfare.table_values)
    with pytest.raises(InvalidPreferences, match="loses nothing"):
        Society.of(nobody, {"one": 1.0})
