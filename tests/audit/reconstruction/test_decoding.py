"""Bits from noisy sums: least squares and the linear program, beside theory; thousands of people in seconds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.audit.reconstruction import noisy
from dualmandate.audit.reconstruction.noisy import decode
from dualmandate.errors import InvalidRequest, TooLarge


def asked(
    persons: int, sums: int, epsilon: float, seed: int = 8
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    secret = generator.random(persons) < 0.5
    groups = generator.random((sums, persons)) < 0.5
    return secret, groups, groups.astype(int) @ secret.astype(int) + generator.laplace(0, 1 / epsilon, sums)


@pytest.mark.parametrize(("epsilon", "program"), [(0.5, False), (0.1, False), (0.02, False), (0.5, True)])
def test_bits_from_noisy_sums(epsilon: float, program: bool) -> None:
    secret, groups, answers = asked(*((60, 240) if program else (300, 1200)), epsilon)
    found = decode(groups, answers, deviation=math.sqrt(2) / epsilon, program=program)
    right = float(np.mean(found.bits == secret))
    assert right >= found.expected - 0.08  # bounds only help
    if epsilon == 0.5:
        assert right > 0.95
    if epsilon == 0.02:
        assert right < 0.75


@pytest.mark.parametrize("epsilon", [0.5, 0.1])
def test_steps_end_where_a_solver_of_linear_programs_does(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, groups, answers = asked(120, 480, epsilon)
    deviation = math.sqrt(2) / epsilon
    solved = decode(groups, answers, deviation=deviation, program=True)
    monkeypatch.setattr(noisy, "MOST_BY_SOLVER", 0)
    stepped = decode(groups, answers, deviation=deviation, program=True)
    assert np.mean(solved.bits == stepped.bits) > 0.94
    assert np.mean(stepped.bits == secret) >= np.mean(solved.bits == secret) - 0.03
    assert stepped.expected == pytest.approx(solved.expected, abs=1e-3)


def test_long_tails_favor_the_linear_program() -> None:
    right = {False: 0.0, True: 0.0}
    for seed in range(3):
        secret, groups, answers = asked(600, 2400, 0.12, seed)
        for program in right:
            found = decode(groups, answers, deviation=math.sqrt(2) / 0.12, program=program)
            right[program] += float(np.mean(found.bits == secret))
    assert right[True] > right[False]


def test_theory_of_least_squares() -> None:
    generator = np.random.default_rng(9)
    groups = generator.random((800, 200)) < 0.5
    gram = groups.T.astype(float) @ groups
    exact = math.sqrt(float(np.trace(np.linalg.inv(gram))) / 200) * 3.0
    expected = 0.5 * (1 + math.erf(0.5 / exact / math.sqrt(2)))
    assert decode(groups, np.zeros(800), deviation=3.0).expected == pytest.approx(expected, abs=0.01)
    assert decode(groups[:50], np.zeros(50), deviation=3.0).expected == 0.5
    assert decode(groups, np.zeros(800), deviation=0.0).expected == 1.0


def test_sums_that_cannot_be_decoded() -> None:
    with pytest.raises(InvalidRequest):
        decode(np.ones((3, 2), dtype=np.bool_), np.ones(2), deviation=1.0)
    for program in (False, True):
        with pytest.raises(TooLarge, match="persons"):
            decode(np.ones((1, 6000), dtype=np.bool_), np.ones(1), deviation=1.0, program=program)
