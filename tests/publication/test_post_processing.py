"""A release stands also where whole numbers, or simulations of them, are not to be had."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.publication.test_publish import release_spec_of

from dualmandate.errors import NoConsistentTables
from dualmandate.population import Confidential, Histogram
from dualmandate.publication import Tabulated, measuring, post_processing
from dualmandate.publication.consistency import histogram_fit
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.writing import NoisyRows


def measured() -> tuple[ReleaseSpec, Sequence[NoisyRows]]:
    order = release_spec_of()
    histogram = Histogram(order.domain, np.array([[40, 0], [31, 55], [3, 0]]))
    box = Confidential("a test", Tabulated(histogram, 129))
    return order, list(measuring.measure(order, box, Confidential("a test", bytes(32)), mac="5a" * 32))


def refusing(*_: object, **__: object) -> None:
    raise NoConsistentTables("none", why="the solver found none", instead="hold fewer totals exactly")


def test_the_effect_of_whole_numbers_is_told_by_table_and_size() -> None:
    order, found = measured()
    made = post_processing.post_process(order, measured=found, totals=None)
    assert {effect.table for effect in made.effects} == {"ages", "ages by sex"}
    assert all(effect.unbiased_error > 0 for effect in made.effects)
    smallest = [effect for effect in made.effects if effect.least == 0]
    assert all(effect.consistent_bias >= 0 for effect in smallest)  # what is nothing cannot be less


def test_many_cells_are_simulated_where_fitting_them_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Amounts have many levels, and so many cells; a fit of them may take few steps all the same."""
    order, found = measured()
    monkeypatch.setattr(post_processing, "too_long", lambda _: True)
    made = post_processing.post_process(order, measured=found, totals=None)
    assert set(made.reaches) == {"ages", "ages by sex"}
    monkeypatch.setattr(post_processing, "MOST_FITTED", 0)
    assert not post_processing.post_process(order, measured=found, totals=None).reaches
    monkeypatch.undo()
    monkeypatch.setattr(post_processing, "MOST_SIMULATED", 8)  # of nine numbers
    assert not post_processing.post_process(order, measured=found, totals=None).reaches


def test_a_simulation_that_fails_leaves_the_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    order, found = measured()
    monkeypatch.setattr(post_processing, "consistency_effect", refusing)
    made = post_processing.post_process(order, measured=found, totals=None)
    assert made.effects == ()
    assert all(table.values is not None for table in made.tables)


def test_whole_numbers_that_are_not_found_leave_the_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    order, found = measured()
    monkeypatch.setattr(post_processing, "fitted_histogram", refusing)
    made = post_processing.post_process(order, measured=found, totals=None)
    tables = list(made.tables)
    assert [table.values for table in tables] == [None, None]
    assert all(np.isfinite(table.estimates).all() for table in tables)
    assert "the solver found none" in made.words


def test_a_fit_that_is_cut_short_is_not_called_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    order, found = measured()
    assert post_processing.post_process(order, measured=found, totals=None).words == post_processing.FITTED
    monkeypatch.setattr(histogram_fit, "MOST_STEPS", 1)
    made = post_processing.post_process(order, measured=found, totals=None)
    assert made.words == post_processing.UNFINISHED
    assert "ended after 5,000 steps, before it came to what is nearest" in made.words
    assert all(table.values is not None and (table.values >= 0).all() for table in made.tables)
