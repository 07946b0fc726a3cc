"""Noise straight on the answers: sensitivities, weights, refusals and sizes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dualmandate.errors import InvalidLoss, InvalidMechanism, UnknownName
from dualmandate.mechanism import GEOMETRIC, NOISE_LAWS, gaussian, geometric, laplace, mechanism_named, staircase
from dualmandate.population import Attribute, Domain, Invariant, Neighbors, Protection
from dualmandate.workload import Tabulation, Workload, identity, prefix, stack, total

REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)
NAMES = tuple(NOISE_LAWS)


def districts(count: int) -> Workload:
    domain = Domain(
        (
            Attribute.categories("district", [str(i) for i in range(count)]),
            Attribute.categories("eligible", ["no", "yes"]),
        )
    )
    table = Tabulation("eligible children by district", by=("district",), where=(("eligible", ("yes",)),))
    return Workload.from_tabulations(domain, [table])


def test_title_i() -> None:
    production = laplace().production(districts(13_000))
    assert production.expected_squared_error(2.527644) == pytest.approx(4_069.506, abs=0.01)
    assert -sum(production.table_slopes(2.527644).values()) == pytest.approx(3_220, abs=0.01)
    assert production.error_coefficient == 13_000
    counts = geometric().production(districts(13_000))
    assert math.sqrt(counts.expected_squared_error(2.444299) / 13_000) == pytest.approx(0.456216, abs=5e-7)
    replaced = laplace().production(districts(13_000), REPLACE_ONE)
    assert replaced.sensitivity.power == 2
    assert replaced.expected_squared_error(2.0) == pytest.approx(13_000 * 2, rel=1e-12)


def test_the_papers_formula() -> None:
    """I = −2k(ΔQ)²/ε² for k queries of sensitivity ΔQ; prefix sums of 8 cells have ΔQ = 8."""
    production = laplace().production(prefix(8))
    assert production.sensitivity.power == 8
    assert production.expected_squared_error(0.5) == pytest.approx(2 * 8 * 8**2 / 0.5**2)
    assert production.unit_loss(0.5) == 0.5 / 8
    assert [noise.unit_loss for noise in geometric().production(prefix(8)).noises(Fraction(1, 3))] == [Fraction(1, 24)]


def test_concentrated_noise_uses_squared_lengths() -> None:
    production = gaussian().production(prefix(8))
    assert production.sensitivity.norm == "l2"
    assert production.sensitivity.power == 8
    assert production.expected_squared_error(0.5) == pytest.approx(8 * 8 / (2 * 0.5), rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_weights_stretch_noise_and_sensitivity_together(name: str) -> None:
    """One table times a weight is the same table in another unit: same loss, errors times the weight."""
    weight = Fraction(2, 5)
    plain = mechanism_named(name).production(prefix(4))
    scaled = mechanism_named(name).production(stack(prefix(4), weights=[weight]))
    power = 2 if name == "gaussian" else 1
    assert scaled.sensitivity.power == weight**power * plain.sensitivity.power
    for loss in (0.3, 2.0):
        ratio = float(weight) ** 2 * plain.expected_squared_error(loss)
        assert scaled.expected_squared_error(loss) == pytest.approx(ratio, rel=1e-12)
        widths = float(weight) * plain.half_width("prefix", loss, 0.9)
        assert scaled.half_width("prefix", loss, 0.9) == pytest.approx(widths, rel=1e-12)


def test_each_table_has_the_lattice_of_its_weight() -> None:
    production = geometric().production(stack(identity(3), total(3), weights=[Fraction(1, 2), Fraction(3)]))
    assert production.rows.steps == (Fraction(1, 2), Fraction(3))
    unit = production.unit_loss(1.4)
    assert unit == pytest.approx(1.4 / 3.5)
    assert production.query_variances("identity", 1.4) == pytest.approx(GEOMETRIC.variance(unit / 2) / 4)
    assert production.query_variances("total", 1.4) == pytest.approx(GEOMETRIC.variance(unit * 3) * 9)
    assert production.table_errors(1.4)["identity"] == pytest.approx(3 * GEOMETRIC.variance(unit / 2) / 4)


def test_whole_number_noise_is_never_worse_than_laplace() -> None:
    workload = stack(identity(3), prefix(3), weights=[Fraction(1, 2), Fraction(3)])
    for loss in (0.1, 1.0, 5.0):
        errors = [m.production(workload).expected_squared_error(loss) for m in (geometric(), staircase(), laplace())]
        assert errors == sorted(errors)


def test_decided_answers_are_refused() -> None:
    workload = districts(4)
    exact = Protection(
        neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("children", by=("district", "eligible")),)
    )
    with pytest.raises(InvalidMechanism, match="no protected person can change"):
        laplace().production(workload, exact)


def test_the_public_number_of_records_needs_no_noise() -> None:
    with pytest.raises(InvalidMechanism, match="no protected person can change"):
        geometric().production(total(5), REPLACE_ONE)


def test_ten_million_queries_cost_nothing() -> None:
    production = geometric().production(identity(10**7))
    assert production.table_errors(1.0)["identity"] == pytest.approx(10**7 * GEOMETRIC.variance(1.0))
    assert production.rows.answered["identity"].variances(float).strides == (0,)
    assert production.query_variances("identity", 1.0).strides == (0,)
    assert production.half_width("identity", 1.0, 0.95).strides == (0,)
    # All ten million within ±19 at ε = 1: (1 − 2a²⁰/(1 + a))^(10⁷) ≥ 0.95.
    width = production.simultaneous_half_width("identity", 1.0, 0.95)[0]
    miss = [2 * math.exp(-(t + 1)) / (1 + math.exp(-1)) for t in (width, width - 1)]
    assert (1 - miss[0]) ** 1e7 >= 0.95 > (1 - miss[1]) ** 1e7


def test_unknown_tables_and_noise_are_refused() -> None:
    with pytest.raises(UnknownName, match="not a table of this workload"):
        laplace().production(identity(2)).query_variances("prefix", 1.0)
    with pytest.raises(UnknownName, match="not a kind of noise") as refusal:
        mechanism_named("laplas")
    assert "laplace" in refusal.value.instead
    with pytest.raises(InvalidLoss):
        laplace().production(identity(2)).expected_squared_error(0.0)


@pytest.mark.parametrize("name", ["laplace", "staircase"])
def test_a_study_has_no_exact_noise(name: str) -> None:
    with pytest.raises(InvalidMechanism, match=f"{name} noise cannot be published"):
        mechanism_named(name).production(identity(2)).noises(Fraction(1))


def test_the_registry() -> None:
    made = {mechanism.name: mechanism for mechanism in (laplace(), geometric(), gaussian(), staircase())}
    assert set(made) == set(NAMES)
    for name, mechanism in made.items():
        assert mechanism_named(name) == mechanism
        assert mechanism.privacy_measure is NOISE_LAWS[name].privacy_measure


def test_a_bound_on_the_sensitivity_says_so() -> None:
    """Where the sensitivity is only a bound, noise is set by it, so the loss is at most the one stated."""
    production = laplace().production(prefix(3))
    assert production.sensitivity.exact
    assert np.all(production.query_variances("prefix", 1.0) == 18.0)
