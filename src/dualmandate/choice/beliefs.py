"""What is believed about preferences: numbers with standard errors, draws of a posterior, ranges, or whole scenarios.

Beliefs are a list of states, each a multiple of every part of social welfare, with a weight. Nothing is random: a
lognormal number is cut into strata, several ones (or the normal estimates behind ratios) are spread over a lattice, and
anybody gets the same states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from dualmandate.choice.cost_grid import CostGrid, cost_grid_of, costs_of, joined
from dualmandate.choice.estimates import JointEstimates, Ratio
from dualmandate.choice.optimum import Choice, Limits, choose
from dualmandate.choice.statics import Input, inputs
from dualmandate.choice.welfare import (
    CostPart,
    DataLoss,
    InformationUtility,
    PopulationGroup,
    SocialWelfare,
    TableValue,
)
from dualmandate.errors import InvalidPreferences, InvalidValue, TooLarge
from dualmandate.frontier.frontier import Frontier
from dualmandate.population import Calibrated
from dualmandate.population.arrays import Booleans, Floats, square_root

STRATUM, WIDEST = 0.005, 8.0  # A stratum of a standard normal is this wide, and the last one lies here.
STRATA = 499  # A number known by its quantiles is cut into this many strata.
LATTICE_POINTS = 8192  # Where several numbers are uncertain there are this many states.
MOST_VERTICES = 12  # At most this many ranges are searched at once: 4,096 corners.


@dataclass(frozen=True)
class Uncertain:
    """A number of the preferences that is known with a standard error, by its name in `inputs`; lognormal.

    The logarithm has variance ln(1 + (standard error/mean)²), so that mean and standard error are as stated.
    """

    name: str  # for example "mean_disclosure_cost", "value_of_accuracy of jobs"
    mean: float  # > 0
    standard_error: float  # > 0, in the unit of the mean

    def __post_init__(self) -> None:
        if not all(math.isfinite(number) and number > 0 for number in (self.mean, self.standard_error)):
            raise InvalidValue(
                f"{self.name} has the mean {self.mean:g} and the standard error {self.standard_error:g}",
                why="a lognormal number is positive, and known with some error",
                instead="state both as finite numbers above 0",
            )

    @classmethod
    def of(cls, name: str, quantity: Calibrated) -> Uncertain:
        """A calibrated number that states its standard error."""
        if quantity.standard_error is None:
            raise InvalidValue(
                f"{name}, {quantity}, states no standard_error",
                why="without one it is a number, not a belief",
                instead="state standard_error, or leave it out of the beliefs",
            )
        return cls(name, quantity.value, quantity.standard_error)

    @classmethod
    def lognormal(cls, name: str, log_mean: float, log_deviation: float) -> Uncertain:
        """By the mean and standard deviation of its logarithm: mean e^{m + s²/2}."""
        mean = math.exp(log_mean + log_deviation**2 / 2)
        return cls(name, mean, mean * math.sqrt(math.expm1(log_deviation**2)))

    @property
    def log_deviation(self) -> float:
        """Standard deviation s of its logarithm."""
        return math.sqrt(math.log1p((self.standard_error / self.mean) ** 2))

    def at(self, scores: Floats) -> Floats:
        """Its values at standard normal scores; their mean is the stated one."""
        deviation = self.log_deviation
        values: Floats = self.mean * np.exp(deviation * scores - deviation**2 / 2)
        return values


def number_asked_for(names: Sequence[str], parameter: str | None) -> str:
    """The uncertain number that a survey asks for: the one that is named, or the only one there is."""
    if parameter is None and len(names) != 1:
        raise InvalidPreferences(
            "the survey does not say which number it asks for",
            why=f"uncertain are {', '.join(names) or 'whole scenarios'}",
            instead="name one of them; for scenarios, use signal_value",
        )
    name = names[0] if parameter is None else parameter
    if name not in names:
        raise InvalidPreferences(
            f"'{name}' is not among the uncertain numbers",
            why=f"they are {', '.join(names) or 'whole scenarios'}",
            instead="name one of them",
        )
    return name


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Weighted states of preferences over one workload.

    Each state multiplies every part of social welfare, so what society loses in it is Σ multiple·part; `values` are
    the numbers behind it, by `names`. `discrete` says that the states are all there is, not points of a continuum.
    """

    parts: tuple[CostPart, ...]
    multiples: Floats  # (states, parts), ≥ 0
    weights: Floats  # (states,), sum to 1
    like: SocialWelfare  # whose groups, tables and unit the parts belong to
    names: tuple[str, ...] = ()
    values: Floats | None = None  # (states, names)
    scaling: Booleans | None = None  # which number multiplies which part, (parts, names)
    discrete: bool = False
    uncertain: tuple[Uncertain, ...] = ()  # where each number has a standard error
    log_covariance: Floats | None = None  # of their logarithms, (names, names)
    open_ended: bool = False  # whether in some state no loss is best: what was measured does not rule that out

    @classmethod
    def lognormal(cls, welfare: SocialWelfare, uncertain: Sequence[Uncertain]) -> Beliefs:
        """Lognormal numbers with independent errors, the others as stated in the welfare."""
        if not uncertain:
            raise InvalidPreferences(
                "no number is uncertain", why="then the choice is a point", instead="use choose, or state an error"
            )
        scores, weights = _scores(len(uncertain))
        covariance = np.diag([number.log_deviation**2 for number in uncertain])
        values = np.stack([number.at(scores[:, j]) for j, number in enumerate(uncertain)], axis=1)
        beliefs = cls._scaling(welfare, [number.name for number in uncertain], values, weights)
        # A lattice misses means by a little; expected welfare rests on them, so they are put right.
        _, scaling, stated = _parts(welfare, beliefs.names)
        exact = np.prod(np.where(scaling, np.array([n.mean for n in uncertain]) / stated, 1.0), axis=1)
        centered = beliefs.multiples * (exact / (beliefs.weights @ beliefs.multiples))
        return replace(beliefs, multiples=centered, uncertain=tuple(uncertain), log_covariance=covariance)

    @classmethod
    def estimated(
        cls,
        welfare: SocialWelfare,
        estimates: JointEstimates,
        ratios: Mapping[str, Ratio],
        others: Sequence[Uncertain] = (),
    ) -> Beliefs:
        """Numbers as a survey found them, ratios of estimates that are jointly normal, by their names in `inputs`.

        Welfare is counted in the unit in which the estimates are normal: what costs v·n/d counts v·n, and everything
        else is multiplied by d. That moves no best loss, leaves all means as stated (E n = E d = 1), and needs no
        division: quantiles of the best loss follow from the ends of Fieller's set, bounded or not. An estimate of the
        wrong sign counts as none. `others` are lognormal, and their errors independent of these.
        """
        names = [*ratios, *(number.name for number in others)]
        parts, scaling, stated = _parts(welfare, names)
        powers = _powers(estimates, tuple(ratios.values()), scaling[:, : len(ratios)])
        used = np.flatnonzero(powers.any(axis=0))
        scores, weights = _scores(len(used) + len(others))
        shares = 1 + scores[:, : len(used)] @ square_root(estimates.covariance[np.ix_(used, used)]).T
        multiples = np.prod(np.maximum(shares, 0.0)[:, None, :] ** powers[:, used], axis=2)
        for j, number in enumerate(others):
            factors = number.at(scores[:, len(used) + j])
            factors /= weights @ factors / weights.sum()
            multiples *= np.where(scaling[:, len(ratios) + j], factors[:, None], 1.0)
        told = multiples.any(axis=1)  # where all estimates have the wrong sign, nothing is said
        multiples, weights = multiples[told], _shares(weights[told], int(told.sum()))
        spread = np.log1p(estimates.relative_covariance(tuple(ratios.values())))
        covariance = np.diag([*np.diag(spread), *(number.log_deviation**2 for number in others)])
        covariance[: len(ratios), : len(ratios)] = spread
        values = stated[: len(ratios)]
        errors = values * np.sqrt(np.expm1(np.diag(spread)))
        found = [Uncertain(*each) for each in zip(ratios, values.tolist(), errors.tolist(), strict=True)]
        return cls(
            parts,
            multiples,
            weights,
            welfare,
            tuple(names),
            scaling=scaling,
            uncertain=(*found, *others),
            log_covariance=covariance,
            open_ended=True,
        )

    @classmethod
    def draws(
        cls,
        welfare: SocialWelfare,
        values: Mapping[str, ArrayLike],
        weights: ArrayLike | None = None,
        *,
        discrete: bool = False,
    ) -> Beliefs:
        """Any posterior, as draws of numbers by their names in `inputs`, with weights where they differ."""
        columns = {name: np.atleast_1d(np.asarray(column, dtype=np.float64)) for name, column in values.items()}
        lengths = {len(column) for column in columns.values()}
        if len(lengths) != 1 or any(not np.all(np.isfinite(c) & (c >= 0)) for c in columns.values()):
            raise InvalidPreferences(
                "the draws are not the same number of finite values of at least 0 for every name",
                why="each draw is one state of all preferences",
                instead="give one array of equal length a name",
            )
        table = np.stack(list(columns.values()), axis=1)
        shares = np.ones(len(table)) if weights is None else np.asarray(weights, dtype=np.float64)
        return replace(cls._scaling(welfare, list(columns), table, shares), discrete=discrete)

    @classmethod
    def strata(
        cls, welfare: SocialWelfare, name: str, quantile: Callable[[float], float], *, mean: float, count: int = STRATA
    ) -> Beliefs:
        """One number with any distribution, by its quantile function and its mean: equally likely strata.

        Each stratum stands at its middle; their mean is put right, since expected welfare rests on it.
        """
        values = np.array([quantile((i + 0.5) / count) for i in range(count)])
        return cls.draws(welfare, {name: values * (mean / values.mean())})

    @classmethod
    def box(cls, welfare: SocialWelfare, ranges: Mapping[str, tuple[float, float]]) -> Beliefs:
        """The corners of a set of preferences: every number at its least or its largest value."""
        if not ranges or any(not 0 <= low <= high < math.inf for low, high in ranges.values()):
            raise InvalidPreferences(
                f"the ranges {dict(ranges)}",
                why="a set of preferences has a least and a largest value for each number in it",
                instead="state 0 ≤ least ≤ largest for at least one number",
            )
        if len(ranges) > MOST_VERTICES:
            raise TooLarge(
                f"{len(ranges)} ranges at once have {2 ** len(ranges):,} corners",
                why=f"each is a problem of its own; at most {MOST_VERTICES} ranges are searched",
                instead="state ranges for the numbers that matter, as the tornado shows them",
            )
        corners = np.array(list(product(*(dict.fromkeys(ends) for ends in ranges.values()))))
        return replace(cls._scaling(welfare, list(ranges), corners, np.ones(len(corners))), discrete=True)

    @classmethod
    def scenarios(cls, welfares: Sequence[SocialWelfare], weights: ArrayLike | None = None) -> Beliefs:
        """Whole preferences, one of which is right: they may differ in form, prior, size or anything else."""
        if not welfares:
            raise InvalidPreferences("no scenario is stated", why="nothing is believed", instead="state at least one")
        shares = _shares(np.ones(len(welfares)) if weights is None else weights, len(welfares))
        return cls(tuple(welfares), np.eye(len(welfares)), shares, _mixture(welfares, shares), discrete=True)

    @classmethod
    def _scaling(cls, welfare: SocialWelfare, names: Sequence[str], values: Floats, weights: ArrayLike) -> Beliefs:
        parts, scaling, stated = _parts(welfare, names)
        factors = values / stated
        multiples = np.stack([np.prod(np.where(row, factors, 1.0), axis=1) for row in scaling], axis=1)
        return cls(parts, multiples, _shares(weights, len(values)), welfare, tuple(names), values, scaling)

    @cached_property
    def mean(self) -> SocialWelfare:
        """Expected welfare: costs and values enter it linearly, so it is the welfare of the mean multiples.

        Estimates of a survey have the means that were stated.
        """
        if self.names and not self.open_ended:
            means = (self.weights @ self.multiples).tolist()
            return joined([part.scaled(mean) for part, mean in zip(self.parts, means, strict=True)], self.like)
        return self.like

    def known(self, name: str) -> int:
        """The place of a number among the uncertain ones."""
        return self.names.index(number_asked_for(self.names, name))

    def explore(self, frontier: Frontier, limits: Limits | None = None) -> tuple[Choice, CostGrid]:
        """The choice that maximizes expected welfare, and the landscape on which every state finds its own."""
        limits = limits or Limits()
        best = choose(frontier, self.mean, limits)
        bounds = limits.bounds(frontier, self.mean)
        endless = np.array([part.endless for part in self.parts])
        costs = costs_of(self.parts, frontier)
        return best, cost_grid_of(costs, self.multiples, start=best.epsilon, bounds=bounds, endless=endless)


def _shares(weights: ArrayLike, count: int) -> Floats:
    shares = np.asarray(weights, dtype=np.float64)
    if shares.shape != (count,) or not np.all(np.isfinite(shares) & (shares >= 0)) or shares.sum() <= 0:
        raise InvalidPreferences(
            "the weights of the states are not one number of at least 0 for each",
            why="a weight says how likely a state of preferences is",
            instead="state one finite weight a state, some of them above 0",
        )
    normalized: Floats = shares / shares.sum()
    return normalized


def _parts(welfare: SocialWelfare, names: Sequence[str]) -> tuple[tuple[CostPart, ...], Booleans, Floats]:
    """Parts of welfare that the same numbers scale, which numbers those are, and the stated values.

    Shapes: (parts, names) of truth values, and (names,).
    """
    known = {row.name: row for row in inputs(welfare)}
    rows = []
    for name in names:
        if name not in known or known[name].value <= 0:
            raise InvalidPreferences(
                f"'{name}' is not a number that these preferences state, above 0",
                why=f"they state {', '.join(row.name for row in known.values() if row.value > 0)}",
                instead="name one of these",
            )
        rows.append(known[name])
    touched = [_touched(welfare, row) for row in rows]
    groups: dict[tuple[bool, ...], CostPart] = {}
    for kind, members in (("groups", welfare.groups), ("table_values", welfare.table_values)):
        for i, member in enumerate(members):
            key = tuple((kind, i) in places for places in touched)
            part = groups.get(key, CostPart())
            groups[key] = replace(part, **{kind: (*getattr(part, kind), member)})
    if welfare.other_losses:
        key = tuple(False for _ in names)
        groups[key] = replace(groups.get(key, CostPart()), other_losses=welfare.other_losses)
    kept = {key: part for key, part in groups.items() if not part.empty}
    return tuple(kept.values()), np.array(list(kept), dtype=bool), np.array([row.value for row in rows])


def _touched(welfare: SocialWelfare, row: Input) -> frozenset[tuple[str, int]]:
    """Groups and tables whose cost doubles when a number does; refused for a number that does not multiply costs."""
    if row.name.startswith("prior_probability"):
        raise InvalidPreferences(
            f"'{row.name}' does not multiply a cost or a value",
            why="beliefs about numbers rest on welfare being linear in them",
            instead="state whole scenarios, one for each value of it",
        )
    changed, _ = row.change(2 * row.value)
    groups = zip(welfare.groups, changed.groups, strict=True)
    tables = zip(welfare.table_values, changed.table_values, strict=True)
    costs = {("groups", i): (_cost(before), _cost(after)) for i, (before, after) in enumerate(groups)}
    worth = {("table_values", i): (before.value, after.value) for i, (before, after) in enumerate(tables)}
    return frozenset(place for place, (before, after) in {**costs, **worth}.items() if after > 1.5 * before > 0)


def _cost(group: PopulationGroup) -> float:
    return group.weighted_size * group.information_utility.parameter


def _powers(estimates: JointEstimates, ratios: Sequence[Ratio], scaling: Booleans) -> Floats:
    """The power of each estimate in the multiple of each part: numerators, and denominators of all other parts."""
    above, below = estimates.sides(ratios)
    divided = scaling @ below
    powers: Floats = scaling @ above + divided.max(axis=0) - divided
    return powers


def _scores(dimension: int) -> tuple[Floats, Floats]:
    """Standard normal scores of the states, (states, dimension), and their weights: strata, or a lattice."""
    if dimension == 1:
        strata = np.arange(-WIDEST, WIDEST + STRATUM / 2, STRATUM)
        return strata[:, None], np.exp(-(strata**2) / 2)
    return _lattice_scores(dimension), np.ones(LATTICE_POINTS)


def _lattice_scores(dimension: int) -> Floats:
    """Standard normal scores of a lattice in the unit cube, the powers of the generalized golden ratio [Rob18]."""
    from scipy.special import ndtri

    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1)
    cube = (0.5 + np.arange(1, LATTICE_POINTS + 1)[:, None] * steps) % 1.0
    raw = ndtri(np.clip(cube, 0.25 / LATTICE_POINTS, 1 - 0.25 / LATTICE_POINTS))
    # Values of information are of second order, so means, variances and correlations are made exact.
    centered = raw - raw.mean(axis=0)
    scores: Floats = np.linalg.solve(np.linalg.cholesky(np.cov(centered.T, bias=True)), centered.T).T
    return scores


def _mixture(welfares: Sequence[SocialWelfare], shares: Floats) -> SocialWelfare:
    """The welfare whose costs are the expected costs of the scenarios."""
    groups: dict[tuple[str, InformationUtility], float] = {}
    others: list[DataLoss] = []
    sizes: dict[str, float] = {}
    values: dict[str, list[TableValue]] = {}
    for welfare, share in zip(welfares, shares.tolist(), strict=True):
        for group in welfare.groups:
            parameter = group.information_utility.parameter
            unit = group.information_utility.scaled(1 / parameter) if parameter > 0 else group.information_utility
            groups[group.name, unit] = groups.get((group.name, unit), 0.0) + share * _cost(group)
            sizes[group.name] = sizes.get(group.name, 0.0) + share * group.size
        for value in welfare.table_values:
            values.setdefault(value.table, []).append(value.scaled(share))
        others += [other.scaled(share) for other in welfare.other_losses if share > 0]
    responses = {group.name: group.response for welfare in welfares for group in welfare.groups}
    several = {name for name, _ in groups if sum(other == name for other, _ in groups) > 1}
    people = []
    for i, ((name, unit), cost) in enumerate(groups.items()):
        called = f"{name}, {unit.form} cost {i + 1}" if name in several else name
        people.append(PopulationGroup(called, sizes[name], unit.scaled(cost / sizes[name]), response=responses[name]))
    tables = tuple(_added(rows) for rows in values.values())
    return replace(welfares[0], groups=tuple(people), table_values=tables, other_losses=tuple(others))


def _added(rows: Sequence[TableValue]) -> TableValue:
    """Values of one table added up; refused where they are not in one measure."""
    first = rows[0]
    if any((row.measure, row.unit, row.grid) != (first.measure, first.unit, first.grid) for row in rows):
        raise InvalidPreferences(
            f"scenarios count the errors of table '{first.table}' in different ways",
            why="squared and absolute errors, or errors in different units, cannot be averaged",
            instead="state the same measure and unit in every scenario",
        )
    total = math.fsum(row.value for row in rows)
    existing = math.fsum(row.value * row.existing_squared_error for row in rows) / total if total > 0 else 0.0
    sizes = [row.consequence for row in rows]
    consequence = math.fsum(s for s in sizes if s is not None) if None not in sizes else None
    return replace(first, value=total, consequence=consequence, price=None, existing_squared_error=existing)
