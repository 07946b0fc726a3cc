"""Other ways to produce the tables, beside the one in use: what each would choose, and what the one in use saves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dualmandate.choice import Choice, Limits, choose
from dualmandate.errors import Refusal
from dualmandate.mechanism import GAUSSIAN, LAPLACE
from dualmandate.mechanism.technologies import CELLS, NOISE_LAWS, OPTIMIZED, TABLES
from dualmandate.planning.saving import Comparison, Saving, limit_of
from dualmandate.planning.strategies import SLOW, Kind, Offered
from dualmandate.planning.technology import Technology, TechnologyBuilder, is_slow
from dualmandate.population import PrivacyMeasure
from dualmandate.population.wording import money


@dataclass(frozen=True, eq=False)
class TechnologyComparison:
    """Technologies side by side, around the one in use and what was chosen with it."""

    workshop: TechnologyBuilder
    offer: Offered
    used: Technology
    choice: Choice
    limits: Limits

    def comparisons(self) -> tuple[Comparison, ...]:
        """Every kind of noise with the strategy it would use, then the noise in use on whatever else can be measured.

        Plain noise on the tables is always among them.
        """
        return tuple(self._comparison(kind) for kind in dict.fromkeys(self._kinds()))

    def saving(self, comparisons: tuple[Comparison, ...]) -> Saving:
        """What the technology in use saves against plain noise on the tables."""
        plain = self._built(self._naive)
        optimized = self.offer.able.get((self.used.noise, OPTIMIZED))
        return Saving(
            self.workshop.welfare,
            self.choice.epsilon,
            used=self.used,
            naive=next(row for row in comparisons if (row.noise, row.strategy) == self._naive),
            plain=None if isinstance(plain, Refusal) else plain,
            optimized=optimized,
            limit=None if optimized is None else limit_of(self.workshop, self.used),
        )

    def _kinds(self) -> Iterator[Kind]:
        refused = self.offer.refused
        for noise in NOISE_LAWS:
            strategy = self.offer.used.get(noise)
            yield (noise, strategy) if strategy else next(kind for kind in refused if kind[0] == noise)
        yield self.used.noise, TABLES
        if (self.used.noise, OPTIMIZED) in {*self.offer.able, *refused}:  # looking for one takes time
            yield self.used.noise, OPTIMIZED
        yield self.used.noise, CELLS
        yield self._naive

    @property
    def _naive(self) -> Kind:
        in_rho = NOISE_LAWS[self.used.noise].privacy_measure is PrivacyMeasure.ZCDP
        return (GAUSSIAN if in_rho else LAPLACE).name, TABLES

    def _built(self, kind: Kind) -> Technology | Refusal:
        """A technology, where it was not offered already; what takes long is left out."""
        if kind in self.offer.able:
            return self.offer.able[kind]
        if kind in self.offer.refused:
            return self.offer.refused[kind]
        noise, strategy = kind
        if is_slow(strategy, self.workshop.welfare):
            return SLOW
        try:
            return self.workshop.technology(NOISE_LAWS[noise], strategy)
        except Refusal as refusal:
            return refusal

    def _comparison(self, kind: Kind) -> Comparison:
        noise, strategy = kind
        built, welfare = self._built(kind), self.workshop.welfare
        if isinstance(built, Refusal):
            return Comparison(noise, strategy, None, f"{built.what}: {built.why}")
        if built is not self.used and is_slow(strategy, welfare):
            more = welfare.data_loss(built.frontier, self.choice.epsilon) - self.choice.data_loss
            why = f"at the same {self.choice.privacy_measure} its errors cost {money(more)} more"
            return Comparison(noise, strategy, None, f"{why}; its own choice takes long to work out")
        try:
            return Comparison(noise, strategy, choose(built.frontier, welfare, self.limits))
        except Refusal as refusal:
            return Comparison(noise, strategy, None, refusal.what)
