"""Marginals that are measured without the cells of the domain: the same as over these, and never anything less."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Literal

import numpy as np
import pytest

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism import GAUSSIAN, Measurement, StrategyRows, optimize_strategy
from dualmandate.mechanism.strategy import strategy as optimizing
from dualmandate.mechanism.strategy.exact import ExactStrategy
from dualmandate.mechanism.strategy.marginal_rows import ALIKE, _alike
from dualmandate.mechanism.strategy.strategy import Strategy
from dualmandate.mechanism.strategy.strategy_file import strategy_digest, strategy_document, strategy_from
from dualmandate.population import Attribute, Domain, Neighbors, Protection
from dualmandate.workload import Tabulation, Workload, marginals

Noise = Literal["gaussian", "laplace"]
EVERY_PERSON = Protection()
SHAPE = (3, 4, 2, 5)
DOMAIN = Domain(
    tuple(Attribute.numbers(name, 1, count) for name, count in (("a", 3), ("b", 2), ("c", 4), ("d", 2), ("e", 2)))
)
UNEVEN = Workload.from_tabulations(
    DOMAIN, [Tabulation.of("ab", ("b", "a")), Tabulation.of("bcd", ("b", "c", "d")), Tabulation.of("c", ("c",))]
)


def wide(workload: Workload, noise: Noise, monkeypatch: pytest.MonkeyPatch, **values: float) -> Strategy:
    """The strategy of marginals, as for a domain too large to write out."""
    with monkeypatch.context() as patched:
        patched.setattr(optimizing, "MARGINALS_FROM", 1)
        found = optimize_strategy(workload, noise, values=values or None)
    assert found.exact.marginals is not None
    return found


def reconstruction(exact: ExactStrategy) -> tuple[np.ndarray, np.ndarray]:
    """Weighted rows over all cells, and QA⁺ by plain linear algebra."""
    shape = exact.workload.domain.shape
    cells = np.eye(int(np.prod(shape)), dtype=np.int64)
    rows = exact.row_weights[:, None] * np.stack([exact.count(cell.reshape(shape)) for cell in cells], axis=1)
    return rows, exact.workload.dense() @ np.linalg.pinv(rows)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("workload", [marginals(SHAPE, 2), marginals((3, 2, 3), (0, 1, 3)), UNEVEN], ids=str)
def test_it_is_the_least_squares_answer_over_all_cells(
    workload: Workload, noise: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = wide(workload, noise, monkeypatch).exact
    rows, solved = reconstruction(exact)
    generator = np.random.default_rng(3)
    counts = generator.integers(0, 40, workload.domain.shape)
    assert np.allclose(exact.reconstruct(exact.count(counts)), workload.answers(counts))
    measured = exact.count(counts) + generator.normal(scale=10, size=exact.rows)
    assert np.allclose(exact.reconstruct(measured), solved @ (exact.row_weights * measured))
    power = exact.power
    largest = float((np.abs(rows) ** power).sum(axis=0).max())
    assert float(exact.sensitivity(EVERY_PERSON).power) == pytest.approx(largest, rel=1e-12)
    by_kind = generator.uniform(0.5, 2.0, len(exact.steps))
    variances = dict(zip(exact.steps, by_kind, strict=True))
    found = [exact.query_variances(table.name, variances.__getitem__) for table in workload.tables]
    assert np.allclose(np.concatenate(found), solved**2 @ by_kind[exact.kinds()])
    sums = np.sum([exact.table_sums(table.name) for table in workload.tables], axis=0)
    assert np.allclose(sums, [(solved[:, exact.kinds() == kind] ** 2).sum() for kind in range(len(exact.steps))])


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_a_sum_of_numbers_takes_what_it_should_of_the_noise(noise: Noise, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = wide(UNEVEN, noise, monkeypatch).exact
    _, solved = reconstruction(exact)
    table = UNEVEN.table("bcd")
    start = UNEVEN.table("ab").query_count
    for numbers in ([0], [3, 4, 11], range(table.query_count)):
        rows, shares = exact.taken("bcd", list(numbers))
        whole = np.zeros(exact.rows)
        whole[rows] = shares
        assert np.allclose(whole, solved[[start + n for n in numbers]].sum(axis=0) * exact.row_weights)
        assert noise == "laplace" or len(rows) < exact.rows  # of spaces that it has no part in, nothing


@pytest.mark.parametrize("workload", [marginals(SHAPE, 2), marginals((4, 4, 4, 4), (1, 3)), UNEVEN], ids=str)
def test_for_gaussian_noise_it_is_the_optimum(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {table.name: 1.0 + 3 * n for n, table in enumerate(workload.tables)}
    dense, found = (
        optimize_strategy(workload, "gaussian", values=values),
        wide(workload, "gaussian", monkeypatch, **values),
    )
    assert found.found_error == pytest.approx(dense.error_coefficient, rel=1e-9)
    assert found.lower_bound == pytest.approx(dense.lower_bound, rel=1e-9)
    # shared laws of noise cost next to nothing
    assert found.error_coefficient == pytest.approx(found.lower_bound, rel=1e-9)
    assert found.exact.error_coefficient(EVERY_PERSON) == pytest.approx(found.error_coefficient, rel=1e-5)


def test_weights_that_differ_little_share_a_law() -> None:
    weights = np.exp(np.random.default_rng(1).uniform(0, 1, 2_000)).tolist()
    found = _alike(weights)
    assert len(set(found)) < 200
    ratios = [float(one) / other for one, other in zip(found, weights, strict=True)]
    assert max(ratios) <= ALIKE**0.5 * 1.001
    assert min(ratios) >= ALIKE**-0.5 * 0.999
    assert len({float(each) for each in _alike([2.0, 2.0, 3.0])}) == 2


def test_all_two_way_tables_of_a_hundred_attributes_have_a_plan() -> None:
    """4,950 tables of 10¹⁰⁰ cells: measured as 496,001 differences with three laws, and as good as can be."""
    found = optimize_strategy(marginals((10,) * 100, 2), "gaussian")
    exact = found.exact
    assert (exact.rows, len(exact.steps)) == (1 + 1_000 + 495_000, 3)
    assert exact.error_coefficient(EVERY_PERSON) == pytest.approx(found.lower_bound, rel=1e-6)


def test_it_is_written_and_read_and_nothing_of_it_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = wide(UNEVEN, "gaussian", monkeypatch).exact
    document = strategy_document(exact)
    again = strategy_from(document, UNEVEN, EVERY_PERSON)
    assert strategy_digest(again) == strategy_digest(exact)
    assert again.sensitivity(EVERY_PERSON) == exact.sensitivity(EVERY_PERSON)
    [part] = document["parts"]
    for changed in (
        {"differences": False},
        {"weights": [str(2 * Fraction(each)) for each in part["weights"]]},
        {"marginals": part["marginals"][:-1]},
        {"marginals": [[places[::-1], kind] for places, kind in part["marginals"]]},
    ):
        with pytest.raises(InvalidMechanism, match="not the one its digest names"):
            strategy_from({**document, "parts": [{**part, **changed}]}, UNEVEN, EVERY_PERSON)


def test_it_is_for_records_that_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a public number of records another strategy is looked for; one of marginals alone is refused."""
    replacing = Protection(neighbors=Neighbors.REPLACE_ONE)
    exact = wide(UNEVEN, "gaussian", monkeypatch).exact
    with pytest.raises(InvalidMechanism, match="without the cells of the domain"):
        exact.sensitivity(replacing)
    monkeypatch.setattr(optimizing, "MARGINALS_FROM", 1)
    assert optimize_strategy(UNEVEN, "gaussian", protection=replacing).exact.marginals is None


def test_errors_of_many_tables_are_one_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half-widths are those of the answers one by one, worked out once for all tables of one shape."""
    workload = marginals((3, 3, 3, 3), 2)
    rows = StrategyRows(wide(workload, "gaussian", monkeypatch).exact)
    measurement = Measurement(rows, GAUSSIAN)
    halves = [measurement.half_width(table.name, 0.1, 0.95) for table in workload.tables]
    assert np.ptp(np.concatenate(halves)) == 0.0
    assert sum(len(laws) for laws in rows.laws.values()) == 1
    spread = float(np.sqrt(measurement.query_variances(workload.tables[0].name, 0.1)[0]))
    assert 1.9 * spread < halves[0][0] < 2.1 * spread
    assert len(list(combinations(range(4), 2))) == len(workload.tables)
