"""Whole-number noise on weighted tables: the loss is exact, and fine lattices tend to continuous noise."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, LAPLACE, STAIRCASE, NoiseLaw
from dualmandate.mechanism.mechanism import LatticeLaw, on_lattice

weights = st.fractions(min_value=Fraction(1, 20), max_value=5, max_denominator=40)


def test_a_law_that_serves_any_answer_stays_as_it_is() -> None:
    assert on_lattice(LAPLACE, Fraction(1, 3)) is LAPLACE
    assert on_lattice(GEOMETRIC, Fraction(1)) is GEOMETRIC
    assert on_lattice(GEOMETRIC, Fraction(1, 3)) == LatticeLaw(GEOMETRIC, Fraction(1, 3))


@given(weight=weights, unit=st.floats(0.05, 5), steps=st.integers(1, 6), place=st.integers(-20, 20))
@settings(max_examples=80, deadline=None)
def test_moving_a_weighted_answer_costs_what_its_sensitivity_says(
    weight: Fraction, unit: float, steps: int, place: int
) -> None:
    moved = float(weight) * steps
    noise = LatticeLaw(GEOMETRIC, weight).at(unit)
    here = float(weight) * place
    assert abs(noise.log_likelihood(here) - noise.log_likelihood(here - moved)) <= unit * moved * (1 + 1e-9)
    assert noise.log_likelihood(0.0) - noise.log_likelihood(moved) == pytest.approx(unit * moved, rel=1e-9)
    gaussian = LatticeLaw(GAUSSIAN, weight).at(unit)
    assert gaussian.log_likelihood(0.0) - gaussian.log_likelihood(moved) == pytest.approx(unit * moved**2, rel=1e-9)


@pytest.mark.parametrize("unit", [0.2, 1.0, 4.0])
@pytest.mark.parametrize(("law", "limit"), [(GEOMETRIC, LAPLACE), (STAIRCASE, LAPLACE)])
def test_a_finer_lattice_tends_to_laplace_from_below(law: NoiseLaw, limit: NoiseLaw, unit: float) -> None:
    variances = [LatticeLaw(law, Fraction(1, q)).variance(unit) for q in (1, 2, 8, 64)]
    assert variances == sorted(variances)
    assert variances[-1] < limit.variance(unit)
    assert variances[-1] == pytest.approx(limit.variance(unit), rel=1e-3)


def test_a_finer_lattice_tends_to_the_continuous_gaussian() -> None:
    assert LatticeLaw(GAUSSIAN, Fraction(1, 10)).variance(3.0) == pytest.approx(1 / 6, rel=1e-14)


def test_points_off_the_lattice_do_not_occur() -> None:
    noise = LatticeLaw(GEOMETRIC, Fraction(1, 3)).at(1.0)
    assert noise.log_likelihood(1 / 6) == -math.inf
    assert noise.log_likelihood(7 / 3) > -math.inf
    assert noise.log_likelihood(1 - 2 / 3 - 1 / 3) > -math.inf


def test_a_staircase_needs_whole_steps() -> None:
    """Why staircase noise, although real-valued, is used on a lattice: half a step can cost a whole one."""
    noise = STAIRCASE.at(1.0)
    edge = noise.high_share
    lost = noise.log_likelihood(edge - 0.25) - noise.log_likelihood(edge + 0.25)
    assert lost == pytest.approx(1.0)
