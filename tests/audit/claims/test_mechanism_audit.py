"""Any mechanism as a black box: honest ones pass, and each planted fault is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dualmandate.audit.claims.checks import audit_mechanism, meaning
from dualmandate.audit.finding import Finding, Range, Rate
from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC
from dualmandate.population import PrivacyLoss

DRAWS = 4_000
Generator = np.random.Generator


def audited(mechanism: Callable[[Any, Generator], Any], claimed: PrivacyLoss | None = None, other: Any = 1) -> Any:
    bits, loss, repeats = audit_mechanism(
        mechanism, 0, other, claimed=claimed or PrivacyLoss.pure(1), name="noise", draws=DRAWS
    )
    assert isinstance(bits.success, Rate)
    assert isinstance(loss.success, Range)
    assert {finding.reference for finding in (bits, loss, repeats)} == {"draws"}
    return bits.success.successes > 0, loss, "NOISE REPEATS" in repeats.claim


def geometric(epsilon: float) -> Callable[[int, Generator], int]:
    law = GEOMETRIC.at(epsilon)
    return lambda data, generator: data + int(law.draw(generator, 1)[0])


def above(loss: Finding) -> bool:
    assert isinstance(loss.success, Range)
    allowed = loss.baselines[0].success
    assert isinstance(allowed, Range)
    assert ("ABOVE" in loss.claim) == (loss.success.least > allowed.largest)
    return "ABOVE" in loss.claim


def test_honest_noise_passes() -> None:
    bits, loss, repeats = audited(geometric(1.0))
    assert not bits
    assert not repeats
    assert not above(loss)
    assert 0.6 < loss.success.least <= 1.0
    law = GAUSSIAN.at(0.125)
    bits, loss, repeats = audited(
        lambda data, generator: [data + int(law.draw(generator, 1)[0]), 5], PrivacyLoss.concentrated("1/8")
    )
    assert (bits, repeats, above(loss)) == (False, False, False)


def test_half_of_the_noise_is_found_out() -> None:
    _, loss, _ = audited(geometric(2.0))
    assert above(loss)


def test_floating_point_noise_is_found_out_by_its_last_digits() -> None:
    bits, loss, repeats = audited(lambda data, generator: data + generator.laplace(0, 1))
    assert bits
    assert above(loss)  # not by its values: they keep the claim
    assert loss.success.least > 3
    assert not repeats


def test_noise_that_repeats() -> None:
    fixed = audited(lambda data, _: data + int(GEOMETRIC.at(1.0).draw(np.random.default_rng(3), 1)[0]))
    assert fixed[2]

    def seeds() -> Iterator[int]:
        number = 0
        while True:
            yield number // 2  # the same seed for both data sets
            number += 1

    number = seeds()
    law = GEOMETRIC.at(0.2)
    paired = audited(lambda data, _: data + int(law.draw(np.random.default_rng(next(number)), 1)[0]))
    assert paired[2]
    assert not above(paired[1])  # one by one its draws are honest


def test_claims_as_epsilon_and_probability() -> None:
    assert meaning(PrivacyLoss.pure(2)) == (2.0, 0.0)
    assert meaning(PrivacyLoss.reported(1.5, "1e-5")) == (1.5, 1e-5)
    epsilon, delta = meaning(PrivacyLoss.concentrated("1/2"))
    assert delta == 1e-6
    assert 4.5 < epsilon < 5.8  # ρ + 2√(ρ·ln 10⁶) at most


def test_what_cannot_be_audited() -> None:
    with pytest.raises(InvalidRequest, match="draws"):
        audit_mechanism(geometric(1), 0, 1, claimed=PrivacyLoss.pure(1), draws=10)
    with pytest.raises(InvalidRequest, match="numbers"):
        audited(lambda data, _: "word" if data else "other")
    with pytest.raises(InvalidRequest, match="equally many"):
        audited(lambda data, _: np.zeros(1 + data))
