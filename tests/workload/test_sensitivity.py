from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.population import Domain, Invariant, Neighbors, Protection
from dualmandate.population.invariants import steps
from dualmandate.workload import Norm, Workload

NORMS: tuple[Norm, ...] = ("l1", "l2")
REPLACE = Protection(neighbors=Neighbors.REPLACE_ONE)

AnyWorkload = Callable[..., st.SearchStrategy[Workload]]
AnyInvariant = Callable[[Domain], st.SearchStrategy[Invariant]]


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_add_or_remove_equals_brute_force(data: st.DataObject, any_workload: AnyWorkload, brute_force: Any) -> None:
    workload = data.draw(any_workload())
    for power, norm in enumerate(NORMS, start=1):
        found = workload.sensitivity(norm=norm)
        assert found.exact
        assert found.power == brute_force(workload).add_or_remove(power)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_replace_one_equals_brute_force(data: st.DataObject, any_workload: AnyWorkload, brute_force: Any) -> None:
    workload = data.draw(any_workload())
    for power, norm in enumerate(NORMS, start=1):
        found = workload.sensitivity(REPLACE, norm)
        assert found.exact
        assert found.power == brute_force(workload).replace_one(power)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_within_groups_equals_brute_force(
    data: st.DataObject, any_workload: AnyWorkload, any_invariant: AnyInvariant, brute_force: Any
) -> None:
    workload = data.draw(any_workload())
    totals = tuple(data.draw(st.lists(any_invariant(workload.domain), min_size=1, max_size=2, unique_by=lambda i: i.name)))
    protection = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=totals, records_changing_together=2)
    kept = steps(workload.domain, protection).kept
    for power, norm in enumerate(NORMS, start=1):
        found = workload.sensitivity(protection, norm)
        assert found.exact
        assert found.power == brute_force(workload).replace_one(power, kept)
