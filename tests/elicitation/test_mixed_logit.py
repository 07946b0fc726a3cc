"""The kernel against the same formulas written out in plain arrays, and its gradient against differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xlogit import MixedLogit

from dualmandate.benchmarks.preferences import MIXED, Experiment, covered
from dualmandate.elicitation import ChoiceData, ParameterEstimates, conditional_logit, mixed_logit, taste_of
from dualmandate.elicitation.answers import Differences
from dualmandate.elicitation.likelihood import Maximum, normal_draws
from dualmandate.elicitation.logit import (
    CHUNK,
    LINEAR,
    NEGATIVE,
    POSITIVE,
    CoefficientLayout,
    Distribution,
    MixedModel,
    Panel,
    Space,
    estimates_of,
    exponentials,
    highest,
    simulate,
    simulated_likelihood,
)
from dualmandate.errors import InvalidSurvey, NoEstimate, TooLarge

Floats = NDArray[np.float64]
LAYOUTS = {
    "normal": ([LINEAR] * 4, [0, 1, 2, -1], -1),
    "lognormal": ([LINEAR, POSITIVE, NEGATIVE, LINEAR], [-1, 0, 1, 2], -1),
    "money": ([LINEAR, POSITIVE, LINEAR, NEGATIVE], [0, 1, -1, 2], 3),
    "money, one scale": ([NEGATIVE, LINEAR, LINEAR, NEGATIVE], [-1, 0, 1, 2], 0),
}
SMALL = Experiment(people=150, tasks=6, alternatives=3, means=(0.6, -0.8, 0.4, -0.5), spreads=(0.8, 0.6, 0.5, 0.0))
LOGNORMAL: dict[str, Distribution] = {"attribute 1": "normal", "price": "negative lognormal"}
SPACES: dict[str, tuple[dict[str, Distribution], Space]] = {
    "preference": (dict.fromkeys(SMALL.random, "normal"), "preference"),
    "lognormal": (
        {"attribute 1": "lognormal", "price": "negative lognormal", "attribute 2": "triangular"},
        "preference",
    ),
    "money": ({"attribute 1": "normal", "price": "lognormal", "attribute 3": "lognormal"}, "willingness to pay"),
}


def test_exponentials_to_the_last_digits() -> None:
    points = np.concatenate([np.linspace(-690, 690, 200_001), np.linspace(-1, 1, 20_001), [0.0]])
    found = points.copy()
    exponentials(found)
    assert found[-1] == 1
    assert np.abs(found / np.exp(points) - 1).max() < 5e-16


def panel(tasks: tuple[int, ...], draws: int, columns: int, attributes: int = 4) -> Panel:
    """People with different numbers of tasks, tasks with one to three alternatives beside the chosen one."""
    generator = np.random.default_rng(sum(tasks))
    shown = generator.integers(1, 4, sum(tasks))
    return Panel(
        rows=generator.normal(size=(shown.sum(), attributes)),
        task_starts=np.append(0, np.cumsum(shown)),
        person_starts=np.append(0, np.cumsum(tasks)),
        draws=normal_draws(len(tasks), draws, columns),
    )


def plainly(given: Panel, layout: CoefficientLayout, theta: Floats) -> Floats:
    """Log of the mean, over draws, of the product of logit probabilities."""
    size, found = len(layout.forms), []
    for person, draws in enumerate(given.draws):
        taste = np.repeat(theta[:size, None], draws.shape[1], axis=1)
        for k, column in enumerate(layout.columns):
            if column >= 0:
                taste[k] += theta[size + column] * draws[column]
            if layout.forms[k] != LINEAR:
                taste[k] = np.exp(taste[k]) * (1 if layout.forms[k] == POSITIVE else -1)
        if layout.price >= 0:
            others = np.arange(size) != layout.price
            taste[others] *= -taste[layout.price]
        log = np.zeros(draws.shape[1])
        for task in range(given.person_starts[person], given.person_starts[person + 1]):
            rows = given.rows[given.task_starts[task] : given.task_starts[task + 1]]
            log -= np.log1p(np.exp(rows @ taste).sum(axis=0))
        found.append(np.logaddexp.reduce(log) - np.log(draws.shape[1]))
    return np.array(found)


@pytest.mark.parametrize("draws", [1, CHUNK, CHUNK + 1, 3 * CHUNK - 5])
@pytest.mark.parametrize("name", LAYOUTS)
def test_values_and_gradients(name: str, draws: int) -> None:
    forms, columns, price = LAYOUTS[name]
    layout = CoefficientLayout(np.array(forms), np.array(columns), price)
    given = panel((1, 8, 3, 20), draws, 3)
    theta = np.random.default_rng(9).normal(size=7) / 2
    values, scores = np.empty(4), np.empty((4, 7))
    simulate(given, layout, theta, values, scores)
    assert values == pytest.approx(plainly(given, layout, theta), rel=1e-12)
    for place, unit in enumerate(1e-5 * np.eye(7)):
        slopes = (plainly(given, layout, theta + unit) - plainly(given, layout, theta - unit)) / 2e-5
        assert scores[:, place] == pytest.approx(slopes, abs=1e-7)


def test_many_tasks_do_not_underflow() -> None:
    """3,000 choices of one person have a probability of e^−2,500 and less."""
    forms, columns, price = LAYOUTS["normal"]
    layout = CoefficientLayout(np.array(forms), np.array(columns), price)
    given = panel((3000,), 200, 3)
    theta = np.full(7, 0.3)
    values, scores = np.empty(1), np.empty((1, 7))
    simulate(given, layout, theta, values, scores)
    assert values[0] < -2000
    assert values == pytest.approx(plainly(given, layout, theta), rel=1e-12)
    assert np.isfinite(scores).all()


@pytest.fixture(scope="module")
def answers() -> ChoiceData:
    return SMALL.answers(np.random.default_rng(3))


def lognormal_answers(people: int, seed: int, location: float = -0.5, spread: float = 0.8) -> ChoiceData:
    """Attribute 1 is worth 1 to everybody, and prices count −e^(location + spread·z)."""
    generator = np.random.default_rng(seed)
    attributes = generator.normal(size=(people, 8, 3, 2))
    tastes = np.column_stack([np.ones(people), -np.exp(location + spread * generator.standard_normal(people))])
    utilities = np.einsum("ntjk,nk->ntj", attributes, tastes) + generator.gumbel(size=(people, 8, 3))
    return ChoiceData.of_columns(
        {"attribute 1": attributes[..., 0].reshape(-1), "price": attributes[..., 1].reshape(-1)},
        chosen=(np.arange(3) == utilities.argmax(axis=2)[..., None]).reshape(-1),
        task=np.repeat(np.arange(people * 8), 3),
        respondent=np.repeat(np.arange(people), 24),
    )


def oracle(
    data: ChoiceData, attributes: NDArray[np.float64], names: list[str], random: dict[str, str], **more: Any
) -> Any:
    """xlogit's answer, with its own Halton draws."""
    model = MixedLogit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its search may overflow on the way
        model.fit(
            X=attributes,
            y=data.chosen.astype(int),
            varnames=names,
            alts=np.tile(np.arange(3), data.tasks),
            ids=data.task,
            panels=data.respondent,
            randvars=random,
            verbose=0,
            **more,
        )
    assert model.convergence
    return dict(zip(map(str, model.coeff_names), model.coeff_, strict=True))


def within(found: ParameterEstimates, name: str, value: float, errors: float = 0.1) -> bool:
    return abs(abs(found.value(name)) - abs(value)) < errors * found.standard_error(name)


@pytest.mark.slow
def test_xlogit_agrees_on_normal_tastes(answers: ChoiceData) -> None:
    found = mixed_logit(answers, SMALL.random, draws=2000)
    other = oracle(answers, answers.attributes, list(answers.names), dict.fromkeys(SMALL.random, "n"), n_draws=2000)
    assert all(within(found, name, other[name]) for name in answers.names)
    assert all(within(found, f"standard deviation of {name}", other[f"sd.{name}"]) for name in SMALL.random)


@pytest.mark.slow
def test_xlogit_agrees_in_money(answers: ChoiceData) -> None:
    random = ("attribute 1", "attribute 2")
    found = mixed_logit(answers, random, space="willingness to pay", price="price", draws=1000)
    goods, price = answers.attributes[:, :3], answers.attributes[:, 3]
    names = list(answers.names[:3])
    other = oracle(answers, goods, names, dict.fromkeys(random, "n"), n_draws=1000, scale_factor=price)
    assert all(within(found, f"willingness to pay for {name}", other[name]) for name in names)
    for name in random:
        assert within(found, f"standard deviation of willingness to pay for {name}", other[f"sd.{name}"])
    assert within(found, "log scale", np.log(other["_scale_factor"]))


@pytest.mark.slow
def test_xlogit_agrees_on_lognormal_and_triangular_tastes() -> None:
    data = lognormal_answers(150, 1)
    random: dict[str, Distribution] = {"attribute 1": "triangular", "price": "negative lognormal"}
    found = mixed_logit(data, random, draws=1000)
    turned, start = data.attributes * np.array([1.0, -1.0]), np.array([1.0, -0.5, 0.3, 0.5])
    kinds = {"attribute 1": "t", "minus price": "ln"}
    other = oracle(data, turned, ["attribute 1", "minus price"], kinds, n_draws=1000, init_coeff=start)
    assert within(found, "attribute 1", other["attribute 1"])
    assert within(found, "mean of log minus price", other["minus price"])
    assert within(found, "standard deviation of log minus price", other["sd.minus price"])
    # the last spread is not told by these choices: everybody is alike in it
    assert within(found, "half width of attribute 1", other["sd.attribute 1"], errors=1.0)


@pytest.mark.slow
def test_intervals_hold_as_often_as_stated(tell: Callable[[str], None]) -> None:
    def estimate(data: ChoiceData) -> ParameterEstimates:
        return mixed_logit(data, MIXED.random, draws=100, starts=1)

    shares = covered(MIXED, estimate, replications=200, seed=1)
    assert len(shares) == 5
    assert all(0.91 <= share <= 0.98 for share in shares.values()), shares
    tell(f"coverage of the mixed logit {shares} over 200 surveys")


def test_lognormal_tastes_are_recovered() -> None:
    found = mixed_logit(lognormal_answers(600, 5), {"price": "negative lognormal"}, draws=200, starts=1)
    for name, true in (
        ("attribute 1", 1.0),
        ("mean of log minus price", -0.5),
        ("standard deviation of log minus price", 0.8),
    ):
        assert abs(found.value(name) - true) < 3 * found.standard_error(name)
        assert found.standard_error(name) < 0.15
    price = taste_of(found, "price")
    assert price.mean == pytest.approx(-np.exp(-0.5 + 0.32), abs=3 * price.mean_standard_error)


@pytest.mark.parametrize("case", SPACES)
def test_gradients_are_derivatives(answers: ChoiceData, case: str) -> None:
    random, space = SPACES[case]
    differences = Differences.of(answers)
    model = MixedModel.of(differences, random, space=space, price="price")
    likelihood = simulated_likelihood(answers, differences, model, 50)
    theta = model.start(np.array([0.4, -0.5, 0.3, -0.6])) * 1.1
    scores = likelihood(theta)[1]
    for place, unit in enumerate(1e-6 * np.eye(len(theta))):
        slope = (likelihood(theta + unit)[0] - likelihood(theta - unit)[0]) / 2e-6
        assert scores[:, place] == pytest.approx(slope, abs=1e-6)


def test_without_spread_it_is_the_conditional_logit(answers: ChoiceData) -> None:
    differences = Differences.of(answers)
    alike = conditional_logit(answers)
    for space in ("preference", "willingness to pay"):
        model = MixedModel.of(differences, {"attribute 1": "normal"}, space=space, price="price")
        theta = np.append(model.start(alike.values * differences.scale)[:-1], 0.0)
        values = simulated_likelihood(answers, differences, model, 10)(theta)[0]
        assert values.sum() == pytest.approx(alike.log_likelihood)


def test_money_and_utility_are_the_same_model() -> None:
    """With a price that counts alike for all, willingness to pay is the coefficient over the price's."""
    data = SMALL.answers(np.random.default_rng(8))
    utility = mixed_logit(data, SMALL.random, draws=100, starts=1)
    money = mixed_logit(data, SMALL.random, space="willingness to pay", price="price", draws=100, starts=1)
    assert money.log_likelihood == pytest.approx(utility.log_likelihood, abs=1e-3)
    scale = taste_of(money, "scale").mean
    assert scale == pytest.approx(-utility.value("price"), rel=1e-3)
    for name in SMALL.random:
        worth = taste_of(money, f"willingness to pay for {name}")
        assert worth.mean == pytest.approx(utility.value(name) / scale, rel=5e-3)
        assert worth.standard_deviation == pytest.approx(
            utility.value(f"standard deviation of {name}") / scale, rel=5e-3
        )


def test_units_do_not_matter(answers: ChoiceData) -> None:
    scale = np.array([1e-3, 1.0, 40.0, 1e4])
    columns = dict(zip(answers.names, (answers.attributes * scale).T, strict=True))
    moved = ChoiceData.of_columns(columns, chosen=answers.chosen, task=answers.task, respondent=answers.respondent)
    for space, factor in (("preference", 1 / scale), ("willingness to pay", 1e4 / scale)):
        options: dict[str, Any] = {"space": space, "price": "price", "draws": 50, "starts": 1}
        found, other = (mixed_logit(data, ("attribute 1",), **options) for data in (answers, moved))
        assert other.log_likelihood == pytest.approx(found.log_likelihood)
        assert other.values[:3] == pytest.approx(found.values[:3] * factor[:3], rel=1e-4)
        assert other.values[-1] == pytest.approx(found.values[-1] * factor[0], rel=1e-4)
        errors = [np.sqrt(np.diag(each.covariance)) for each in (found, other)]
        assert errors[1][:3] == pytest.approx(errors[0][:3] * factor[:3], rel=1e-3)


def test_the_same_answer_every_time_and_the_highest_of_several(answers: ChoiceData) -> None:
    said: list[str] = []
    options: dict[str, Any] = {"draws": 50}
    found = mixed_logit(answers, SMALL.random, starts=3, progress=said.append, **options)
    assert len(said) == 3
    assert said[0].startswith("start 1 of 3: log likelihood -")
    again = mixed_logit(answers, SMALL.random, starts=3, **options)
    assert (again.values == found.values).all()
    tops = [float(words.split("likelihood ")[1].split(" in")[0].replace(",", "")) for words in said]
    assert found.log_likelihood == pytest.approx(max(tops), abs=1e-3)
    assert (found.values[4:] > 0).all()
    assert (found.observations, found.clusters) == (900, 150)


def test_errors_are_the_sandwich_by_person(answers: ChoiceData) -> None:
    """Second derivatives by differences of the gradient on both sides, scores by differences of the values."""
    found = mixed_logit(answers, ("attribute 1",), draws=50, starts=1)
    differences = Differences.of(answers)
    model = MixedModel.of(differences, {"attribute 1": "normal"}, space="preference", price=None)
    likelihood = simulated_likelihood(answers, differences, model, 50)
    factor, _ = model.factors
    theta, units = found.values / factor, 1e-4 * np.eye(5)
    curvature = [(likelihood(theta - u)[1] - likelihood(theta + u)[1]).sum(axis=0) / 2e-4 for u in units]
    scores = np.column_stack([(likelihood(theta + u)[0] - likelihood(theta - u)[0]) / 2e-4 for u in units])
    bread = np.linalg.inv(np.array(curvature)) * factor[:, None]
    assert found.covariance == pytest.approx(bread @ (scores.T @ scores) @ bread.T, rel=1e-3, abs=1e-8)


def test_spreads_are_stated_as_positive(answers: ChoiceData) -> None:
    model = MixedModel.of(Differences.of(answers), SPACES["preference"][0], space="preference", price=None)
    point, scores = np.array([1.0, -1.0, 1.0, -1.0, -0.5, 0.5, -0.5]), np.random.default_rng(1).normal(size=(150, 7))
    mirrored = np.where(np.arange(7) < 4, 1.0, np.sign(point))
    tops = (
        Maximum(point, -1.0, scores, np.eye(7), 1),
        Maximum(point * mirrored, -1.0, scores * mirrored, np.eye(7), 1),
    )
    found, expected = (estimates_of(answers, model, top) for top in tops)
    assert (found.values == expected.values).all()
    assert found.covariance == pytest.approx(expected.covariance)
    assert (found.values[4:] > 0).all()
    assert (found.values[:4] * point[:4] > 0).all()


def test_the_highest_top_is_taken() -> None:
    """Two hills of a sample that is a mixture: the one with more people is higher."""
    sample = np.concatenate([np.random.default_rng(1).normal(-6, 1, 60), np.random.default_rng(2).normal(6, 1, 40)])

    def hills(theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        distance = sample - theta[0]
        return -np.log1p(distance**2), (2 * distance / (1 + distance**2))[:, None]

    for starts in ([-5.0, 5.0], [5.0, -5.0]):
        assert highest(hills, [np.array([start]) for start in starts], lambda _: None).point == pytest.approx(-6, abs=1)
    assert highest(hills, [np.array([5.0])], lambda _: None).point == pytest.approx(6, abs=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"random": ()}, "no coefficient is random"),
        ({"random": ("epsilon",)}, "random coefficient 'epsilon' is not of an attribute"),
        ({"random": {"price": "gamma"}}, "'gamma' is no distribution that 'price' can have"),
        ({"space": "money"}, "there is no space 'money'"),
        ({"space": "willingness to pay"}, "no attribute is named as the price"),
        ({"space": "willingness to pay", "price": "cost"}, "the price 'cost' is not an attribute"),
        (
            {"space": "willingness to pay", "price": "price", "random": ("price",)},
            "scale of the price 'price' is normal",
        ),
        ({"draws": 1}, "1 draws and 3 starts"),
        ({"starts": 0}, "500 draws and 0 starts"),
    ],
)
def test_refused(answers: ChoiceData, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSurvey, match=words):
        mixed_logit(answers, **({"random": ("attribute 1",)} | options))


def test_more_draws_than_fit_are_refused(answers: ChoiceData) -> None:
    with pytest.raises(TooLarge, match="450,000,000 random numbers are too many to keep") as refused:
        mixed_logit(answers, SMALL.random, draws=1_000_000)
    assert refused.value.instead == "take at most 596,523 draws a person"


def test_separation_is_refused(answers: ChoiceData) -> None:
    columns = dict(zip(answers.names, answers.attributes.T, strict=True)) | {"always": answers.chosen.astype(float)}
    separated = ChoiceData.of_columns(columns, chosen=answers.chosen, task=answers.task, respondent=answers.respondent)
    with pytest.raises(NoEstimate, match="always separates"):
        mixed_logit(separated, SMALL.random, draws=20)


def test_few_people_are_refused() -> None:
    few = Experiment(people=7, tasks=30, alternatives=3, means=SMALL.means, spreads=SMALL.spreads)
    with pytest.raises(NoEstimate, match="7 respondents are too few for 7 parameters"):
        mixed_logit(few.answers(np.random.default_rng(1)), few.random, draws=20)


def test_one_choice_each_tells_no_spread() -> None:
    """Two alternatives, one binary attribute and one choice a person: a spread only rescales the mean."""
    generator = np.random.default_rng(2)
    yes = generator.random(400) < 0.7
    data = ChoiceData.of_answers({"offer": np.tile([1.0, -1.0], 200)}, yes=yes, respondent=np.arange(400)).only(
        ("constant",)
    )
    with pytest.raises(NoEstimate, match=r"do not tell|did not converge"):
        mixed_logit(data, ("constant",), draws=500)  # fewer draws would hide it


def test_people_who_never_waver_have_no_top() -> None:
    """Everybody always takes one side: spreads grow without end."""
    side = np.repeat(np.random.default_rng(3).random(80) < 0.5, 12)
    offer = np.random.default_rng(4).normal(size=960)
    data = ChoiceData.of_answers({"offer": offer}, yes=side, respondent=np.repeat(np.arange(80), 12))
    with pytest.raises(NoEstimate, match=r"do not tell|did not converge"):
        mixed_logit(data, ("constant",), draws=50, starts=2)
