"""Technologies whose errors depend on the data: partitions, adaptive selection, fitted models.

Their errors have no closed form, so that nothing is planned from confidential data: their frontier is simulated on
public or synthetic counts (`dualmandate.frontier.simulated`), and says which. Their noise and their choices are drawn
exactly, from keys, as every other technology's are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from typing import Protocol

from dualmandate.mechanism.mechanism import EVERY_PERSON
from dualmandate.mechanism.noise import NoiseKey
from dualmandate.population import Protection
from dualmandate.population.arrays import Floats
from dualmandate.population.loss import PrivacyMeasure
from dualmandate.population.records import Counts
from dualmandate.workload import Workload

Keys = Callable[[str], NoiseKey]
"""The key of each draw of a release, by a name that no other draw of it has."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What a data-dependent technology answers: the queries, and how far off they may be."""

    values: Floats  # shape (query_count,), table by table
    half_widths: Floats | None = field(default=None, repr=False)  # for the asked probability; None: none is known
    covers: str = "nothing is said of how far off these are"
    """What an interval of these half-widths covers, in words: all error, or noise without the bias of merged cells."""


class DataDependentMechanism(Protocol):
    """A technology whose errors depend on the data; of exact noise and choices, and a loss that holds for any data."""

    @property
    def name(self) -> str:
        """The technology in words."""

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        """What its loss is counted in."""

    def answer(
        self,
        counts: Counts,
        workload: Workload,
        loss: Fraction,
        keys: Keys,
        *,
        protection: Protection = EVERY_PERSON,
        probability: float = 0.9,
    ) -> Answers:
        """One release: the answers to a workload, for a loss of at most so much; refused where it cannot serve it."""


def simulation_keys(seed: int, repetition: int) -> Keys:
    """Keys of a simulated release, from numbers that everybody may know; never for publication."""

    def key(name: str) -> NoiseKey:
        return NoiseKey(sha256(f"simulation {seed} {repetition} {name}".encode()).digest())

    return key
