"""The old methods: what each keeps, what it changes, and that draws depend on the key alone."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dualmandate.audit.disclosure_control.methods import (
    PrimaryRule,
    cell_key_noise,
    dominated,
    few_contributors,
    microaggregate,
    round_randomly,
    suppress,
    swap,
    told_by_second,
    top_cap,
    top_code,
)
from dualmandate.audit.options import generator
from dualmandate.audit.suppression.cells import LinkedTables, additive_relations, audit_suppression
from dualmandate.errors import InvalidRequest

KEY = bytes(range(32))


def test_draws_belong_to_a_key_and_a_purpose() -> None:
    first = generator(KEY, "swap").random(5).tolist()
    assert generator(KEY, "swap").random(5).tolist() == first
    assert generator(KEY, "round").random(5).tolist() != first
    assert generator(bytes(32), "swap").random(5).tolist() != first


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_swapping_keeps_what_is_alike(share: float) -> None:
    draws = np.random.default_rng(1)
    records, places = draws.integers(0, 12, 4000), draws.integers(0, 80, 4000)
    alike = np.arange(12) % 3
    moved = swap(records, places, share=share, alike=alike, draws=generator(KEY, "swap"))
    for one_class in range(3):
        own = alike[records] == one_class
        assert np.array_equal(np.bincount(places[own], minlength=80), np.bincount(moved[own], minlength=80))
    changed = float(np.mean(places != moved))
    assert changed == 0 if share == 0 else 0.85 * share < changed < 1.1 * share


def test_rounding_is_unbiased() -> None:
    values = np.repeat(np.arange(10), 20_000)
    found = round_randomly(values, base=5, draws=generator(KEY, "round"))
    assert set(found.tolist()) == {0, 5, 10}
    assert np.array_equal(found[values % 5 == 0], values[values % 5 == 0])
    for value in (1, 3, 7, 9):
        assert found[values == value].mean() == pytest.approx(value, abs=0.1)
    with pytest.raises(InvalidRequest):
        round_randomly(values, base=1, draws=generator(KEY, "round"))


def test_the_same_records_get_the_same_noise() -> None:
    draws = np.random.default_rng(2)
    counts, keys = draws.integers(0, 40, 50_000), draws.integers(0, 2**40, 50_000)
    found = cell_key_noise(counts, keys, deviation=2.0, most=5)
    assert np.array_equal(found, cell_key_noise(counts, keys + 2**32, deviation=2.0, most=5))
    assert (found[counts == 0] == 0).all()
    assert (found >= 0).all()
    noise = (found - counts)[counts > 10]
    assert np.abs(noise).max() == 5
    assert noise.mean() == pytest.approx(0.0, abs=0.05)
    assert noise.std() == pytest.approx(1.97, abs=0.1)  # 2, less what is cut at 5


def test_top_codes_and_groups_keep_the_mean() -> None:
    values = np.random.default_rng(3).lognormal(0, 1, 1001)
    cap = top_cap(values, share=0.05)
    assert np.sum(values >= cap) == 51  # 5 % of 1001 at least, and no more than it takes
    coded = top_code(values, cap=cap)
    assert coded.mean() == pytest.approx(values.mean())
    assert len(np.unique(coded[values >= cap])) == 1
    assert np.array_equal(coded[values < cap], values[values < cap])
    assert top_code(np.array([1.0, 2.0]), cap=3.0).tolist() == [1.0, 2.0]
    grouped = microaggregate(values, size=4)
    assert grouped.mean() == pytest.approx(values.mean())
    assert np.unique(grouped, return_counts=True)[1].min() >= 4
    assert np.abs(grouped - values)[values < 3].max() < 0.2
    assert microaggregate(np.array([3.0, 1.0, 2.0]), size=3).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(InvalidRequest):
        microaggregate(values, size=1)
    with pytest.raises(InvalidRequest):
        top_cap(values, share=1.5)


@pytest.mark.parametrize(
    ("rule", "contributions", "sensitive"),
    [
        (partial(few_contributors, least=3), [5.0, 4.0], True),
        (partial(few_contributors, least=3), [5.0, 4.0, 1.0], False),
        (partial(few_contributors, least=3), [], False),
        (partial(dominated, contributors=2, share=0.85), [80.0, 10.0, 10.0], True),
        (partial(dominated, contributors=2, share=0.85), [50.0, 30.0, 20.0], False),
        (partial(told_by_second, share=0.10), [100.0, 50.0, 9.0], True),
        (partial(told_by_second, share=0.10), [100.0, 50.0, 11.0], False),
        (partial(told_by_second, share=0.10), [], False),
    ],
)
def test_primary_rules(rule: PrimaryRule, contributions: list[float], sensitive: bool) -> None:
    assert rule(np.array(contributions)) is sensitive


def test_complementary_suppression_protects() -> None:
    draws = np.random.default_rng(4)
    table = draws.integers(1, 60, (5, 6))
    for axis in (0, 1):
        table = np.concatenate([table, table.sum(axis=axis, keepdims=True)], axis=axis)
    relations, values = additive_relations(table.shape), table.reshape(-1)
    primary = np.zeros(table.shape, dtype=np.bool_)
    primary[:-1, :-1] = table[:-1, :-1] < 8
    assert primary.sum() >= 2
    marks = primary.reshape(-1)
    before = audit_suppression(LinkedTables(relations, values, marks)).unprotected(values, share=0.2)
    assert before.size  # primary suppression alone does not protect
    hidden = suppress(relations, values, marks, share=0.2)
    after = audit_suppression(LinkedTables(relations, values, hidden)).unprotected(values, share=0.2)
    assert not marks[after].any()
    assert (hidden | ~marks).all()
    assert hidden.sum() < len(values)
