"""A few bits a person: every report of small cases, the estimates, and which number of bits is best."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.mechanism import BitFlip, UnaryEncoding
from dualmandate.mechanism.local import BitFlipSurvey, simulated_words
from dualmandate.population import Neighbors, Protection
from dualmandate.workload import identity

REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_no_report_tells_two_levels_apart_by_more_than_the_loss(bits: int) -> None:
    """Every set of levels asked about, every report, exactly."""
    survey, largest = BitFlipSurvey(Fraction(5, 4), 4, bits), Fraction(1)
    truth = survey.odds / (1 + survey.odds)
    for asked in combinations(range(4), bits):
        for report in product((False, True), repeat=bits):
            chances = [
                math.prod(
                    (truth if bit == (level == own) else 1 - truth for level, bit in zip(asked, report, strict=True)),
                    start=Fraction(1),
                )
                for own in range(4)
            ]
            largest = max(largest, max(chances) / min(chances))
    assert largest == survey.odds ** min(2, bits)
    assert survey.loss.amount == Fraction(5, 4)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_clients_and_the_agency_agree_with_the_closed_form(bits: int) -> None:
    survey, words = BitFlipSurvey(2, 4, bits), simulated_words(np.random.default_rng(bits))
    people = np.array([60, 30, 10, 0])
    own = np.repeat(np.arange(4), people)
    found = []
    for _ in range(2_000):
        assigned = survey.assigned(len(own), words)
        found.append(survey.counts(assigned, survey.reports(own, assigned, words)))
    variances = survey.variances(people)
    assert np.all(np.abs(np.mean(found, axis=0) - people) < 5 * np.sqrt(variances / 2_000))
    assert np.var(found, axis=0) == pytest.approx(variances, rel=0.16)
    production = BitFlip(100, 4, bits, tuple((people / 100).tolist())).production(identity(4), REPLACE_ONE)
    assert production.query_variances("identity", 2.0) == pytest.approx(variances, rel=1e-8)


def test_levels_are_asked_about_evenly() -> None:
    assigned = BitFlipSurvey(1, 5, 3).assigned(20_000, simulated_words(np.random.default_rng(4)))
    assert all(len(set(row)) == 3 for row in assigned[:100].tolist())
    pairs = np.unique(np.sort(assigned, axis=1), axis=0, return_counts=True)[1]
    assert len(pairs) == 10
    assert np.abs(pairs - 2_000).max() < 5 * math.sqrt(2_000)


def test_all_bits_err_like_even_unary_encoding() -> None:
    """[WBLJ17] has N·e^{ε/2}/(e^{ε/2} − 1)² for symmetric unary encoding, basic RAPPOR."""
    rare = (1.0, *(0.0,) * 19)
    symmetric = BitFlip(1_000, 20, 20, rare).production(identity(20)).query_variances("identity", 1.5)[-1]
    assert symmetric == pytest.approx(1_000 * math.exp(0.75) / math.expm1(0.75) ** 2)
    optimized = UnaryEncoding(1_000, 20, rare).production(identity(20)).query_variances("identity", 1.5)[-1]
    assert optimized < symmetric


def test_a_loss_too_small_for_any_signal_has_the_widest_interval() -> None:
    assert BitFlipSurvey(Fraction(1, 10**4), 4, 2).interval(12.0, 100) == (0.0, 100.0)


def test_what_is_refused() -> None:
    for levels, bits in ((1, 1), (4, 0), (4, 5)):
        with pytest.raises(InvalidMechanism, match=f"{bits} bits about {levels} levels"):
            BitFlipSurvey(1, levels, bits)
    with pytest.raises(InvalidMechanism, match="5 bits about 4 levels"):
        BitFlip(10, 4, 5)
    with pytest.raises(InvalidLoss):
        BitFlipSurvey("none", 4, 2)
