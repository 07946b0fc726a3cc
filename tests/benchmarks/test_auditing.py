from __future__ import annotations

import pytest

from dualmandate.benchmarks import auditing


@pytest.mark.slow
def test_attacks_on_reduced_sizes() -> None:
    rows = auditing.rows(lambda _: None, blocks=64, bounds=50)
    assert [row.case for row in rows if row.met is False] == []
    assert {row.unit for row in rows if row.met} >= {
        "blocks a second of one processor",
        "processor seconds for 50 of them",
        "solutions off the 8 proved in the article",
    }
