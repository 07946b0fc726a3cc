"""Technologies whose errors depend on the data: partitions, adaptive selection, fitted models.

Their errors have no closed form, so that nothing is planned from confidential data: their frontier is simulated on
public or synthetic counts (`dualmandate.frontier.simulated`), and says which. Their noise and their choices are drawn
exactly, from keys, as every other technology's are.

Such a technology never holds the counts. It asks a curator for one private draw after the other, a choice or noisy
numbers, and what came out of all of them is its transcript. All else that it says follows from the transcript: so that
alone is private, it is published, and a release that was interrupted is made again from it without the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from typing import Protocol

import numpy as np

from dualmandate.errors import InvalidRelease
from dualmandate.mechanism.exponential import select
from dualmandate.mechanism.gaussian import GAUSSIAN
from dualmandate.mechanism.geometric import GEOMETRIC
from dualmandate.mechanism.mechanism import EVERY_PERSON, Noise
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler, NoiseKey
from dualmandate.population import Protection
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.loss import PrivacyMeasure
from dualmandate.population.records import Counts
from dualmandate.workload import Workload
from dualmandate.workload.factor import signs_vary

Keys = Callable[[str], NoiseKey]
"""The key of each draw of a release, by a name that no other draw of it has."""
HalfWidths = Callable[[float], Floats | None]
"""How far each answer may be off with a probability; shape (query_count,); None where that is not known."""
KNOWN = "number of records", "the number of records, which every neighbor has: without noise"
LARGEST_LOOKED_AT = 2**22  # cells of a domain in which answers that no record can move are looked for


@dataclass(frozen=True, eq=False)
class Answers:
    """What a data-dependent technology answers: the queries, and how far off they may be."""

    values: Floats  # shape (query_count,), table by table
    half_widths: Floats | None = field(default=None, repr=False)  # for the asked probability; None: none is known
    covers: str = "nothing is said of how far off these are"
    """What an interval of these half-widths covers, in words: all error, or noise without the bias of merged cells."""


@dataclass(frozen=True, eq=False)
class Draw:
    """One private draw of a release: its name, what it is of in public words, and what came out."""

    name: str
    words: str
    noise: Noise | None  # of noisy numbers; None of a choice
    values: Integers = field(repr=False)  # whole numbers, with noise, or the number of what was chosen


class Curator(Protocol):
    """Who holds the counts, and draws from them what a technology asks for."""

    def draw(
        self, name: str, words: str, of: Callable[[Counts, NoiseKey], Integers], noise: Noise | None = None
    ) -> Integers:
        """One private draw: whole numbers, a function of the counts and of the key of this name."""

    def known_total(self) -> int:
        """The number of records where every neighbor has as many: nobody's secret, and without noise."""


@dataclass(frozen=True, eq=False)
class RecordsCurator:
    """Draws from counts, with a key for each draw, and writes down what came out."""

    counts: Counts = field(repr=False)
    keys: Keys = field(repr=False)
    transcript: list[Draw] = field(default_factory=list)

    def draw(
        self, name: str, words: str, of: Callable[[Counts, NoiseKey], Integers], noise: Noise | None = None
    ) -> Integers:
        found = np.asarray(of(self.counts, self.keys(name)), dtype=np.int64)
        self.transcript.append(Draw(name, words, noise, found))
        return found

    def known_total(self) -> int:
        self.transcript.append(Draw(*KNOWN, None, np.array([self.counts.total], dtype=np.int64)))
        return self.counts.total


@dataclass(frozen=True, eq=False)
class TranscriptCurator:
    """Repeats what was drawn before, and needs no counts; refused where something else is asked for."""

    transcript: Sequence[Draw]
    _told: list[str] = field(default_factory=list)

    def draw(
        self, name: str, words: str, of: Callable[[Counts, NoiseKey], Integers], noise: Noise | None = None
    ) -> Integers:
        del of
        return self._next(name, words, noise)

    def known_total(self) -> int:
        return int(self._next(*KNOWN, None)[0])

    def _next(self, name: str, words: str, noise: Noise | None) -> Integers:
        at = len(self._told)
        known = self.transcript[at] if at < len(self.transcript) else None
        if known is None or (known.name, known.words, known.noise) != (name, words, noise):
            raise InvalidRelease(
                f"the transcript of a release does not go on with '{name}'",
                why="it was drawn by another version, or where numbers are rounded otherwise",
                instead="use the version and the machine that drew it",
            )
        self._told.append(name)
        return known.values


def chosen(
    curator: Curator, name: str, words: str, scores: Callable[[Counts], Sequence[int] | Integers], rate: Fraction
) -> int:
    """The number of a candidate, by the exponential mechanism."""

    def of(counts: Counts, key: NoiseKey) -> Integers:
        return np.array([select(scores(counts), rate=rate, key=key)], dtype=np.int64)

    return int(curator.draw(name, words, of)[0])


def measured(curator: Curator, name: str, words: str, exact: Callable[[Counts], Integers], noise: Noise) -> Integers:
    """Noisy whole numbers, flat."""
    sampler = noise.sampler()

    def of(counts: Counts, key: NoiseKey) -> Integers:
        found = np.asarray(exact(counts), dtype=np.int64).reshape(-1)
        return found + sampler.draw(key, range(found.size))

    return curator.draw(name, words, of, noise)


def noise_of_sampler(sampler: LaplaceSampler | GaussianSampler) -> Noise:
    """The noise that a sampler draws, as releases name it."""
    if isinstance(sampler, LaplaceSampler):
        return Noise(GEOMETRIC, Fraction(sampler.scale))
    return Noise(GAUSSIAN, Fraction(sampler.variance))


@dataclass(frozen=True, eq=False)
class Told:
    """What a technology says once all is drawn: a function of its transcript."""

    values: Floats  # shape (query_count,), table by table
    half_widths: HalfWidths = field(repr=False)
    covers: str
    records: Callable[[], Integers] | None = field(default=None, repr=False)
    """Levels of whole records of nobody, shape (records, attributes), where it has a model of them."""
    measured: tuple[str, ...] = ()  # what of the data it rests on, in words

    def answers(self, probability: float) -> Answers:
        return Answers(self.values, self.half_widths(probability), self.covers)


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


class PublishedMechanism(DataDependentMechanism, Protocol):
    """One that asks a curator for its draws, so that a release of it can be published and made again."""

    @property
    def models_records(self) -> bool:
        """Whether it has a model of whole records, from which these can be dealt."""

    @property
    def parameters(self) -> dict[str, str]:
        """What it was told beside the workload and the loss, by name, exactly: what an approver signs."""

    def check(self, workload: Workload, protection: Protection) -> None:
        """Refuse what it cannot serve, whatever the data are: when it is planned, and never later."""

    def tell(self, curator: Curator, workload: Workload, loss: Fraction, *, protection: Protection) -> Told:
        """One release, from the draws of a curator."""


def without_impossible(workload: Workload, told: Told) -> Told:
    """The same where answers that no possible record is counted in are 0, and known to be.

    Not of domains that are too large to look at, or of queries that subtract.
    """
    fixed = never_counted(workload)
    if fixed is None:
        return told

    def half_widths(probability: float) -> Floats | None:
        found = told.half_widths(probability)
        return None if found is None else np.where(fixed, 0.0, found)

    return replace(told, values=np.where(fixed, 0.0, told.values), half_widths=half_widths)


def never_counted(workload: Workload) -> Booleans | None:
    """Which answers are 0 whatever the data are; None where there are none, or that is not looked for."""
    domain = workload.domain
    if domain.size > LARGEST_LOOKED_AT or not domain.structural_zeros:
        return None
    if any(signs_vary(factor) for table in workload.tables for factor in table.factors):
        return None
    possible = domain.possible_cells().reshape(domain.shape).astype(np.float64)
    found: Booleans = np.asarray(workload.answers(possible)) == 0
    return found if found.any() else None


def simulation_keys(seed: int, repetition: int) -> Keys:
    """Keys of a simulated release, from numbers that everybody may know; never for publication."""

    def key(name: str) -> NoiseKey:
        return NoiseKey(sha256(f"simulation {seed} {repetition} {name}".encode()).digest())

    return key
