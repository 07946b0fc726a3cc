"""One histogram for tables that cross: nothing below 0, totals held, near the best, and better than the noise."""

from __future__ import annotations

import numpy as np
import piqp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest
from dualmandate.population import Attribute, Domain
from dualmandate.publication.consistency import histogram_fit
from dualmandate.publication.consistency.histogram_fit import Atoms, _rounded, consistent_histogram
from dualmandate.workload import Table, Tabulation, Workload, groups, identity, kron, marginals, prefix, stack, total

SHAPE = (5, 4, 3, 2)  # schooling, occupation, race, sex: a small Adult


def people(seed: int, shape: tuple[int, ...] = SHAPE, records: int = 400) -> NDArray[np.int64]:
    generator = np.random.default_rng(seed)
    chances = generator.gamma(0.3, 1.0, shape)
    return generator.multinomial(records, chances.reshape(-1) / chances.sum()).reshape(shape).astype(np.int64)


def noisy(workload: Workload, truth: NDArray[np.int64], seed: int, deviation: float = 3.0) -> NDArray[np.float64]:
    noise = np.random.default_rng(seed).normal(0.0, deviation, workload.query_count)
    return np.asarray(workload.answers(truth) + np.rint(noise), dtype=np.float64)


def nearest_loss(workload: Workload, estimates: NDArray[np.float64], records: int) -> float:
    """Σ residual² of the best non-negative real histogram with this number of records, by another solver."""
    matrix = workload.dense()
    solver = piqp.DenseSolver()
    cells = matrix.shape[1]
    solver.setup(
        matrix.T @ matrix + 1e-9 * np.eye(cells),
        -matrix.T @ estimates,
        np.ones((1, cells)),
        np.array([float(records)]),
        x_l=np.zeros(cells),
    )
    assert solver.solve() == piqp.PIQP_SOLVED
    return float(((matrix @ np.asarray(solver.result.x) - estimates) ** 2).sum())


@pytest.mark.parametrize("seed", range(4))
def test_two_way_tables_are_those_of_one_file_near_the_best(seed: int) -> None:
    workload, everyone, truth = marginals(SHAPE, 2), marginals(SHAPE, 0), people(seed)
    estimates = noisy(workload, truth, seed)
    found = consistent_histogram(
        workload, estimates, np.full(estimates.size, 9.0), public=everyone, totals=everyone.answers(truth)
    )
    answers = workload.answers(found)
    assert found.min() >= 0
    assert found.sum() == truth.sum()
    best = nearest_loss(workload, estimates, int(truth.sum()))
    assert best <= ((answers - estimates) ** 2).sum() <= best + workload.query_count
    exact = workload.answers(truth)
    assert ((answers - exact) ** 2).sum() < ((estimates - exact) ** 2).sum()


def test_counts_beside_a_sum_come_as_near_as_the_sum() -> None:
    """Amounts are as steep as 1,000 counts: steps that hardly move a count are no sign that it is near."""
    domain = Domain((Attribute("region", ("n", "e", "s", "w")), Attribute.numbers("cost", 0, 100_000, 100)))
    asked = (
        Tabulation("people", by=("region",)),
        Tabulation("costs", by=("region",), sum_of="cost"),
        Tabulation("at the bound", where=(("cost", ("100000",)),)),
    )
    workload = Workload.from_tabulations(domain, asked)
    draws, truth = np.random.default_rng(5), np.zeros(domain.shape)
    costs = np.minimum(np.rint(draws.lognormal(np.log(15), 1.8, 100_000)), 1_000).astype(int)
    np.add.at(truth, (draws.integers(0, 4, 100_000), costs), 1)
    errors = np.repeat([14.0, 1500.0, 50.0], [4, 4, 1])
    estimates = workload.answers(truth) + draws.normal(0.0, errors)
    found = workload.answers(consistent_histogram(workload, estimates, errors**2))
    assert np.abs((found - estimates) / errors).max() < 0.5


@given(st.integers(0, 2**32), st.integers(0, 60))
@settings(max_examples=25, deadline=None)
def test_totals_and_zeros_hold_always(seed: int, records: int) -> None:
    workload, truth = marginals(SHAPE, (1, 2)), people(seed, records=records)
    possible = np.random.default_rng(seed).random(SHAPE) < 0.7
    possible.reshape(-1)[0] = True
    truth = np.where(possible, truth, 0)
    nested = Workload(
        workload.domain, (*marginals(SHAPE, 0).tables, *marginals(SHAPE, 2).tables[:1], *marginals(SHAPE, 1).tables[:1])
    )
    totals = nested.answers(truth)
    estimates = noisy(workload, truth, seed)
    found = consistent_histogram(
        workload, estimates, np.full(estimates.size, 9.0), public=nested, totals=totals, possible=possible
    )
    assert found.min() >= 0
    assert not found[~possible].any()
    assert nested.answers(found).tolist() == totals.tolist()


def test_totals_that_cross_hold_too() -> None:
    workload, crossing, truth = marginals(SHAPE, 2), marginals(SHAPE, 1), people(3)
    estimates = noisy(workload, truth, 3)
    totals = crossing.answers(truth)
    found = consistent_histogram(workload, estimates, np.full(estimates.size, 9.0), public=crossing, totals=totals)
    assert found.min() >= 0
    assert crossing.answers(found).tolist() == totals.tolist()


def test_without_noise_the_tables_come_back() -> None:
    workload, everyone, truth = marginals(SHAPE, 2), marginals(SHAPE, 0), people(5)
    estimates = np.asarray(workload.answers(truth), dtype=np.float64)
    found = consistent_histogram(
        workload, estimates, np.ones(estimates.size), public=everyone, totals=everyone.answers(truth)
    )
    assert np.abs(workload.answers(found) - estimates).max() <= 2


def test_records_may_be_free_in_number() -> None:
    workload, truth = marginals(SHAPE, (0, 2)), people(7)
    estimates = noisy(workload, truth, 7)
    variances = np.full(estimates.size, 9.0)
    found = consistent_histogram(workload, estimates, variances)
    assert abs(int(found.sum()) - int(truth.sum())) < 10
    assert np.array_equal(found, consistent_histogram(workload, estimates, variances))


def test_tables_that_count_a_record_often_are_met_within_a_record() -> None:
    workload, truth = prefix(40), people(9, (40,), records=2000)
    estimates = np.asarray(workload.answers(truth), dtype=np.float64)
    found = consistent_histogram(workload, estimates, np.ones(40), public=total(40), totals=np.array([truth.sum()]))
    assert np.abs(workload.answers(found) - estimates).max() <= 1


def test_weighted_and_partial_tables() -> None:
    truth = people(11, (6, 3), records=300)
    workload = stack(kron(groups(6, [[0, 1], [3, 4]]), identity(3)), kron(identity(6), total(3)), weights=[1, 2])
    estimates = noisy(workload, truth, 11)
    variances = np.full(estimates.size, 9.0)
    found = consistent_histogram(workload, estimates, variances, public=marginals((6, 3), 0), totals=np.array([300]))
    worst = consistent_histogram(
        workload, np.zeros_like(estimates), variances, public=marginals((6, 3), 0), totals=np.array([300])
    )
    assert found.sum() == 300
    loss, other = (((workload.answers(each) - estimates) ** 2).sum() for each in (found, worst))
    assert loss < 9.0 * estimates.size * 2 < other


def test_what_does_not_fit_is_refused() -> None:
    workload = marginals(SHAPE, 1)
    with pytest.raises(InvalidRequest, match="14 estimates and 13 variances"):
        consistent_histogram(workload, np.zeros(14), np.ones(13))
    doubled = Workload(Domain.of_shape((4,)), (Table("twice", prefix(4).tables[0].factors),))
    with pytest.raises(InvalidRequest, match="groups that overlap"):
        consistent_histogram(identity(4), np.ones(4), np.ones(4), public=doubled, totals=np.arange(4))


def test_running_sums_are_rounded_to_the_nearest() -> None:
    x = np.array([0.4, 0.4, 0.4, 0.3, 0.9, 0.6, 2.5])
    atoms = Atoms(np.array([0, 0, 0, 0, 1, 1, -1]), np.array([2, 1]))
    whole = _rounded(np.where(atoms.labels < 0, 0.0, x) * np.array([2 / 1.5] * 4 + [1 / 1.5] * 2 + [0]), atoms)
    assert whole.tolist() == [1, 0, 1, 0, 1, 0, 0]  # sums .53, 1.07, 1.6, 2 and .6, 1


def test_amounts_that_cancel_are_fitted_too() -> None:
    """−5, 0 and 5: what equal cells answer is 0 in every row, and says nothing of how steep a sum is."""
    domain = Domain((Attribute.numbers("gain", -5, 5, 5), Attribute.categories("sex", ["f", "m"])))
    sums = Workload.from_tabulations(domain, [Tabulation("gains", by=("sex",), sum_of="gain")])
    files = Workload.from_tabulations(domain, [Tabulation("people", by=("sex",))])
    found = consistent_histogram(sums, np.array([8.0, -3.0]), np.ones(2), public=files, totals=np.array([4, 4]))
    assert found.sum(axis=0).tolist() == [4, 4]
    assert np.asarray(sums.answers(found)).tolist() == [4, -3]  # in steps of 5; four people gain at most 4 of them


def test_what_rounding_leaves_of_a_variance_holds_nothing() -> None:
    """Exact margins decide their own numbers: a variance of 10⁻³⁰ instead of 0 made steps smaller without end."""
    domain = Domain(tuple(Attribute.categories(name, ["0", "1", "2"]) for name in "ab"))
    asked = Workload.from_tabulations(domain, [Tabulation("cells", by=("a", "b")), Tabulation("rows", by=("a",))])
    margins = Workload.from_tabulations(domain, [Tabulation("rows", by=("a",)), Tabulation("columns", by=("b",))])
    totals = np.array([2, 4, 0, 4, 0, 2])
    draws = np.random.default_rng(15)
    for _ in range(10):
        estimates = np.concatenate([draws.normal(0, 2, 9), totals[:3] + draws.normal(0, 1e-15, 3)])
        wide = np.full(9, 1.2)
        left, none = (
            consistent_histogram(
                asked, estimates, np.concatenate([wide, narrow]), public=margins, totals=totals, possible=None
            )
            for narrow in (np.array([3e-30, 1e-30, 5e-30]), np.zeros(3))
        )
        assert left.tolist() == none.tolist()
        assert np.asarray(margins.answers(left)).tolist() == totals.tolist()


def test_steps_that_never_prove_short_enough_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain((Attribute.categories("a", ["0", "1"]),))
    asked = Workload.from_tabulations(domain, [Tabulation("cells", by=("a",))])
    lost = iter(range(10**6))
    monkeypatch.setattr(histogram_fit._Fit, "loss", lambda *_: float(next(lost)) ** 2)  # always more than promised
    found = consistent_histogram(asked, np.array([3.0, 4.0]), np.ones(2))
    assert found.shape == (2,)
    assert next(lost) < 10 * histogram_fit.MOST_HALVINGS
