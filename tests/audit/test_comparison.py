"""Risk beside accuracy: the same records under every method, and the picture of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dualmandate.audit.comparison import compare
from dualmandate.audit.equations import Equations
from dualmandate.benchmarks.generated_blocks import blocks, tables
from dualmandate.errors import InvalidRequest
from dualmandate.figures import NARROW, WIDE, risk, risk_twin, specification

WORKLOAD = tables()
EQUATIONS = Equations.of_workload(WORKLOAD)


def test_privacy_falls_to_the_guess_and_old_methods_are_points() -> None:
    people = blocks(12, seed=5)
    sensitivity = float(WORKLOAD.sensitivity().value)
    found = compare(EQUATIONS, people, tables=sensitivity, key=b"k", epsilons=(0.1, 4.0, 64.0))
    assert found == compare(EQUATIONS, people, tables=sensitivity, key=b"k", epsilons=(0.1, 4.0, 64.0))
    private = [each for each in found if each.epsilon is not None]
    assert [each.epsilon for each in private] == [0.1, 4.0, 64.0]
    assert private[0].right.value < private[1].right.value < private[2].right.value
    assert abs(private[0].above_guess) < 0.05  # nothing but noise leaves the guess
    assert private[0].error > private[1].error > private[2].error
    exact = next(each for each in found if each.family == "exact")
    assert exact.error == 0.0
    swapped = [each.right.value for each in found if each.family == "swapping"]
    assert exact.right.value >= swapped[0] > swapped[-1]
    twin = risk_twin(found)
    assert len(twin.rows) == len(found)
    for width in (NARROW, WIDE):
        document = specification(risk(found, width=width))
        assert "have no ε" in " ".join(document["title"]["subtitle"])
        assert '"safe"' not in json.dumps(document)


def test_one_place_has_nobody_to_swap_with() -> None:
    with pytest.raises(InvalidRequest, match="1 places"):
        compare(EQUATIONS, blocks(1, seed=1), tables=8.0, key=b"k")
    with pytest.raises(InvalidRequest, match="0 records"):
        compare(EQUATIONS, np.zeros((2, EQUATIONS.size), dtype=np.int64), tables=8.0, key=b"k")
