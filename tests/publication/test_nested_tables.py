"""Tables that nest are found to, and estimated and made whole over the whole nest."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.measured import direct

from dualmandate.population import (
    Attribute,
    Domain,
    Grouping,
    Hierarchy,
    Invariant,
    Neighbors,
    PrivacyLoss,
    PrivacyMeasure,
    Protection,
    StructuralZero,
)
from dualmandate.publication.measuring import estimated
from dualmandate.publication.nested_tables import NestWeights, nest_together
from dualmandate.publication.post_processing import consistent_nest, post_process
from dualmandate.publication.release_spec import Group, ReleaseSpec, known_histogram
from dualmandate.publication.rules import Rules
from dualmandate.publication.writing import NoisyRows, PublishedTable
from dualmandate.workload import Tabulation, Workload

BLOCKS = tuple(f"{county}{block}" for county in "cab" for block in "21")  # not in the order of their counties
COUNTY = Grouping.of("county", [block[0] for block in BLOCKS])
REPLACED = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("by county", ("county",)),))


def domain(zeros: tuple[StructuralZero, ...] = ()) -> Domain:
    attributes = (Attribute("age", ("young", "adult")), Attribute("block", BLOCKS), Attribute("job", ("n", "y", "?")))
    return Domain(attributes, (Hierarchy("block", (COUNTY,)),), zeros)


NESTED = (
    Tabulation.of("all"),
    Tabulation.of("ages by county", ("county", "age")),
    Tabulation.of("blocks", ("block",)),
    Tabulation.of("detail", ("block", "job", "age")),
    Tabulation.of("ages", ("age",)),
)


def nests(order: ReleaseSpec) -> bool:
    """Whether all tables nest."""
    nest = nest_together(order)
    return nest is not None and nest.is_complete


def release_spec_of(
    tabulations: tuple[Tabulation, ...], protection: Protection, over: Domain | None = None
) -> ReleaseSpec:
    over = domain() if over is None else over
    groups = tuple(
        Group(
            each.name, direct(Workload.from_tabulations(over, [each]), protection, PrivacyMeasure.ZCDP), Fraction(1, 5)
        )
        for each in tabulations
    )
    units = {each.name: "person" for each in tabulations}
    return ReleaseSpec("0" * 64, "p", "people", PrivacyLoss.concentrated(1), over, protection, Rules(), groups, units)


def released(
    order: ReleaseSpec, counts: NDArray[np.int64], seed: int
) -> tuple[list[PublishedTable], list[PublishedTable]]:
    """The tables as measured, and after they were adjusted."""
    generator = np.random.default_rng(seed)
    totals = None if order.public is None else np.asarray(order.public.answers(counts), dtype=np.int64)
    public = None if totals is None else known_histogram(order, totals)
    measured, tables = list[NoisyRows](), list[PublishedTable]()
    for group in order.groups:
        law = group.noises[0].distribution()
        values = group.rows.count(counts) + law.draw(generator, group.rows.size).astype(np.int64)
        each = NoisyRows(group.name, group.noises, group.rows.kinds().astype(np.int64), values)
        measured.append(each)
        tables += estimated(order, group, each, public)
    return tables, list(post_process(order, measured=measured, totals=totals).tables)


@pytest.mark.parametrize("protection", [Protection(), REPLACED])
def test_nested_tables_add_up_hold_what_is_exact_and_err_less(protection: Protection) -> None:
    asked = NESTED if protection is not REPLACED else NESTED[1:]  # the number of all is public there
    order = release_spec_of(asked, protection)
    assert nests(order)
    counts = np.random.default_rng(1).poisson(6.0, order.domain.shape).astype(np.int64)
    squares = np.zeros((2, len(asked)))
    truths = [order.groups[i].measurement.workload.answers(counts) for i in range(len(asked))]
    for seed in range(60):
        before, after = released(order, counts, seed)
        detail = next(table for table in after if table.name == "detail")
        assert detail.values is not None
        whole = detail.values.reshape(order.domain.shape)
        for table in after:
            assert table.values is not None
            assert table.values.min() >= 0
            assert np.array_equal(
                table.values, order.groups[[t.name for t in after].index(table.name)].rows.count(whole)
            )
        if protection is REPLACED:
            assert order.public is not None
            assert np.array_equal(order.public.answers(whole), order.public.answers(counts))
        for i, (raw, better) in enumerate(zip(before, after, strict=True)):
            squares[0, i] += ((raw.estimates - truths[i]) ** 2).mean()
            squares[1, i] += ((better.estimates - truths[i]) ** 2).mean()
            assert np.all(better.standard_errors <= raw.standard_errors + 1e-9)
    _, after = released(order, counts, 0)
    expected = [float((table.standard_errors**2).mean()) for table in after]
    assert squares[1] / 60 == pytest.approx(expected, rel=0.4, abs=1e-9)
    assert squares[1].sum() < squares[0].sum()


def test_cells_that_cannot_occur_stay_empty() -> None:
    over = domain((StructuralZero.of({"age": "young", "job": "y"}),))
    order = release_spec_of(
        (Tabulation.of("detail", ("block", "job", "age")), Tabulation.of("blocks", ("block",))), Protection(), over
    )
    counts = np.full(over.shape, 3, dtype=np.int64)
    counts[0, :, 1] = 0
    _, after = released(order, counts, 3)
    detail = next(table for table in after if table.name == "detail")
    assert detail.values is not None
    assert not detail.values.reshape(over.shape)[0, :, 1].any()


@pytest.mark.parametrize(
    "crossing",
    [
        Tabulation.of("jobs by county", ("county", "job")),  # neither of ages and jobs holds the other
        Tabulation.of("adults", ("block",), where={"age": "adult"}),  # counts not everybody
        Tabulation.of("half", ("block",), weights={"age": {"adult": "0.5"}}),
    ],
)
def test_what_does_not_nest_is_said_so(crossing: Tabulation) -> None:
    assert not nests(release_spec_of((*NESTED, crossing), Protection()))


def test_the_total_alone_nests() -> None:
    order = release_spec_of((Tabulation.of("all"),), Protection())
    counts = np.ones(order.domain.shape, dtype=np.int64)
    _, [table] = released(order, counts, 5)
    assert table.values is not None
    assert table.values[0] == max(round(table.estimates[0]), 0)


@pytest.mark.parametrize("protection", [Protection(), REPLACED])
def test_the_weights_of_a_nested_estimate_are_those_of_its_measurements(protection: Protection) -> None:
    order = release_spec_of(NESTED if protection is not REPLACED else NESTED[1:], protection)
    nest = nest_together(order)
    assert nest is not None
    assert nest.is_complete
    weighing = NestWeights(order, nest)
    counts = np.random.default_rng(1).poisson(6.0, order.domain.shape).astype(np.int64)
    totals = None if order.public is None else np.asarray(order.public.answers(counts), dtype=np.int64)
    noises = [noise for group in order.groups for noise in group.noises]
    spread = np.array([noise.distribution().variance for noise in noises])[weighing.kinds()]

    def nested(noise: NDArray[np.int64]) -> list[PublishedTable]:
        measured, start = list[NoisyRows](), 0
        for group in order.groups:
            values = group.rows.count(counts) + noise[start : start + group.rows.size]
            start += group.rows.size
            each = NoisyRows(group.name, group.noises, group.rows.kinds().astype(np.int64), values)
            measured.append(each)
        return list(consistent_nest(order, nest, measured=measured, totals=totals).tables)

    noise = np.random.default_rng(2).integers(-4, 5, weighing.size)
    still, moved = nested(np.zeros_like(noise)), nested(noise)
    for before, after in zip(still, moved, strict=True):
        cells = list(range(0, len(before.estimates), 2))
        weights = weighing.weights(before.name, cells)
        assert weights @ noise == pytest.approx((after.estimates - before.estimates)[cells].sum(), abs=1e-9)
        counted = weighing.counted(before.name, cells)
        assert counted is not None
        parts = [float(sizes**2 @ times) * noise.distribution().variance for noise, sizes, times in counted]
        assert sum(parts) == pytest.approx(weights**2 @ spread, abs=1e-9)
        assert weighing.spreads(before.name, np.arange(len(before.estimates))) == pytest.approx(before.standard_errors)
        rows = weighing.weights(before.name, [0])
        assert np.sqrt(rows**2 @ spread) == pytest.approx(before.standard_errors[0], abs=1e-9)


@pytest.mark.parametrize("blocks", [Fraction(1, 5), Fraction(1, 50)])
def test_sums_of_estimates_that_are_not_the_best_have_the_weights_that_they_have(blocks: Fraction) -> None:
    """Ages are unlike parts of the total, and blocks measured otherwise than counties: passes take products instead."""
    unlike = Grouping.of("known", ["known" if job != "?" else job for job in ("n", "y", "?")])
    over = Domain(domain().attributes, (Hierarchy("block", (COUNTY,)), Hierarchy("job", (unlike,))))
    asked = [(place, job) for place in ("county", "block") for job in ("known", "job")]
    order = release_spec_of(tuple(Tabulation.of(" ".join(by), by) for by in asked), Protection(), over)
    losses = (Fraction(1, 5), Fraction(1, 3), blocks, Fraction(1, 7))
    groups = tuple(replace(group, loss=loss) for group, loss in zip(order.groups, losses, strict=True))
    order = replace(order, groups=groups)
    nest = nest_together(order)
    assert nest is not None
    weighing = NestWeights(order, nest)
    assert weighing.passes is not None
    assert not weighing.passes.weights.best
    noise = np.random.default_rng(3).integers(-9, 10, weighing.size)
    zeros = np.zeros(over.shape, dtype=np.int64)

    def estimates(errors: NDArray[np.int64]) -> list[PublishedTable]:
        parts = np.split(errors, np.cumsum([group.rows.size for group in order.groups])[:-1])
        measured = [
            NoisyRows(group.name, group.noises, group.rows.kinds(), group.rows.count(zeros) + part)
            for group, part in zip(order.groups, parts, strict=True)
        ]
        return list(consistent_nest(order, nest, measured=measured, totals=None).tables)

    for table in estimates(noise):
        for cells in ([0], [1, 3], list(range(len(table.estimates)))):
            weights = weighing.weights(table.name, cells)
            assert weights @ noise == pytest.approx(table.estimates[cells].sum(), abs=1e-9)
