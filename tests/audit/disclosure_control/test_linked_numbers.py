"""Sums that tables have in common: all of them and nothing else, and complementary suppression through them."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.audit.disclosure_control import methods as linking
from dualmandate.audit.disclosure_control.methods import hidden_beside, linked_numbers
from dualmandate.audit.suppression.cells import LinkedTables, audit_suppression
from dualmandate.audit.tables import Equations
from dualmandate.population import Attribute, Domain
from dualmandate.workload import Tabulation, Workload, marginals, prefix, stack

DOMAIN = Domain(
    (
        Attribute.categories("sex", ["F", "M"]),
        Attribute.numbers("age", 0, 3),
        Attribute.categories("race", ["A", "B", "C"]),
    )
)


def tables(*tabulations: Tabulation) -> Workload:
    return Workload.from_tabulations(DOMAIN, tabulations)


@pytest.mark.parametrize(
    "workload",
    [
        marginals((2, 3), [0, 1]),
        marginals((2, 3, 4), 2),
        marginals((2, 2, 3), [0, 1, 2]),
        tables(Tabulation("one", ("sex", "age")), Tabulation("other", ("age", "race"))),
        tables(Tabulation("men", ("age",), where=(("sex", ("M",)),)), Tabulation("all", ("sex", "age"))),
    ],
)
def test_every_sum_in_common_is_found(workload: Workload) -> None:
    matrix, relations = workload.dense(), linked_numbers(workload)
    assert relations.size == workload.query_count
    found = relations.matrix.toarray()
    assert not (found @ matrix).any()  # true of whatever records
    rank = np.linalg.matrix_rank(matrix)
    assert np.linalg.matrix_rank(found) == workload.query_count - rank  # and nothing else is true of all records


def test_tables_that_share_no_sum_are_not_linked() -> None:
    apart = tables(
        Tabulation("women", ("age",), where=(("sex", ("F",)),)), Tabulation("men", ("age",), where=(("sex", ("M",)),))
    )
    assert linked_numbers(apart).rows == 0
    assert linked_numbers(stack(prefix(4), marginals((4,), 1))).rows == 0  # running totals overlap
    values = np.array([[1, 5, 0, 9, 2, 7, 8, 3]])
    primary = (values > 0) & (values < 3)
    assert np.array_equal(hidden_beside(linked_numbers(apart), values, primary, share=0.2), primary)


def test_large_attributes_that_differ_are_not_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = marginals((2, 3), [0, 1])
    monkeypatch.setattr(linking, "LARGEST_LINKED", 2)
    assert linked_numbers(workload).rows < 5


def test_nothing_that_a_threshold_hides_can_be_told() -> None:
    workload = marginals((3, 4), [0, 1, 2])
    relations, draws = linked_numbers(workload), np.random.default_rng(3)
    values = Equations.of_workload(workload).of(draws.poisson(3.0, (6, 12)))
    primary = (values > 0) & (values < 4)
    hidden = hidden_beside(relations, values, primary, share=0.2)
    assert (hidden >= primary).all()
    assert hidden.sum() > primary.sum()
    for place in range(6):
        audit = audit_suppression(LinkedTables(relations, values[place], hidden[place]))
        assert not primary[place, audit.unprotected(values[place], share=0.2)].any()
        assert (values[place, hidden[place]] > 0).all()  # zeros are not worth hiding
