"""What is measured, with which noise, and what the answers take of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.measured import direct, optimized, query_rows

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, LAPLACE, Measurement, TableRows, optimize_strategy
from dualmandate.mechanism.strategy.strategy import NoiseName
from dualmandate.mechanism.technologies import drawn_law
from dualmandate.population import Attribute, Domain, Invariant, Neighbors, PrivacyMeasure, Protection
from dualmandate.workload import Tabulation, Workload

DOMAIN = Domain(
    (Attribute("age", ("0-17", "18-64", "65+")), Attribute("sex", ("f", "m")), Attribute("works", ("n", "y")))
)
PLAIN = Protection()
FIXED = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("by sex", ("sex",)),))
COUNTS = np.arange(12, dtype=np.int64).reshape(3, 2, 2) * 3 % 17


def workload() -> Workload:
    return Workload.from_tabulations(
        DOMAIN,
        [
            Tabulation.of("age by sex", ("age", "sex")),
            Tabulation.of("at work", ("works",), weights={"age": {"0-17": "0.5", "18-64": "1"}}),
            Tabulation.of("all"),
        ],
    )


def made_of(kind: str, privacy_measure: PrivacyMeasure, protection: Protection = PLAIN) -> Measurement:
    noise: NoiseName = "laplace" if privacy_measure is PrivacyMeasure.PURE_DP else "gaussian"
    if kind == "strategy":
        return optimized(optimize_strategy(workload(), noise, protection=protection).exact, protection)
    return direct(workload(), protection, privacy_measure, every_cell=kind == "cells")


KINDS = pytest.mark.parametrize("kind", ["strategy", "tables", "cells"])
CURRENCIES = pytest.mark.parametrize("privacy_measure", list(PrivacyMeasure))


@KINDS
@CURRENCIES
@pytest.mark.parametrize("protection", [PLAIN, FIXED])
def test_the_noise_of_all_rows_together_loses_at_most_the_loss_and_for_some_record_all_of_it(
    kind: str, privacy_measure: PrivacyMeasure, protection: Protection
) -> None:
    made, loss = made_of(kind, privacy_measure, protection), Fraction(7, 5)
    noises, kinds = made.noises(loss), made.rows.kinds()
    losses = [
        1 / noise.parameter if privacy_measure is PrivacyMeasure.PURE_DP else 1 / (2 * noise.parameter)
        for noise in noises
    ]
    power = 1 if privacy_measure is PrivacyMeasure.PURE_DP else 2
    largest = Fraction(0)
    cells = list(np.ndindex(*DOMAIN.shape))
    nothing = made.rows.count(np.zeros(DOMAIN.shape, dtype=np.int64))
    rows = {}
    for cell in cells:
        one = np.zeros(DOMAIN.shape, dtype=np.int64)
        one[cell] = 1
        rows[cell] = made.rows.count(one) - nothing
    moves = (
        [(rows[cell], np.zeros_like(nothing)) for cell in cells]
        if protection is PLAIN
        else [(rows[a], rows[b]) for a in cells for b in cells if a[1] == b[1]]
    )
    for here, there in moves:
        spent = sum((losses[k] * abs(int(d)) ** power for k, d in zip(kinds, here - there, strict=True)), Fraction(0))
        largest = max(largest, spent)
    assert largest <= loss
    if kind != "strategy" or protection is PLAIN:
        assert largest == loss


@KINDS
@CURRENCIES
def test_without_noise_the_answers_are_the_tables(kind: str, privacy_measure: PrivacyMeasure) -> None:
    made = made_of(kind, privacy_measure)
    assert made.rows.answers(made.rows.count(COUNTS), None) == pytest.approx(workload().answers(COUNTS), abs=1e-9)


@KINDS
@CURRENCIES
def test_variances_are_those_of_the_rows_that_an_answer_takes(kind: str, privacy_measure: PrivacyMeasure) -> None:
    made, loss = made_of(kind, privacy_measure), Fraction(1, 3)
    spread = np.array([noise.distribution().variance for noise in made.noises(loss)])[made.rows.kinds()]
    for table in workload().tables:
        taken = query_rows(made.rows, table.name, list(range(table.query_count)))
        assert taken**2 @ spread == pytest.approx(made.query_variances(table.name, loss), rel=1e-9)
    noise = np.arange(made.rows.size, dtype=np.int64) % 5 - 2
    start = 0
    counted = made.rows.count(COUNTS)
    answers = made.rows.answers(counted + noise, None) - made.rows.answers(counted, None)
    for table in workload().tables:
        taken = query_rows(made.rows, table.name, list(range(table.query_count)))
        assert taken @ noise == pytest.approx(answers[start : start + table.query_count], abs=1e-9)
        start += table.query_count


def test_weighted_tables_are_counted_in_whole_numbers() -> None:
    made = made_of("tables", PrivacyMeasure.PURE_DP)
    counted = made.rows.count(COUNTS)
    assert counted.dtype == np.int64
    assert sorted({noise.parameter for noise in made.noises(Fraction(1))}) == [Fraction(3), Fraction(6)]


def test_a_law_that_is_not_drawn_exactly_is_a_study() -> None:
    study = Measurement(TableRows(workload()), LAPLACE, PLAIN)
    assert study.expected_squared_error(1.0) > made_of("tables", PrivacyMeasure.PURE_DP).expected_squared_error(1.0)
    with pytest.raises(InvalidMechanism, match="laplace noise cannot be published"):
        study.noises(Fraction(1))
    with pytest.raises(InvalidMechanism, match="staircase noise cannot be published"):
        drawn_law("staircase")
    assert (drawn_law("gaussian"), drawn_law("laplace")) == (GAUSSIAN, GEOMETRIC)  # plans of Laplace noise are old


@KINDS
@CURRENCIES
def test_the_errors_of_a_plan_are_those_of_the_exact_noise(kind: str, privacy_measure: PrivacyMeasure) -> None:
    made, loss = made_of(kind, privacy_measure), Fraction(7, 5)
    planned = made.table_errors(float(loss))
    for table in workload().tables:
        exact = made.query_variances(table.name, loss)
        assert exact == pytest.approx(made.query_variances(table.name, float(loss)), rel=1e-12)
        assert planned[table.name] == pytest.approx(exact.sum(), rel=1e-9)


def test_sums_with_a_common_divisor_are_priced_by_the_noise_that_is_drawn() -> None:
    """Hours worked of 0, 20 or 40, on a grid of 1: each sum gets noise of scale Δ/ε = 40/ε, on whole hours."""
    domain = Domain((Attribute.numbers("hours", 0, 40, 1),))
    full = Tabulation.of("hours", where={"hours": ("20", "40")}, sum_of="hours")
    made = direct(Workload.from_tabulations(domain, [full]), PLAIN, PrivacyMeasure.PURE_DP)
    [noise] = made.noises(Fraction(4))
    assert noise.parameter == 10
    assert made.table_errors(4.0)["hours"] == pytest.approx(noise.distribution().variance)
