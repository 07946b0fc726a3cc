"""Errors that others reach, and that must be reached or beaten: `error_coefficient` = (ΔA)²‖QA⁺‖²_F."""

from __future__ import annotations

import math

import pytest
from tests.mechanism.strategy.reference import coefficients

from dualmandate.mechanism import optimize_strategy
from dualmandate.mechanism.strategy.strategy import NoiseName
from dualmandate.population import Domain
from dualmandate.workload import (
    Identity,
    Prefix,
    Table,
    Total,
    Workload,
    all_range,
    identity,
    kron,
    marginals,
    prefix,
    stack,
    total,
)

ADULT_5 = (75, 16, 5, 2, 20)
ADULT_14 = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)


def population_survey() -> Workload:
    """One-way tables over 50 × 100 × 7 × 4 × 2, prefix sums on the first two attributes."""
    shape = (50, 100, 7, 4, 2)
    tables = []
    for axis in range(5):
        asked = Prefix(shape[axis]) if axis < 2 else Identity(shape[axis])
        tables.append(Table(f"{axis}", tuple(asked if i == axis else Total(n) for i, n in enumerate(shape))))
    return Workload(Domain.of_shape(shape), tuple(tables))


@pytest.mark.parametrize(
    ("workload", "noise", "most"),
    [
        pytest.param(stack(identity(256), total(256)), "laplace", 386.885, id="identity and total, laplace"),
        pytest.param(stack(identity(256), total(256)), "gaussian", 286.9451, id="identity and total, gaussian"),
        pytest.param(prefix(64), "laplace", 906.5, id="prefix 64, laplace"),
        pytest.param(prefix(64), "gaussian", 282.205, id="prefix 64, gaussian"),
        pytest.param(prefix(256), "laplace", 6_880, id="prefix 256, laplace", marks=pytest.mark.slow),
        pytest.param(prefix(256), "gaussian", 1_631.405, id="prefix 256, gaussian"),
        pytest.param(all_range(64), "laplace", 32_070, id="ranges 64, laplace"),
        pytest.param(all_range(256), "laplace", 1.071e6, id="ranges 256, laplace", marks=pytest.mark.slow),
        pytest.param(all_range(256), "gaussian", 276_932, id="ranges 256, gaussian"),
        pytest.param(kron(prefix(64), prefix(64)), "gaussian", 79_638, id="prefix × prefix, gaussian"),
        pytest.param(marginals(ADULT_5, 1), "laplace", 1_669, id="adult 1-way, laplace"),
        pytest.param(marginals(ADULT_5, 2), "laplace", 146_300, id="adult 2-way, laplace"),
        pytest.param(marginals(ADULT_5, 3), "laplace", 1.289e6, id="adult 3-way, laplace"),
        pytest.param(marginals(ADULT_5, 2), "gaussian", 20_682.5, id="adult 2-way, gaussian"),
        pytest.param(population_survey(), "gaussian", 1_522.5, id="survey, gaussian", marks=pytest.mark.slow),
        pytest.param(prefix(1024), "laplace", 47_300, id="prefix 1024, laplace", marks=pytest.mark.slow),
        pytest.param(all_range(1024), "laplace", 3.26e7, id="ranges 1024, laplace", marks=pytest.mark.slow),
        pytest.param(prefix(1024), "gaussian", 8_944.5, id="prefix 1024, gaussian", marks=pytest.mark.slow),
        pytest.param(all_range(1024), "gaussian", 6_484_394, id="ranges 1024, gaussian", marks=pytest.mark.slow),
    ],
)
def test_as_good_as_the_best_known(workload: Workload, noise: NoiseName, most: float) -> None:
    strategy = optimize_strategy(workload, noise)
    assert strategy.error_coefficient <= most
    assert strategy.lower_bound <= strategy.error_coefficient
    assert strategy.sensitivity == pytest.approx(1.0, rel=1e-9)
    if noise == "gaussian":
        assert strategy.error_coefficient <= strategy.lower_bound * (1 + 1e-5)


def test_closed_form_of_all_marginals() -> None:
    """Summed over residual spaces: (Σ_S m_S√v_S)²/Πn, with nothing of the size of 6 × 10¹⁷ cells."""
    strategy = optimize_strategy(marginals(ADULT_14, (0, 1, 2, 3)), "gaussian")
    assert strategy.error_coefficient == pytest.approx(2.3935e9, rel=1e-4)
    cells = math.prod(ADULT_14)
    values: dict[frozenset[int], int] = {}
    for table in strategy.workload.tables:
        kept = [i for i, factor in enumerate(table.factors) if isinstance(factor, Identity)]
        rest = cells // math.prod(ADULT_14[i] for i in kept)
        for bits in range(2 ** len(kept)):
            chosen = frozenset(i for place, i in enumerate(kept) if bits >> place & 1)
            values[chosen] = values.get(chosen, 0) + rest
    roots = (math.prod(ADULT_14[i] - 1 for i in chosen) * math.sqrt(value) for chosen, value in values.items())
    assert strategy.error_coefficient == pytest.approx(math.fsum(roots) ** 2 / cells, rel=1e-9)
    assert strategy.lower_bound == strategy.error_coefficient


def test_all_marginals_are_a_product() -> None:
    """Published: 1.80017e6 for all 32 marginals of the five attributes; one part an attribute."""
    strategy = optimize_strategy(marginals(ADULT_5, range(6)), "gaussian")
    assert len(strategy.measurements) == 5
    assert strategy.error_coefficient == pytest.approx(1.80017e6, rel=1e-5)
    jointly = optimize_strategy(marginals(ADULT_5, range(6)))
    assert len(jointly.measurements) == 1  # for pure ε a product is not the best
    assert jointly.error_coefficient <= 6.478e6
    assert jointly.lower_bound == pytest.approx(strategy.lower_bound, rel=1e-9)


def test_twenty_attributes() -> None:
    strategy = optimize_strategy(marginals((8,) * 24, (1, 2)), "gaussian")
    each = sum(float(coefficients(strategy, table.name).sum()) for table in strategy.workload.tables)
    assert each == pytest.approx(strategy.exact.error_coefficient(strategy.protection), rel=1e-9)
    assert each == pytest.approx(strategy.error_coefficient, rel=1e-3)  # of the rows before they were rounded
