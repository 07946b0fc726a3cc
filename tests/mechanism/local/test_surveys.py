"""Devices of randomized response and of unary encoding: exact chances, and the frontier's own variance."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.mechanism import Mechanism, RandomizedResponse, UnaryEncoding
from dualmandate.mechanism.local import ResponseSurvey, UnarySurvey, simulated_words
from dualmandate.population import Neighbors, Protection
from dualmandate.workload import identity

REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)
PEOPLE = np.array([60, 30, 10, 0])
SHARES = tuple((PEOPLE / 100).tolist())


def test_no_report_of_a_level_tells_more_than_the_loss() -> None:
    survey = ResponseSurvey(Fraction(3, 2), 5)
    other = (1 - survey.truth_probability) / 5
    assert (survey.truth_probability + other) / other == survey.odds
    assert survey.loss.amount == Fraction(3, 2)
    assert float(survey.truth_probability) == pytest.approx(RandomizedResponse.categories(9, 5).truth_probability(1.5))


def test_no_report_of_bits_tells_more_than_the_loss() -> None:
    survey, largest = UnarySurvey(Fraction(3, 2), 3), Fraction(1)
    q = 1 / (1 + survey.odds)
    for report in product((False, True), repeat=3):
        chances = []
        for own in range(3):
            ones = [Fraction(1, 2) if place == own else q for place in range(3)]
            parts = (one if bit else 1 - one for one, bit in zip(ones, report, strict=True))
            chances.append(math.prod(parts, start=Fraction(1)))
        largest = max(largest, max(chances) / min(chances))
    assert largest == survey.odds
    assert survey.loss.amount == Fraction(3, 2)


@pytest.mark.parametrize(
    ("survey", "mechanism"),
    [
        (ResponseSurvey(1, 4), RandomizedResponse.categories(100, 4, sensitive_shares=SHARES)),
        (UnarySurvey(1, 4), UnaryEncoding(100, 4, SHARES)),
    ],
    ids=["response", "unary"],
)
def test_devices_and_the_agency_have_the_variance_of_the_frontier(survey: Any, mechanism: Mechanism) -> None:
    words, own = simulated_words(np.random.default_rng(1)), np.repeat(np.arange(4), PEOPLE)
    found = [survey.counts(survey.reports(own, words)) for _ in range(2_000)]
    variances = survey.variances(PEOPLE)
    assert np.all(np.abs(np.mean(found, axis=0) - PEOPLE) < 5 * np.sqrt(variances / 2_000))
    assert np.var(found, axis=0) == pytest.approx(variances, rel=0.16)
    stated = mechanism.production(identity(4), REPLACE_ONE).query_variances("identity", 1.0)
    assert variances == pytest.approx(stated, rel=1e-8)


def test_what_is_refused() -> None:
    kinds: tuple[type[ResponseSurvey | UnarySurvey], ...] = (ResponseSurvey, UnarySurvey)
    for kind in kinds:
        with pytest.raises(InvalidMechanism, match="of 1 levels"):
            kind(1, 1)
        with pytest.raises(InvalidLoss):
            kind(0, 3)
