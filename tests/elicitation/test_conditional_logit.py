from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.discrete.conditional_models import ConditionalLogit
from statsmodels.discrete.discrete_model import Logit

from dualmandate.benchmarks.preferences import ALIKE, Experiment, covered
from dualmandate.elicitation import ChoiceData, conditional_logit
from dualmandate.elicitation.logit import logit_pass
from dualmandate.errors import NoEstimate, UnknownName

SMALL = Experiment(people=60, tasks=4, alternatives=3, means=(0.6, -0.8, -0.5), spreads=(0.3, 0.0, 0.0))

EXACTLY: dict[str, Any] = {"disp": False, "method": "newton", "tol": 1e-12}


def binary(yes: Sequence[int], offer: Sequence[float]) -> ChoiceData:
    return ChoiceData.of_answers({"offer": offer}, yes=yes, respondent=list(range(len(yes))))


def test_by_hand() -> None:
    """Three of four say yes at 0, one of four at 1: the log odds are log 3 and −log 3."""
    found = conditional_logit(binary([1, 1, 1, 0, 1, 0, 0, 0], [0] * 4 + [1] * 4), cluster=False)
    assert found.value("constant") == pytest.approx(np.log(3))
    assert found.value("offer") == pytest.approx(-2 * np.log(3))
    assert found.log_likelihood == pytest.approx(2 * (3 * np.log(0.75) + np.log(0.25)))
    assert found.standard_error("constant") == pytest.approx(np.sqrt(1 / (4 * 0.75 * 0.25)))
    assert found.standard_error("offer") == pytest.approx(np.sqrt(2 / (4 * 0.75 * 0.25)))
    assert (found.observations, found.clusters) == (8, 8)
    values, covariance = found.joint(("offer", "constant"))
    assert values.tolist() == [found.value("offer"), found.value("constant")]
    assert covariance[0, 1] == pytest.approx(-1 / (4 * 0.75 * 0.25))
    with pytest.raises(UnknownName, match="no parameter 'price'"):
        found.value("price")


def test_clusters_are_people() -> None:
    """Everybody answers twice the same: errors are those of one answer, not √½ of them."""
    once = ChoiceData.of_answers({"x": [0, 0, 0, 0, 1, 1, 1, 1]}, yes=[1, 1, 1, 0, 1, 0, 0, 0], respondent=range(8))
    both = [*range(8)] * 2
    twice = ChoiceData.of_answers(
        {"x": [0, 0, 0, 0, 1, 1, 1, 1] * 2}, yes=[1, 1, 1, 0, 1, 0, 0, 0] * 2, respondent=both
    )
    assert conditional_logit(twice).standard_error("x") == pytest.approx(conditional_logit(once).standard_error("x"))
    plain = conditional_logit(twice, cluster=False)
    assert plain.standard_error("x") == pytest.approx(
        conditional_logit(once, cluster=False).standard_error("x") / np.sqrt(2)
    )
    assert plain.clusters == 16


def test_statsmodels_agrees_on_coefficients() -> None:
    data = SMALL.answers(np.random.default_rng(1))
    found = conditional_logit(data, cluster=False)
    oracle = ConditionalLogit(data.chosen.astype(float), data.attributes, groups=data.task).fit(**EXACTLY)
    assert found.values == pytest.approx(oracle.params, abs=1e-5)
    assert np.sqrt(np.diag(found.covariance)) == pytest.approx(oracle.bse, rel=1e-4)
    assert found.log_likelihood == pytest.approx(oracle.llf, rel=1e-9)


def test_statsmodels_agrees_on_clustered_errors() -> None:
    generator = np.random.default_rng(2)
    bid, person = generator.uniform(0, 3, 400), np.repeat(np.arange(100), 4)
    yes = generator.random(400) < 1 / (1 + np.exp(bid - 1 - generator.normal(0, 1, 100)[person]))
    found = conditional_logit(ChoiceData.of_answers({"bid": bid}, yes=yes, respondent=person))
    oracle = Logit(yes.astype(float), np.column_stack([np.ones(400), bid])).fit(
        disp=False, cov_type="cluster", cov_kwds={"groups": person, "use_correction": False}
    )
    assert found.values == pytest.approx(oracle.params, rel=1e-6)
    assert found.covariance == pytest.approx(oracle.cov_params(), rel=1e-6)
    assert found.clusters == 100


def test_gradient_and_curvature_are_derivatives() -> None:
    generator = np.random.default_rng(3)
    rows, beta = generator.normal(size=(7, 3)), generator.normal(size=3)
    starts = np.array([0, 1, 4, 7])

    def at(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        scores, curvature = np.empty((3, 3)), np.empty((3, 3))
        return logit_pass(rows, starts, point, scores, curvature), scores.sum(axis=0), curvature

    _, gradient, curvature = at(beta)
    for place, unit in enumerate(1e-5 * np.eye(3)):
        (up, gradient_up, _), (down, gradient_down, _) = at(beta + unit), at(beta - unit)
        assert gradient[place] == pytest.approx((up - down) / 2e-5, abs=1e-8)
        assert curvature[place] == pytest.approx((gradient_down - gradient_up) / 2e-5, abs=1e-8)


@settings(max_examples=20, deadline=None)
@given(
    scale=st.tuples(*[st.sampled_from([1e-4, 0.1, 7.0, 2e5])] * 3), shift=st.floats(-50, 50), seed=st.integers(0, 99)
)
def test_units_and_levels_do_not_matter(scale: tuple[float, ...], shift: float, seed: int) -> None:
    data = SMALL.answers(np.random.default_rng(seed))
    columns = dict(zip(data.names, (data.attributes * scale + shift * np.array(scale)).T, strict=True))
    moved = ChoiceData.of_columns(columns, chosen=data.chosen, task=data.task, respondent=data.respondent)
    found, other = conditional_logit(data), conditional_logit(moved)
    assert other.values * scale == pytest.approx(found.values, rel=1e-6)
    assert np.sqrt(np.diag(other.covariance)) * scale == pytest.approx(np.sqrt(np.diag(found.covariance)), rel=1e-6)
    assert other.log_likelihood == pytest.approx(found.log_likelihood)


def test_tasks_may_differ_in_alternatives() -> None:
    data = SMALL.answers(np.random.default_rng(5))
    keep = (data.task % 2 == 0) | data.chosen | (np.arange(len(data.task)) % 3 == 0)
    keep &= ~np.isin(data.task, np.flatnonzero(np.bincount(data.task[keep]) < 2))
    columns = dict(zip(data.names, data.attributes[keep].T, strict=True))
    ragged = ChoiceData.of_columns(
        columns, chosen=data.chosen[keep], task=data.task[keep], respondent=data.respondent[keep]
    )
    assert set(np.diff(ragged.task_starts)) == {2, 3}
    found = conditional_logit(ragged, cluster=False)
    oracle = ConditionalLogit(ragged.chosen.astype(float), ragged.attributes, groups=ragged.task).fit(**EXACTLY)
    assert found.values == pytest.approx(oracle.params, abs=1e-5)


def test_far_from_separation_large_coefficients_stand() -> None:
    """One of a thousand goes against a strong attribute: the coefficient is large, and exists."""
    yes = [1] * 999 + [0] + [0] * 999 + [1]
    found = conditional_logit(binary(yes, [1.0] * 1000 + [-1.0] * 1000))
    assert found.value("offer") == pytest.approx(np.log(999))


@pytest.mark.parametrize(
    ("yes", "offer", "words"),
    [
        ([0, 0, 1, 1], [1, 2, 3, 4], "constant and offer together separates"),
        ([0, 0, 1, 1, 1], [1, 2, 2, 3, 4], "constant and offer together separates"),
        ([0, 0, 1, 1], [0, 0, 0, 1], "^offer separates"),
    ],
    ids=["complete", "quasi", "one cell"],
)
def test_separation_is_refused(yes: list[int], offer: list[float], words: str) -> None:
    with pytest.raises(NoEstimate, match=words):
        conditional_logit(binary(yes, offer))


def test_an_attribute_that_separates_alone_is_named() -> None:
    data = SMALL.answers(np.random.default_rng(6))
    columns = dict(zip(data.names, data.attributes.T, strict=True)) | {"always": data.chosen.astype(float)}
    separated = ChoiceData.of_columns(columns, chosen=data.chosen, task=data.task, respondent=data.respondent)
    with pytest.raises(NoEstimate, match=r"^always separates the chosen"):
        conditional_logit(separated)


def test_attributes_that_repeat_each_other_are_refused() -> None:
    data = SMALL.answers(np.random.default_rng(7))
    columns = dict(zip(data.names, data.attributes.T, strict=True))
    columns["both"] = columns["attribute 1"] - 2 * columns["price"] + 5 * data.task
    repeated = ChoiceData.of_columns(columns, chosen=data.chosen, task=data.task, respondent=data.respondent)
    with pytest.raises(NoEstimate, match="attribute 1, price and both repeat each other"):
        conditional_logit(repeated)


def test_no_convergence_is_refused() -> None:
    with pytest.raises(NoEstimate, match="did not converge in 2 steps"):
        conditional_logit(SMALL.answers(np.random.default_rng(8)), most_steps=2)


def test_few_people_have_no_clustered_errors() -> None:
    data = ChoiceData.of_answers({"x": [0, 0, 0, 0, 1, 1, 1, 1]}, yes=[1, 1, 1, 0, 1, 0, 0, 0], respondent=[1, 2] * 4)
    with pytest.raises(NoEstimate, match="2 respondents are too few"):
        conditional_logit(data)
    assert conditional_logit(data, cluster=False).clusters == 8


@pytest.mark.slow
def test_intervals_hold_as_often_as_stated(tell: Callable[[str], None]) -> None:
    shares = covered(ALIKE, conditional_logit, replications=1000, seed=1)
    assert set(shares) == set(ALIKE.names)
    assert all(0.93 <= share <= 0.97 for share in shares.values()), shares
    tell(f"coverage of the conditional logit {shares} over 1,000 surveys")
