"""Tables that cross what nests: estimated together, made whole with the rest, and read back with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.publication.test_nested_tables import (
    BLOCKS,
    COUNTY,
    NESTED,
    REPLACED,
    domain,
    nests,
    release_spec_of,
    released,
)

from dualmandate.errors import NoConsistentTables
from dualmandate.population import Attribute, Domain, Grouping, Hierarchy, Protection, StructuralZero
from dualmandate.publication import nested_tables, post_processing
from dualmandate.publication.costs import publication_cost
from dualmandate.publication.nested_tables import NestWeights, nest_together
from dualmandate.publication.number_errors import PASSES
from dualmandate.publication.post_processing import PostProcessed, consistent_nest, post_process
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.table_intervals import TableIntervals
from dualmandate.publication.writing import NoisyRows, PublishedTable
from dualmandate.workload import Tabulation

JOBS = Tabulation.of("jobs by county", ("county", "job"))
ADULTS = Tabulation.of("adults", ("block",), where={"age": "adult"})
PARTS = Tabulation.of("some counties by job", ("county", "job"), where={"block": ("c2", "c1")})
TWICE = Tabulation.of("ages by county again", ("county", "age"))
CHAIN = (*NESTED[1:4], Tabulation.of("ages by block", ("block", "age")))  # two tables of ages: they are the chain
ASKED = (*CHAIN, JOBS)


def measured_of(
    order: ReleaseSpec, counts: NDArray[np.int64], generator: np.random.Generator
) -> tuple[list[NoisyRows], NDArray[np.int64] | None]:
    found = []
    for group in order.groups:
        law = group.noises[0].distribution()
        values = group.rows.count(counts) + law.draw(generator, group.rows.size).astype(np.int64)
        found.append(NoisyRows(group.name, group.noises, group.rows.kinds().astype(np.int64), values))
    return found, None if order.public is None else np.asarray(order.public.answers(counts), dtype=np.int64)


def settled(order: ReleaseSpec, counts: NDArray[np.int64], generator: np.random.Generator) -> list[PublishedTable]:
    crossed = nest_together(order)
    assert crossed is not None
    measured, totals = measured_of(order, counts, generator)
    return list(consistent_nest(order, crossed, measured=measured, totals=totals).tables)


def all_add_up(order: ReleaseSpec, tables: list[PublishedTable], counts: NDArray[np.int64]) -> None:
    """Every table is one of the same whole file, and what is exact is exact."""
    assert [table.name for table in tables] == [table.name for table in order.tables]
    detail = next(table for table in tables if table.name == "detail")
    assert detail.values is not None
    whole = detail.values.reshape(order.domain.shape)
    for table, group in zip(tables, order.groups, strict=True):
        assert table.values is not None
        assert table.values.min() >= 0
        assert np.array_equal(table.values, group.rows.count(whole))
    if order.public is not None:
        assert np.array_equal(order.public.answers(whole), order.public.answers(counts))


@pytest.mark.parametrize("protection", [Protection(), REPLACED])
@pytest.mark.parametrize("across", [(JOBS,), (ADULTS,), (PARTS,), (TWICE,), (JOBS, ADULTS, TWICE)])
def test_tables_that_cross_add_up_with_the_rest(across: tuple[Tabulation, ...], protection: Protection) -> None:
    order = release_spec_of((*CHAIN, *across), protection)
    assert not nests(order)
    counts = np.random.default_rng(1).poisson(2.0, order.domain.shape).astype(np.int64)
    all_add_up(order, settled(order, counts, np.random.default_rng(3)), counts)


@pytest.mark.parametrize("first", [ADULTS, PARTS, Tabulation.of("one county", ("age",), where={"block": ("c2", "c1")})])
def test_a_table_of_some_only_may_come_first(first: Tabulation) -> None:
    """What it leaves out and what it counts are parts that another table tells apart: they are still two parts."""
    order = release_spec_of((first, *CHAIN), Protection())
    counts = np.random.default_rng(1).poisson(200.0, order.domain.shape).astype(np.int64)
    tables = settled(order, counts, np.random.default_rng(3))
    all_add_up(order, tables, counts)
    for table, group in zip(tables, order.groups, strict=True):
        errors = np.abs(table.estimates - group.measurement.workload.answers(counts))
        assert errors.max() < 5 * table.standard_errors.max()


@pytest.mark.parametrize("protection", [Protection(), REPLACED])
def test_standard_errors_are_those_of_simulated_estimates(protection: Protection) -> None:
    order = release_spec_of(ASKED, protection)
    counts = np.random.default_rng(1).poisson(6.0, order.domain.shape).astype(np.int64)
    generator, squares, sums = np.random.default_rng(2), np.zeros(len(ASKED)), np.zeros(len(ASKED))
    truths = [group.rows.count(counts) for group in order.groups]
    tables = settled(order, counts, generator)
    for _ in range(200):
        for i, table in enumerate(settled(order, counts, generator)):
            squares[i] += ((table.estimates - truths[i]) ** 2).mean() / 200
            sums[i] += (table.estimates - truths[i]).mean() / 200
    expected = np.array([(table.standard_errors**2).mean() for table in tables])
    assert squares == pytest.approx(expected, rel=0.15, abs=1e-9)
    assert np.all(np.abs(sums) < 4 * np.sqrt(expected / 200) + 1e-9)


def test_a_crossing_table_is_nearer_with_its_own_numbers_than_without() -> None:
    """Estimates, and whole numbers: what the table says is not thrown away, and not only carried by estimates."""
    order, alone = release_spec_of(ASKED, REPLACED), release_spec_of(CHAIN, REPLACED)
    assert nests(alone)
    counts = np.random.default_rng(1).poisson(3.0, order.domain.shape).astype(np.int64)
    last = order.groups[-1]
    truth, errors = last.rows.count(counts), np.zeros((3, 2))
    for seed in range(30):
        table = settled(order, counts, np.random.default_rng(seed))[-1]
        assert table.values is not None
        detail = next(each for each in released(alone, counts, seed)[1] if each.name == "detail")
        assert detail.values is not None
        found = [
            (table.estimates, table.values),
            (last.measurement.workload.answers(detail.estimates), last.rows.count(detail.values)),
        ]
        for i, (estimates, whole) in enumerate(found):
            errors[i] += ((estimates - truth) ** 2).mean(), ((whole - truth) ** 2).mean()
    assert errors[0, 0] < 0.6 * errors[1, 0]
    assert errors[0, 1] < 0.7 * errors[1, 1]


@pytest.mark.parametrize("protection", [Protection(), REPLACED])
@pytest.mark.parametrize("across", [(JOBS,), (ADULTS, JOBS)])
def test_the_weights_of_crossed_estimates_are_those_of_their_measurements(
    across: tuple[Tabulation, ...], protection: Protection
) -> None:
    order = release_spec_of((*CHAIN, *across), protection)
    linear(order, np.random.default_rng(1).poisson(6.0, order.domain.shape).astype(np.int64))


def linear(order: ReleaseSpec, counts: NDArray[np.int64]) -> None:
    """Sums of estimates move with the noise by the weights that intervals rest on; errors are at least theirs."""
    crossed = nest_together(order)
    assert crossed is not None
    weighing = NestWeights(order, crossed)
    noises = [noise for group in order.groups for noise in group.noises]
    spread = np.array([noise.distribution().variance for noise in noises])[weighing.kinds()]
    totals = None if order.public is None else np.asarray(order.public.answers(counts), dtype=np.int64)

    def nested(noise: NDArray[np.int64]) -> list[PublishedTable]:
        measured, start = list[NoisyRows](), 0
        for group in order.groups:
            values = group.rows.count(counts) + noise[start : start + group.rows.size]
            start += group.rows.size
            measured.append(NoisyRows(group.name, group.noises, group.rows.kinds().astype(np.int64), values))
        return list(consistent_nest(order, crossed, measured=measured, totals=totals).tables)

    noise = np.random.default_rng(2).integers(-4, 5, weighing.size)
    for before, after in zip(nested(np.zeros_like(noise)), nested(noise), strict=True):
        cells = list(range(0, len(before.estimates), 2))
        weights = weighing.weights(before.name, cells)
        assert weights @ noise == pytest.approx((after.estimates - before.estimates)[cells].sum(), abs=1e-8)
        for number in cells[:4]:
            own = np.sqrt(weighing.weights(before.name, [number]) ** 2 @ spread)
            assert own <= before.standard_errors[number] + 1e-9


ONLY_IN_A = (StructuralZero.of({"county": ("b", "c"), "job": "y"}),)


def placed_order(protection: Protection, *across: Tabulation) -> tuple[ReleaseSpec, NDArray[np.int64]]:
    order = release_spec_of((*CHAIN, *across), protection, domain(ONLY_IN_A))
    counts = np.random.default_rng(4).poisson(2.0, order.domain.shape).astype(np.int64)
    counts[:, [block[0] != "a" for block in BLOCKS], 1] = 0
    return order, counts


@pytest.mark.parametrize("protection", [Protection(), REPLACED])
@pytest.mark.parametrize("across", [(), (JOBS,)])
def test_what_cannot_occur_in_some_places_is_empty_there(
    across: tuple[Tabulation, ...], protection: Protection
) -> None:
    order, counts = placed_order(protection, *across)
    possible = np.ones(order.domain.shape, dtype=bool)
    possible[:, [block[0] != "a" for block in BLOCKS], 1] = False
    for seed in range(12):
        tables = settled(order, counts, np.random.default_rng(seed))
        all_add_up(order, tables, counts)
        for table, group in zip(tables, order.groups, strict=True):
            never = group.rows.count(possible.astype(np.int64)) == 0
            assert table.values is not None
            assert not table.values[never].any()
            assert not table.estimates[never].any()
            assert not table.standard_errors[never].any()
    linear(order, counts)


def test_tables_in_another_order_than_the_nest_are_read_in_theirs() -> None:
    """Blocks of a county stand apart, and the chain is by what comes last: nothing is where the table has it."""
    blocks = ("a1", "b1", "a2", "b2", "a3")
    county = Grouping.of("county", [block[0] for block in blocks])
    attributes = (Attribute("age", ("young", "adult")), Attribute("block", blocks), Attribute("job", ("n", "y", "?")))
    zeros = (StructuralZero.of({"county": "b", "job": "y", "age": "young"}),)
    over = Domain(attributes, (Hierarchy("block", (county,)),), zeros)
    by_job = [Tabulation.of(f"jobs by {area}", (area, "job")) for area in ("county", "block")]
    asked = (*by_job, *NESTED[2:4], Tabulation.of("ages by block", ("block", "age")))
    order = release_spec_of(asked, Protection(), over)
    crossed = nest_together(order)
    assert crossed is not None
    assert [each.table.name for each in crossed.across] == ["ages by block"]
    assert crossed.across[0].in_place
    assert not np.array_equal(crossed.across[0].nodes, np.arange(5))
    counts = np.random.default_rng(4).poisson(40.0, over.shape).astype(np.int64)
    counts *= np.arange(1, 6)[None, :, None]  # blocks of very different sizes
    counts[0, [1, 3], 1] = 0
    tables = settled(order, counts, np.random.default_rng(1))
    all_add_up(order, tables, counts)
    for table, group in zip(tables, order.groups, strict=True):
        truth = group.rows.count(counts)
        assert np.all(np.abs(table.estimates - truth) <= 6 * table.standard_errors + 1e-9)
    detail = tables[3]
    assert detail.values is not None
    whole = detail.values.reshape(over.shape)
    assert not whole[0, [1, 3], 1].any()
    assert np.all((whole > 0) == (counts > 0))  # and nothing else is empty
    linear(order, counts)


def test_errors_with_cells_bound_to_places_are_at_most_their_standard_errors() -> None:
    order, counts = placed_order(REPLACED, JOBS)
    truths = [group.rows.count(counts) for group in order.groups]
    tables, squares = settled(order, counts, np.random.default_rng(0)), [np.zeros(t.shape) for t in truths]
    sums = [np.zeros(t.shape) for t in truths]
    for seed in range(200):
        for i, table in enumerate(settled(order, counts, np.random.default_rng(seed))):
            squares[i] += (table.estimates - truths[i]) ** 2 / 200
            sums[i] += (table.estimates - truths[i]) / 200
    for i, table in enumerate(tables):
        assert squares[i].mean() <= (table.standard_errors**2).mean() * 1.1 + 1e-9
        assert np.all(np.abs(sums[i]) <= 5 * table.standard_errors / 200**0.5 + 1e-9)


def test_releases_say_what_crosses_and_how_good_estimates_are() -> None:
    counts = np.random.default_rng(1).poisson(2.0, domain().shape).astype(np.int64)

    def words(order: ReleaseSpec) -> tuple[str, bool, int]:
        measured, totals = measured_of(order, counts, np.random.default_rng(1))
        made = post_process(order, measured=measured, totals=totals)
        return made.words, made.together, len({effect.table for effect in made.effects})

    orthogonal, together, simulated = words(release_spec_of(ASKED, Protection()))
    assert together
    assert simulated == len(ASKED)
    assert "'jobs by county' cross these" in orthogonal
    assert "are the best linear unbiased ones" in orthogonal
    assert "standard errors are exact" in orthogonal
    assert "standard errors are exact" in words(release_spec_of((*CHAIN, ADULTS), Protection()))[0]
    assert "standard errors are upper bounds" in words(release_spec_of((*CHAIN, PARTS), Protection()))[0]
    placed, counts = placed_order(Protection(), JOBS)
    assert "not the best" in words(placed)[0]
    assert "What cannot occur in some places is 0 there" in words(placed)[0]


def test_bounds_that_contradict_exact_totals_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    order, counts = placed_order(REPLACED, JOBS)
    measured, totals = measured_of(order, counts, np.random.default_rng(1))

    def refusing(*_: object, **__: object) -> None:
        raise NoConsistentTables("none", why="no room is left", instead="state one population")

    monkeypatch.setattr(post_processing, "top_down", refusing)
    small = post_process(order, measured=measured, totals=totals)
    assert small.words == post_processing.FITTED
    monkeypatch.setattr(post_processing, "LARGEST_FITTED", 1)
    large = post_process(order, measured=measured, totals=totals)
    tables = list(large.tables)
    assert large.words == post_processing.NOT_FOUND.format(why="no room is left")
    assert large.together
    assert [table.values for table in tables] == [None] * len(tables)
    assert all(np.isfinite(table.estimates).all() for table in tables)


@pytest.mark.parametrize(
    "table",
    [
        Tabulation.of("half", ("block",), weights={"age": {"adult": "0.5"}}),
        Tabulation.of("ages up to", ("age",), weights={"job": {"y": "-1", "n": "0.5"}}),
    ],
)
def test_what_is_weighed_is_left_to_one_histogram(table: Tabulation) -> None:
    assert nest_together(release_spec_of((*CHAIN, table), Protection())) is None


def test_without_measured_cells_a_small_domain_is_left_to_one_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    order = release_spec_of((NESTED[1], NESTED[2], JOBS), Protection())
    assert nest_together(order) is None
    monkeypatch.setattr(nested_tables, "LARGEST_FITTED", 1)
    counts = np.random.default_rng(1).poisson(2.0, order.domain.shape).astype(np.int64)
    ages, blocks, jobs = settled(order, counts, np.random.default_rng(1))
    assert ages.values is not None
    assert blocks.values is not None
    assert jobs.values is not None
    by_county = [blocks.values.reshape(3, 2).sum(axis=1), jobs.values.reshape(3, 3).sum(axis=1)]
    assert np.array_equal(ages.values.reshape(2, 3).sum(axis=0), by_county[1])
    assert np.array_equal(*by_county)


LEVELS = {"age": 3, "job": 3, "sex": 2}


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_random_programs_hold_everything_exactly(data: st.DataObject) -> None:
    """Any tables beside the cells of blocks, by any area, with any zeros: all are whole tables of one file."""
    attributes = (
        Attribute("block", BLOCKS),
        *(Attribute(name, tuple(f"{name}{i}" for i in range(size))) for name, size in LEVELS.items()),
    )
    zeros = []
    if data.draw(st.booleans()):
        places = data.draw(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=4, unique=True))
        zeros.append(StructuralZero.of({"block": tuple(places), "job": "job1", "sex": "sex0"}))
    if data.draw(st.booleans()):
        zeros.append(StructuralZero.of({"age": "age0", "job": ("job1", "job2")}))
    over = Domain(attributes, (Hierarchy("block", (COUNTY,)),), tuple(zeros))
    by = st.tuples(st.sampled_from([(), ("county",), ("block",)]), st.sets(st.sampled_from(sorted(LEVELS))))
    asked = {Tabulation.of("detail", ("block", *LEVELS)): None}
    tables_by = data.draw(st.lists(by.filter(lambda each: bool(each[1])), min_size=1, max_size=5))
    for number, (area, others) in enumerate(tables_by):
        asked[Tabulation.of(f"table {number}", (*area, *sorted(others)))] = None
    protection = data.draw(st.sampled_from([Protection(), REPLACED]))
    order = release_spec_of(tuple(asked), protection, over)
    counts = np.random.default_rng(data.draw(st.integers(0, 99))).poisson(1.5, over.shape).astype(np.int64)
    possible = np.ones(over.shape, dtype=bool)
    for masks in over.all_zero_masks:
        possible[np.ix_(*(masks.get(axis, np.ones(size, dtype=bool)) for axis, size in enumerate(over.shape)))] = False
    counts *= possible
    crossed = nest_together(order)
    assert crossed is not None
    tables = settled(order, counts, np.random.default_rng(7))
    all_add_up(order, tables, counts)
    detail = tables[0]
    assert detail.values is not None
    assert not detail.values.reshape(over.shape)[~possible].any()
    assert all(np.isfinite(table.standard_errors).all() for table in tables)


@pytest.mark.parametrize(("most", "laws"), [(1, 1), (2**28, 3)])
def test_laws_of_a_large_nest_are_few(monkeypatch: pytest.MonkeyPatch, most: int, laws: int) -> None:
    """Each takes estimates of the whole nest: 24 of them for each table of half a billion cells took half an hour."""
    order = release_spec_of((*CHAIN, JOBS), Protection())
    counts = np.random.default_rng(1).poisson(6.0, order.domain.shape).astype(np.int64)
    table = settled(order, counts, np.random.default_rng(3))[-1]
    asked, weights = list[str](), NestWeights._by_estimates

    def counted(self: NestWeights, name: str, numbers: Sequence[int]) -> NDArray[np.float64]:
        asked.append(name)
        return weights(self, name, numbers)

    monkeypatch.setattr(NestWeights, "_by_estimates", counted)
    monkeypatch.setattr("dualmandate.publication.number_errors.MOST_PASSED", most)
    found, _ = TableIntervals(order, PostProcessed((), "", together=True)).of(table)
    assert len(asked) == laws
    assert np.all(found.intervals["upper_95"] - table.estimates > table.standard_errors)


@pytest.mark.parametrize("has_intervals", [False, True])
def test_files_have_no_intervals_where_one_law_takes_hundreds_of_passes_over_many_cells(
    monkeypatch: pytest.MonkeyPatch, has_intervals: bool
) -> None:
    """Estimates without a closed form are made by conjugate gradients, and each law takes one of them."""
    uneven = Tabulation.of("ages with one job", ("county", "age"), where={"job": "y"})
    order = release_spec_of((*CHAIN, uneven), Protection())
    nest = nest_together(order)
    assert nest is not None
    assert not NestWeights(order, nest).is_closed
    counts = np.random.default_rng(1).poisson(6.0, order.domain.shape).astype(np.int64)
    table = settled(order, counts, np.random.default_rng(3))[-1]
    cells = NestWeights(order, nest).cells
    passed = cells * PASSES - (0 if has_intervals else 1)
    monkeypatch.setattr("dualmandate.publication.number_errors.MOST_PASSED", passed)
    found, _ = TableIntervals(order, PostProcessed((), "", together=True)).of(table)
    assert ("lower_95" in found.intervals) == has_intervals


def test_tables_of_adults_have_a_closed_form_beside_those_of_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody measured cells, and jobs of minors are in no table: cells are told apart all the same."""
    monkeypatch.setattr(nested_tables, "LARGEST_FITTED", 0)
    asked = [Tabulation.of(f"{place}", (place,)) for place in ("county", "block")]
    asked += [
        Tabulation.of(f"adults by job, {place}", (place, "job"), where={"age": "adult"})
        for place in ("county", "block")
    ]
    order = release_spec_of(tuple(asked), Protection())
    nest = nest_together(order)
    assert nest is not None
    assert nest.is_orthogonal
    assert publication_cost(order).seconds < 60
    counts = np.random.default_rng(2).poisson(3.0, order.domain.shape).astype(np.int64)
    truth = [group.rows.count(counts) for group in order.groups]
    held, releases = np.zeros(len(asked)), 200
    for seed in range(releases):
        measured, totals = measured_of(order, counts, np.random.default_rng(seed))
        tables = list(consistent_nest(order, nest, measured=measured, totals=totals, whole=seed < 5).tables)
        for i, (table, exact) in enumerate(zip(tables, truth, strict=True)):
            error = np.abs(table.estimates - exact)
            held[i] += float((error <= 1.6449 * table.standard_errors + 1e-9).mean()) / releases
        if seed < 5:
            values = [table.values for table in tables]
            assert all(each is not None and each.min() >= 0 for each in values)
            county, block, adults, of_block = (np.asarray(each) for each in values)
            assert of_block.sum() == adults.sum() <= county.sum() == block.sum()
            assert np.all(of_block.reshape(-1, 3).sum(axis=1) <= block)
            assert np.all(adults.reshape(-1, 3).sum(axis=1) <= county)
    assert held == pytest.approx(0.9, abs=0.03)
