"""Every mechanism passes the same suite: its error formulas equal simulation, its answers are unbiased, and on small
domains the likelihood ratio of every pair of neighbors stays within the stated loss, and reaches it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.errors import UnknownName
from dualmandate.mechanism import (
    GAUSSIAN,
    GEOMETRIC,
    LAPLACE,
    STAIRCASE,
    BitFlip,
    Distribution,
    KNorm,
    MatrixMechanism,
    Measurement,
    Mechanism,
    NamedMeasure,
    NoiseMechanism,
    OneBitMean,
    OptimizedMechanism,
    Production,
    RandomizedResponse,
    Staircase,
    UnaryEncoding,
)
from dualmandate.mechanism.mechanism import Stretched, on_lattice
from dualmandate.population import Neighbors, PrivacyMeasure, Protection
from dualmandate.workload import Workload, explicit, groups, identity, kron, marginals, prefix, stack, total

ADD_OR_REMOVE = Protection()
REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)
LAWS = (LAPLACE, GEOMETRIC, STAIRCASE, GAUSSIAN)
MEASURES: tuple[NamedMeasure, ...] = ("squared", "absolute", "largest variance")
Local = RandomizedResponse | UnaryEncoding | OneBitMean | BitFlip
SIZE = 20_000  # simulated releases
SIGMAS = 5  # a right formula fails about once in two million comparisons


@dataclass(frozen=True, eq=False)
class Case:
    label: str
    mechanism: Mechanism
    workload: Workload
    protection: Protection
    loss: float
    measured: NDArray[np.float64] | None = None  # what gets noise; None: it is found, or people randomize themselves

    @cached_property
    def production(self) -> Production:
        return self.mechanism.production(self.workload, self.protection)

    @property
    def counts(self) -> NDArray[np.int64]:
        if isinstance(self.mechanism, Local):
            assert self.mechanism.sensitive_shares is not None
            shares = np.array(self.mechanism.sensitive_shares)
            return np.asarray(np.rint(shares * self.mechanism.population_size), dtype=np.int64)
        return (np.arange(self.workload.domain.size, dtype=np.int64) * 7 % 5).reshape(self.workload.domain.shape)

    @cached_property
    def errors(self) -> NDArray[np.float64]:
        generator = np.random.default_rng(20190101)
        answers = self.production.draw(self.counts, self.loss, generator=generator, size=SIZE)
        return np.asarray(answers - self.workload.answers(self.counts), dtype=np.float64)


def _cases() -> Iterator[Case]:
    weighted = stack(prefix(4), total(4), weights=[Fraction(1, 2), Fraction(3, 2)])
    tree = stack(identity(4), groups(4, [[0, 1], [2, 3]]), total(4), weights=[1, Fraction(2, 3), Fraction(1, 3)])
    pairs = marginals((2, 3), [1, 2])
    for law in LAWS:
        loss = 0.8 if law is GAUSSIAN else 1.7
        for protection in (ADD_OR_REMOVE, REPLACE_ONE):
            words = f"{law.name}, {protection.neighbors}"
            yield Case(f"straight, {words}", NoiseMechanism(law), weighted, protection, loss, weighted.dense())
            yield Case(f"tree, {words}", MatrixMechanism(tree, law), prefix(4), protection, loss, tree.dense())
        cells = kron(identity(2), identity(3))
        yield Case(f"cells, {law.name}", MatrixMechanism(cells, law), pairs, ADD_OR_REMOVE, loss, cells.dense())
        sums = kron(identity(2), prefix(3))
        yield Case(f"product, {law.name}", MatrixMechanism(sums, law), pairs, ADD_OR_REMOVE, loss, sums.dense())
        steered = OptimizedMechanism(law, values={"prefix": 2.0, "total": 0.5})
        yield Case(f"optimized, {law.name}", steered, weighted, ADD_OR_REMOVE, loss)
        yield Case(f"optimized, {law.name}, replace-one", OptimizedMechanism(law), prefix(5), REPLACE_ONE, loss)
        for protection in (ADD_OR_REMOVE, REPLACE_ONE):
            words = f"{law.name}, {protection.neighbors}"
            yield Case(f"optimized margins, {words}", OptimizedMechanism(law), pairs, protection, loss)
        matrix = np.array([[1, 1, 1, 1], [1, -1, 0, 0], [0, 0, 1, -1], [1, 1, -1, -1]])
        dense = MatrixMechanism(matrix, law)
        yield Case(f"wavelet matrix, {law.name}", dense, prefix(4), ADD_OR_REMOVE, loss, matrix.astype(np.float64))
    local: tuple[tuple[str, Local, int], ...] = (
        ("even coin", RandomizedResponse.binary(60, sensitive_share=0.3), 2),
        ("asymmetric", RandomizedResponse.binary(60, innocuous_share=0.8, sensitive_share=0.3), 2),
        ("four levels", RandomizedResponse.categories(60, 4, sensitive_shares=(0.5, 0.3, 0.2, 0.0)), 4),
        ("bits of four levels", UnaryEncoding(60, 4, sensitive_shares=(0.5, 0.3, 0.2, 0.0)), 4),
        ("one of four bits", BitFlip(60, 4, 1, sensitive_shares=(0.5, 0.3, 0.2, 0.0)), 4),
        ("two of four bits", BitFlip(60, 4, 2, sensitive_shares=(0.5, 0.3, 0.2, 0.0)), 4),
    )
    for label, response, cells_asked in local:
        yield Case(label, response, stack(identity(cells_asked), prefix(cells_asked)), REPLACE_ONE, 1.1)
    amounts = OneBitMean(60, 4, sensitive_shares=(0.5, 0.3, 0.2, 0.0))
    yield Case("one bit of an amount", amounts, explicit([[1, 2, 5, 4]]), REPLACE_ONE, 1.1)
    yield Case("K-norm", KNorm(), weighted, ADD_OR_REMOVE, 1.7)
    yield Case("K-norm, replace-one", KNorm(), prefix(3), REPLACE_ONE, 1.7)
    yield Case("K-norm of margins", KNorm(), pairs, ADD_OR_REMOVE, 1.7)
    yield Case("K-norm of margins, replace-one", KNorm(), pairs, REPLACE_ONE, 1.7)


CASES = list(_cases())
RESPONSES = [case for case in CASES if isinstance(case.mechanism, RandomizedResponse)]
every_case = pytest.mark.parametrize("case", CASES, ids=[case.label for case in CASES])
every_noise = pytest.mark.parametrize(
    "case", [case for case in CASES if case.measured is not None], ids=lambda case: case.label
)


def within(sample: NDArray[np.float64], expected: NDArray[np.float64]) -> bool:
    """Whether the mean of each column of a sample is within some standard errors of what is expected."""
    spread = sample.std(axis=0) / math.sqrt(len(sample))
    return bool(np.all(np.abs(sample.mean(axis=0) - expected) <= SIGMAS * spread + 1e-9))


def by_table(case: Case, per_query: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    cuts = np.cumsum([table.query_count for table in case.workload.tables])[:-1]
    names = [table.name for table in case.workload.tables]
    return dict(zip(names, np.split(per_query, cuts, axis=-1), strict=True))


@every_case
def test_squared_errors_equal_simulation(case: Case) -> None:
    for name, errors in by_table(case, case.errors).items():
        assert within(np.square(errors), case.production.query_variances(name, case.loss))


@every_case
def test_answers_are_unbiased(case: Case) -> None:
    assert within(case.errors, np.zeros(case.workload.query_count))


@every_case
def test_absolute_errors_equal_simulation(case: Case) -> None:
    stated = case.production.table_errors(case.loss, "absolute")
    for name, errors in by_table(case, case.errors).items():
        assert within(np.abs(errors).sum(axis=1, keepdims=True), np.array([stated[name]]))


@every_case
def test_query_variances_sum_to_the_total(case: Case) -> None:
    production, total_error = case.production, 0.0
    squared = production.table_errors(case.loss)
    largest = production.table_errors(case.loss, "largest variance")
    for table in case.workload.tables:
        variances = production.query_variances(table.name, case.loss)
        assert variances.shape == (table.query_count,)
        assert squared[table.name] == pytest.approx(variances.sum(), rel=1e-12)
        assert largest[table.name] == variances.max()
        total_error += variances.sum()
    assert production.expected_squared_error(case.loss) == pytest.approx(total_error, rel=1e-12)


@every_case
@pytest.mark.parametrize("measure", MEASURES)
def test_slopes_are_derivatives(case: Case, measure: NamedMeasure) -> None:
    if measure == "absolute" and isinstance(case.mechanism, Local):
        return  # kinks: tests/mechanism/local/test_randomized_response.py compares chords
    production, step = case.production, 1e-4 * case.loss
    high, low = (production.table_errors(case.loss + sign * step, measure) for sign in (1, -1))
    for name, slope in production.table_slopes(case.loss, measure).items():
        assert slope < 0
        assert slope == pytest.approx((high[name] - low[name]) / (2 * step), rel=1e-5)


@every_case
def test_curvature_is_a_derivative_and_positive(case: Case) -> None:
    production, step = case.production, 1e-4 * case.loss
    high, low = (math.fsum(production.table_slopes(case.loss + sign * step).values()) for sign in (1, -1))
    curvature = math.fsum(production.table_curvatures(case.loss).values())
    assert curvature > 0
    assert curvature == pytest.approx((high - low) / (2 * step), rel=1e-5)


@every_case
@pytest.mark.parametrize("measure", MEASURES)
def test_errors_fall_as_the_loss_grows(case: Case, measure: NamedMeasure) -> None:
    rising = [sum(case.production.table_errors(loss, measure).values()) for loss in (0.05, 0.5, 2.0, 8.0)]
    assert all(more > less for more, less in pairwise(rising))


@every_case
def test_a_unit_of_two_records_needs_twice_the_loss(case: Case) -> None:
    twice = Protection(neighbors=case.protection.neighbors, most_records_per_unit=2, identifier="unit")
    double = case.mechanism.production(case.workload, twice)
    factor = 4 if case.mechanism.privacy_measure is PrivacyMeasure.ZCDP else 2
    for measure in MEASURES:
        assert double.table_errors(factor * case.loss, measure) == pytest.approx(
            case.production.table_errors(case.loss, measure), rel=1e-9
        )


@every_case
def test_an_unknown_measure_is_refused(case: Case) -> None:
    for use in (case.production.table_errors, case.production.table_slopes):
        with pytest.raises(UnknownName, match="not a measure of error"):
            use(case.loss, "cubed")  # type: ignore[arg-type]


@every_case
def test_intervals_hold_the_truth_as_often_as_stated(case: Case) -> None:
    probability = 0.9
    for name, errors in by_table(case, case.errors).items():
        widths = case.production.half_width(name, case.loss, probability)
        covered = (np.abs(errors) <= widths + 1e-9).mean(axis=0)
        assert np.all(covered >= probability - SIGMAS * math.sqrt(probability * (1 - probability) / SIZE))
        together = case.production.simultaneous_half_width(name, case.loss, probability)
        assert np.all(together >= widths)
        all_covered = np.all(np.abs(errors) <= together + 1e-9, axis=1).mean()
        assert all_covered >= probability - SIGMAS * math.sqrt(probability * (1 - probability) / SIZE)


# Privacy: every pair of neighboring small files, exactly.


def neighbors(cells: int, relation: Neighbors) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All ordered pairs of neighboring small files."""
    for counts in product(range(2), repeat=cells):
        for cell in range(cells):
            more = tuple(count + (i == cell) for i, count in enumerate(counts))
            if relation is Neighbors.ADD_OR_REMOVE:
                yield counts, more
                yield more, counts
            else:
                yield from (
                    (more, tuple(count + (i == other) for i, count in enumerate(counts)))
                    for other in range(cells)
                    if other != cell
                )


def shifts(case: Case, rows: list[Distribution]) -> set[tuple[float, ...]]:
    """By how much the measured rows move between neighbors, on the lattice of each row's noise."""
    assert case.measured is not None
    steps = np.array([row.step for row in rows])
    found = set()
    for one, other in neighbors(case.workload.domain.size, case.protection.neighbors):
        moved = case.measured @ (np.array(other) - np.array(one))
        exact = np.where(steps > 0, np.rint(moved / np.where(steps > 0, steps, 1)) * steps, np.round(moved, 12))
        assert np.allclose(exact, moved, rtol=0, atol=1e-9)
        found.add(tuple(exact.tolist()))
    return found


def outputs(noise: Distribution, shift: float) -> Iterator[float]:
    """Wide support of a discrete noise; for a continuous one every kink, from both sides, and points between."""
    if noise.discrete:
        yield from (k * noise.step for k in range(-400, 401))
        return
    inner, stretch = (noise.noise, noise.factor) if isinstance(noise, Stretched) else (noise, 1.0)
    high = inner.high_share if isinstance(inner, Staircase) else 0.0
    for whole, part, sign in product(range(6), (0.0, high), (1, -1)):
        kink = stretch * sign * (whole + part)
        for center in (kink, kink + shift):
            yield from (center - 1e-7, center + 1e-7, center + 0.013)


def noises(case: Case) -> list[Distribution]:
    production = case.production
    assert isinstance(production, Measurement)
    unit, rows = production.unit_loss(case.loss), production.rows
    laws = [on_lattice(production.law, step).at(unit) for step in rows.steps]
    return [laws[kind] for kind in rows.kinds()]


@every_noise
def test_no_pair_of_neighbors_is_told_apart_by_more_than_the_loss(case: Case) -> None:
    rows = noises(case)

    @cache
    def row_loss(row: int, shift: float, order: float) -> float:
        return divergence(rows[row], shift, order)

    orders = (1.2, 2.0, 5.0, 20.0) if case.mechanism.privacy_measure is PrivacyMeasure.ZCDP else (math.inf,)
    reached, moves = 0.0, shifts(case, rows)
    for order in orders:
        allowed = case.loss * (order if case.mechanism.privacy_measure is PrivacyMeasure.ZCDP else 1)
        for moved in moves:
            lost = math.fsum(row_loss(row, shift, order) for row, shift in enumerate(moved) if shift)
            assert lost <= allowed * (1 + 1e-9)
            reached = max(reached, lost / allowed)
    assert case.production.sensitivity.exact
    assert reached == pytest.approx(1, rel=1e-9)


def divergence(noise: Distribution, shift: float, order: float) -> float:
    """Rényi divergence of the noise from itself moved by a shift; of infinite order the largest log ratio."""
    if order == math.inf:
        here = ((noise.log_likelihood(y), noise.log_likelihood(y - shift)) for y in outputs(noise, shift))
        return max(abs(one - other) for one, other in here)
    terms = [
        order * noise.log_likelihood(y) + (1 - order) * noise.log_likelihood(y - shift) for y in outputs(noise, shift)
    ]
    largest = max(terms)
    return (largest + math.log(math.fsum(math.exp(term - largest) for term in terms))) / (order - 1)


@pytest.mark.parametrize(
    "case", [case for case in CASES if isinstance(case.mechanism, RandomizedResponse)], ids=lambda case: case.label
)
def test_no_report_tells_two_people_apart_by_more_than_the_loss(case: Case) -> None:
    response = case.mechanism
    assert isinstance(response, RandomizedResponse)
    truth = response.truth_probability(case.loss)
    innocuous = np.array(response.innocuous_shares)
    channel = (1 - truth) * np.tile(innocuous, (len(innocuous), 1)) + truth * np.eye(len(innocuous))
    people = 2
    reached = 0.0
    for one, other in product(product(range(len(innocuous)), repeat=people), repeat=2):
        if sum(a != b for a, b in zip(one, other, strict=True)) != 1:
            continue
        for reports in product(range(len(innocuous)), repeat=people):
            chances = [math.prod(channel[x, d] for x, d in zip(file, reports, strict=True)) for file in (one, other)]
            lost = abs(math.log(chances[0] / chances[1]))
            assert lost <= case.loss * (1 + 1e-12)
            reached = max(reached, lost)
    assert reached == pytest.approx(case.loss, rel=1e-12)
