"""Multiplicative weights with selection: ask again and again where the fitted distribution is most wrong.

Each round the exponential mechanism takes what is answered worst, exact noise measures it, and the distribution is
fitted to all that was measured so far. Where a workload's tables count each record once, whole tables are taken: all
cells of one cost what one of them does. Else queries are. Source: [HLM12]; whole tables over a product of
potentials [MSM19].

The loss, in fractions that add up to what was stated: a share each for the total (which replacing a record leaves as it
is: then it is nobody's secret) and for the interval; the rest divided over the rounds, half of each to choose and half
to measure, or all of it where there is nothing to choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Literal

import numpy as np

from dualmandate.errors import InvalidInvariant, InvalidLoss, InvalidMechanism, TooLarge
from dualmandate.mechanism.data_dependent import (
    Answers,
    Curator,
    Keys,
    RecordsCurator,
    Told,
    chosen,
    measured,
    noise_of_sampler,
)
from dualmandate.mechanism.exponential import rate_of
from dualmandate.mechanism.mechanism import EVERY_PERSON
from dualmandate.mechanism.multiplicative_weights.cliques import LARGEST_TREE
from dualmandate.mechanism.multiplicative_weights.fit import AskedTable, FittedDistribution, NoisyReading
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler
from dualmandate.population import Neighbors, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.records import Counts
from dualmandate.workload import Table, Workload
from dualmandate.workload.factor import signs_vary

TOTAL_SHARE = Fraction(1, 20)  # of the loss, for the number of records where it is a secret
INTERVAL_SHARE = Fraction(1, 20)  # of the loss, for how far off the worst answer is
QUERY_CHOICE_SHARE = Fraction(1, 2)  # of a round's loss; found on generated data, as all numbers here are
TABLE_CHOICE_SHARE = Fraction(1, 5)  # Tables differ by far more than one record moves them.
LAST = 10  # times as many replays after the last measurement
MOST_QUERIES = 2**24  # that are scored one by one each round
MOST_ROUNDS = 200  # by default
MOST_RECORDS = 2**36
MOST_MOVES = 2**23  # times twice as many records: scores stay below 2⁶⁰
MOST_PENALTY = 2**60

COVERS = "all answers at once, bias and noise: the largest error of all was measured too"

Candidates = Literal["tables", "queries"]


@dataclass(frozen=True)
class MultiplicativeWeights:
    """MWEM: a distribution over the domain, fitted to what it got most wrong; on small data and large domains.

    `rounds` is how many measurements are made, by default as many as the loss can tell from noise. `candidates` are
    what a round chooses among. With `replays` = 0 it is the published algorithm: each measurement is used once, and
    answers are those of the average of the rounds' distributions.
    """

    rounds: int | None = None
    candidates: Candidates | None = None  # by default tables where every one counts a record once
    replays: int = 30  # steps after each measurement, with all of them; ten times as many after the last
    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP

    def __post_init__(self) -> None:
        if self.rounds is not None and not (_is_whole(self.rounds) and self.rounds >= 1):
            raise InvalidMechanism(
                f"multiplicative weights in {self.rounds} rounds",
                why="without a measurement every answer would be that of an even distribution, whatever the data",
                instead="state at least one round, or none and as many are made as the loss can pay for",
            )
        if not (_is_whole(self.replays) and self.replays >= 0):
            raise InvalidMechanism(
                f"{self.replays} replays of measurements",
                why="measurements are gone through a whole number of times",
                instead="state 0, as published, or some 30",
            )

    @property
    def name(self) -> str:
        return "multiplicative weights with selection" + (", as published" if self.replays == 0 else "")

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
        """One release: the answers of the fitted distribution, and how far off the worst of them is."""
        told = self.tell(RecordsCurator(counts, keys), workload, loss, protection=protection)
        return told.answers(probability)

    @property
    def models_records(self) -> bool:
        return False

    @property
    def parameters(self) -> dict[str, str]:
        stated = {"rounds": self.rounds, "candidates": self.candidates}
        return {"replays": str(self.replays), **{name: str(each) for name, each in stated.items() if each is not None}}

    def check(self, workload: Workload, protection: Protection) -> None:
        """Refuse exact totals, tables that tell too many cells apart, and queries that are too many to be scored."""
        Tasks.of(workload, protection, self.candidates)

    def tell(self, curator: Curator, workload: Workload, loss: Fraction, *, protection: Protection) -> Told:
        """The same from the draws of a curator."""
        tasks = Tasks.of(workload, protection, self.candidates)
        draws = ExactDraws(Fraction(loss), self.privacy_measure, protection, curator)
        fitted = FittedDistribution(workload.domain, draws.total())
        rounds = self.rounds or default_rounds(tasks, draws, fitted.total)
        answers = self._rounds(tasks, draws, fitted, min(rounds, len(tasks)))
        worst, sampler = draws.worst(lambda counts: tasks.off(tasks.truth(counts), answers), tasks.query_moves)
        weighted = [float(weight) * each for weight, each in zip(tasks.weights, answers, strict=True)]
        rounding = float(max(tasks.weights)) / 2  # what rounding hides

        def half_widths(probability: float) -> Floats:
            reach = (worst + tail(sampler, 1 - probability)) / tasks.denominator
            return np.full(workload.query_count, reach + rounding)

        said = dict.fromkeys(each.asked.table.name for each in fitted.readings)
        return Told(np.concatenate(weighted), half_widths, COVERS, measured=tuple(said))

    def _rounds(self, tasks: Tasks, draws: ExactDraws, fitted: FittedDistribution, rounds: int) -> list[Floats]:
        """The answers of each table after all rounds; without replays the average of those before each round."""
        chooses = rounds < len(tasks)
        share = draws.for_rounds / rounds
        choice = share * tasks.choice_share if chooses else Fraction(0)
        rest = share - choice
        answers = [fitted.answers(asked) for asked in tasks.asked]
        average = [np.zeros_like(each) for each in answers]
        left = list(range(len(tasks)))
        for number in range(rounds):
            average = [mean + each / rounds for mean, each in zip(average, answers, strict=True)]
            open_ = [task for task in left if fitted.has_room(tasks.axes(task))] if tasks.whole else left
            if not open_:
                break  # what is left would join too many attributes; which is public
            task = open_[0]
            if chooses:
                scored = tasks.scored(answers, draws, rest, open_)
                task = open_[draws.choice(f"round {number} choice", scored, tasks.score_moves, choice)]
            if tasks.whole or not chooses:
                left.remove(task)  # one that is measured query by query may be measured again
            fitted.read(tasks.measure(task, draws, f"round {number} values", rest))
            if self.replays:
                fitted.replay(self.replays)
            else:
                fitted.move_once()
            answers = [fitted.answers(asked) for asked in tasks.asked]
        if not self.replays:
            return average
        fitted.replay(LAST * self.replays)
        return [fitted.answers(asked) for asked in tasks.asked]


@dataclass(frozen=True, eq=False)
class Tasks:
    """What may be measured: tables as a whole, or their queries, numbered table by table."""

    asked: tuple[AskedTable, ...]
    weights: tuple[Fraction, ...]  # of the tables
    whole: bool
    powers: tuple[dict[PrivacyMeasure, Fraction], ...]  # Δ₁ or Δ₂² of what is measured of each table
    query_moves: int  # the most that a unit moves a weighted answer, in units of 1/denominator
    score_moves: int
    denominator: int

    @classmethod
    def of(cls, workload: Workload, protection: Protection, candidates: Candidates | None) -> Tasks:
        """Everything about a workload that rests on no data."""
        _refuse_unless_served(workload, protection)
        denominator = math.lcm(*(table.weight.denominator for table in workload.tables))
        weights = tuple(table.weight for table in workload.tables)
        scales = [int(weight * denominator) for weight in weights]
        alone = [query_sensitivity(table, protection) for table in workload.tables]
        tables = [Workload(workload.domain, (Table(each.name, each.factors),)) for each in workload.tables]
        together = [table.sensitivity(protection).power for table in tables]
        once = all(one.sensitivity().power <= one.tables[0].largest_entry for one in tables)
        whole = candidates == "tables" or (candidates is None and once)
        if not whole and workload.query_count > MOST_QUERIES:
            raise TooLarge(
                f"{workload.query_count:.3g} queries are scored one by one each round",
                why=f"at most {MOST_QUERIES:,} are",
                instead='measure whole tables (candidates="tables"), or ask fewer queries',
            )
        powers = [
            {
                PrivacyMeasure.PURE_DP: power if whole else Fraction(each),
                PrivacyMeasure.ZCDP: table.sensitivity(protection, "l2").power if whole else Fraction(each**2),
            }
            for table, power, each in zip(tables, together, alone, strict=True)
        ]
        moves = max(scale * each for scale, each in zip(scales, alone, strict=True))
        summed = max(math.ceil(scale * power) for scale, power in zip(scales, together, strict=True))
        if max(moves, summed) > MOST_MOVES:
            raise TooLarge(
                f"answers of which one unit moves some by {max(moves, summed):.3g} of their common steps",
                why=f"scores are 64-bit whole numbers of the smallest weight in common: at most {MOST_MOVES:,} a unit",
                instead="give the tables weights with fewer digits, or a sum a coarser grid",
            )
        asked = tuple(AskedTable.of(workload.domain, table) for table in workload.tables)
        return cls(asked, weights, whole, tuple(powers), moves, summed if whole else moves, denominator)

    def __len__(self) -> int:
        return len(self.asked) if self.whole else sum(asked.table.query_count for asked in self.asked)

    @property
    def choice_share(self) -> Fraction:
        """Of the loss of a round that chooses."""
        return TABLE_CHOICE_SHARE if self.whole else QUERY_CHOICE_SHARE

    def axes(self, task: int) -> tuple[int, ...]:
        return self.asked[self._place(task)[0]].axes

    def truth(self, counts: Counts) -> list[Integers]:
        """The exact answers of each table, without its weight."""
        if counts.total > MOST_RECORDS:
            raise TooLarge(
                f"more than {MOST_RECORDS:,} records",
                why="sums of weighted errors would not fit 64 bits",
                instead="divide the records into parts, each with a release of its own",
            )
        if not self._truths or self._truths[0][0] is not counts:
            names = counts.domain.names
            each = (counts.project(names[axis] for axis in asked.axes).counts for asked in self.asked)
            found = [asked.workload.answers(own) for asked, own in zip(self.asked, each, strict=True)]
            self._truths[:] = [(counts, found)]
        return self._truths[0][1]

    @cached_property
    def _truths(self) -> list[tuple[Counts, list[Integers]]]:
        """The answers of the counts that were asked about last: every round asks about the same."""
        return []

    def off(self, truth: list[Integers], answers: Sequence[Floats]) -> Integers:
        """How far each answer is off, weighted; whole numbers of 1/denominator."""
        each = zip(truth, answers, self.weights, strict=True)
        return np.concatenate(
            [np.abs(exact - _rounded(fitted)) * int(weight * self.denominator) for exact, fitted, weight in each]
        )

    def scored(
        self, answers: Sequence[Floats], draws: ExactDraws, loss: Fraction, open_: Sequence[int]
    ) -> Callable[[Counts], Integers]:
        """The scores of what may still be measured, as a function of the counts."""
        asked = list(answers)  # as they are now
        return lambda counts: self.scores(self.truth(counts), asked, draws, loss)[list(open_)]

    def scores(self, truth: list[Integers], answers: Sequence[Floats], draws: ExactDraws, loss: Fraction) -> Integers:
        """How wrong what may be measured is; of whole tables beyond what noise alone would be, which is public."""
        off = self.off(truth, answers)
        if not self.whole:
            return off
        counts = [asked.table.query_count for asked in self.asked]
        sums = np.add.reduceat(off, np.cumsum([0, *counts[:-1]]))
        noise = [
            min(
                MOST_PENALTY,
                round(count * float(weight * self.denominator) * math.sqrt(2 / math.pi * draws.variance(powers, loss))),
            )
            for count, weight, powers in zip(counts, self.weights, self.powers, strict=True)
        ]
        return np.asarray(sums - np.array(noise, dtype=np.int64))

    def measure(self, task: int, draws: ExactDraws, name: str, loss: Fraction) -> NoisyReading:
        table, row = self._place(task)
        asked, powers = self.asked[table], self.powers[table]
        words = f"'{asked.table.name}'"
        if self.whole:
            values = draws.measured(name, words, lambda counts: self.truth(counts)[table], powers, loss)
        else:
            asked, words = asked.query(row), f"query {row + 1} of {words}"
            values = draws.measured(name, words, lambda counts: self.truth(counts)[table][row : row + 1], powers, loss)
        return NoisyReading(asked, values, draws.variance(powers, loss))

    def _place(self, task: int) -> tuple[int, int]:
        if self.whole:
            return task, 0
        ends = np.cumsum([asked.table.query_count for asked in self.asked])
        table = int(np.searchsorted(ends, task, side="right"))
        return table, task - int(ends[table] - self.asked[table].table.query_count)


@dataclass(frozen=True, eq=False)
class ExactDraws:
    """Every draw of a release, with what it loses; the losses are fractions of the whole."""

    loss: Fraction
    privacy_measure: PrivacyMeasure
    protection: Protection
    curator: Curator

    def __post_init__(self) -> None:
        if not self.loss > 0:
            raise InvalidLoss(
                f"multiplicative weights for a loss of {self.loss!s:.40}",
                why="what is measured loses privacy",
                instead="state a positive loss",
            )

    @property
    def for_total(self) -> Fraction:
        secret = self.protection.neighbors is Neighbors.ADD_OR_REMOVE
        return self.loss * TOTAL_SHARE if secret else Fraction(0)

    @property
    def for_interval(self) -> Fraction:
        return self.loss * INTERVAL_SHARE

    @property
    def for_rounds(self) -> Fraction:
        return self.loss - self.for_total - self.for_interval

    def total(self) -> float:
        """The number of records, noisy where it is a secret."""
        if not self.for_total:
            return float(self.curator.known_total())
        moves = Fraction(self.protection.most_records_per_unit)
        powers = {PrivacyMeasure.PURE_DP: moves, PrivacyMeasure.ZCDP: moves**2}
        words = "the number of records"
        values = self.measured("total", words, lambda counts: np.array([counts.total]), powers, self.for_total)
        return min(max(0.0, float(values[0])), float(MOST_RECORDS))

    def choice(self, name: str, scores: Callable[[Counts], Integers], moves: int, loss: Fraction) -> int:
        rate = rate_of(loss, self.privacy_measure, self.protection, sensitivity=moves)
        return chosen(self.curator, name, "what is answered worst, of all that may be measured", scores, rate)

    def measured(
        self,
        name: str,
        words: str,
        exact: Callable[[Counts], Integers],
        powers: dict[PrivacyMeasure, Fraction],
        loss: Fraction,
    ) -> Integers:
        """Noisy values."""
        return measured(self.curator, name, words, exact, noise_of_sampler(self._sampler(powers, loss)))

    def variance(self, powers: dict[PrivacyMeasure, Fraction], loss: Fraction) -> float:
        """What noise is taken to vary by where it is weighed."""
        return noise_variance(self._sampler(powers, loss))

    def worst(self, off: Callable[[Counts], Integers], moves: int) -> tuple[float, LaplaceSampler | GaussianSampler]:
        """The largest error of all, with noise, and what drew that: with its tail it holds whatever the data are."""
        powers = {PrivacyMeasure.PURE_DP: Fraction(moves), PrivacyMeasure.ZCDP: Fraction(moves**2)}
        words = "the largest error of all answers"
        values = self.measured(
            "interval", words, lambda counts: off(counts).max(keepdims=True), powers, self.for_interval
        )
        # No error is below 0; so what noise says of that is not believed.
        return max(0.0, float(values[0])), self._sampler(powers, self.for_interval)

    def _sampler(self, powers: dict[PrivacyMeasure, Fraction], loss: Fraction) -> LaplaceSampler | GaussianSampler:
        power = powers[self.privacy_measure]
        if self.privacy_measure is PrivacyMeasure.PURE_DP:
            return LaplaceSampler(power / loss)
        return GaussianSampler(power / (2 * loss))


def default_rounds(tasks: Tasks, draws: ExactDraws, total: float) -> int:
    """As many rounds as can be told from noise: the most T with T²·σ(T) ≤ 3·N, σ being the noise of one measurement.

    What a fit is wrong by falls about like N/T², and each further round makes all measurements noisier: so T grows
    like the cube root of ε·N. Whole tables have many cells, each with noise of its own: T²·σ(T) ≤ N. The constants come
    from generated histograms and from Adult; the number of records is noisy where it is a secret.
    """
    reach = total * (1 if tasks.whole else 3)
    widest = {measure: max(powers[measure] for powers in tasks.powers) for measure in PrivacyMeasure}
    share = draws.for_rounds * (1 - tasks.choice_share)

    def pays(rounds: int) -> bool:
        return rounds**2 * math.sqrt(draws.variance(widest, share / rounds)) <= reach

    most = min(len(tasks), MOST_ROUNDS)
    return next((rounds - 1 for rounds in range(2, most + 1) if not pays(rounds)), most)


def tail(sampler: LaplaceSampler | GaussianSampler, probability: float) -> float:
    """A whole number t with P(noise < −t) ≤ probability; the law is symmetric.

    Laplace: P(X ≤ −t − 1) = b^(t + 1)/(1 + b), b = exp(−1/scale). Gauss: at most that of the continuous law [CKS20].
    """
    if isinstance(sampler, LaplaceSampler):
        rate = 1 / float(sampler.scale)
        return max(0.0, math.ceil(-(math.log(probability) + math.log1p(math.exp(-rate))) / rate - 1))
    return max(0.0, math.ceil(-NormalDist(0, math.sqrt(sampler.variance)).inv_cdf(probability)))


def noise_variance(sampler: LaplaceSampler | GaussianSampler) -> float:
    """Of the continuous law."""
    return 2 * float(sampler.scale) ** 2 if isinstance(sampler, LaplaceSampler) else float(sampler.variance)


def query_sensitivity(table: Table, protection: Protection) -> int:
    """The most that one unit moves any one query of a table, without its weight."""
    both = protection.neighbors is Neighbors.REPLACE_ONE and any(signs_vary(factor) for factor in table.factors)
    return table.largest_entry * protection.most_records_per_unit * (2 if both else 1)


def _refuse_unless_served(workload: Workload, protection: Protection) -> None:
    if protection.invariants:
        raise InvalidInvariant(
            f"multiplicative weights beside the exact total '{protection.invariants[0].name}'",
            why="what is fitted to noisy answers does not keep it",
            instead="leave exact totals out, or use a technology that is made consistent with them",
        )
    sizes = [
        math.prod(each.domain.shape) for each in (AskedTable.of(workload.domain, t).workload for t in workload.tables)
    ]
    if max(sizes) > LARGEST_TREE:
        table = workload.tables[sizes.index(max(sizes))].name
        raise TooLarge(
            f"the table '{table}' tells {max(sizes):.3g} cells apart",
            why=f"a distribution is fitted over at most {LARGEST_TREE:,} of the attributes that are asked together",
            instead="ask about fewer attributes at once, or about coarser ones",
        )


def _rounded(values: Floats) -> Integers:
    return np.rint(values).astype(np.int64)


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
