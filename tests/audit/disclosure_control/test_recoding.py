"""Levels that moved: by hand, what becomes of a file, what is behind it, and where somebody finds themselves."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.audit.disclosure_control.methods import Recoding

# of four records at level 0 one was moved to 1, both at level 1 were moved to 2, nobody was at 2
MOVED = np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
RECODING = Recoding((3, 2), 0, MOVED)
FILE = np.array([[8.0, 0.0, 6.0, 0.0, 0.0, 1.0]])  # by level, then by a secret


def test_what_becomes_of_a_file() -> None:
    assert RECODING.tabulated(FILE).tolist() == [[6.0, 0.0, 2.0, 0.0, 6.0, 1.0]]
    assert RECODING.tabulated(FILE).sum() == FILE.sum()


def test_what_is_behind_it() -> None:
    tabulated = np.array([[6.0, 0.0, 2.0, 0.0, 6.0, 1.0]])
    assert RECODING.undone(tabulated).tolist() == [[8.0, 0.0, 6.0, 1.0, 0.0, 0.0]]


def test_where_somebody_finds_themselves() -> None:
    tabulated = np.array([[4.0, 8.0, 2.0, 0.0, 6.0, 1.0]])
    found = RECODING.looked_up(tabulated)
    # at level 0: three of four times the records of 0, once those of 1; at level 1 those of 2; at 2 itself
    assert found[0] == pytest.approx([3.5, 6.0, 6.0, 1.0, 6.0, 1.0])
