"""Errors of the estimates that will be published, where tables that nest are measured one by one and then combined.

A release does not print what it measured: tables that nest by one geography and one chain of groupings are estimated
together, and each estimate rests on the measurements of all (`publication.consistency.estimates`). How precise these
estimates are follows from the variances of the measurements alone, so that a plan states it: what it promises is the
standard error that the release states. Squared errors are worked out so; absolute ones, and those that a decision
counts, stay those of the measurements, which are larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dualmandate.frontier import Frontier, Measure
from dualmandate.frontier.frontier import Curves, listed
from dualmandate.frontier.numerics import derivative, second_derivative
from dualmandate.mechanism import Measurement
from dualmandate.population import PrivacyLoss, Protection
from dualmandate.population.arrays import Floats
from dualmandate.publication.consistency.estimates import Weights, final_variances, table_variances, upward_variances
from dualmandate.publication.intervals import outward
from dualmandate.publication.nested_tables import NestedTables, NestWeights, nest_together
from dualmandate.publication.number_errors import NumberErrors
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.publication.rules import Rules

MOST_LABELS = 2**26  # At most so many rows of tables are looked up by cell to see whether the tables nest.
SAME_RATIOS = 12  # digits of the logarithm of ratios of variances
CROSSED = (
    "Some tables cross the others, or cells cannot occur in some places: estimates of all measurements together are "
    "published, and their standard errors are at most the errors stated here, which are those of each table's own "
    "measurement."
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
    if len(tables) * (domain.size // max(domain.shape)) > MOST_LABELS:
        return TOO_MANY
    measure = first.law.privacy_measure
    loss = PrivacyLoss(sum(shares.values(), Fraction(0)), measure)
    groups = tuple(Group(name, each, shares[name]) for name, each in measurements.items())
    order = ReleaseSpec("", "", "", loss, domain, protection, Rules(), groups, {})
    nest = nest_together(order)
    if nest is None:
        return None
    return CombinedTables(order, nest) if nest.is_complete else CROSSED


@dataclass(frozen=True, eq=False)
class CombinedTables:
    """Tables that nest, each measured by itself, whose estimates rest on all measurements."""

    order: ReleaseSpec
    nest: NestedTables

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
        asked = next(each for each in self.order.tables if each.name == table)
        noises = tuple(noise for group in self.order.groups for noise in group.noises)
        errors = NumberErrors(asked, self._weights, noises)
        widest = int(np.argmax(errors.spreads(np.arange(asked.query_count))))
        return outward(errors.draws([widest]), [tail])[0]

    @cached_property
    def _weights(self) -> NestWeights:
        return NestWeights(self.order, self.nest)

    @cached_property
    def _known(self) -> dict[tuple[float, ...], Floats]:
        return {}

    def _mean_variances(self, variances: Floats) -> Floats:
        """The mean variance of the estimates of each table, from that of one measurement of each."""
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
    measured: Frontier, measurements: Mapping[str, Measurement], protection: Protection, *, squared: bool = True
) -> tuple[Frontier, str | None]:
    """The frontier of the estimates that are published, and in words what is not worked out.

    `squared`: only squared errors are counted.
    """
    allocation = measured.allocation(1.0)
    shares = {name: Fraction(allocation.get(name, 1.0)).limit_denominator(10**9) for name in measurements}
    if min(shares.values()) <= 0:
        return measured, None
    found = combined_tables(measurements, shares, protection)
    if not isinstance(found, CombinedTables):
        return measured, found
    curves = PublishedCurves(measured, found)
    return Frontier(measured.name, measured.privacy_measure, measured.query_counts, curves), None if squared else OWN
