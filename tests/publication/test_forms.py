"""What is measured, with which noise, and what the answers take of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism import optimize_strategy
from dualmandate.mechanism.strategy.strategy import Noise as StrategyNoise
from dualmandate.population import Attribute, Currency, Domain, Invariant, Neighbors, PrivacyLoss, Protection
from dualmandate.publication.forms import DirectForm, Form, StrategyForm, currency_of
from dualmandate.publication.order import Group, Order, known_histogram
from dualmandate.publication.rules import Rules
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


def form_of(kind: str, currency: Currency, protection: Protection = PLAIN) -> Form:
    noise: StrategyNoise = "laplace" if currency is Currency.EPSILON else "gaussian"
    if kind == "strategy":
        return StrategyForm(optimize_strategy(workload(), noise, protection=protection).exact, protection)
    return DirectForm(workload(), protection, currency, every_cell=kind == "cells")


KINDS = pytest.mark.parametrize("kind", ["strategy", "tables", "cells"])
CURRENCIES = pytest.mark.parametrize("currency", list(Currency))


@KINDS
@CURRENCIES
@pytest.mark.parametrize("protection", [PLAIN, FIXED])
def test_the_noise_of_all_rows_together_loses_at_most_the_loss_and_for_some_record_all_of_it(
    kind: str, currency: Currency, protection: Protection
) -> None:
    form, loss = form_of(kind, currency, protection), Fraction(7, 5)
    noises, kinds = form.noises(loss), form.kinds()
    losses = [1 / noise.parameter if currency is Currency.EPSILON else 1 / (2 * noise.parameter) for noise in noises]
    power = 1 if currency is Currency.EPSILON else 2
    largest = Fraction(0)
    cells = list(np.ndindex(*DOMAIN.shape))
    nothing = form.count(np.zeros(DOMAIN.shape, dtype=np.int64))
    rows = {}
    for cell in cells:
        one = np.zeros(DOMAIN.shape, dtype=np.int64)
        one[cell] = 1
        rows[cell] = form.count(one) - nothing
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
def test_without_noise_the_answers_are_the_tables(kind: str, currency: Currency) -> None:
    form = form_of(kind, currency)
    assert form.answers(form.count(COUNTS), None) == pytest.approx(workload().answers(COUNTS), abs=1e-9)


@KINDS
@CURRENCIES
def test_variances_are_those_of_the_rows_that_an_answer_takes(kind: str, currency: Currency) -> None:
    form, loss = form_of(kind, currency), Fraction(1, 3)
    spread = np.array([noise.distribution().variance for noise in form.noises(loss)])[form.kinds()]
    for table in workload().tables:
        taken = form.query_rows(table.name, list(range(table.query_count)))
        assert taken**2 @ spread == pytest.approx(form.variances(table.name, loss), rel=1e-9)
    noise = np.arange(form.rows, dtype=np.int64) % 5 - 2
    start = 0
    answers = form.answers(form.count(COUNTS) + noise, None) - form.answers(form.count(COUNTS), None)
    for table in workload().tables:
        taken = form.query_rows(table.name, list(range(table.query_count)))
        assert taken @ noise == pytest.approx(answers[start : start + table.query_count], abs=1e-9)
        start += table.query_count


def test_weighted_tables_are_counted_in_whole_numbers() -> None:
    form = form_of("tables", Currency.EPSILON)
    counted = form.count(COUNTS)
    assert counted.dtype == np.int64
    assert sorted({noise.parameter for noise in form.noises(Fraction(1))}) == [Fraction(3), Fraction(6)]


def order_with(protection: Protection, form: Form) -> Order:
    group = Group("all", form, Fraction(1))
    return Order("0" * 64, "p", "people", PrivacyLoss.pure(1), DOMAIN, protection, Rules(), (group,), {})


def test_public_totals_are_kept_and_nothing_else_of_the_data_is_used() -> None:
    form = form_of("strategy", Currency.RHO, FIXED)
    order = order_with(FIXED, form)
    assert order.public is not None
    totals = order.public.answers(COUNTS)
    known = known_histogram(order, totals)
    assert order.public.answers(known) == pytest.approx(totals, abs=1e-9)
    answers = form.answers(form.count(COUNTS), known)
    assert answers == pytest.approx(workload().answers(COUNTS), abs=1e-8)
    noisy = form.answers(form.count(COUNTS) + 1, known)[:6].reshape(3, 2)
    assert noisy.sum(axis=0) == pytest.approx(COUNTS.sum(axis=(0, 2)), abs=1e-8)


def test_add_or_remove_has_no_public_totals() -> None:
    assert order_with(PLAIN, form_of("tables", Currency.EPSILON)).public is None


def test_an_order_that_would_lose_more_than_was_approved_is_refused() -> None:
    tables = [workload().only([name]) for name in ("age by sex", "all")]
    forms = [DirectForm(each, PLAIN, Currency.EPSILON) for each in tables]
    groups = tuple(Group(each.tables[0].name, form, Fraction(2, 3)) for each, form in zip(tables, forms, strict=True))
    order = Order("0" * 64, "p", "people", PrivacyLoss.pure(1), DOMAIN, PLAIN, Rules(), groups, {})
    with pytest.raises(InvalidMechanism, match="4/3"):
        order.check()


@pytest.mark.parametrize("noise", ["staircase", "k-norm"])
def test_noise_without_an_exact_sampler_is_not_published(noise: str) -> None:
    assert currency_of("gaussian") is Currency.RHO
    with pytest.raises(InvalidMechanism, match=f"{noise} noise cannot be published"):
        currency_of(noise)
