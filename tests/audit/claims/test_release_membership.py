"""The worst neighbors of a claimed release, and a member in its rows, of which there are more than are looked at."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dualmandate.audit.claims.attack import ClaimedGroup, ClaimedNoise, ClaimedRelease, largest_loss
from dualmandate.audit.claims.membership import MOST_ROWS, membership_in
from dualmandate.mechanism import Geometric
from dualmandate.population import PrivacyLoss
from dualmandate.population.arrays import Integers
from dualmandate.workload.statistics_count import StatisticsCount

CELLS = 3 * MOST_ROWS
COARSE, FINE = Fraction(4), Fraction(8)
Kept = Callable[[int, int], bool]


def release(kept: Kept | None = None) -> ClaimedRelease:
    """Every cell counted in a row of its own, and twice in one of three sums of cells, with noise of two scales."""
    scales = {"fine": FINE, "coarse": COARSE}
    noises = {
        name: ClaimedNoise(name, "laplace", each, Geometric(1 / float(each)).log_likelihood)
        for name, each in scales.items()
    }
    groups = (
        ClaimedGroup(
            "fine", lambda cell: one(cell, 1), np.zeros(CELLS, dtype=np.int64), (noises["fine"],), np.arange(CELLS)
        ),
        ClaimedGroup(
            "coarse", lambda cell: one(cell % 3, 2), np.zeros(3, dtype=np.int64), (noises["coarse"],), np.full(3, 70)
        ),
    )
    loss, possible = PrivacyLoss.pure(1), np.ones(CELLS, dtype=np.bool_)
    return ClaimedRelease("release", loss, groups, possible, kept, {}, {}, StatisticsCount(3, 3, True, 30), "as is")


def one(row: int, by: int) -> tuple[Integers, Integers]:
    return np.array([row], dtype=np.int64), np.array([by], dtype=np.int64)


def test_the_worst_neighbors() -> None:
    cells = np.arange(6)
    alone = largest_loss(release(), cells)
    assert (alone.loss, alone.other) == (1 / FINE + 2 / COARSE, None)
    apart = largest_loss(release(lambda cell, other: True), cells)
    assert apart.loss == 2 / FINE + 4 / COARSE  # one record less of a cell, one more of another, in other sums
    assert [by.tolist() for _, by in apart.apart] == [[-1, 1], [-2, 2]]
    together = largest_loss(release(lambda cell, other: cell % 3 == other % 3), cells)
    assert together.loss == 2 / FINE  # the sums do not change, and have no part in it
    assert [len(rows) for rows, _ in together.apart] == [2, 0]


def test_a_member_is_looked_for_in_the_rows_that_it_changes_and_in_some_others() -> None:
    found = membership_in(release(), b"key")
    assert found is not None
    neighbors = found.neighbors
    assert len(neighbors.present) == MOST_ROWS
    assert found.coarsening.endswith(f"{MOST_ROWS:,} of {CELLS + 3:,} measured rows")
    apart = neighbors.present - neighbors.absent
    assert sorted(apart[apart != 0].tolist()) == [1, 2]
    assert sorted(neighbors.person[neighbors.person != 0].tolist()) == [1, 2]
    assert neighbors.present[apart == 2].tolist() == [70]  # what was measured of that sum
    fine = apart.tolist().index(1)
    assert 0 <= neighbors.present[fine] < CELLS
    assert (np.diff(neighbors.present[: MOST_ROWS - 3]) > 0).all()  # rows in their order, each once
