"""The same work on several threads: in order, a few items at a time, and the same whatever the number of threads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from dualmandate.audit.finding import Rate
from dualmandate.audit.options import AHEAD, Effort, parallel_map
from dualmandate.audit.reconstruction.exact import reconstruct, uncovered
from dualmandate.audit.run import attack_on
from dualmandate.audit.suppression.cells import hidden_numbers
from dualmandate.audit.tables import Equations, ExactTables
from dualmandate.errors import InvalidTables
from dualmandate.workload import marginals

TABLES = Equations.of_workload(marginals((2, 3, 2), [0, 1, 2]))


def places(count: int, *, share: float = 0.2) -> ExactTables:
    """Places of which every one hides other numbers, all but its total."""
    generator = np.random.default_rng(count)
    people = generator.poisson(0.7, (count, TABLES.size))
    hidden = generator.random((count, TABLES.rows)) < share
    hidden[:, 0] = False
    values = np.where(hidden, 999, TABLES.of(people))
    return ExactTables("places", TABLES, values, tuple(f"p{i}" for i in range(count)), "as is", hidden=hidden)


@pytest.mark.parametrize("workers", [1, 3])
def test_items_are_taken_as_they_are_needed(workers: int) -> None:
    taken = []

    def items() -> Iterator[int]:
        for item in range(50):
            taken.append(item)
            yield item

    made = parallel_map(lambda item: item * item, items(), workers)
    assert next(made) == 0
    assert len(taken) <= AHEAD * workers
    assert list(made) == [item * item for item in range(1, 50)]


def test_what_is_refused_comes_in_its_turn() -> None:
    def work(item: int) -> int:
        if item == 5:
            raise InvalidTables("no", why="no", instead="no")
        return item

    found = list[int]()
    with pytest.raises(InvalidTables):
        found.extend(parallel_map(work, range(100), 2))
    assert found == [0, 1, 2, 3, 4]


def test_findings_do_not_depend_on_the_number_of_threads() -> None:
    target = places(150)
    suppressed = hidden_numbers(target)
    assert suppressed is not None
    assert len(suppressed.parts) > 100
    for each in (target, suppressed):
        alone, together = (attack_on(each, Effort(workers=workers)).run(each, b"key") for workers in (1, 3))
        assert alone == together
        assert alone


def test_hidden_numbers_are_not_looked_at() -> None:
    target = places(40)
    assert target.hidden is not None
    found = list(reconstruct(TABLES, target.values, hidden=target.hidden))
    for place, each in enumerate(found):
        rows = np.flatnonzero(~target.hidden[place])
        (alone,) = reconstruct(TABLES.only(rows), target.values[place, rows])
        assert each.solutions == alone.solutions
        assert np.array_equal(each.least, alone.least)
        assert np.array_equal(each.largest, alone.largest)
        assert each.apart == alone.apart


def test_places_where_nothing_bounds_a_cell() -> None:
    hidden = np.zeros((3, TABLES.rows), dtype=np.bool_)
    hidden[1] = True
    assert uncovered(TABLES, hidden, None).tolist() == [False, True, False]
    assert uncovered(TABLES, hidden, np.ones(TABLES.size, dtype=np.bool_)).tolist() == [False] * 3
    target = places(3, share=0.0)
    values = target.values.copy()
    bare = ExactTables("places", TABLES, values, target.places, "as is", hidden=hidden)
    first, *_ = attack_on(bare, Effort()).run(bare, b"key")
    assert first.success.trials == 2  # type: ignore[union-attr]
    assert first.partial is not None
    assert "in 1 places some cells are counted by no number" in first.partial
    nothing = ExactTables("places", TABLES, values, target.places, "as is", hidden=np.ones_like(hidden))
    (only,) = attack_on(nothing, Effort()).run(nothing, b"key")
    assert only.success == Rate(0, 3)
    assert only.partial is not None
    assert "in 3 places" in only.partial


def test_the_place_of_a_contradiction_is_named_whatever_comes_before() -> None:
    target = places(130, share=0.0)
    values = target.values.copy()
    values[100, 0] += 1
    wrong = ExactTables("places", TABLES, values, target.places, "as is")
    for workers in (1, 2):
        first, *_ = attack_on(wrong, Effort(workers=workers)).run(wrong, b"key")
        assert first.partial is not None
        assert "in 1 of 130 places the tables contradict each other" in first.partial
        assert "in p100, the tables contradict each other" in first.partial


def test_how_much_is_done_is_told() -> None:
    told: list[tuple[int, int]] = []
    target = places(130, share=0.0)
    attack_on(target, Effort(counted=lambda _, done, of: told.append((done, of)))).run(target, b"key")
    assert told == [(64, 130), (128, 130)]
