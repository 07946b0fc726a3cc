"""Decoding of noisy sums as an attack: one secret bit a person."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.finding import Baseline, Effort, Finding, Reference
from dualmandate.audit.rates import Rate
from dualmandate.audit.reconstruction.decoding import decode
from dualmandate.audit.targets.targets import Floats


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
