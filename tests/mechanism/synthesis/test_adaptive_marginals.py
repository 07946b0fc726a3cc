"""Synthetic records by chosen marginals: what is lost, what is said of errors, what is impossible, what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from dualmandate.errors import InvalidLoss, InvalidMechanism, InvalidWorkload, TooLarge
from dualmandate.mechanism import AdaptiveMarginals, data_dependent, select, simulation_keys, synthesize
from dualmandate.mechanism.data_dependent import RecordsCurator
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler, NoiseKey
from dualmandate.mechanism.noise.samplers import draw_noise
from dualmandate.mechanism.synthesis import adaptive_marginals
from dualmandate.mechanism.synthesis.junction_tree import TreeModel, junction_tree, summed
from dualmandate.mechanism.synthesis.records_of_model import dealt_by_cliques, dealt_records, marginal_of
from dualmandate.population import (
    Attribute,
    Domain,
    Histogram,
    Invariant,
    Neighbors,
    PrivacyMeasure,
    Protection,
    Records,
    StructuralZero,
)
from dualmandate.workload import Tabulation, Workload, groups, identity, kron, marginals, prefix, total

SHAPE = (3, 4, 2, 3, 5)
PAIRS = marginals(SHAPE, 2)
REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)
TWICE = Protection(most_records_per_unit=2, identifier="person")
MEASURES = [PrivacyMeasure.ZCDP, PrivacyMeasure.PURE_DP]


def records(count: int = 3000, seed: int = 1) -> Records:
    """A chain: each attribute hangs together with the one before."""
    generator = np.random.default_rng(seed)
    levels = np.zeros((count, len(SHAPE)), dtype=np.int64)
    for place, size in enumerate(SHAPE):
        before = levels[:, place - 1] if place else np.zeros(count, dtype=np.int64)
        own = generator.integers(0, size, size=count)
        levels[:, place] = np.where(generator.random(count) < 0.6, (before * 2 + 1) % size, own)
    return Records(Domain.of_shape(SHAPE), levels)


RECORDS = records()


def distances(found: Any, counts: Records, workload: Workload) -> dict[str, float]:
    truth = workload.answers_from(counts)
    ends = np.cumsum([table.query_count for table in workload.tables])[:-1]
    off = np.split(np.abs(found.answers.values - truth), ends)
    return {table.name: float(each.sum()) for table, each in zip(workload.tables, off, strict=True)}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("protection", [Protection(), REPLACE_ONE, TWICE])
def test_all_that_is_drawn_together_loses_exactly_what_may_be_lost(
    measure: PrivacyMeasure, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every draw of noise and every choice, by its own formula: Δ₁/scale or Δ₂²/(2σ²), and 2·rate·Δ or (rate·Δ)²/2."""
    ends = 1 if protection.neighbors is Neighbors.ADD_OR_REMOVE else 2
    records, unit, tables = protection.most_records_per_unit, adaptive_marginals.UNIT, len(PAIRS.tables)
    moved = {"marginal": (ends * records, ends * records**2)}
    moved["distances"] = (unit * ends * records * tables, (unit * ends * records) ** 2 * tables)
    losses: dict[str, Fraction] = {}
    names: list[str] = []
    keys = simulation_keys(1, 0)

    def named(name: str) -> NoiseKey:
        assert name not in names  # no two draws share a key
        names.append(name)
        return keys(name)

    def chosen(scores: Any, *, rate: Fraction, key: NoiseKey) -> int:
        # A pair shows two attributes of its own table, and one of each of six others: no marginal weighs more.
        most = rate * unit * ends * records * 8
        losses[names[-1]] = 2 * most if measure is PrivacyMeasure.PURE_DP else most**2 / 2
        assert all(isinstance(score, int) for score in scores)
        return select(scores, rate=rate, key=key)

    def gaussian(law: GaussianSampler, key: NoiseKey, cells: range) -> Any:
        losses[names[-1]] = Fraction(moved[names[-1].split()[0]][1]) / (2 * law.variance)
        return draw_noise(law.levels, key, cells=cells)

    def laplace(law: LaplaceSampler, key: NoiseKey, cells: range) -> Any:
        losses[names[-1]] = moved[names[-1].split()[0]][0] / law.scale
        return draw_noise(law.levels, key, cells=cells)

    monkeypatch.setattr(data_dependent, "select", chosen)
    monkeypatch.setattr(GaussianSampler, "draw", gaussian)
    monkeypatch.setattr(LaplaceSampler, "draw", laplace)
    synthesize(RECORDS, PAIRS, Fraction(1), named, privacy_measure=measure, protection=protection)
    assert list(losses) == names
    assert {name.split()[0] for name in names} == {"marginal", "choice", "distances"}
    assert Fraction(999_999, 1_000_000) < sum(losses.values()) <= 1


def test_a_record_moves_a_distance_by_one_and_a_replaced_one_by_two() -> None:
    """Over all data sets of up to three records in four cells, against a model that fits none of them."""
    domain, expected, worst = Domain.of_shape((2, 2)), np.array([[0.3, 1.7], [0.25, 2.0]]), {1: 0, 2: 0}
    asked = adaptive_marginals._Asked.of(marginals((2, 2), 2), 100)
    moves = adaptive_marginals._Moves.of(PrivacyMeasure.ZCDP, Protection())

    def distance(cells: tuple[int, ...]) -> int:
        counts = Histogram(domain, np.bincount(cells, minlength=4).reshape(2, 2))
        run = adaptive_marginals._Run(AdaptiveMarginals(), RecordsCurator(counts, simulation_keys(1, 0)), asked, moves)
        return run._distance(counts, (0, 1), expected)

    for cells in product(range(4), repeat=3):
        for other in range(4):
            worst[2] = max(worst[2], abs(distance(cells) - distance((other, *cells[1:]))))
            worst[1] = max(worst[1], abs(distance(cells) - distance((other, *cells))))
    assert worst == {1: adaptive_marginals.UNIT, 2: 2 * adaptive_marginals.UNIT}


@pytest.mark.parametrize("measure", MEASURES)
def test_intervals_and_measured_distances_hold_as_often_as_they_say(measure: PrivacyMeasure) -> None:
    held, told, within = [], [], []
    truth = PAIRS.answers_from(RECORDS)
    for repetition in range(12):
        found = synthesize(RECORDS, PAIRS, Fraction(1, 2), simulation_keys(7, repetition), privacy_measure=measure)
        assert found.answers.half_widths is not None
        held.append(np.abs(found.answers.values - truth) <= found.answers.half_widths)
        for name, distance in distances(found, RECORDS, PAIRS).items():
            told.append(found.distances[name].distance - distance)
            within.append(abs(told[-1]) <= found.distances[name].half_width + 1)
    assert np.mean(held) >= 0.9
    assert np.mean(held, axis=0).min() >= 0.5  # of each number by itself
    assert 0.82 < np.mean(within) < 0.97
    assert abs(np.mean(told)) < 4 * np.std(told) / np.sqrt(len(told))


def test_a_model_is_nearer_where_more_may_be_lost_and_than_one_that_was_never_asked() -> None:
    alone = synthesize(RECORDS, marginals(SHAPE, 1), Fraction(1), simulation_keys(2, 0))
    names = [[RECORDS.domain.names[axis] for axis in table.label_axes] for table in PAIRS.tables]
    even = sum(float(np.abs(alone.marginal(*each) - RECORDS.project(each).counts).sum()) for each in names)
    sums = []
    for loss in (Fraction(1, 1000), Fraction(1, 20), Fraction(1)):
        each = [synthesize(RECORDS, PAIRS, loss, simulation_keys(2, number)) for number in range(3)]
        sums.append(np.mean([sum(distances(found, RECORDS, PAIRS).values()) for found in each]))
    assert sums[0] > 1.5 * sums[1] > 2 * sums[2]
    assert sums[2] < even / 10


def test_records_are_dealt_from_the_model_and_are_as_many_as_estimated() -> None:
    found = synthesize(RECORDS, PAIRS, Fraction(1), simulation_keys(2, 0))
    dealt = found.records
    assert dealt.total == round(found.total)
    assert np.array_equal(dealt.levels, dealt_records(found.model, dealt.total))
    for table in PAIRS.tables:
        names = [found.domain.names[axis] for axis in table.label_axes]
        off = np.abs(dealt.project(names).counts - found.marginal(*names))
        assert off.max() < 4 * np.sqrt(dealt.total / 50)


def test_small_tables_of_dealt_records_are_the_models_also_across_cliques() -> None:
    """Within a record or so a cell, where dealing alone leaves what chance does; never where the model has no mass."""
    sizes = (4, 3, 5, 2, 3, 4)
    generator = np.random.default_rng(8)
    pairs = [(place, place + 1) for place in range(5)]
    tree = junction_tree(sizes, pairs)
    beliefs: list[Any] = []
    for clique, separator, parent in zip(tree.cliques, tree.separators, tree.parents, strict=True):
        shares = generator.gamma(0.3, size=[sizes[place] for place in clique])
        shares[0, 1] = 0.0  # cannot occur
        axes = tuple(axis for axis, place in enumerate(clique) if place not in separator)
        held = summed(beliefs[parent], tree.cliques[parent], separator) if parent >= 0 else np.ones(())
        beliefs.append(shares / shares.sum(axis=axes, keepdims=True) * np.expand_dims(held, axes))
    model, count = TreeModel(tree, tuple(beliefs)), 3000
    off: dict[str, list[float]] = {"cliques": [], "mended": []}
    for name, levels in (("cliques", dealt_by_cliques(model, count)), ("mended", dealt_records(model, count))):
        assert levels.shape == (count, 6)
        for places in [*combinations(range(6), 2), *combinations(range(6), 3)]:
            expected = count * model.marginal(places)
            found = marginal_of(levels, places, sizes)
            assert not found[expected == 0.0].any()
            off[name].append(float(np.abs(found - expected).mean()))
    assert np.mean(off["mended"]) < 0.7 * np.mean(off["cliques"])
    assert np.mean(off["mended"]) < 1.0
    assert dealt_records(model, 0).shape == (0, 6)


def zeros() -> Domain:
    ages = Attribute.categories("age", ("child", "adult"))
    married = Attribute.categories("married", ("yes", "no"))
    works = Attribute.categories("works", ("yes", "no"))
    never = (StructuralZero.of({"age": "child", "married": "yes"}), StructuralZero.of({"age": "child", "works": "yes"}))
    return Domain((ages, married, works), structural_zeros=never)


def test_what_cannot_occur_has_no_mass() -> None:
    domain = zeros()
    generator = np.random.default_rng(4)
    levels = np.stack([generator.integers(0, 2, 400) for _ in range(3)], axis=1)
    levels[levels[:, 0] == 0, 1:] = 1
    workload = Workload.from_tabulations(
        domain, [Tabulation.of("marriage", ("age", "married")), Tabulation.of("all", ("age", "married", "works"))]
    )
    found = synthesize(Records(domain, levels), workload, Fraction(1, 10), simulation_keys(3, 0))
    assert found.marginal("age", "married")[0, 0] == 0.0
    assert not found.marginal("age", "married", "works")[0, 0].any()
    assert not found.marginal("works", "age")[0, 0]
    dealt = found.records.levels
    assert not np.any((dealt[:, 0] == 0) & ((dealt[:, 1] == 0) | (dealt[:, 2] == 0)))
    assert found.answers.values.sum() == pytest.approx(2 * found.total)


@pytest.mark.parametrize("protection", [Protection(), REPLACE_ONE])
def test_nobody_is_estimated_as_about_nobody(protection: Protection) -> None:
    nobody = Records(Domain.of_shape(SHAPE), np.zeros((0, len(SHAPE)), dtype=np.int64))
    found = synthesize(nobody, PAIRS, Fraction(1), simulation_keys(1, 0), protection=protection)
    assert found.answers.half_widths is not None
    assert np.mean(found.answers.values <= found.answers.half_widths) >= 0.9
    assert found.records.total <= 30


def test_one_query_and_attributes_that_nobody_asks_about_are_served() -> None:
    workload = Workload.from_tabulations(RECORDS.domain, [Tabulation.of("persons")])
    found = synthesize(RECORDS, workload, Fraction(1), simulation_keys(1, 0))
    assert found.answers.half_widths is not None
    assert abs(found.answers.values[0] - 3000) <= found.answers.half_widths[0] < 5
    assert found.marginal("axis0") == pytest.approx(np.full(3, found.total / 3))
    alone = synthesize(Histogram(Domain.of_shape((7,)), np.full(7, 9)), total(7), Fraction(1), simulation_keys(1, 0))
    assert alone.answers.values.shape == (1,)


def test_too_little_loss_for_any_signal_gives_wide_intervals_that_hold() -> None:
    found = synthesize(RECORDS, PAIRS, Fraction(1, 10**7), simulation_keys(1, 0))
    widths = found.answers.half_widths
    assert widths is not None
    assert np.mean(np.abs(found.answers.values - PAIRS.answers_from(RECORDS)) <= widths) >= 0.9
    assert np.median(widths) > 500


def test_sums_over_levels_have_intervals_too() -> None:
    sums = [
        kron(prefix(3), identity(4), total(2), total(3), identity(5)),
        kron(total(3), identity(4), total(2), total(3), groups(5, [[1, 3], [0, 1]])),
    ]
    workload = Workload(RECORDS.domain, tuple(replace(each.tables[0], name=f"{n}") for n, each in enumerate(sums)))
    truth = workload.answers_from(RECORDS)
    held = []
    for repetition in range(10):
        found = synthesize(RECORDS, workload, Fraction(1, 4), simulation_keys(5, repetition))
        assert found.answers.half_widths is not None
        held.append(np.abs(found.answers.values - truth) <= found.answers.half_widths)
    assert np.mean(held) >= 0.9


KEPT = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("all"),))
REFUSED: list[tuple[type[Exception], dict[str, Any]]] = [
    (InvalidLoss, {"loss": Fraction(0)}),
    (InvalidLoss, {"probability": 1.0}),
    (InvalidMechanism, {"protection": KEPT}),
]


@pytest.mark.parametrize(("refusal", "given"), REFUSED)
def test_what_cannot_be_served_is_refused(refusal: type[Exception], given: dict[str, Any]) -> None:
    arguments = {"loss": Fraction(1)} | given
    with pytest.raises(refusal):
        AdaptiveMarginals().release(RECORDS, PAIRS, arguments.pop("loss"), simulation_keys(1, 0), **arguments)


def test_models_without_rounds_or_beyond_the_largest_are_refused() -> None:
    with pytest.raises(InvalidMechanism, match="0 rounds"):
        AdaptiveMarginals(rounds_an_attribute=0)
    with pytest.raises(TooLarge, match="17 cells"):
        AdaptiveMarginals(largest_model=16).release(RECORDS, PAIRS, Fraction(1), simulation_keys(1, 0))
    wide = Workload.from_tabulations(Domain.of_shape((3000, 3000)), [Tabulation.of("all", ("axis0", "axis1"))])
    with pytest.raises(TooLarge, match="9,000,000 cells"):
        synthesize(Records(wide.domain, np.zeros((0, 2), dtype=np.int64)), wide, Fraction(1), simulation_keys(1, 0))
    with pytest.raises(InvalidWorkload, match="other attributes"):
        synthesize(RECORDS, marginals((3, 4), 2), Fraction(1), simulation_keys(1, 0))
    small = AdaptiveMarginals(largest_model=40).release(RECORDS, PAIRS, Fraction(1), simulation_keys(1, 0))
    assert small.model.tree.cells <= 40
