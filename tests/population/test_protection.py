from __future__ import annotations

from collections.abc import Callable

import pytest

from dualmandate.errors import InvalidInvariant, InvalidLoss
from dualmandate.population import Invariant, Neighbors, Protection

TOTAL = (Invariant("people by block", ("block",)),)


def test_the_relation_in_words() -> None:
    assert Protection().relation == "add or remove one person's record"
    assert (
        Protection(unit="child", neighbors=Neighbors.REPLACE_ONE).relation == "replace one child's record by any other"
    )
    several = Protection("worker", Neighbors.REPLACE_ONE, 3, "ssn")
    assert several.relation == "replace one worker's up to 3 records by as many others"
    within = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=TOTAL)
    assert within.relation == "change one person's record within the groups whose totals are published exactly"


def test_a_plain_word_is_taken_for_its_relation() -> None:
    """`is` comparisons would otherwise take "add-or-remove" for replace-one."""
    assert Protection(neighbors="add-or-remove").neighbors is Neighbors.ADD_OR_REMOVE  # type: ignore[arg-type]
    with pytest.raises(InvalidInvariant):
        Protection(neighbors="add-or-remove", invariants=TOTAL)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Protection(neighbors="swap-two"), "neighbors = 'swap-two'"),  # type: ignore[arg-type]
        (lambda: Protection(most_records_per_unit=0, identifier="id"), "at most 0 records"),
        (lambda: Protection(most_records_per_unit=1.5, identifier="id"), "at most 1.5 records"),  # type: ignore[arg-type]
        (lambda: Protection(most_records_per_unit=True), "at most True records"),
        (lambda: Protection(records_changing_together=0), "0 changing together"),
        (lambda: Protection(most_records_per_unit=2), "nothing identifies it"),
    ],
)
def test_promises_that_cannot_be_kept_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidLoss) as refusal:
        make()
    assert words in refusal.value.what


def test_an_exact_total_is_refused_under_add_or_remove() -> None:
    with pytest.raises(InvalidInvariant, match="'people by block' cannot be kept"):
        Protection(invariants=TOTAL)
