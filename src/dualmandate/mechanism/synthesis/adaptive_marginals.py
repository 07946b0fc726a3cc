"""Synthetic records by select, measure, generate: the marginal is measured next that a model misses by most.

All attributes are measured one by one. Then, round by round, the exponential mechanism picks a marginal among those
asked for and those within them, by w_r·(|M_r·x − M_r·n|₁ − what measuring it would leave), where n are the counts of
the model so far and w_r = Σ_s |r ∩ s| says how much of the tables s it shows. It is measured as it is, for a loss that
grows like the root of its cells, and the model is fitted anew; where that moved it no more than noise would, later
rounds are bought at four times the ρ (twice the ε). Last, how far the model is from each table, |M_s·x − M_s·n|₁, is
itself measured: an error with everything in it, also what was never measured. Source: [MMSM22]; scores, shrinkage,
shares of the loss and measured errors are ours.

One unit moves a marginal by at most m records, m the most that a unit has, or 2m where it is replaced: that is the L1
sensitivity of a marginal and of any distance to it. In the L2 norm a marginal moves by m, or √2·m.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism, InvalidWorkload, TooLarge
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
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler
from dualmandate.mechanism.synthesis.junction_tree import (
    MOST_HELD,
    Places,
    TreeModel,
    cells_of,
    junction_tree,
    summed,
    tree_cells,
)
from dualmandate.mechanism.synthesis.maximum_entropy import NoisyMarginal, fitted
from dualmandate.mechanism.synthesis.records_of_model import dealt_records
from dualmandate.population import Counts, Domain, Neighbors, PrivacyMeasure, Protection, Records
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.workload import Table, Total, Workload
from dualmandate.workload.factor import AllRange, Groups, Identity, Prefix, dense

LARGEST_TABLE = 2**22  # cells of a table that is asked for
LARGEST_CANDIDATE = 2**17  # cells of a marginal that may be measured
MOST_REMEMBERED = 2**25  # exact counts of candidates that are kept
MOST_ANSWERS = 2**26
LEAST_ROOM = Fraction(1, 20)  # of the largest model, while little is spent
UNIT = 64  # distances are counted in so many parts of a record
FIRST_SHARE = Fraction(1, 4)  # of the loss: attributes one by one
ERROR_SHARE = Fraction(1, 50)  # of the loss: distances of the tables
CHOICE_SHARE = Fraction(1, 10)  # of a round's loss
MOST_UNEVEN = 4  # times the loss of a marginal of middle size that a larger one may take, or the part of a smaller one
BELIEF = 0.3  # of N/S is the evenness: a few cells are off by much, and most by little
LEAST_EVENNESS = 1e-3
SPREAD = 0.3  # N/S of a marginal that deserves to be measured: what is left of its errors after it was
FIRST_STEPS, STEPS, LAST_STEPS = 100, 20, 400  # of the fit
ALL = "all records"  # the marginal of no attributes
COVERS = (
    "each number with the probability of its interval: in tables within a measured marginal the noise of it, and how "
    "far the model is from what was measured; in others, by the measured distance of the whole table, also whatever "
    "the model misses"
)


@dataclass(frozen=True)
class TableDistance:
    """How many records a model has in other cells of a table than the data do: |M·x − M·n|₁, measured with noise."""

    distance: float  # records; half of it would have to change their cell
    half_width: float


@dataclass(frozen=True, eq=False)
class Synthesis:
    """What a release of synthetic records says: a model, records dealt from it, and how far both may be off."""

    answers: Answers
    distances: Mapping[str, TableDistance]  # by table
    measured: tuple[tuple[str, ...], ...]  # attributes of each measured marginal
    total: float  # estimated number of records
    domain: Domain = field(repr=False)
    model: TreeModel = field(repr=False)

    @cached_property
    def records(self) -> Records:
        """As many records of nobody as there are estimated to be; impossible ones are none of them."""
        return Records(self.domain, dealt_records(self.model, max(0, round(self.total))))

    def marginal(self, *names: str) -> Floats:
        """Estimated counts of some attributes' levels, in the order of the names."""
        return self.total * self.model.marginal(self.domain.axes(names))


@dataclass(frozen=True)
class AdaptiveMarginals:
    """Marginals chosen by what is missed, and a model of whole records fitted to them."""

    privacy_measure: PrivacyMeasure = PrivacyMeasure.ZCDP
    rounds_an_attribute: int = 4  # at first; fewer follow where rounds become dearer
    largest_model: int = 2**19  # cells of all cliques

    def __post_init__(self) -> None:
        object.__setattr__(self, "privacy_measure", PrivacyMeasure(self.privacy_measure))
        if not (self.rounds_an_attribute >= 1 and self.largest_model >= 1):
            raise InvalidMechanism(
                f"{self.rounds_an_attribute} rounds an attribute, and a model of {self.largest_model:,} cells",
                why="with no round nothing is chosen, and with no cell nothing is modeled",
                instead="state at least one of each, or measure the tables themselves",
            )

    @property
    def name(self) -> str:
        return "marginals chosen by what is missed"

    @property
    def models_records(self) -> bool:
        return True

    @property
    def parameters(self) -> dict[str, str]:
        return {"rounds_an_attribute": str(self.rounds_an_attribute), "largest_model": str(self.largest_model)}

    def check(self, workload: Workload, protection: Protection) -> None:
        """Refuse exact totals, tables that are too large, and attributes that no model holds."""
        _Moves.of(self.privacy_measure, protection)
        _Asked.of(workload, self.largest_model)

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
        """The workload as the model has it."""
        return self.release(counts, workload, loss, keys, protection=protection, probability=probability).answers

    def release(
        self,
        counts: Counts,
        workload: Workload,
        loss: Fraction,
        keys: Keys,
        *,
        protection: Protection = EVERY_PERSON,
        probability: float = 0.9,
    ) -> Synthesis:
        """One release, for a loss of at most so much: the model, its answers with half-widths, and records."""
        if not 0.0 < probability < 1.0:
            raise InvalidLoss(
                f"a release for {self.privacy_measure} = {loss!s:.40}, with intervals at {probability}",
                why="an interval holds with a probability below 1",
                instead="state 0 < probability < 1",
            )
        if (counts.domain.names, counts.domain.shape) != (workload.domain.names, workload.domain.shape):
            raise InvalidWorkload(
                "the tables are about other attributes or levels than the records have",
                why="a table counts the levels of its own domain",
                instead="build the workload over the domain of the records",
            )
        return self._run(RecordsCurator(counts, keys), workload, loss, protection).synthesis(probability)

    def tell(self, curator: Curator, workload: Workload, loss: Fraction, *, protection: Protection) -> Told:
        """The same from the draws of a curator."""
        run = self._run(curator, workload, loss, protection)

        def records() -> Integers:
            return dealt_records(run.model, run.records)

        return Told(run.values, run.half_widths, COVERS, records, tuple(map(run.words, run.measured)))

    def _run(self, curator: Curator, workload: Workload, loss: Fraction, protection: Protection) -> _Run:
        if not loss > 0:
            raise InvalidLoss(
                f"a release for {self.privacy_measure} = {loss!s:.40}",
                why="noise is set by a positive loss",
                instead="state a positive fraction",
            )
        asked = _Asked.of(workload, self.largest_model)
        run = _Run(self, curator, asked, _Moves.of(self.privacy_measure, protection))
        first = 1 if not asked.candidates else FIRST_SHARE
        run.measure_first(Fraction(loss) * (first - ERROR_SHARE * first))
        run.rounds(Fraction(loss) * (1 - ERROR_SHARE) * (1 - first))
        run.fit(LAST_STEPS)
        run.measure_distances(Fraction(loss) * ERROR_SHARE)
        return run


def synthesize(
    counts: Counts,
    workload: Workload,
    loss: Fraction,
    keys: Keys,
    *,
    privacy_measure: PrivacyMeasure = PrivacyMeasure.ZCDP,
    protection: Protection = EVERY_PERSON,
    probability: float = 0.9,
) -> Synthesis:
    """Synthetic records for a workload of tables, its estimates with intervals, and the error of each table.

    `loss` is ρ, or ε of pure differential privacy. `keys` gives each draw its key; whoever knows them knows the counts.
    """
    mechanism = AdaptiveMarginals(privacy_measure)
    return mechanism.release(counts, workload, loss, keys, protection=protection, probability=probability)


@dataclass(frozen=True)
class _Moves:
    """How far one unit moves a marginal, and the noise that hides it."""

    privacy_measure: PrivacyMeasure
    protection: Protection
    absolute: int  # L1: of a marginal, and of any distance to it
    squared: int  # L2, squared

    @classmethod
    def of(cls, privacy_measure: PrivacyMeasure, protection: Protection) -> _Moves:
        if protection.invariants or protection.records_together > 1:
            raise InvalidMechanism(
                "a model fitted to noisy marginals beside exact totals",
                why="it keeps no total exactly, and its loss is not worked out for files that share them",
                instead="drop the exact totals, or publish tables of their own",
            )
        records, ends = protection.most_records_per_unit, 1 + (protection.neighbors is Neighbors.REPLACE_ONE)
        return cls(privacy_measure, protection, ends * records, ends * records**2)

    @property
    def is_pure(self) -> bool:
        return self.privacy_measure is PrivacyMeasure.PURE_DP

    def sampler(self, loss: Fraction, absolute: int, squared: int) -> tuple[GaussianSampler | LaplaceSampler, float]:
        """Noise for numbers that move by so much together, and its variance."""
        if self.is_pure:
            return LaplaceSampler(absolute / loss), 2 * float(absolute / loss) ** 2
        return GaussianSampler(squared / (2 * loss)), float(squared / (2 * loss))

    def left_by(self, deviations: Floats | float) -> Floats:
        """E|noise| of a standard deviation."""
        return np.asarray(deviations) * (math.sqrt(0.5) if self.is_pure else math.sqrt(2 / math.pi))

    def reach(self, deviation: float, outside: float) -> float:
        """How far noise may be, with a probability of at most `outside` to be farther on either side together.

        Sums of Laplace noise lie between it and the normal law, and the farther of both is taken.
        """
        from scipy.special import ndtri

        normal = -float(ndtri(outside / 2))
        return deviation * (max(normal, math.log(1 / outside) * math.sqrt(0.5)) if self.is_pure else normal)


@dataclass(frozen=True, eq=False)
class _Asked:
    """The tables of a workload by the attributes they are about, and what may be measured for them."""

    domain: Domain
    largest_model: int
    tables: tuple[tuple[Table, Places], ...]
    first: tuple[Places, ...]  # measured before anything is chosen
    candidates: Mapping[Places, int]  # marginals that may be chosen, and how much of the tables each shows
    zeros: tuple[tuple[Places, tuple[Booleans, ...]], ...]  # structural zeros, as masks of levels

    @classmethod
    def of(cls, workload: Workload, largest_model: int) -> _Asked:
        domain, sizes = workload.domain, workload.domain.shape
        if workload.query_count > MOST_ANSWERS:
            raise TooLarge(
                f"{workload.query_count:,} numbers are asked for",
                why=f"at most {MOST_ANSWERS:,} are estimated at once, each with its interval",
                instead="ask for fewer or smaller tables; records answer others too",
            )
        tables = tuple(
            (table, tuple(axis for axis, factor in enumerate(table.factors) if not isinstance(factor, Total)))
            for table in workload.tables
        )
        for table, places in tables:
            if cells_of(places, sizes) > LARGEST_TABLE:
                raise TooLarge(
                    f"the table '{table.name}' has {cells_of(places, sizes):,} cells",
                    why=f"a model answers tables of at most {LARGEST_TABLE:,} cells",
                    instead="group levels, or ask for tables of fewer attributes",
                )
        zeros = tuple(
            (tuple(sorted(masks)), tuple(masks[axis] for axis in sorted(masks))) for masks in domain.all_zero_masks
        )
        single = tuple((place,) for place in sorted({place for _, places in tables for place in places})) or ((),)
        least = tree_cells(sizes, [*single, *(places for places, _ in zeros)])
        if least > largest_model:
            raise TooLarge(
                f"a model with {least:,} cells before any table of two attributes is measured",
                why=f"at most {largest_model:,} are held: attributes of that many levels, or structural zeros across "
                "many attributes, need as many",
                instead="group levels, state zeros about fewer attributes, or allow a larger model",
            )
        sets = [frozenset(places) for _, places in tables]
        within = {
            kept
            for _, places in set(tables)
            for count in range(1, len(places) + 1)
            for kept in combinations(places, count)
        }
        ranked = sorted(
            (kept for kept in within if cells_of(kept, sizes) <= LARGEST_CANDIDATE), key=lambda r: (len(r), r)
        )
        weights = {kept: sum(len(each.intersection(kept)) for each in sets) for kept in ranked}
        return cls(domain, largest_model, tables, single, weights if any(len(r) > 1 for r in ranked) else {}, zeros)

    @cached_property
    def middle(self) -> int:
        """Cells of a candidate of middle size."""
        sizes = sorted(cells_of(places, self.domain.shape) for places in self.candidates)
        return sizes[len(sizes) // 2]

    @cached_property
    def always(self) -> tuple[Places, ...]:
        """What stands in one clique whatever is measured."""
        return tuple(places for places, _ in self.zeros)

    def possible(self, places: Places) -> Booleans | None:
        """Which combinations of these attributes' levels can occur; None where all can."""
        within = [(zero, masks) for zero, masks in self.zeros if set(zero) <= set(places)]
        if not within:
            return None
        found = np.ones([self.domain.shape[place] for place in places], dtype=np.bool_)
        for zero, masks in within:
            chosen = dict(zip(zero, masks, strict=True))
            every = (chosen.get(place, np.ones(self.domain.shape[place], dtype=np.bool_)) for place in places)
            found[np.ix_(*every)] = False
        return found


class _Run:
    """One release while it is made: what was measured so far, and the model of it."""

    model: TreeModel
    total: float

    def __init__(self, mechanism: AdaptiveMarginals, curator: Curator, asked: _Asked, moves: _Moves) -> None:
        self.mechanism, self.curator, self.asked, self.moves = mechanism, curator, asked, moves
        self.sizes = asked.domain.shape
        self.known = curator.known_total() if moves.protection.neighbors is Neighbors.REPLACE_ONE else None
        self.distances: dict[Places, float] = {}
        self.measured: dict[Places, NoisyMarginal] = {}
        self.parameters: Mapping[Places, Floats] = {}
        self.exact: dict[Places, Integers] = {}
        self.remembered = self.draws = 0

    def measure_first(self, loss: Fraction) -> None:
        """Every attribute by itself; the total alone where no table asks about any."""
        weights = {places: _root(cells_of(places, self.sizes)) for places in self.asked.first}
        for places, weight in weights.items():
            even = np.full([self.sizes[place] for place in places], 1.0 / cells_of(places, self.sizes))
            self._measure(places, loss * weight / sum(weights.values()), even)
        self.fit(FIRST_STEPS)

    def rounds(self, loss: Fraction) -> None:
        """Choose, measure and fit until the loss is spent."""
        if not self.asked.candidates:
            return
        dearer = 2 if self.moves.is_pure else 4  # half the standard deviation
        step, left = loss / (self.mechanism.rounds_an_attribute * len(self.asked.first)), loss
        while left > 0:
            step = left if left < 2 * step else step
            left -= CHOICE_SHARE * step
            usual = (1 - CHOICE_SHARE) * step
            places = self._chosen(CHOICE_SHARE * step, usual, left, self._room(1 - left / loss))
            cost = self._cost(places, usual, left)
            if left - cost < step:  # too little for another round
                cost = left
            left -= cost
            before = self.model.marginal(places)
            noise = float(self._left(self.total * before, self._sampler(cost)[1]).sum())
            self._measure(places, cost, before)
            self.fit(STEPS)
            if self.total * np.abs(self.model.marginal(places) - before).sum() <= noise:
                step *= dearer

    def _cost(self, places: Places, usual: Fraction, left: Fraction) -> Fraction:
        """The loss that a marginal is measured for: like the root of its cells, as far as any is left."""
        times = Fraction(_root(cells_of(places, self.sizes)), _root(self.asked.middle))
        return min(left, usual * min(max(times, Fraction(1, MOST_UNEVEN)), Fraction(MOST_UNEVEN)))

    def _room(self, spent: Fraction) -> int:
        return int(self.asked.largest_model * max(LEAST_ROOM, spent))

    def _chosen(self, loss: Fraction, usual: Fraction, spare: Fraction, room: int) -> Places:
        """The marginal that is missed by most beyond what measuring it would leave, of those with room."""
        candidates = list[Places]()
        for places in self.asked.candidates:
            sets = (*self.asked.always, *self.measured, places)
            if self.model.tree.home(places) is None and tree_cells(self.sizes, sets) > room:
                continue
            if self.model.work(places) <= MOST_HELD:
                candidates.append(places)

        def scores(counts: Counts) -> list[int]:
            found = []
            for places in candidates:
                expected = self._expected(places)
                _, variance = self._sampler(self._cost(places, usual, spare))
                left = round(UNIT * float(self._left(expected, variance).sum()))
                found.append(self.asked.candidates[places] * (self._distance(counts, places, expected) - left))
            return found

        largest = max(self.asked.candidates[places] for places in candidates)
        rate = rate_of(
            loss,
            self.moves.privacy_measure,
            self.moves.protection,
            sensitivity=largest * UNIT * self.moves.absolute,
        )
        words = f"which marginal is missed by most, of {len(candidates):,}"
        return candidates[chosen(self.curator, self._name("choice"), words, scores, rate)]

    def _expected(self, places: Places) -> Floats:
        return self.total * self.model.marginal(places)

    def _left(self, expected: Floats, variance: float) -> Floats:
        """E|error| of each cell after it is measured and fitted, as the model weighs noise against what it expects."""
        return self.moves.left_by(np.sqrt(variance * expected / (expected + SPREAD * variance + 1e-300)))

    def _distance(self, counts: Counts, places: Places, expected: Floats) -> int:
        """|M·x − M·n|₁ in parts of a record: whole numbers, n rounded to such parts."""
        exact = UNIT * self._exact(counts, places)
        return int(np.abs(exact - np.rint(UNIT * expected).astype(np.int64)).sum())

    def _exact(self, counts: Counts, places: Places) -> Integers:
        if places not in self.exact:
            names = [self.asked.domain.names[place] for place in places]
            found = counts.project(names).counts if places else np.array(counts.total)
            if places not in self.asked.candidates or self.remembered + found.size > MOST_REMEMBERED:
                return found
            self.remembered += found.size
            self.exact[places] = found
        return self.exact[places]

    def _sampler(self, loss: Fraction) -> tuple[GaussianSampler | LaplaceSampler, float]:
        return self.moves.sampler(loss, self.moves.absolute, self.moves.squared)

    def _measure(self, places: Places, loss: Fraction, shares: Floats) -> None:
        """Add what a marginal is measured at to what is known; `shares` is what the model said before."""
        sampler, variance = self._sampler(loss)
        shape, possible = [self.sizes[place] for place in places], self.asked.possible(places)
        words, noise = self.words(places), noise_of_sampler(sampler)
        numbers = measured(self.curator, self._name("marginal"), words, lambda c: self._exact(c, places), noise)
        counts = numbers.reshape(shape).astype(np.float64)
        if possible is not None:
            counts *= possible
        known = self.measured.get(places)
        if known is not None:
            self.measured[places] = known.joined(NoisyMarginal(places, counts, variance, known.evenness))
            return
        # N/S, where S is how far the truth seems to be from the model, beyond what noise makes of it.
        expected = max(float(counts.sum()), 1.0)
        missed = float(np.square(counts - expected * shares).sum()) - variance * counts.size
        evenness = min(1.0, max(LEAST_EVENNESS, BELIEF * expected / missed)) if missed > 0 else 1.0
        self.measured[places] = NoisyMarginal(places, counts, variance, evenness)

    def _name(self, what: str) -> str:
        self.draws += 1
        return f"{what} {self.draws}"

    def words(self, places: Places) -> str:
        """A marginal in words."""
        return " × ".join(self.asked.domain.names[place] for place in places) or ALL

    def fit(self, steps: int) -> None:
        """The model of what is measured, from the last one on."""
        self.total, _ = self._counted()
        tree = junction_tree(self.sizes, [*self.asked.always, *self.measured])
        found = fitted(
            tree,
            list(self.measured.values()),
            self.total,
            possible=[self.asked.possible(clique) for clique in tree.cliques],
            start=self.parameters,
            steps=steps,
        )
        self.model, self.parameters = found.model, found.parameters

    def _counted(self) -> tuple[float, float]:
        """The number of records, at least one, and its variance; known where records are replaced."""
        if self.known is not None:
            return float(max(1, self.known)), 0.0
        each = self.measured.values()
        precision = math.fsum(1 / (y.variance * y.counts.size) for y in each)
        total = math.fsum(float(y.counts.sum()) / (y.variance * y.counts.size) for y in each) / precision
        return max(1.0, total), 1 / precision

    @property
    def records(self) -> int:
        """How many whole records there are estimated to be, or known."""
        return max(0, round(self.total)) if self.known is None else self.known

    def measure_distances(self, loss: Fraction) -> None:
        """How far the model is from each table, |M_s·x − M_s·n|₁, with noise: the last thing that is drawn."""
        sets = list(dict.fromkeys(places for _, places in self.asked.tables))
        moved = UNIT * self.moves.absolute
        sampler, variance = self.moves.sampler(loss, moved * len(sets), moved**2 * len(sets))
        self.distance_deviation = math.sqrt(variance) / UNIT

        def exact(counts: Counts) -> Integers:
            return np.array([self._distance(counts, places, self._expected(places)) for places in sets], dtype=np.int64)

        words, noise = f"distances of the tables, in parts of 1/{UNIT} record", noise_of_sampler(sampler)
        found = measured(self.curator, self._name("distances"), words, exact, noise)
        self.distances = {places: each / UNIT for places, each in zip(sets, found.tolist(), strict=True)}

    @cached_property
    def values(self) -> Floats:
        """What the model answers, table by table."""
        tables = self.asked.tables
        return np.concatenate(
            [_answered(table, places, self.asked.domain, self._expected(places)) for table, places in tables]
        )

    def half_widths(self, probability: float) -> Floats:
        """How far each answer may be off."""
        outside, widths, start = 1.0 - probability, list[Floats](), 0
        reach = self.moves.reach(self.distance_deviation, outside)
        # Half of what may fail is left to the distance, on one side, and half to the number of records.
        slack = self.moves.reach(math.sqrt(self._counted()[1]), outside / 2)
        for table, places in self.asked.tables:
            value = self.values[start : start + table.query_count]
            start += table.query_count
            cells, nearest = cells_of(places, self.sizes), self._nearest(places)
            if nearest is None:
                most = max(0.0, self.distances[places]) + reach + cells / (2 * UNIT)
                widths.append(np.full(value.size, float(table.weight) * _most_off(table, most, slack)))
                continue
            unbiased = _answered(table, places, self.asked.domain, _summed(nearest, places))
            squares = nearest.variance * nearest.counts.size / cells * _row_squares(table, places)
            reached = self.moves.reach(1.0, outside) * np.sqrt(squares)
            widths.append(np.abs(value - unbiased) + float(table.weight) * (reached + 0.5))
        return np.concatenate(widths)

    def synthesis(self, probability: float) -> Synthesis:
        """All of it, with half-widths for one probability."""
        names, reach = self.asked.domain.names, self.moves.reach(self.distance_deviation, 1.0 - probability)
        return Synthesis(
            Answers(self.values, self.half_widths(probability), COVERS),
            {table.name: TableDistance(self.distances[places], reach) for table, places in self.asked.tables},
            tuple(tuple(names[place] for place in places) for places in self.measured),
            self.total,
            self.asked.domain,
            self.model,
        )

    def _nearest(self, places: Places) -> NoisyMarginal | None:
        """The measurement that says most of a table: one with all its attributes, of the least variance when summed."""
        holding = [y for held, y in self.measured.items() if set(places) <= set(held)]
        return min(holding, key=lambda y: (y.variance * y.counts.size, y.places), default=None)


def _root(count: int) -> int:
    """Sixteen times the root of a count, as a whole number: losses are split by it."""
    return math.isqrt(256 * count)


def _summed(measured: NoisyMarginal, places: Places) -> Floats:
    return summed(measured.counts, measured.places, places)


def _answered(table: Table, places: Places, domain: Domain, counts: Floats) -> Floats:
    """The answers of a table from the counts of its attributes."""
    if not places:
        return np.array([float(table.weight) * float(counts)])
    alone = Table(table.name, tuple(table.factors[place] for place in places), table.weight)
    answers: Floats = Workload(domain.project(domain.names[place] for place in places), (alone,)).answers(counts)
    return answers.astype(np.float64)


def _row_squares(table: Table, places: Places) -> Floats:
    """Σ entry² of each row of a table: how much of a cell's variance its answer takes; without its weight."""
    found = np.ones(1)
    for place in places:
        factor = table.factors[place]
        own = np.ones(factor.rows) if isinstance(factor, Identity) else np.square(dense(factor)).sum(axis=1)
        found = np.multiply.outer(found, own).reshape(-1)
    return found


def _most_off(table: Table, distance: float, slack: float) -> float:
    """How far a sum of cells may be off where all cells together are off by so much, and their number by `slack`.

    What is missing in some cells is too much in others, but for the total: half of both at most. Of amounts and
    weights no more is known than that no cell is counted more than the largest entry.
    """
    counts = all(
        isinstance(factor, Identity | Total | Prefix | AllRange)
        or (isinstance(factor, Groups) and factor.weights is None)
        for factor in table.factors
    )
    return (distance + slack) / 2 if counts else table.largest_entry * distance
