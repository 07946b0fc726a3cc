"""An order: what is public beside it, and what it may not lose."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.measured import direct
from tests.mechanism.test_measurement import COUNTS, DOMAIN, FIXED, PLAIN, made_of, workload

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism import Measurement
from dualmandate.population import PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.publication.release_spec import Group, ReleaseSpec, known_histogram
from dualmandate.publication.rules import Rules


def order_with(protection: Protection, made: Measurement) -> ReleaseSpec:
    group = Group("all", made, Fraction(1))
    return ReleaseSpec("0" * 64, "p", "people", PrivacyLoss.pure(1), DOMAIN, protection, Rules(), (group,), {})


def test_public_totals_are_kept_and_nothing_else_of_the_data_is_used() -> None:
    made = made_of("strategy", PrivacyMeasure.ZCDP, FIXED)
    order = order_with(FIXED, made)
    assert order.public is not None
    totals = order.public.answers(COUNTS)
    known = known_histogram(order, totals)
    assert order.public.answers(known) == pytest.approx(totals, abs=1e-9)
    answers = made.rows.answers(made.rows.count(COUNTS), known)
    assert answers == pytest.approx(workload().answers(COUNTS), abs=1e-8)
    noisy = made.rows.answers(made.rows.count(COUNTS) + 1, known)[:6].reshape(3, 2)
    assert noisy.sum(axis=0) == pytest.approx(COUNTS.sum(axis=(0, 2)), abs=1e-8)


def test_add_or_remove_has_no_public_totals() -> None:
    assert order_with(PLAIN, made_of("tables", PrivacyMeasure.PURE_DP)).public is None


def test_an_order_that_would_lose_more_than_was_approved_is_refused() -> None:
    tables = [workload().only([name]) for name in ("age by sex", "all")]
    made = [direct(each, PLAIN, PrivacyMeasure.PURE_DP) for each in tables]
    groups = tuple(Group(each.tables[0].name, one, Fraction(2, 3)) for each, one in zip(tables, made, strict=True))
    order = ReleaseSpec("0" * 64, "p", "people", PrivacyLoss.pure(1), DOMAIN, PLAIN, Rules(), groups, {})
    with pytest.raises(InvalidMechanism, match="4/3"):
        order.check()
