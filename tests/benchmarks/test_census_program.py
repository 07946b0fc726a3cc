"""The person tables as a program file ask the same queries as the published list."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.benchmarks.census import sf1_persons, sf1_program
from dualmandate.planning.program import Program, load
from dualmandate.workload import Workload


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    file = tmp_path_factory.mktemp("sf1") / "program.toml"
    file.write_text(sf1_program("geometric"), encoding="utf-8")
    return load(file)


def answers(workload: Workload, counts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """All answers on the product of counts an attribute, sorted."""
    tables = [
        reduce(np.multiply.outer, [factor.apply(each, 0) for factor, each in zip(table.factors, counts, strict=True)])
        for table in workload.tables
    ]
    return np.sort(np.concatenate([table.reshape(-1) for table in tables]))


def test_the_program_asks_every_query_of_the_list(program: Program) -> None:
    listed = sf1_persons()
    assert program.domain.shape == listed.domain.shape
    assert (program.workload.query_count, str(program.workload.sensitivity())) == (4_151, "41")
    generator = np.random.default_rng(3)
    counts = [generator.integers(1, 1_000, size=size) for size in listed.domain.shape]
    assert np.array_equal(answers(program.workload, counts), answers(listed, counts))


def test_every_table_is_worth_the_same_and_the_noise_is_as_asked(program: Program) -> None:
    assert program.file.mechanism.noise == "geometric"
    assert not program.file.mechanism.states_strategy
    assert {value.value for value in program.welfare.table_values} == {100.0}
