"""Partition, then measure: cells that are alike are merged, and an optimized strategy measures the parts.

Most histograms are nearly even over long stretches, and noise on every cell of them is wasted. In four steps:

1. Where no query adds up cells, all of them are measured with the whole loss. Else a small share of it decides whether
   merging is worth it on these data. If not, the best strategy for the workload measures all cells with all of the
   rest, so that data which cannot be merged cost a few percent.
2. If so, another small share counts the records, which says how long a part may be at most: √(N/(c·noise)) stretches
   of equal length a side, as a grid is laid in [QYL13]. Where these were too many for a strategy, as in large tables
   of two attributes, all cells are measured.
3. A partition of the cells in their order (`PrunedTree`) is taken by how unevenly records lie in its parts, and parts
   that are longer are cut up. Two attributes are put in one order by a Hilbert curve, along which the quarters of a
   square follow one another.
4. The pieces are measured by the strategy that is best for the workload as it falls on them, and estimated as smoothly
   within each part as the noisy numbers themselves make likely (`Smoother`), as cells are that were measured one by
   one; the records of a piece are spread evenly over its cells.

The idea of a private partition under a workload's own strategy is that of [LHMW14]. Here the partition is drawn
exactly, its costs are whole numbers that a record moves by few, and losses in ε and in ρ are served.

A merged cell is biased. Its interval need not be: wherever the records of a piece lie, an answer takes between its
least and its largest weight on the piece times the piece's total. So intervals run from the least to the most that the
pieces leave open, and as far beyond as noise reaches; they hold whatever the data are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism, TooLarge
from dualmandate.mechanism.data_dependent import Answers, Curator, Keys, RecordsCurator, Told, chosen, measured
from dualmandate.mechanism.exponential import rate_of
from dualmandate.mechanism.gaussian import GAUSSIAN
from dualmandate.mechanism.geometric import GEOMETRIC
from dualmandate.mechanism.measurement import Measurement, exact_law
from dualmandate.mechanism.mechanism import EVERY_PERSON, Noise, NoiseLaw, loss_power, tail_of
from dualmandate.mechanism.pruned_tree import COST_MOVES, PrunedTree, TreeCosts, unevenness
from dualmandate.mechanism.rows import StrategyRows
from dualmandate.mechanism.smoothing import Smoother, roots_of_cells, roots_of_pieces
from dualmandate.mechanism.strategy import optimize_strategy
from dualmandate.mechanism.technologies import OptimizedMechanism, noise_of
from dualmandate.population import Neighbors, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Indices, Integers
from dualmandate.population.records import Counts
from dualmandate.workload import AllRange, Identity, Prefix, Total, Workload, explicit, identity
from dualmandate.workload.factor import LARGEST_DENSE, Factor, dense

DECISION_SHARE = Fraction(1, 32)  # of the loss; these were chosen on simulated histograms
COUNT_SHARE = Fraction(1, 32)
PARTITION_SHARE = Fraction(1, 4)
FEW_CELLS = 512  # Fewer cells differ less in price, and twice the share decides.
SPLITS = Fraction(1, 3)  # of the nodes that nothing tells apart
TAKEN_OUT = Fraction(1, 10)  # the same, of those that lose a single cell
OPENED = Fraction(3, 20)  # the factor of both at the root
FINENESS = 16  # in which prices are whole numbers
PART_PRICE = 5  # of a part that has to be found, in noise on a count
CELL_PRICES = (0.7, 1.0)  # of a cell measured by itself, in the same: where queries add up cells, and where they do not
RECORDS_A_PIECE = (6.0, 10.0)  # N/(noise·K²), for K pieces a side, where nothing is known but N: by attributes
MOST_PIECES = (16, 4_096)  # that data in which nothing stands out are cut into
LARGEST_DOMAIN = 4_096  # cells
LARGEST_SMOOTHED = 2_048  # cells by themselves
MOST_PARTS = 320  # whose products are written out for a strategy; more are measured cell by cell
STARTS = 2  # of that search
ROOT_STEPS = 2**12  # to which the queries on the parts are rounded, to look for a strategy
LEAST_ASKED = 1e-3  # of the mean, at which each part is asked about, so that it is measured at all
REACHES = np.linspace(0.02, 0.98, 49)  # where the bound on a tail is tried
ALL_ERROR = "all error: noise, and wherever in its part a merged record lies"
NOTHING = "nothing is said of how far off these are: the queries are too many to be written out"


@dataclass(frozen=True)
class PartitionMechanism:
    """A private partition of one or two attributes, then an optimized strategy on its parts."""

    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP

    @property
    def name(self) -> str:
        return f"partition, then an optimized strategy with {_law(self.privacy_measure).name} noise"

    @property
    def models_records(self) -> bool:
        return False

    @property
    def parameters(self) -> dict[str, str]:
        return {}

    def check(self, workload: Workload, protection: Protection) -> None:
        """Refuse more than two attributes, too many cells, and exact totals."""
        _servable(workload, protection)

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
        """One release. Cells are merged or not, as a share of the loss decides."""
        told = self.tell(RecordsCurator(counts, keys), workload, loss, protection=protection)
        return told.answers(probability)

    def tell(self, curator: Curator, workload: Workload, loss: Fraction, *, protection: Protection) -> Told:
        """The same from the draws of a curator."""
        one = self._loss_of_one(loss, protection)
        _servable(workload, protection)
        names, order, count = workload.domain.names, cell_order(workload.domain.shape), workload.domain.size

        def cells(counts: Counts) -> Integers:
            return counts.project(names).counts.reshape(-1).astype(np.int64)

        if _is_diagonal(workload) and count <= LARGEST_SMOOTHED:
            return self._cell_by_cell(cells, workload, one, curator)
        known: list[TreeCosts] = []  # both choices are made by the same costs

        def costs(counts: Counts) -> TreeCosts:
            if not known:
                known.append(unevenness(cells(counts)[order]))
            return known[0]

        deciding = DECISION_SHARE * (1 if count >= FEW_CELLS else 2)
        if not self._merges(costs, workload, deciding * one, whole=one, curator=curator):
            return self._cell_by_cell(cells, workload, (1 - deciding) * one, curator)
        stretches = self._stretches(cells, one, curator, sides=_sides(workload))
        if stretches > MOST_PARTS and not _is_diagonal(workload):
            return self._cell_by_cell(cells, workload, (1 - deciding - COUNT_SHARE) * one, curator)
        rate = rate_of(PARTITION_SHARE * one, self.privacy_measure, EVERY_PERSON, sensitivity=COST_MOVES)
        found = curator.draw(
            "partition",
            "where the parts begin, in the order of the cells",
            lambda counts, key: np.array(PrunedTree(costs(counts), rate, SPLITS, TAKEN_OUT, OPENED).draw(key)),
        )
        pieces = _cut_up(found, count, stretches)
        rest = (1 - deciding - COUNT_SHARE - PARTITION_SHARE) * one
        if len(pieces.starts) > MOST_PARTS and not _is_diagonal(workload):
            return self._cell_by_cell(cells, workload, rest, curator)
        measurement = _strategy_on(workload, self.privacy_measure, pieces.starts.tobytes())
        numbers = _measured(
            measurement, lambda counts: np.add.reduceat(cells(counts)[order], pieces.starts), rest, curator
        )
        return _from_pieces(numbers, measurement, workload, rest, order=order, pieces=pieces)

    def _loss_of_one(self, loss: Fraction, protection: Protection) -> Fraction:
        """What is left for one record that comes or goes: a unit's records are m such steps, or 2m where replaced."""
        if not isinstance(loss, Fraction | int) or isinstance(loss, bool) or loss <= 0:
            raise InvalidLoss(
                f"a partition for a loss of {loss!s:.40}",
                why="exact choices and exact noise are set by a positive fraction",
                instead="state a Fraction",
            )
        both = 2 if protection.neighbors is Neighbors.REPLACE_ONE else 1
        steps = (both * protection.most_records_per_unit) ** loss_power(self.privacy_measure)
        return Fraction(loss) / int(steps)

    def _noise(self, loss: Fraction) -> float:
        """λ, or σ, of the noise on a count at this loss."""
        by_root = self.privacy_measure is PrivacyMeasure.ZCDP
        return 1 / math.sqrt(2 * loss) if by_root else float(1 / loss)

    def _merges(
        self,
        costs: Callable[[Counts], TreeCosts],
        workload: Workload,
        share: Fraction,
        *,
        whole: Fraction,
        curator: Curator,
    ) -> bool:
        """Whether the cheapest partition is worth it; the whole loss' noise on a cell is the price of measuring it."""
        unit = FINENESS * int(COST_MOVES) * self._noise(whole)
        part, cell = max(1, round(PART_PRICE * unit)), CELL_PRICES[_is_diagonal(workload)] * workload.domain.size
        apart = -max(1, round(cell * unit))

        def scores(counts: Counts) -> list[int]:
            return [-costs(counts).least(FINENESS, part), apart]

        rate = rate_of(share, self.privacy_measure, EVERY_PERSON, sensitivity=COST_MOVES * FINENESS)
        words = "whether cells are merged (0) or each is measured by itself (1)"
        return chosen(curator, "whether to merge", words, scores, rate) == 0

    def _stretches(self, cells: Callable[[Counts], Integers], whole: Fraction, curator: Curator, *, sides: int) -> int:
        """How many parts of equal length are laid where nothing stands out: √(N/(c·noise)) a side, N with noise."""
        law = exact_law(_law(self.privacy_measure))
        noise = Noise(law, law.parameter(COUNT_SHARE * whole))
        words = "the number of records, which says how long a part may be"
        found = measured(curator, "number of records", words, lambda counts: cells(counts).sum(keepdims=True), noise)
        a_side = math.sqrt(max(0, int(found[0])) / (RECORDS_A_PIECE[sides - 1] * self._noise(whole)))
        return min(MOST_PIECES[sides - 1], max(1, int(a_side**sides)))

    def _cell_by_cell(
        self, cells: Callable[[Counts], Integers], workload: Workload, loss: Fraction, curator: Curator
    ) -> Told:
        measurement = apart(workload, self.privacy_measure)
        numbers = _measured(measurement, cells, loss, curator)
        unbiased = np.asarray(measurement.rows.answers(numbers, None), dtype=np.float64)
        values = _smoothed(measurement, numbers, loss, unbiased)
        if _only_adds(workload):
            values = np.maximum(values, 0.0)

        def half_widths(probability: float) -> Floats:
            return np.asarray(_apart_widths(measurement, loss, probability) + np.abs(values - unbiased))

        return Told(values, half_widths, ALL_ERROR, measured=("all cells, each by itself",))


def _law(privacy_measure: PrivacyMeasure) -> NoiseLaw:
    return GAUSSIAN if privacy_measure is PrivacyMeasure.ZCDP else GEOMETRIC


def cell_order(shape: tuple[int, ...]) -> Indices:
    """The cells, by their row-major place, in an order in which near ones are alike; on two attributes a Hilbert curve.

    The curve fills the smallest square of 2^k × 2^k cells that holds the table, and skips what is not in the table.
    """
    cells = np.arange(math.prod(shape), dtype=np.int64)
    if sum(size > 1 for size in shape) < 2:
        return cells
    first, second = np.unravel_index(cells, shape)
    along = np.zeros(len(cells), dtype=np.int64)
    side = 1 << (max(shape) - 1).bit_length()
    while side > 1:
        side //= 2
        down, right = (first & side) > 0, (second & side) > 0
        along = 4 * along + np.where(down, 3 - right, right)
        # A quarter is walked through in another direction than the whole: transposed, or transposed and turned over.
        first, second = first & (side - 1), second & (side - 1)
        turned = down & ~right
        first, second = np.where(turned, side - 1 - first, first), np.where(turned, side - 1 - second, second)
        first, second = np.where(right, first, second), np.where(right, second, first)
    return np.argsort(along, kind="stable")


def _servable(workload: Workload, protection: Protection) -> None:
    shape = workload.domain.shape
    if protection.invariants:
        raise InvalidMechanism(
            f"a partition beside the exact total '{protection.invariants[0].name}'",
            why="parts are measured as if no total were known, and would not agree with it",
            instead="drop the exact total, or plan an optimized strategy",
        )
    if _sides(workload) > 2:
        raise InvalidMechanism(
            f"a partition of {len(shape)} attributes",
            why="cells are merged along one attribute, or along a curve through two",
            instead="ask for tables of one or two attributes, or choose a technology for marginals",
        )
    if workload.domain.size > LARGEST_DOMAIN:
        raise TooLarge(
            f"a partition of {workload.domain.size:,} cells",
            why=f"what queries share is written out for pairs of cells, of which at most {LARGEST_DOMAIN:,} are held",
            instead="group levels",
        )


def _measured(
    measurement: Measurement, cells: Callable[[Counts], Integers], loss: Fraction, curator: Curator
) -> Integers:
    """The whole numbers of a measurement with their noise, each kind of row under a key of its own."""
    rows, kinds = measurement.rows, measurement.rows.kinds()
    found = np.empty(len(kinds), dtype=np.int64)
    for kind, noise in enumerate(measurement.noises(loss)):
        here = np.flatnonzero(kinds == kind)

        def exact(counts: Counts, own: Indices = here) -> Integers:
            return np.asarray(rows.count(cells(counts)), dtype=np.int64)[own]

        words = f"{len(here):,} rows of the strategy on {rows.workload.domain.size:,} parts"
        found[here] = measured(curator, f"measurements {kind}", words, exact, noise)
    return found


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Stretches of cells in their order: where each begins, how long it is, and the part that it was cut from."""

    starts: Indices
    sizes: Indices
    parts: Indices


def _cut_up(starts: Indices, cells: int, stretches: int) -> _Pieces:
    """Parts cut into equal pieces, as many as there are stretches of equal length in each.

    Where twice as many parts stand out as there are stretches, the data are not such as these are laid for; and there
    are fewer where pieces would be too many for a strategy.
    """
    sizes = np.diff(np.append(starts, cells))
    stretches = stretches if len(starts) < 2 * stretches else 1
    into = np.ones_like(sizes)
    while stretches > 1:
        into = np.clip(np.rint(sizes * stretches / cells).astype(np.int64), 1, sizes)
        if into.sum() <= MOST_PARTS:
            break
        into, stretches = np.ones_like(sizes), stretches // 2
    parts = np.repeat(np.arange(len(starts)), into)
    number = np.arange(len(parts)) - np.repeat(np.cumsum(into) - into, into)
    cut = starts[parts] + number * sizes[parts] // into[parts]
    return _Pieces(cut, np.diff(np.append(cut, cells)), parts)


def _from_pieces(
    measured: Integers,
    measurement: Measurement,
    workload: Workload,
    loss: Fraction,
    *,
    order: Indices,
    pieces: _Pieces,
) -> Told:
    """Answers from the measured pieces, and how far off they may be."""
    scales, rows = _noise_scales(measurement, loss), _dense_rows(measurement, len(pieces.starts))
    weighted, numbers = rows / scales[:, None], measured / scales
    smoother = Smoother.of(weighted, roots_of_pieces(pieces.sizes, pieces.parts))
    assert smoother is not None  # each piece is asked about
    totals = smoother.fit(numbers, noise=_deviation(measurement), at_least_zero=True)
    spread = np.empty(len(order))
    spread[order] = np.repeat(totals / pieces.sizes, pieces.sizes)
    values = np.asarray(workload.answers(spread.reshape(workload.domain.shape)), dtype=np.float64)
    queries = _queries(workload)
    said = (f"{len(pieces.starts):,} parts of {len(order):,} cells",)
    if queries is None:
        return Told(values, lambda _: None, NOTHING, measured=said)
    inverse, unbiased = smoother.inverse, smoother.inverse @ numbers

    def half_widths(probability: float) -> Floats:
        tail = tail_of(probability)
        lower, upper = (
            sign * _lower_end(sign * queries[:, order], pieces.starts, unbiased, inverse, measurement, tail)
            for sign in (1, -1)
        )
        return np.asarray(np.maximum(values - lower, upper - values))

    return Told(values, half_widths, ALL_ERROR, measured=said)


def _lower_end(
    queries: Floats, starts: Indices, totals: Floats, inverse: Floats, measurement: Measurement, tail: float
) -> Floats:
    """Below which an answer lies with half of a tail: the least that its parts can hold, less what noise may be."""
    least = np.minimum.reduceat(queries, starts, axis=1)
    # In units of each row's own noise, as `inverse` takes its numbers.
    reach = _reach(least @ inverse, tail / 2, measurement.privacy_measure)
    return np.asarray(least @ totals - reach, dtype=np.float64)


def _reach(shares: Floats, tail: float, privacy_measure: PrivacyMeasure) -> Floats:
    """How far Σ s_r·X_r may exceed 0 with no more than a tail's probability; shape (queries,), of rows of shares.

    Chernoff's bound. Discrete Gaussian noise of parameter σ² has E[e^(tX)] ≤ e^(t²σ²/2) [CKS20]; discrete Laplace noise
    of scale λ has E[e^(tX)] ≤ 1/(1 − t²λ²), and Σ −ln(1 − t²s²) ≤ −(V/m²)·ln(1 − t²m²) for V = Σ s², m the largest s.
    X is in units of σ, or of λ.
    """
    squares, needed = np.square(shares).sum(axis=1), -math.log(tail)
    if privacy_measure is PrivacyMeasure.ZCDP:
        return np.asarray(np.sqrt(2 * needed * squares))
    largest = np.abs(shares).max(axis=1)
    ratio = np.divide(squares, largest**2, out=np.zeros_like(squares), where=largest > 0)
    bounds = (needed - np.outer(ratio, np.log1p(-np.square(REACHES)))) / REACHES
    return np.asarray(largest * bounds.min(axis=1))


def _noise_scales(measurement: Measurement, loss: Fraction) -> Floats:
    """λ, or σ, of the noise of each row."""
    power = 0.5 if measurement.privacy_measure is PrivacyMeasure.ZCDP else 1.0
    scales = np.array([float(noise.parameter) ** power for noise in measurement.noises(loss)])
    return np.asarray(scales[measurement.rows.kinds()])


def _dense_rows(measurement: Measurement, parts: int) -> Floats:
    units = np.eye(parts, dtype=np.int64)
    return np.asarray(np.stack([measurement.rows.count(unit) for unit in units], axis=1), dtype=np.float64)


def _deviation(measurement: Measurement) -> float:
    """The deviation of noise of scale λ = 1, or σ = 1."""
    return 1.0 if measurement.privacy_measure is PrivacyMeasure.ZCDP else math.sqrt(2.0)


def _smoothed(measurement: Measurement, measured: Integers, loss: Fraction, unbiased: Floats) -> Floats:
    """Answers from cells that are as smooth as they are likely to be; the unbiased ones where cells are too many."""
    found = _smoother(measurement)
    if found is None:
        return unbiased
    scales = _noise_scales(measurement, loss)
    noise = _deviation(measurement) * float(scales[0] / _noise_scales(measurement, Fraction(1))[0])
    workload = measurement.workload
    numbers = measured / _noise_scales(measurement, Fraction(1))
    cells = found.fit_around_peaks(numbers, workload.domain.shape, noise=noise)
    return np.asarray(workload.answers(cells.reshape(workload.domain.shape)), dtype=np.float64)


def _whole_root(gram: Floats) -> Integers:
    """Whole-number queries on the parts that have nearly this Gram matrix, and tell all parts apart."""
    size = len(gram)
    shifted = gram + LEAST_ASKED * np.trace(gram) / size * np.eye(size)
    root = np.linalg.cholesky(shifted).T
    whole: Integers = np.rint(root * (ROOT_STEPS / np.abs(root).max())).astype(np.int64)
    places = np.arange(size)
    whole[places, places] = np.maximum(whole[places, places], 1)
    return whole


def _only_adds(workload: Workload) -> bool:
    """Whether no query subtracts, so that no true answer is below 0."""

    def adds(factor: Factor) -> bool:
        if isinstance(factor, Identity | Total | Prefix | AllRange):
            return True
        return factor.rows * factor.size <= LARGEST_DENSE and bool(np.all(dense(factor) >= 0))

    return all(adds(factor) for table in workload.tables for factor in table.factors)


def _sides(workload: Workload) -> int:
    """1 or 2: along how many attributes cells may be merged."""
    return max(1, sum(size > 1 for size in workload.domain.shape))


def _is_diagonal(workload: Workload) -> bool:
    """Whether no query adds up cells."""
    return all(isinstance(factor, Identity) for table in workload.tables for factor in table.factors)


# A frontier is simulated by many releases for one workload; what does not depend on the data is worked out once.
@lru_cache(maxsize=4)
def apart(workload: Workload, privacy_measure: PrivacyMeasure) -> Measurement:
    """The best measurement of all cells, without a partition."""
    return OptimizedMechanism(_law(privacy_measure)).production(workload)


@lru_cache(maxsize=2)
def _smoother(measurement: Measurement) -> Smoother | None:
    """At a loss of 1, of which other losses are multiples."""
    shape = measurement.workload.domain.shape
    if math.prod(shape) > LARGEST_SMOOTHED:
        return None
    rows = _dense_rows(measurement, math.prod(shape)) / _noise_scales(measurement, Fraction(1))[:, None]
    return Smoother.of(rows, roots_of_cells(shape))


@lru_cache(maxsize=64)
def _apart_widths(measurement: Measurement, loss: Fraction, probability: float) -> Floats:
    names = [table.name for table in measurement.workload.tables]
    return np.concatenate([measurement.half_width(name, float(loss), probability) for name in names])


@lru_cache(maxsize=64)
def _strategy_on(workload: Workload, privacy_measure: PrivacyMeasure, pieces: bytes) -> Measurement:
    """The best measurement of pieces for the workload, by where they begin."""
    starts, law = np.frombuffer(pieces, dtype=np.int64), _law(privacy_measure)
    order = cell_order(workload.domain.shape)
    sizes = np.diff(np.append(starts, len(order)))
    gram = _gram(workload)
    if np.any(np.diff(order) != 1):
        gram = gram[np.ix_(order, order)]
    merged = np.add.reduceat(np.add.reduceat(gram, starts, axis=0), starts, axis=1) / np.outer(sizes, sizes)
    parts = explicit(_whole_root(merged)) if np.any(merged - np.diag(np.diag(merged))) else identity(len(starts))
    return Measurement(StrategyRows(optimize_strategy(parts, noise_of(law), starts=STARTS).exact), law)


@lru_cache(maxsize=4)
def _gram(workload: Workload) -> Floats:
    return workload.gram()


@lru_cache(maxsize=4)
def _queries(workload: Workload) -> Floats | None:
    return workload.dense() if workload.query_count * workload.domain.size <= LARGEST_DENSE else None
