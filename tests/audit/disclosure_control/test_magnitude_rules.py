"""Tables of sums: by hand, who tells whom; by each rule, what is hidden, and that sums of sums do not bring it back."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dualmandate.audit.disclosure_control.magnitude_rules import (
    RULES,
    ContributorsAttack,
    SummedTables,
    counting_members,
    disclosed_contributors,
    hidden_sums,
)
from dualmandate.audit.disclosure_control.methods import PrimaryRule, dominated, few_contributors, told_by_second
from dualmandate.audit.finding import Rate
from dualmandate.population import Attribute, Domain
from dualmandate.workload import Tabulation, Workload

DOMAIN = Domain((Attribute.categories("trade", ["mill", "mine", "shop", "farm"]), Attribute.numbers("pay", 0, 100, 1)))
PAY = np.tile(np.arange(101), 4)


def tables(*by: tuple[str, ...]) -> Workload:
    made = [Tabulation(f"pay {number}", each, sum_of="pay") for number, each in enumerate(by)]
    return counting_members(Workload.from_tabulations(DOMAIN, made), 1)


def people(*trades: tuple[int, ...]) -> np.ndarray:
    counts = np.zeros((1, 4, 101), dtype=np.int64)
    for trade, pays in enumerate(trades):
        np.add.at(counts[0, trade], list(pays), 1)
    return counts.reshape(1, -1)


TOWN = people((100, 50, 5), (40, 40, 40), (90,), (60, 50, 40, 30, 0))


def summed(*by: tuple[str, ...]) -> SummedTables:
    return SummedTables("pay", tables(*by), PAY, TOWN, "pay in dollars")


def test_sums_and_contributions() -> None:
    target = summed(("trade",), ())
    assert target.sums.tolist() == [[155, 120, 90, 180, 545]]
    assert target.contributions(0, 0).tolist() == [100.0, 50.0, 5.0]
    assert target.contributions(0, 3).tolist() == [60.0, 50.0, 40.0, 30.0]  # nobody contributes nothing
    shown = disclosed_contributors(target, np.zeros((1, 5), dtype=np.bool_))
    # mill: 155 − 50 = 105, within 10 % of 100; mine: 80 of 40; shop: anybody sees 90; farm: 130 of 60
    assert shown.tolist() == [[True, False, True, False, False]]


@pytest.mark.parametrize(
    ("rule", "primary"),
    [
        (partial(few_contributors, least=3), [False, False, True, False, False]),
        (partial(dominated, contributors=2, share=0.85), [True, False, True, False, False]),
        (partial(told_by_second, share=0.10), [True, False, True, False, False]),
        (partial(told_by_second, share=0.04), [False, False, True, False, False]),
    ],
)
def test_rules_and_complements(rule: PrimaryRule, primary: list[bool]) -> None:
    target = summed(("trade",), ())
    found, hidden = hidden_sums(target, rule)
    assert found.tolist() == [primary]
    assert hidden.sum() >= 2  # beside one hidden trade the total would give it away
    exposed = disclosed_contributors(target, hidden)
    assert not (exposed & found).any()


def test_primary_alone_is_undone_by_the_total() -> None:
    target = summed(("trade",), ())
    primary, _ = hidden_sums(target, partial(few_contributors, least=3))
    assert disclosed_contributors(target, primary).tolist() == [[True, False, True, False, False]]
    alone = summed(("trade",))  # without a total nothing brings it back
    only, hidden = hidden_sums(alone, partial(few_contributors, least=3))
    assert np.array_equal(only, hidden)
    assert disclosed_contributors(alone, only).tolist() == [[True, False, False, False]]


def test_findings_have_their_baseline() -> None:
    found = ContributorsAttack().run(summed(("trade",), ()), b"k")
    assert len(found) == 1 + len(RULES)
    assert found[0].success == Rate(2, 5)
    assert all(finding.baselines for finding in found)
    assert all(finding.baselines[0].success == Rate(2, 5) for finding in found[1:])
    p_percent = found[-1]
    assert p_percent.success == Rate(0, 5)
    assert p_percent.interval() == (0.0, 0.0)  # all were counted
    assert "safe" not in p_percent.words()
    nobody = SummedTables("pay", tables(("trade",)), PAY, np.zeros_like(TOWN), "pay in dollars")
    assert ContributorsAttack().run(nobody, b"k") == ()
