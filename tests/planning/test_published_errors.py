"""What a plan says of errors is what the release states, where tables that nest are measured apart and combined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.publication.test_nested_tables import NESTED, REPLACED, release_spec_of

from dualmandate.frontier import priced, stated_split
from dualmandate.mechanism.strategy.strategy import optimize_strategy
from dualmandate.planning.published_errors import CROSSED, TOO_MANY, CombinedTables, as_published, combined_tables
from dualmandate.population import Attribute, Domain, Protection
from dualmandate.publication.nested_tables import NestWeights, nest_together
from dualmandate.publication.number_errors import NumberErrors
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.workload import Tabulation, Workload

PLACES = ((), ("county",), ("block",))
DETAILS = ((), ("age",), ("age", "job"))
PAIRS = [(place, detail) for place in PLACES for detail in DETAILS]


def by(pairs: Sequence[tuple[tuple[str, ...], ...]]) -> list[Tabulation]:
    """Tables of places and details."""
    return [Tabulation.of(f"{place} {detail}", (*place, *detail)) for place, detail in pairs]


def ordered(asked: Sequence[Tabulation], parts: Sequence[int], protection: Protection) -> ReleaseSpec:
    """Tables, each with its part of ρ = 1."""
    order = release_spec_of(tuple(asked), protection)
    shares = [Fraction(part, sum(parts)) for part in parts]
    groups = tuple(replace(group, loss=share) for group, share in zip(order.groups, shares, strict=True))
    return replace(order, groups=groups)


@given(st.data())
def test_the_error_of_a_plan_is_the_standard_error_of_its_release(data: st.DataObject) -> None:
    """Root mean square over each table, of random sets of nested tables at random shares."""
    protection = data.draw(st.sampled_from([Protection(), REPLACED]))
    known = [] if protection is not REPLACED else [((), ()), (("county",), ())]  # exact: nothing to be measured
    noisy = [pair for pair in PAIRS if pair not in known]
    pairs = data.draw(st.lists(st.sampled_from(noisy), min_size=2, max_size=6, unique=True))
    parts = data.draw(st.lists(st.integers(1, 20), min_size=len(pairs), max_size=len(pairs)))
    order = ordered(by(pairs), parts, protection)
    measurements = {group.name: group.measurement for group in order.groups}
    shares = {group.name: group.loss for group in order.groups}
    found, nest = combined_tables(measurements, shares, protection), nest_together(order)
    assert isinstance(found, CombinedTables) == (nest is not None and nest.is_complete)
    if not isinstance(found, CombinedTables) or nest is None:
        return
    frontier, unknown = as_published(
        stated_split({name: priced(each) for name, each in measurements.items()}, shares), measurements, protection
    )
    assert unknown is None
    planned, noises = frontier.table_errors(1.0), tuple(noise for group in order.groups for noise in group.noises)
    for table in order.tables:
        errors = NumberErrors(table, NestWeights(order, nest), noises)
        stated = errors.spreads(np.arange(table.query_count))
        assert planned[table.name] == pytest.approx(float(stated @ stated), rel=1e-6, abs=1e-9)
        assert (
            planned[table.name]
            <= priced(measurements[table.name]).table_errors(float(shares[table.name]))[table.name] + 1e-9
        )
        assert stated.max() <= found.half_width(table.name, 0.05) <= 4 * stated.max() + 1 or stated.max() == 0


def test_slopes_and_bends_are_those_of_the_errors_that_are_published() -> None:
    asked = by([((), ("age",)), (("county",), ("age",)), (("block",), ("age",))])
    order = ordered(asked, [1, 2, 3], Protection())
    measurements = {group.name: group.measurement for group in order.groups}
    shares = {group.name: group.loss for group in order.groups}
    frontier, _ = as_published(
        stated_split({name: priced(each) for name, each in measurements.items()}, shares), measurements, Protection()
    )
    at, step = 0.4, 1e-4
    above, below = (frontier.expected_squared_error(at * (1 + sign * step)) for sign in (1, -1))
    assert frontier.marginal_rate_of_transformation(at) == pytest.approx((below - above) / (2 * step * at), rel=1e-5)
    here = frontier.expected_squared_error(at)
    bend = (above - 2 * here + below) / (step * at) ** 2
    assert -frontier.second_derivative(at) == pytest.approx(bend, rel=1e-3)
    raw = stated_split({name: priced(each) for name, each in measurements.items()}, shares)
    assert frontier.table_errors(at, "absolute") == raw.table_errors(at, "absolute")  # as they are measured


@given(st.data())
def test_errors_of_tables_that_cross_are_those_of_dense_least_squares(data: st.DataObject) -> None:
    """A county's ages and its jobs are marginals of one table; any shares, any tables that nest besides, and adults."""
    others = data.draw(st.lists(st.sampled_from(PAIRS), min_size=1, max_size=3, unique=True))
    crossing = [((), ("job",)), (("county",), ("job",)), (("block",), ("job",)), (("county",), ("age",))]
    pairs = list(dict.fromkeys([*others, *data.draw(st.lists(st.sampled_from(crossing), min_size=1, max_size=3))]))
    asked = by(pairs)
    for place, detail in data.draw(
        st.lists(st.sampled_from([*crossing[:3], (("block",), ())]), max_size=2, unique=True)
    ):
        asked.append(Tabulation.of(f"adults {place} {detail}", (*place, *detail), where={"age": "adult"}))
    parts = data.draw(st.lists(st.integers(1, 20), min_size=len(asked), max_size=len(asked)))
    order = ordered(asked, parts, Protection())
    shares = {group.name: group.loss for group in order.groups}
    found = combined_tables({group.name: group.measurement for group in order.groups}, shares, Protection())
    if not isinstance(found, CombinedTables):
        return
    variances = [noise.distribution().variance for group in order.groups for noise in group.noises]
    own = {table.name: each * table.query_count for table, each in zip(order.tables, variances, strict=True)}
    workload, cells = Workload(order.domain, order.tables), np.eye(order.domain.size, dtype=np.int64)
    rows = {
        table.name: np.stack([workload.table_answers(table.name, cell) for cell in cells], axis=1)
        for table in order.tables
    }
    known = sum(each.T @ each / one for each, one in zip(rows.values(), variances, strict=True))
    covariance = np.linalg.pinv(known)
    for name, error in found.table_errors(own).items():
        assert error == pytest.approx(np.trace(rows[name] @ covariance @ rows[name].T), rel=1e-8)


def test_shares_are_best_for_what_is_published() -> None:
    """No other shares do better, and hardly any strategy: the bound of the dual knows nothing of shares."""
    asked = (*NESTED, Tabulation.of("jobs by county", ("county", "job")), Tabulation.of("jobs", ("job",)))
    protection = Protection()
    order = release_spec_of(asked, protection)
    values = {each.name: 1.0 + number for number, each in enumerate(asked)}
    measurements = {group.name: group.measurement for group in order.groups}
    even = dict.fromkeys(measurements, Fraction(1, len(measurements)))
    found = combined_tables(measurements, even, protection)
    assert isinstance(found, CombinedTables)
    own = stated_split({name: priced(each) for name, each in measurements.items()}, even).table_errors(1e-3)
    shares = found.best_shares(own, values)
    assert sum(shares.values()) == 1

    def cost(at: dict[str, Fraction]) -> float:
        errors = found.table_errors({name: error * float(even[name] / at[name]) for name, error in own.items()})
        return math.fsum(values[name] * error for name, error in errors.items())

    least = cost(shares)
    generator = np.random.default_rng(17)
    for _ in range(50):
        tried = np.array([float(share) for share in shares.values()]) * generator.lognormal(0.0, 0.1, len(shares))
        assert cost({name: Fraction(each / tried.sum()) for name, each in zip(shares, tried.tolist(), strict=True)}) > (
            least * (1 - 1e-6)
        )
    bound = optimize_strategy(Workload.from_tabulations(order.domain, asked), "gaussian", values=values).lower_bound
    assert bound / (2 * 1e-3) * (1 - 1e-4) <= least <= 1.02 * bound / (2 * 1e-3)


def test_tables_that_cross_unevenly_are_said_to_err_less_than_the_plan_states() -> None:
    crossing = Tabulation.of("ages with one job", ("county", "age"), where={"job": "y"})  # of three
    order = release_spec_of((*NESTED, crossing), Protection())
    measurements = {group.name: group.measurement for group in order.groups}
    assert combined_tables(measurements, dict.fromkeys(measurements, Fraction(1, 6)), Protection()) == CROSSED


def test_many_tables_over_many_cells_are_not_compared_two_by_two() -> None:
    """All tables of two of fourteen attributes, 360,000 cells beside the longest: minutes of processor time."""
    sizes = (40, *(3,) * 5, *(5,) * 2, *(2,) * 6)
    wide = Domain(tuple(Attribute.numbers(f"a{n}", 0, size - 1) for n, size in enumerate(sizes)))
    asked = tuple(Tabulation.of(f"{one} {other}", (one, other)) for one, other in combinations(wide.names, 2))
    order = release_spec_of(asked, Protection(), wide)
    measurements = {group.name: group.measurement for group in order.groups}
    assert combined_tables(measurements, dict.fromkeys(measurements, Fraction(1, 100)), Protection()) == TOO_MANY
