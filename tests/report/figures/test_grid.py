from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.report.figures.grid import log_grid


@given(st.floats(1e-6, 1e3), st.floats(1.01, 1e6), st.floats(0.0, 1.0))
def test_the_grid_rises_keeps_its_ends_and_holds_each_loss_once(low: float, span: float, share: float) -> None:
    own = low * span**share
    losses = log_grid(low, low * span, through=(own, 10 * low * span))
    assert own in losses or not low <= own <= low * span
    assert losses[0] == pytest.approx(low)
    assert losses[-1] == pytest.approx(low * span)
    assert all(after > before * (1 + 1e-10) for before, after in pairwise(losses))


def test_a_loss_that_the_grid_meets_anyway_is_there_once() -> None:
    losses = log_grid(2.5276435 / 4, 2.5276435 * 4, through=(2.5276435,))
    assert len(losses) == 81
    assert sum(abs(loss - 2.5276435) < 1e-6 for loss in losses) == 1
