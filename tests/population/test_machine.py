"""Work on all processors: the numbers of one, whoever works them out, and errors as they are alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.population import machine
from dualmandate.population.machine import on_all_processors

COUNT = 23
SQUARES = [[[number, number**2]] for number in range(COUNT)]


def squares(number: int) -> NDArray[np.float64]:
    return np.array([[number, number**2]], dtype=np.float64)


@pytest.fixture
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "processors", lambda: 3)
    monkeypatch.setattr(machine, "WORTH_SHARING", -1.0)


def test_short_work_is_done_by_one_process() -> None:
    seen = {float(found[0]) for found in on_all_processors(lambda _: np.array([float(os.getpid())]), COUNT)}
    assert seen == {float(os.getpid())}


@pytest.mark.usefixtures("three_processors")
def test_long_work_is_done_by_several_and_comes_in_order() -> None:
    seen = [found[0] for found in on_all_processors(lambda _: np.array([float(os.getpid())]), COUNT)]
    assert len(set(seen)) == 3
    assert [found.tolist() for found in on_all_processors(squares, COUNT)] == [
        squares(n).tolist() for n in range(COUNT)
    ]


@pytest.mark.usefixtures("three_processors")
def test_what_a_helper_cannot_do_fails_here_as_it_would_alone() -> None:
    def broken(number: int) -> NDArray[np.float64]:
        if number == 8:
            raise ZeroDivisionError
        return squares(number)

    with pytest.raises(ZeroDivisionError):
        list(on_all_processors(broken, COUNT))


@pytest.mark.usefixtures("three_processors")
def test_a_helper_that_dies_is_replaced(tmp_path: Path) -> None:
    here = os.getpid()

    def deadly(number: int) -> NDArray[np.float64]:
        if os.getpid() != here and number > 9:
            os._exit(1)
        return squares(number)

    assert [found.tolist() for found in on_all_processors(deadly, COUNT)] == SQUARES


@pytest.mark.usefixtures("three_processors")
def test_who_stops_listening_leaves_no_helper_behind() -> None:
    found = on_all_processors(squares, COUNT)
    next(found)
    next(found)
    found.close()  # type: ignore[attr-defined]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def told_by(work: Callable[[int], NDArray[np.float64]]) -> list[int]:
    heard: list[int] = []
    list(on_all_processors(work, COUNT, told=heard.append))
    return heard


def test_who_asks_hears_how_much_is_done() -> None:
    assert told_by(squares) == list(range(1, COUNT))


@pytest.mark.usefixtures("three_processors")
def test_who_asks_hears_it_from_several_too() -> None:
    heard = told_by(squares)
    assert heard == sorted(heard)
    assert heard[-1] <= COUNT
