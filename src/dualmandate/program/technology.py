"""The ways to produce the tables: one frontier for each kind of noise, alone or as the best of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dualmandate.choice import Choice, SocialWelfare
from dualmandate.errors import InvalidMechanism, MissingKey, Place, Refusal, TooLarge
from dualmandate.frontier import (
    ClosedFormCurves,
    CurveFrontier,
    EnvelopeCurves,
    Measure,
    envelope,
    frontier_of,
    in_epsilon,
    split,
)
from dualmandate.mechanism import NOISE_LAWS, MatrixMechanism, Mechanism, NoiseLaw, NoiseMechanism, Production
from dualmandate.population import Currency, PrivacyLoss, Protection
from dualmandate.population.conversion import rho_at
from dualmandate.program.remembered import RememberedCurves, remembered
from dualmandate.program.schema import MechanismTable
from dualmandate.workload import Tabulation, Workload

BEST = "best"
ALL_TABLES = "all"
MOST_MEASURED = 10**9  # numbers in one table, or cells where every cell is measured
_NOT_COMPARED = InvalidMechanism(
    "it was not compared",
    why="absolute errors of sums over many measured cells take long to work out",
    instead='state noise = "best" to compare all kinds',
)
SHARE_DIGITS = 7  # decimal digits, after the first of the whole loss, to which a share of it is rounded down


@dataclass(frozen=True, eq=False)
class Producer:
    """One kind of noise on the program's tables, before anybody says what their accuracy is worth."""

    noise: str
    groups: Mapping[str, CurveFrontier]  # tables measured together, in the currency that the noise is set by
    failure_probability: float | None  # set where Gaussian noise is read in epsilon

    def technology(self, welfare: SocialWelfare) -> Technology:
        """The frontier of this noise; groups of tables share the loss by what their accuracy is worth."""
        if len(self.groups) == 1:
            measured = next(iter(self.groups.values()))
        else:
            measured = split(self.groups, values=_values(welfare), measures=_measures(welfare))
        measured = remembered(measured, name=self.noise)
        if self.failure_probability is None:
            return Technology(self.noise, measured, measured, self)
        return Technology(self.noise, remembered(in_epsilon(measured, self.failure_probability)), measured, self)

    def production(self, group: str) -> Production:
        """What the noise does to the answers of one group of tables."""
        curves = self.groups[group].curves
        assert isinstance(curves, ClosedFormCurves)
        return curves.production


@dataclass(frozen=True, eq=False)
class Technology:
    """One way to produce the tables.

    `frontier` counts the loss in the program's currency; `measured` in the currency that the noise is set by, which
    differs where Gaussian noise is read in epsilon at a failure probability.
    """

    noise: str
    frontier: CurveFrontier
    measured: CurveFrontier
    producer: Producer

    def spent(self, loss: float) -> float:
        """The loss in the currency that the noise is set by, for a loss in the program's currency."""
        probability = self.producer.failure_probability
        return loss if probability is None else rho_at(loss, probability)

    def exact_loss(self, choice: Choice) -> PrivacyLoss:
        """The loss that a release spends, exactly: the chosen one, or the ρ behind a chosen ε at δ, rounded down.

        Where fitness for use decides, more digits are kept, so that rounding leaves no table unfit.
        """
        if self.producer.failure_probability is None:
            return choice.loss
        rho = self.spent(float(choice.loss))
        if choice.bound_by != "fitness for use":
            return PrivacyLoss.chosen(rho, Currency.RHO)
        step = _decimal_step(rho)
        return PrivacyLoss(Fraction(rho) // step * step, Currency.RHO)

    def shares(self, loss: PrivacyLoss) -> dict[str, Fraction]:
        """What each group of tables spends of an exact loss: rounded down, at most all of it together."""
        groups = self.producer.groups
        if len(groups) == 1:
            return dict.fromkeys(groups, loss.amount)
        step = _decimal_step(float(loss))
        allocation = self.measured.allocation(float(loss))
        shares = {group: max(Fraction(spent) // step, 1) * step for group, spent in allocation.items()}
        excess = sum(shares.values()) - loss.amount
        if excess > 0:
            largest = max(shares, key=lambda group: shares[group])
            shares[largest] -= -(-excess // step) * step
        return shares


def _decimal_step(loss: float) -> Fraction:
    return Fraction(10) ** (math.floor(math.log10(loss)) - SHARE_DIGITS)


def producers(
    table: MechanismTable, workload: Workload, protection: Protection, *, welfare: SocialWelfare
) -> tuple[tuple[Producer, ...], dict[str, Refusal]]:
    """Every kind of noise that can serve the program, and why the others cannot; refused where the stated one cannot.

    Kinds that the program did not ask for are there to be compared.
    """
    found: list[Producer] = []
    refused: dict[str, Refusal] = {}
    for law in NOISE_LAWS.values():
        try:
            if law.name != table.noise != BEST and is_slow(table, welfare):
                raise _NOT_COMPARED
            found.append(_producer(law, table, workload, protection=protection, currency=welfare.currency))
        except Refusal as refusal:
            if table.noise == law.name:
                raise
            refused[law.name] = refusal
    if not found:
        raise next(iter(refused.values()))
    return tuple(found), refused


def is_slow(table: MechanismTable, welfare: SocialWelfare) -> bool:
    """Whether errors take long to work out: absolute ones of sums over many measured cells have no closed form."""
    return table.strategy == "identity" and any(value.measure == "absolute" for value in welfare.table_values)


def combine(asked: str, technologies: Mapping[str, Technology], welfare: SocialWelfare) -> CurveFrontier:
    """The frontier that the program asks for: one noise, or the best of all at each loss."""
    if asked != BEST:
        return technologies[asked].frontier
    frontiers = [technology.frontier for technology in technologies.values()]
    return remembered(envelope(frontiers, values=_values(welfare), measures=_measures(welfare)))


def used_at(frontier: CurveFrontier, technologies: Mapping[str, Technology], loss: float) -> Technology:
    """The technology that stands on the frontier at a loss."""
    curves = frontier.curves.original if isinstance(frontier.curves, RememberedCurves) else frontier.curves
    standing = curves.best(loss) if isinstance(curves, EnvelopeCurves) else frontier
    return next(technology for technology in technologies.values() if technology.frontier is standing)


def _values(welfare: SocialWelfare) -> dict[str, float]:
    return {value.table: value.value_per_step for value in welfare.table_values}


def _measures(welfare: SocialWelfare) -> dict[str, Measure]:
    return {value.table: value.measure for value in welfare.table_values}


def _producer(
    law: NoiseLaw, table: MechanismTable, workload: Workload, *, protection: Protection, currency: Currency
) -> Producer:
    probability = table.failure_probability
    if law.currency is not currency and law.currency is Currency.EPSILON:
        raise InvalidMechanism(
            f"{law.name} noise is not counted in {currency}",
            why=f"the cost of disclosure is stated per {currency}, and the loss of {law.name} noise is an epsilon",
            instead='use noise = "gaussian", or state the cost per epsilon',
            where=Place(key="mechanism.noise"),
        )
    if law.currency is not currency and probability is None:
        raise MissingKey(
            f"{law.name} noise needs a failure_probability here",
            why="its loss is a rho, and becomes the epsilon that the cost is stated in only at a δ",
            instead="state failure_probability = 1e-10, or a cost per rho",
            where=Place(key="mechanism.failure_probability"),
        )
    mechanism = _mechanism(law, table, workload)
    frontiers = {
        group: frontier_of(mechanism, workload.only(tables), protection=protection)
        for group, tables in _groups(table, workload).items()
    }
    converted = law.currency is not currency and probability is not None
    return Producer(law.name, frontiers, float(probability) if converted and probability else None)


def _mechanism(law: NoiseLaw, table: MechanismTable, workload: Workload) -> Mechanism:
    if table.strategy == "workload":
        return NoiseMechanism(law)
    if workload.domain.size > MOST_MEASURED:
        raise TooLarge(
            f"every one of {workload.domain.size:.3g} cells was asked to be measured",
            why=f"at most {MOST_MEASURED:,} numbers are measured, and each of them gets noise",
            instead='state strategy = "workload", or record less: fewer attributes or fewer levels',
            where=Place(key="mechanism.strategy"),
        )
    every_cell = Tabulation("every cell", by=workload.domain.names)
    return MatrixMechanism(Workload.from_tabulations(workload.domain, [every_cell]), law)


def _groups(table: MechanismTable, workload: Workload) -> dict[str, tuple[str, ...]]:
    """The tables measured together, by a name for the group."""
    names = tuple(table.name for table in workload.tables)
    if table.measured == "together" or len(names) == 1:
        return {ALL_TABLES: names}
    if table.measured == "apart":
        return {name: (name,) for name in names}
    assert not isinstance(table.measured, str)
    return {" + ".join(group): group for group in table.measured}
