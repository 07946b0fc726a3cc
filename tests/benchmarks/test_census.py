from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tests.workload.norms import squared_norm

from dualmandate.benchmarks import census
from dualmandate.population.arrays import Integers
from dualmandate.workload import Workload
from dualmandate.workload.factor import dense

DATA = Path(os.environ.get("DUALMANDATE_DATA", Path(__file__).parents[3] / "shared" / "data"))
LISTED = DATA.parent / "bench" / "sf1_persons.json"  # every group of every coding, cell by cell
LISTED_DIGEST = "204fc849e93faaabac696a067ad19d34b45387baf1f7135a9cc96b9dba0ce9e0"


@pytest.fixture(scope="module")
def persons() -> Workload:
    return census.sf1_persons()


def digest(products: Iterable[tuple[str, Iterable[Integers]]]) -> str:
    """Of the published table and the query matrix on each attribute, product by product."""
    found = hashlib.sha256()
    for table, matrices in products:
        found.update(table.encode())
        for matrix in matrices:
            found.update(repr(matrix.shape).encode())
            found.update(matrix.astype("<i8").tobytes())
    return found.hexdigest()


def listed_matrix(groups: list[list[int]], size: int) -> Integers:
    matrix = np.zeros((len(groups), size), dtype=np.int64)
    for row, cells in enumerate(groups):
        matrix[row, cells] = 1
    return matrix


def test_every_query_matrix_is_the_listed_one(persons: Workload) -> None:
    """By a digest of the list; where the list itself is there, by that too."""
    ours = digest((table.name.partition(":")[0], map(dense, table.factors)) for table in persons.tables)
    assert ours == LISTED_DIGEST
    if LISTED.exists():
        listed = json.loads(LISTED.read_text(encoding="utf-8"))
        codings, sizes = listed["codings"], listed["domain"]
        assert tuple(sizes) == persons.domain.names
        theirs = digest(
            (each["table"], [listed_matrix(codings[name][each[name]], size) for name, size in sizes.items()])
            for each in listed["products"]
        )
        assert theirs == LISTED_DIGEST


def test_the_check_numbers_of_the_person_tables(persons: Workload) -> None:
    assert persons.domain.shape == (2, 2, 64, 17, 115)
    assert persons.query_count == 4_151
    assert squared_norm(persons) == 18_998_554
    sensitivity = persons.sensitivity()
    assert sensitivity.power == 41
    assert sensitivity.exact


def test_a_person_is_counted_where_the_labels_say(persons: Workload) -> None:
    """A woman of 20, Hispanic, White and Asian, is a householder."""
    levels = ("female", "Hispanic", "White and Asian", "householder", "20")
    counts = np.zeros(persons.domain.shape, dtype=np.int64)
    cell = (each.position(level) for each, level in zip(persons.domain.attributes, levels, strict=True))
    counts[tuple(cell)] = 1

    def counted(table: str) -> list[tuple[str, ...]]:
        answers = persons.table_answers(table, counts)
        return [label for label, answer in zip(persons.labels(table), answers, strict=True) if answer]

    assert counted("P3: race") == [("none or several",)]
    assert counted("P10: race in full, adults") == [("White and Asian",), ("2 races",), ("several races",)]
    assert counted("P9: race in full, not Hispanic") == []
    assert counted("P12A-I: sex by age by race") == [("female", "none or several", "20")]
    assert counted("PCT12A-O: sex and total, Hispanic") == [("female",), ("total",)]
    assert counted("P12A-I: sex by age, not Hispanic, White alone") == []


def test_a_race_names_as_many_as_it_combines(persons: Workload) -> None:
    levels = persons.domain.attributes[2].levels
    assert levels[0] == "none recorded"
    assert [level.count(" and ") + 1 for level in levels[1:]] == [number.bit_count() for number in range(1, 64)]


def test_the_person_tables_by_state(persons: Workload) -> None:
    """Each query is asked of 51 states and of the nation; a person lives in one state."""
    by_state = census.sf1_by_state()
    assert by_state.domain.names == (*persons.domain.names, "state")
    assert by_state.query_count == 52 * 4_151
    assert squared_norm(by_state) == 102 * 18_998_554
    assert by_state.sensitivity().power == 82


def test_the_survey_has_prefix_sums_on_two_attributes() -> None:
    workload = census.cps_one_way()
    assert workload.shape == (163, 280_000)
    assert squared_norm(workload) == Fraction(280_000 * 51, 2) + Fraction(280_000 * 101, 2) + 3 * 280_000
    assert workload.sensitivity().power == 50 + 100 + 3


def test_marginals_of_adult() -> None:
    assert census.adult_5(2).query_count == sum(map(math.prod, combinations((75, 16, 5, 2, 20), 2)))
    workload = census.adult_14()
    sizes = census.ADULT_14_SHAPE
    assert workload.domain.size == 641_263_392_000_000_000
    assert workload.query_count == sum(math.prod(kept) for order in range(4) for kept in combinations(sizes, order))
