"""The economic census: when publishing what is used dominates, what bounds leave out, and what suppression hides."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.gallery.national_accounts_figures import SECTORS, plans

from dualmandate.errors import InvalidValue
from dualmandate.gallery.national_accounts import (
    ACCOUNTS,
    DETAIL,
    AccountError,
    dominates,
    errors_of_accounts,
    establishments,
    suppressed,
    totals_within_bound,
)
from dualmandate.planning.plan import Plan


@pytest.fixture(scope="module")
def planned() -> dict[str, Plan]:
    return plans()


def bound(plan: Plan) -> float:
    (curve,) = plan.extensions.clipping
    return float(curve.bound)


def test_the_choices(planned: dict[str, Plan]) -> None:
    assert {name: round(plan.choice.epsilon, 3) for name, plan in planned.items()} == {
        "program": 2.525,
        "detail": 1.09,
        "both": 4.557,
    }
    assert {plan.choice.bound_by for plan in planned.values()} == {"preferences"}
    assert (bound(planned["detail"]), bound(planned["program"])) == (6_493, 73_543)


def test_what_is_published_at_the_level_of_use_dominates_for_its_readers_from_one_epsilon_on(
    planned: dict[str, Plan],
) -> None:
    for epsilon in (1.0, 2.0, 4.0, 8.0):
        used, cells, both = (errors_of_accounts(planned[name], epsilon) for name in ("program", "detail", "both"))
        assert dominates(used, cells, ACCOUNTS)
        assert dominates(used, both, ACCOUNTS)
        assert not dominates(cells, used, ACCOUNTS)
        everybody = {**ACCOUNTS, DETAIL: ()}
        assert not dominates(used, cells, everybody)  # who needs cells gets nothing
        assert not dominates(both, cells, everybody)
        assert not dominates(cells, both, everybody)
    used, cells = (errors_of_accounts(planned[name], 0.5) for name in ("program", "detail"))
    assert not dominates(used, cells, ACCOUNTS)  # the bound of cells is low, and noise decides at small losses
    assert not dominates(cells, used, ACCOUNTS)


def test_errors_of_sums_by_hand(planned: dict[str, Plan]) -> None:
    """A sector adds 192 cells: √192 times the noise of one; and what each of its establishments has above the bound."""
    errors = errors_of_accounts(planned["detail"], 1.0)
    assert errors[SECTORS].noise == pytest.approx(math.sqrt(192) * errors[DETAIL].noise)
    assert errors[DETAIL].noise == pytest.approx(math.sqrt(2) * 6_493, rel=1e-3)  # √2·Δ/ε
    rows, payroll = establishments()
    lost = np.bincount(rows[0] // 4, np.maximum(payroll - 6_493, 0))
    assert errors[SECTORS].left_out == pytest.approx(math.sqrt(np.square(lost).mean()))
    assert errors[SECTORS].both > 0.2 * payroll.sum() / 8


def test_a_plan_foresees_what_clipping_leaves_out(planned: dict[str, Plan]) -> None:
    """By the law that it states, of a census that was drawn once: 131 against 116 million USD of a sector."""
    plan = planned["program"]
    found = errors_of_accounts(plan, plan.choice.epsilon)
    for table in plan.tables:
        assert table.bias == pytest.approx(found[table.table].left_out, rel=0.5)
        assert table.root_mean_squared_error == pytest.approx(found[table.table].noise, rel=1e-3)


def test_bounds_and_shares() -> None:
    _, payroll = establishments()
    assert totals_within_bound(float(payroll.max())).tolist() == [1.0] * 8
    assert totals_within_bound(6_493).mean() == pytest.approx(0.785, abs=0.01)
    assert (payroll.size, int(payroll.sum())) == (40_000, 43_536_287)


def test_the_status_quo_hides_more_than_a_quarter_and_is_told_still() -> None:
    found = suppressed()
    assert (found.cells, found.sensitive, found.told_alone) == (1_536, 204, 192)
    assert found.hidden == pytest.approx(974, rel=0.05)
    assert 0.25 < found.share_of_payroll < 0.35
    assert 0 < found.told < 0.05 * found.sensitive
    assert found.exact > 100


def test_dominance_by_hand() -> None:
    one = {"a": AccountError(3.0, 4.0), "b": AccountError(1.0, 0.0)}
    other = {"a": AccountError(5.0, 0.0), "b": AccountError(2.0, 0.0)}
    assert one["a"].both == 5
    assert dominates(one, other, {"a": (), "b": ()})
    assert not dominates(other, one, {"a": (), "b": ()})
    assert not dominates(one, other, {"a": ()})  # as good, and not better
    assert dominates(one, {}, {"a": ()})
    with pytest.raises(InvalidValue, match="neither way publishes 'c'"):
        dominates(one, other, {"c": ()})
