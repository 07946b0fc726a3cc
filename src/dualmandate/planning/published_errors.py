"""Errors of the estimates that will be published, where tables that nest are measured one by one and then combined.

A release does not print what it measured: tables that nest by one geography and one chain of groupings are estimated
together, and each estimate rests on the measurements of all (`publication.consistency.estimates`). How precise these
estimates are follows from the variances of the measurements alone, so that a plan states it: what it promises is the
standard error that the release states. Squared errors are worked out so; absolute ones, and those that a decision
counts, stay those of the measurements, which are larger.

So the best division of a ρ over the tables is that for the estimates, and not for each table's own measurement. With
variances c_g/s_g of the groups of tables, s_g their shares, what the estimates cost, F(s), is convex and homogeneous of
degree −1 (the trace of an inverse of information that is linear in s), so that Σ s_g·w_g = 1 for w_g = −(∂F/∂s_g)/F,
and shares are best where every w_g is 1. Steps s_g ← s_g·√w_g, scaled to 1, never raise F, and are exact where groups
tell nothing of each other. No F is below F(s)·(2 − max w). Source: [STT78], [Yu10].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dualmandate.frontier import Frontier, Measure, in_order, priced, stated_split
from dualmandate.frontier.frontier import Curves, listed
from dualmandate.frontier.numerics import derivative, second_derivative
from dualmandate.mechanism import Measurement
from dualmandate.population import PrivacyLoss, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.estimates import Weights, final_variances, table_variances, upward_variances
from dualmandate.publication.consistency.partitions import Tree
from dualmandate.publication.consistency.strata import Orthogonal, Strata
from dualmandate.publication.intervals import outward
from dualmandate.publication.nested_tables import NestedTables, NestWeights, nest_together, table_noises
from dualmandate.publication.number_errors import NumberErrors
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.publication.rules import Rules

MOST_LABELS = 2**24  # At most so many rows of tables are looked up by cell to see whether the tables nest.
MOST_COMPARED = 2**30  # And at most so many, of every two tables, to see whether they cross evenly.
SAME_RATIOS = 12  # digits of the logarithm of ratios of variances
EXACT = -1  # the number of what is no table of the order, since it is exact
MOST_STEPS = 100
STEP = 1e-5  # relative, of a share, by which slopes are taken
LEAST_SHARE = 1e-6  # of a loss, that every group gets: what is promised is measured
WORTHWHILE = 1e-6  # of the cost, that a step must save
CROSSED = (
    "Some tables cross the others unevenly, or cells cannot occur in some places: estimates of all measurements "
    "together are published, and their standard errors are at most the errors stated here, which are those of each "
    "table's own measurement. Such estimates have no closed form: of many cells they take long."
)
TOO_MANY = (
    "Whether these tables nest was not worked out, because they have too many cells: where they do, the standard "
    "errors that are published are smaller than the errors stated here, which are those of each table's own "
    "measurement."
)
OWN = (
    "Absolute errors, and those that a decision counts, are stated for each table's own measurement; the estimates "
    "that are published combine all measurements, and err less."
)


def combined_tables(
    measurements: Mapping[str, Measurement], shares: Mapping[str, Fraction], protection: Protection
) -> CombinedTables | str | None:
    """What a release at these shares of a loss combines; None for nothing, and why it is not worked out, in words."""
    tables = [table for each in measurements.values() for table in each.workload.tables]
    if len(tables) == 1 or not all(each.rows.direct for each in measurements.values()):
        return None
    first = next(iter(measurements.values()))
    domain = first.workload.domain
    count, rest = len(tables), domain.size // max(domain.shape)
    if count * rest > MOST_LABELS or count * (count - 1) // 2 * rest > MOST_COMPARED:
        return TOO_MANY
    measure = first.law.privacy_measure
    loss = PrivacyLoss(sum(shares.values(), Fraction(0)), measure)
    groups = tuple(Group(name, each, shares[name]) for name, each in measurements.items())
    order = ReleaseSpec("", "", "", loss, domain, protection, Rules(), groups, {})
    nest = nest_together(order)
    if nest is None:
        return None
    if nest.is_complete:
        return CombinedTables(order, nest)
    strata = None if nest.capacities is not None else CrossedStrata.of(nest)
    return CROSSED if strata is None else CombinedTables(order, nest, strata)


@dataclass(frozen=True, eq=False)
class CrossedStrata:
    """What each table of a nest, and each that crosses it, tells of orthogonal groupings."""

    tree: Tree
    orthogonal: Orthogonal
    numbers: tuple[int, ...]  # of the tables in the order; exact ones have none
    levels: tuple[int, ...]  # of each table
    labels: tuple[Integers, ...]  # its group of each cell

    @classmethod
    def of(cls, nest: NestedTables) -> CrossedStrata | None:
        """None where groupings are not orthogonal."""
        crossings = [each.measurement(0.0) for each in nest.across]
        found = Orthogonal.of(nest.chain, crossings)
        if found is None:
            return None
        labels = (*(nest.chain.ancestors(each.step) for each in nest.places), *(each.groups for each in crossings))
        levels = (*(each.level for each in nest.places), *(each.level for each in crossings))
        exact = (EXACT,) * (len(nest.places) - len(nest.inside))
        return cls(nest.tree, found, (*nest.inside, *exact, *nest.outside), levels, labels)

    def strata(self, measured: Floats) -> Strata:
        """What is known of each stratum, from the variance of one measurement of each table of the order."""
        variances = [0.0 if number == EXACT else float(measured[number]) for number in self.numbers]
        return Strata.measured(self.tree, self.orthogonal, list(zip(self.levels, self.labels, variances, strict=True)))

    def mean_variances(self, measured: Floats) -> Floats:
        """The mean variance of the estimates of each table of the order."""
        strata, found = self.strata(measured), np.zeros(len(measured))
        for number, level, labels in zip(self.numbers, self.levels, self.labels, strict=True):
            if number != EXACT:
                found[number] = strata.mean_variance(level, labels)
        return found

    def largest_variance(self, measured: Floats, asked: int) -> float:
        """That of the number of a table whose estimate errs most."""
        place = self.numbers.index(asked)
        return float(self.strata(measured).variances(self.levels[place], self.labels[place]).max())


@dataclass(frozen=True, eq=False)
class CombinedTables:
    """Tables that nest, each measured by itself, whose estimates rest on all measurements."""

    order: ReleaseSpec
    nest: NestedTables
    crossed: CrossedStrata | None = None  # where some tables cross the nest

    def table_errors(self, own: Mapping[str, float]) -> dict[str, float]:
        """Σ (standard error)² of each table, from that of its own measurements."""
        counts = {table.name: table.query_count for table in self.order.tables}
        variances = np.array([own[name] / count for name, count in counts.items()])
        scale = float(variances.max())
        if scale == 0.0:
            return dict(own)
        with np.errstate(divide="ignore"):
            key = tuple(np.round(np.log(variances / scale), SAME_RATIOS).tolist())
        if key not in self._known:
            self._known[key] = self._mean_variances(variances / scale)
        return {name: each * scale * counts[name] for name, each in zip(counts, self._known[key].tolist(), strict=True)}

    def half_width(self, table: str, tail: float) -> float:
        """Half of the interval of the number of a table that errs most, at the shares of this release."""
        number, asked = next((n, each) for n, each in enumerate(self.order.tables) if each.name == table)
        if self.crossed is not None:  # no law of sums of many numbers has broader tails than that of one, next to it
            group = next(each for each in self.order.groups if asked in each.tables)
            measured = np.array([0.0 if law is None else law.variance for law in table_noises(self.order)])
            spread = self.crossed.largest_variance(measured[: len(self.order.tables)], number)
            own = float(group.measurement.half_width(table, float(group.loss), 1 - tail).max())
            return own * math.sqrt(spread / measured[number]) if spread else 0.0
        noises = tuple(noise for group in self.order.groups for noise in group.noises)
        errors = NumberErrors(asked, self._weights, noises)
        widest = int(np.argmax(errors.spreads(np.arange(asked.query_count))))
        return outward(errors.draws([widest]), [tail])[0]

    def best_shares(self, own: Mapping[str, float], values: Mapping[str, float]) -> dict[str, Fraction]:
        """The share of a ρ for each group of tables that leaves published estimates at the least cost, from 0 to 1.

        `own` are the errors of each table's own measurement at the shares of this release; `values` what a unit costs.
        """
        groups = {group.name: [table.name for table in group.tables] for group in self.order.groups}
        shares = np.array([float(group.loss / self.order.loss.amount) for group in self.order.groups])
        first = dict(zip(groups, shares.tolist(), strict=True))

        def cost(at: Floats) -> float:
            errors = {
                table: own[table] * first[group] / share
                for (group, tables), share in zip(groups.items(), at.tolist(), strict=True)
                for table in tables
            }
            return math.fsum(values[name] * error for name, error in self.table_errors(errors).items())

        least = cost(shares)
        for _ in range(MOST_STEPS):
            moved = (shares * (1 + STEP * (np.arange(len(shares)) == place)) for place in range(len(shares)))
            falls = np.maximum([least - cost(at) for at in moved], 0.0)  # −s·∂F/∂s, times the step
            if not falls.any():
                break
            tried = np.maximum(np.sqrt(shares * falls / falls.sum()), LEAST_SHARE)
            tried /= tried.sum()
            found = cost(tried)
            if found >= least * (1 - WORTHWHILE):
                break
            shares, least = tried, found
        exact = [Fraction(share).limit_denominator(10**9) for share in shares.tolist()]
        exact[-1] += 1 - sum(exact, Fraction(0))
        return dict(zip(groups, exact, strict=True))

    @cached_property
    def _weights(self) -> NestWeights:
        return NestWeights(self.order, self.nest)

    @cached_property
    def _known(self) -> dict[tuple[float, ...], Floats]:
        return {}

    def _mean_variances(self, variances: Floats) -> Floats:
        """The mean variance of the estimates of each table, from that of one measurement of each."""
        if self.crossed is not None:
            return self.crossed.mean_variances(variances)
        nest = self.nest
        exact = [0.0] * (len(nest.places) - len(nest.inside))
        spread = [*(float(variances[number]) for number in nest.inside), *exact]
        by_pair = dict(zip((place.pair for place in nest.places), spread, strict=True))
        weights = Weights.of(nest.chain, by_pair, levels=nest.tree.last + 1)
        upward, _ = upward_variances(nest.tree, weights)
        final = final_variances(nest.tree, upward, upward[0])
        found = np.zeros(len(variances))
        for place, number in zip(nest.places, nest.inside, strict=False):
            means = tuple(each.mean(axis=0, keepdims=True) for each in final[place.level][: place.step + 1])
            found[number] = float(table_variances(weights, means)[place.step].mean())  # linear in those of the nodes
        return found


@dataclass(frozen=True, eq=False)
class PublishedCurves(Curves):
    """Curves of the estimates that are published, from those of the measurements."""

    measured: Frontier
    combined: CombinedTables

    @property
    def convex_from(self) -> float:
        return self.measured.convex_from

    def values(self, loss: float, measure: Measure) -> Floats:
        own = self.measured.table_errors(loss, measure)
        if measure != "squared":
            return listed(own)
        return self._in_order(self.combined.table_errors(own))

    def slopes(self, loss: float, measure: Measure) -> Floats:
        if measure != "squared":
            return listed(self.measured.table_slopes(loss, measure))
        return np.minimum(derivative(lambda at: self.values(at, measure), loss), 0.0)

    def curvatures(self, loss: float, measure: Measure) -> Floats:
        if measure != "squared":
            return listed(self.measured.table_curvatures(loss, measure))
        return second_derivative(lambda at: self.values(at, measure), loss)

    def technology(self, loss: float) -> str:
        return self.measured.technology(loss)

    def allocation(self, loss: float) -> dict[str, float]:
        return self.measured.allocation(loss)

    def _in_order(self, errors: Mapping[str, float]) -> Floats:
        return np.array([errors[name] for name in self.measured.tables])


def as_published(
    measured: Frontier,
    measurements: Mapping[str, Measurement],
    protection: Protection,
    *,
    squared: bool = True,
    values: Mapping[str, float] | None = None,
) -> tuple[Frontier, str | None]:
    """The frontier of the estimates that are published, and in words what is not worked out.

    `squared`: only squared errors are counted. `values`: a ρ is divided anew, so that the estimates err at least cost.
    """
    allocation = measured.allocation(1.0)
    shares = {name: Fraction(allocation.get(name, 1.0)).limit_denominator(10**9) for name in measurements}
    if min(shares.values()) <= 0:
        return measured, None
    found = combined_tables(measurements, shares, protection)
    if not isinstance(found, CombinedTables):
        return measured, found
    if values is not None:
        divided = {name: priced(each) for name, each in measurements.items()}
        shares = found.best_shares(measured.table_errors(1.0), values)
        measured = in_order(stated_split(divided, shares), measured.tables)
    curves = PublishedCurves(measured, found)
    return Frontier(measured.name, measured.privacy_measure, measured.query_counts, curves), None if squared else OWN
