"""Other ways to produce the tables, beside the one in use: what each would choose, and what the one in use saves.

Its errors stand beside those of what would be done by hand, and beside the least possible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from dualmandate.choice import Choice, Limits, SocialWelfare
from dualmandate.errors import Refusal
from dualmandate.frontier import LowerBound, scale_bound
from dualmandate.frontier.numerics import least_sum
from dualmandate.mechanism import GAUSSIAN, LAPLACE
from dualmandate.mechanism.technologies import CELLS, NOISE_LAWS, OPTIMIZED, TABLES
from dualmandate.planning.study import is_study
from dualmandate.planning.technology import (
    BY_VALUE,
    EVENLY,
    MOST_APART,
    TOGETHER,
    Kind,
    Offered,
    Technology,
    TechnologyBuilder,
    choice_with,
    is_slow,
    too_slow,
)
from dualmandate.population import PrivacyMeasure
from dualmandate.population.shown import one_line
from dualmandate.population.wording import money

ROUNDING = 1e-9  # relative, by which a bound that is met may seem to be exceeded
FARTHEST = 2.0**20  # This many times more or less than the chosen loss is looked at for the least that society loses.
NO_SAVING = 1e-4  # A share of what errors cost below this is no difference.


@dataclass(frozen=True, eq=False)
class TechnologyComparison:
    """Technologies side by side, around the one in use and what was chosen with it."""

    workshop: TechnologyBuilder
    offer: Offered
    used: Technology
    choice: Choice
    limits: Limits

    def comparisons(self) -> tuple[Comparison, ...]:
        """Every kind of noise as it would be used, then the noise in use on whatever else can be measured.

        What a practitioner would do by hand is always among them: plain noise on each table, shared evenly or by value.
        """
        own = () if self.used.drawn is None else (Comparison(*self.used.kind, self.choice),)
        return (*own, *(self._comparison(kind, built) for kind, built in self._compared.items()))

    def saving(self, comparisons: tuple[Comparison, ...]) -> Saving:
        """What the technology in use saves against what would be done by hand."""
        plain = self._compared[self._by_hand]
        optimized = self.offer.able.get((self.used.noise, OPTIMIZED, self.used.measured))
        if optimized is not self.used and is_slow(OPTIMIZED, self.workshop.welfare):
            optimized = None  # a curve through many losses would take hours
        return Saving(
            self.workshop.welfare,
            self.choice.epsilon,
            used=self.used,
            naive=next(row for row in comparisons if row.kind == self._by_hand),
            by_value=next((row for row in comparisons if row.measured == BY_VALUE), None),
            plain=None if isinstance(plain, Refusal) else plain,
            best=self._best(),
            optimized=optimized,
            limit=limit_of(self.workshop, self.used, self.choice.epsilon),
            highest=self.limits.bounds(self.used.frontier, self.workshop.welfare).highest,
        )

    @cached_property
    def _compared(self) -> dict[Kind, Technology | Refusal]:
        found = {kind: self._built(kind) for kind in dict.fromkeys(self._kinds())}
        return found | {made.kind: made for made in self._unasked(found)}

    def _best(self) -> Technology:
        """Of everything compared that can be published, what errs at the least cost at the chosen loss."""
        welfare, loss = self.workshop.welfare, self.choice.epsilon
        made = [each for each in self._compared.values() if isinstance(each, Technology)]
        quick = [each for each in made if not is_study(each.noise) and not is_slow(each.strategy, welfare)]
        return min([self.used, *quick], key=lambda each: welfare.data_loss(each.frontier, loss))

    def _kinds(self) -> Iterator[Kind]:
        offer, noise = self.offer, self.used.noise
        for law in NOISE_LAWS:
            yield offer.used[law] if law in offer.used else next(kind for kind in offer.refused if kind[0] == law)
        yield from (kind for kind in (*offer.able, *offer.refused) if kind[0] == noise)
        yield noise, TABLES, self.used.measured
        yield noise, CELLS, self.workshop.groupings[0]
        yield self._by_hand
        if self._by_hand[2] == EVENLY:
            yield *self._by_hand[:2], BY_VALUE

    def _unasked(self, known: Collection[Kind]) -> Iterator[Technology]:
        """What else could be measured, and published, if the file did not state what is, or what shares a measurement.

        A strategy is looked for only where the file leaves that open.
        """
        table = self.workshop.table.model_copy(update={"measured": TOGETHER})
        free, several = replace(self.workshop, table=table), len(self.workshop.workload.tables) > MOST_APART
        for measured in () if self.workshop.table_shares else free.groupings:
            strategies = (TABLES,) if several else (TABLES, *free.strategies(measured))
            for kind in ((self.used.noise, strategy, measured) for strategy in strategies):
                if kind in known or not isinstance(made := self._built(kind), Technology):
                    continue
                try:
                    self.workshop.check_carried_out(made)
                except Refusal:
                    continue
                yield made

    @property
    def _by_hand(self) -> Kind:
        in_rho = NOISE_LAWS[self.used.noise].privacy_measure is PrivacyMeasure.ZCDP
        several = len(self.workshop.workload.tables) > 1 and not self.workshop.table_shares
        return (GAUSSIAN if in_rho else LAPLACE).name, TABLES, EVENLY if several else self.workshop.groupings[0]

    def _built(self, kind: Kind) -> Technology | Refusal:
        """A technology, where it was not offered already; what takes long is left out."""
        if kind in self.offer.able:
            return self.offer.able[kind]
        if kind in self.offer.refused:
            return self.offer.refused[kind]
        noise, strategy, measured = kind
        if is_slow(strategy, self.workshop.welfare):
            return too_slow()
        try:
            return self.workshop.technology(NOISE_LAWS[noise], strategy, measured)
        except Refusal as refusal:
            return refusal

    def _comparison(self, kind: Kind, built: Technology | Refusal) -> Comparison:
        welfare = self.workshop.welfare
        if isinstance(built, Refusal):
            return Comparison(*kind, None, f"{built.what}: {built.why}")
        if built is not self.used and is_slow(kind[1], welfare):
            more = welfare.data_loss(built.frontier, self.choice.epsilon) - self.choice.data_loss
            amount = f"{money(abs(more), self.choice.currency)} {'more' if more >= 0 else 'less'}"
            amount = "as much" if abs(more) <= NO_SAVING * self.choice.data_loss else amount
            why = f"at the same {self.choice.privacy_measure} its errors cost {amount}"
            but = "its own choice takes long to work out" if more >= 0 else "but not every table is fit for use there"
            return Comparison(*kind, None, f"{why}; {but}", looked_for=True)
        choice = self.offer.chosen.get(kind) or choice_with(built, welfare, self.limits)
        return Comparison(*kind, None, choice.what) if isinstance(choice, Refusal) else Comparison(*kind, choice)


@dataclass(frozen=True)
class Comparison:
    """What one technology alone would choose; `choice` is None where it would not do, and `why` says so."""

    noise: str
    strategy: str
    measured: str  # what shares a measurement
    choice: Choice | None
    why: str = ""
    looked_for: bool = False  # whether it was compared, though its own choice was not worked out

    __repr__ = one_line

    @property
    def kind(self) -> Kind:
        """The technology."""
        return self.noise, self.strategy, self.measured

    @property
    def study(self) -> bool:
        """Whether it is there for comparison only: its noise is not drawn exactly."""
        return is_study(self.noise)


@dataclass(frozen=True, eq=False)
class ErrorLimit:
    """What errors cost at least at each loss, whatever is measured, with the noise of one technology."""

    bound: LowerBound  # each table's error weighed by its value, relative to the dearest table's
    technology: Technology
    dearest: float  # the value of that, USD per unit of error
    existing: float  # what errors cost that were there before, USD

    __repr__ = one_line

    def at(self, loss: float) -> float:
        """USD, at a loss in the program's currency."""
        return self.dearest * self.bound.at(self.technology.spent(loss)) + self.existing


@dataclass(frozen=True, eq=False)
class Saving:
    """What errors cost under the technology in use, by hand (plain noise on the tables), and at least; all in USD.

    The least is that of one class of technologies, which the limit names: others may cost less, as `best` may.

    Plain noise is Laplace noise, or Gaussian noise where the technology in use counts its loss in rho; each of several
    tables gets an even share of the loss.
    """

    welfare: SocialWelfare
    loss: float  # the chosen one, in the program's currency
    used: Technology
    naive: Comparison  # plain noise on the tables, and what it would choose alone
    by_value: Comparison | None  # the same in shares by value, where there are several tables
    plain: Technology | None  # the same; None where it cannot serve the program
    best: Technology  # what errs at the least cost at the choice, of everything compared that can be published
    optimized: Technology | None  # the optimized strategy with the noise in use
    limit: ErrorLimit | None
    highest: float | None = None  # the largest loss that may be chosen

    __repr__ = one_line

    @property
    def costs(self) -> dict[str, Callable[[float], float] | None]:
        """What errors cost at any loss: `naive`, `used`, `optimized` and, with the noise in use, `least`; or None."""
        return {
            "naive": self._cost(self.plain),
            "used": self._cost(self.used),
            "optimized": self._cost(self.optimized),
            "least": None if self.limit is None else self.limit.at,
        }

    @cached_property
    def at_choice(self) -> dict[str, float | None]:
        """The same at the choice."""
        return self.at(self.loss)

    def at(self, loss: float) -> dict[str, float | None]:
        """What errors cost at a loss; None where it is not known."""
        return {name: None if cost is None else cost(loss) for name, cost in self.costs.items()}

    @cached_property
    def least_lost(self) -> float | None:
        """What privacy and errors together cost society at least, whatever is measured and at whatever loss, USD.

        The least over ε of P(ε) + least(ε), rounded down a little; None where no bound is known, or where people leave
        as the loss grows, so that P may fall. Losses where one of both alone costs more than the choice are left out.
        """
        if self.limit is None or any(group.response is not None for group in self.welfare.groups):
            return None
        lost, least = -self.welfare.at(self.used.frontier, self.loss), self.limit.at
        low = high = self.loss
        while least(low) < lost and low > self.loss / FARTHEST:
            low /= 2.0
        while self.welfare.privacy_cost(high) < lost and high < self.loss * FARTHEST:
            high *= 2.0
        beyond = [least(low), self.welfare.privacy_cost(high)]
        if self.highest is not None and high >= self.highest:
            high, beyond = self.highest, beyond[:1]
        return min(least_sum(self.welfare.privacy_cost, least, low, high), *beyond)

    @property
    def saved(self) -> float | None:
        """What the technology in use saves at the choice against plain noise on the tables."""
        naive, used = self.at_choice["naive"], self.at_choice["used"]
        return None if naive is None or used is None else naive - used

    @cached_property
    def beaten_by(self) -> Technology | None:
        """What errs at less cost at the choice, of all compared that can be published; None where nothing does."""
        best, used = (self.welfare.data_loss(made.frontier, self.loss) for made in (self.best, self.used))
        return self.best if best < used * (1 - NO_SAVING) else None

    @property
    def welfare_gained(self) -> float | None:
        """How much better off society is than with plain noise at its own best loss, USD; None where that has none."""
        return self._gained(self.naive)

    @property
    def welfare_gained_by_value(self) -> float | None:
        """The same against plain noise in shares by value."""
        return None if self.by_value is None else self._gained(self.by_value)

    def _gained(self, rival: Comparison) -> float | None:
        alone = rival.choice
        return None if alone is None else self.welfare.at(self.used.frontier, self.loss) - alone.welfare

    def _cost(self, technology: Technology | None) -> Callable[[float], float] | None:
        if technology is None:
            return None
        frontier = technology.frontier
        return lambda loss: self.welfare.data_loss(frontier, loss)


def limit_of(workshop: TechnologyBuilder, used: Technology, loss: float) -> ErrorLimit | None:
    """The bound for the noise in use; None where errors are not squared, or the tables are too many for one.

    It is that for counts and sums, unless what is used counts people by their amounts and errs less at its loss.
    """
    welfare, law = workshop.welfare, NOISE_LAWS[used.noise]
    if used.drawn is not None:  # bounds are those of noise on rows that are fixed beforehand
        return None
    if any(value.measure != "squared" for value in welfare.table_values):
        return None
    for any_rows in (False, True):
        try:
            found = scale_bound(
                workshop.workload, law, workshop.protection, workshop.relative_values, any_rows=any_rows
            )
        except Refusal:
            return None
        limit = ErrorLimit(found, used, workshop.dearest, welfare.least_data_loss)
        if limit.at(loss) <= welfare.data_loss(used.frontier, loss) * (1 + ROUNDING):
            return limit
    return None
