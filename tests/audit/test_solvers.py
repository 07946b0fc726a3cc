"""Without the extra `audit`: a refusal with the line that installs it, before any work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dualmandate.audit import audit
from dualmandate.audit.options import PACKAGES
from dualmandate.audit.reconstruction.noisy import least_absolute
from dualmandate.audit.reconstruction.persons import Statistic, Variables, reconstruct_persons
from dualmandate.audit.tables import Equations
from dualmandate.errors import InvalidRequest
from dualmandate.workload import marginals

LINE = "pip install 'dualmandate[audit]'"


@pytest.fixture(params=PACKAGES)
def lacking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One of the two packages is not there."""
    for name in [name for name in sys.modules if name.partition(".")[0] == request.param]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, request.param, None)
    return str(request.param)


def test_nothing_is_read_without_the_solvers(lacking: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        audit(tmp_path / "nothing stands there")
    assert LINE in refusal.value.instead
    assert lacking in refusal.value.why


def persons() -> None:
    reconstruct_persons(Variables("age", 0, 9, {"sex": ("F", "M")}), [Statistic("all", {}, 1)])


def program() -> None:
    tables = Equations.of_workload(marginals((2, 2), [1]))
    least_absolute(tables, np.ones(4), scales=np.ones(4))


@pytest.mark.parametrize(("package", "call"), [("ortools", persons), ("highspy", program)])
def test_attacks_that_are_called_by_themselves_refuse_too(
    package: str, call: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    call()
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidRequest, match="solvers") as refusal:
        call()
    assert LINE in refusal.value.instead
