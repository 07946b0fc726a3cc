"""Attacks on persons: names for records, membership, one secret bit each, and numbers that time gives away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.decoding import decode
from dualmandate.audit.equations import Integers
from dualmandate.audit.finding import Baseline, Effort, Finding, Reference, nothing_to_compare
from dualmandate.audit.linkage import Keys, Linked, reidentify
from dualmandate.audit.membership import PowerPoint, frequency_attack
from dualmandate.audit.old_methods import generator
from dualmandate.audit.rates import Rate
from dualmandate.audit.series import Series, by_size, estimate_series
from dualmandate.audit.targets import Floats

if TYPE_CHECKING:
    import pyarrow

DRAWS = 4_000
WITHIN = 0.05  # of a number, from which on an estimate counts as close


@dataclass(frozen=True, eq=False)
class Linkage:
    """Reconstructed records, a file of names, and the file that the links are judged by."""

    name: str
    reconstructed: pyarrow.Table = field(repr=False)
    outside: pyarrow.Table = field(repr=False)
    judged_by: pyarrow.Table = field(repr=False)
    keys: Keys
    coarsening: str
    reference: Reference = "confidential"


@dataclass(frozen=True)
class Reidentify:
    """Names for reconstructed records, linked by what both files hold."""

    effort: Effort = field(default_factory=Effort)
    name: str = "re-identification"
    needs: str = "reconstructed records, a file of names, and the file that knows who is right"

    def run(self, target: Linkage, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        """The precision of links for everybody, and for those who are alone and unlike most of their place."""
        self.effort.say(f"linking the records of {target.name} to names")
        found = reidentify(target.reconstructed, target.outside, target.judged_by, target.keys)
        groups = (("links to names", found.everybody), ("links of nonmodal uniques", found.nonmodal_uniques))
        return tuple(
            self._finding(target, f"{what} from {target.name} that are right", *linked, knows=found.attacker_knows)
            for what, linked in groups
            if linked[0].precision is not None
        )

    def _finding(
        self, target: Linkage, claim: str, attack: Linked, modal: Linked, proportional: Linked, *, knows: str
    ) -> Finding:
        precision = attack.precision
        assert precision is not None
        guesses = [(each.who, each.precision) for each in (modal, proportional)]
        return Finding(
            attack=self.name,
            claim=claim,
            success=precision,
            baselines=tuple(Baseline(who, rate) for who, rate in guesses if rate is not None),
            attacker_knows=knows,
            coarsening=target.coarsening,
            reference=target.reference,
        )


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Noisy frequencies of 0/1 values of some members; the first of them is looked for, or was replaced.

    `noise(draws, shape)` draws what was added to sums; arrays have shape (members, attributes) and (attributes,).
    """

    name: str
    members: Integers = field(repr=False)
    replacement: Integers = field(repr=False)
    population: Floats = field(repr=False)
    noise: Callable[[np.random.Generator, tuple[int, int]], Floats] = field(repr=False)
    epsilon: float
    failure_probability: float = 0.0
    draws: int = DRAWS


@dataclass(frozen=True)
class RecognizeMembers:
    """Whether somebody was in the data, by Homer's test and by one who knows everybody else."""

    effort: Effort = field(default_factory=Effort)
    name: str = "membership"
    needs: str = "noisy frequencies, a member's values, and the frequencies of the population"

    def run(self, target: Frequencies, key: bytes, /) -> tuple[Finding, ...]:
        """Power at each rate of false accusations, over draws of the mechanism, beside that rate itself."""
        self.effort.say(f"looking for a member of {target.name}")
        draws = generator(key, f"membership: {target.name}")
        found = frequency_attack(
            target.members,
            target.replacement,
            lambda shape: target.noise(draws, shape),
            population=target.population,
            draws=target.draws,
        )
        return tuple(self._finding(target, test, point) for test, points in found.items() for point in points)

    def _finding(self, target: Frequencies, test: str, point: PowerPoint) -> Finding:
        above = point.exceeds(target.epsilon, target.failure_probability)
        bound = f"{'above' if above else 'not above'} what ε = {target.epsilon:g} allows"
        falsely = point.false_positives
        knows = "everybody else's values" if test == "informed" else "the frequencies of the population"
        return Finding(
            attack=self.name,
            claim=f"draws of {target.name} in which the {test} test recognizes the member; {bound}",
            success=point.true_positives,
            baselines=(Baseline("draws in which it accuses somebody who is not there", falsely),),
            attacker_knows=f"the member's values and {knows}",
            coarsening="values are 0 or 1",
            reference="draws",
        )


@dataclass(frozen=True, eq=False)
class NoisySums:
    """One secret bit a person, and noisy sums over random groups; `bits` is the truth. Shapes: (sums, persons), …"""

    name: str
    groups: NDArray[np.bool_] = field(repr=False)
    answers: Floats = field(repr=False)
    deviation: float
    bits: NDArray[np.bool_] = field(repr=False)
    reference: Reference = "synthetic"


@dataclass(frozen=True)
class DecodeBits:
    """Dinur and Nissim's attack: everybody's bit from too many sums that are too good."""

    effort: Effort = field(default_factory=Effort)
    name: str = "decoding of noisy sums"
    needs: str = "noisy sums over known groups of at most 5,000 persons"

    def run(self, target: NoisySums, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        """The share of bits that is right, beside whoever says the more frequent bit of everybody."""
        self.effort.say(f"decoding {len(target.answers):,} sums of {target.name}")
        found = decode(target.groups, target.answers, deviation=target.deviation)
        persons = len(target.bits)
        ones = int(target.bits.sum())
        theory = Baseline("what least squares lets one expect", Rate(round(found.expected * persons), persons))
        finding = Finding(
            attack=self.name,
            claim=f"secret bits found from {target.name}",
            success=Rate(int((found.bits == target.bits).sum()), persons),
            baselines=(Baseline("modal guesser", Rate(max(ones, persons - ones), persons)), theory),
            attacker_knows="who is in each sum, and how large the noise is",
            coarsening="one bit a person",
            reference=target.reference,
        )
        return (finding,)


@dataclass(frozen=True, eq=False)
class HiddenSeries:
    """Numbers over several periods, some suppressed, with the ranges of an audit of each period and the truth.

    `judged` says which suppressed numbers the truth is known of; arrays have shape (cells, periods).
    """

    name: str
    series: Series
    least: Integers = field(repr=False)
    largest: Integers = field(repr=False)
    truth: Integers = field(repr=False)
    judged: NDArray[np.bool_] = field(repr=False)
    reference: Reference = "confidential"


@dataclass(frozen=True)
class CarryOver:
    """Suppressed numbers from what other periods show."""

    effort: Effort = field(default_factory=Effort)
    name: str = "suppressed numbers over time"
    needs: str = "the same cells in several periods, suppressed in some of them"

    def run(self, target: HiddenSeries, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        """The share of suppressed numbers that is estimated closely, beside one who divides what is left by size."""
        self.effort.say(f"carrying the numbers of {target.name} over time")
        at = target.judged & target.series.suppressed
        truth = target.truth[at]
        if not truth.size:
            return ()
        close = [
            int((np.abs(guessed(target.series, target.least, target.largest)[at] - truth) <= WITHIN * truth).sum())
            for guessed in (estimate_series, by_size)
        ]
        finding = Finding(
            attack=self.name,
            claim=f"suppressed numbers of {target.name} that are estimated within {WITHIN:.0%}",
            success=Rate(close[0], truth.size),
            baselines=(
                Baseline("whoever divides what is left by size", Rate(close[1], truth.size)),
                nothing_to_compare(truth.size),
            ),
            attacker_knows="the tables of all periods, and public sizes",
            coarsening="numbers as published",
            reference=target.reference,
        )
        return (finding,)
