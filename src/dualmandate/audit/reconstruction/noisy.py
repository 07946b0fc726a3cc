"""Records from noisy tables: the most likely file, given the noise and what people in general are like.

Noisy tables contradict each other, so equations become likelihoods. With expected counts μ (what an attacker believes
of a place beforehand, Poisson) and noise of scale b on each number (Laplace), the most likely counts minimize

    Σ |(A·x)_r − y_r| / b_r  +  Σ x_i·ln(x_i/μ_i) − x_i + μ_i.

Its dual has one bounded number a row: x = μ·exp(−Aᵀλ), |λ_r| ≤ 1/b_r. Raising one λ_r until its row is met, or until
its bound, is iterative proportional fitting with a limit to how much each row may say; every step is the best for its
row, and all of them end at the optimum. Without noise it is proportional fitting itself, with nothing but noise it is
μ: the proportional guesser. On average over populations it is not below that guesser; of one population it can be by
a few records, and `never_below_guessing` then counts the guess. Rounded numbers, cell keys and swapping are attacked
the same way, with their own scale. A row that is known to lie between two numbers is pulled to the nearer one where it
lies outside, and let go where it lies inside.

From many noisy sums over random groups follows one secret bit a person (`decode`): too many answers that are too good
give everything away, whoever asks [DN03]. Two attacks within [0, 1]: least squares, and the linear program of least
absolute errors, which is the better one where noise has long tails. Both take one factorization and cheap steps
(alternating directions), and so reach thousands of people; hundreds are left to a solver of linear programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.finding import OF_OWN_SIZE, Baseline, Finding, Rate, Reference
from dualmandate.audit.options import Effort, generator
from dualmandate.audit.reconstruction.solving import highs_model
from dualmandate.audit.tables import Equations, NoisyTables, Truths, levels_in_words, open_truths
from dualmandate.errors import InvalidRequest, TooLarge
from dualmandate.population import Domain
from dualmandate.population.arrays import Booleans, Floats, Integers

SWEEPS = 200
SETTLED = 1e-9  # The fit ends where one sweep changes no dual by more than this.
FEWEST = 1e-9  # At least this much is expected in a cell that may occur at all.
LOTS, DIGITS = 41, 9  # Remainders that are equal but for rounding are taken in a random order.
ALIKE = 1e-9  # What is expected within this share of the most is expected as much.
STEPS = 300
STILL = 40  # After this many steps without a bit that changes, bits are taken as found.
MOST_PERSONS = 5_000
MOST_BY_SOLVER = 500
MOST_EXACTLY = 2_000  # Up to this many persons, theory is computed in double precision.


def most_likely(
    equations: Equations, published: Floats, *, scales: Floats, expected: Floats, sweeps: int = SWEEPS
) -> Floats:
    """The most likely counts of each place; shape (places, unknowns).

    `published` has shape (places, rows) and `scales`, the mean absolute noise of each row (0: exact), shape (rows,).
    `expected` are counts expected beforehand, shape (places, unknowns); 0 is a structural zero.
    """
    return most_likely_within(equations, KnownNumbers.shown(published, scales), expected, sweeps=sweeps)


def least_absolute(equations: Equations, published: Floats, *, scales: Floats, largest: float = np.inf) -> Floats:
    """The counts 0 ≤ x ≤ largest of one place with the least Σ |A·x − y|/b, by a linear program; shape (unknowns,).

    No prior: where little is published, or noise is large, it does worse than guessing. A scale of 0 counts as tiny.
    """
    from scipy.sparse import eye_array, hstack

    rows, size = equations.rows, equations.size
    above = eye_array(rows, dtype=np.int64)  # how far a number lies below the sum, and how far above it
    whole = Equations.of_matrix(hstack([equations.matrix, above, -above]))
    most = np.repeat([largest, np.inf], [size, 2 * rows])
    model, _ = highs_model(whole, (published, published), (np.zeros(whole.size), most))
    price = 1.0 / np.maximum(scales, 1e-3)
    model.changeColsCost(2 * rows, np.arange(size, whole.size, dtype=np.int32), np.concatenate([price, price]))
    model.run()
    return np.asarray(np.maximum(np.array(model.getSolution().col_value)[:size], 0.0))


def whole_records(found: Floats, *, total: int | None = None, draws: np.random.Generator | None = None) -> Integers:
    """Whole counts near real ones with a given total (the nearest by default); largest remainders are rounded up.

    Among equal remainders `draws` decide, so that the order of levels does not.
    """
    floor = np.floor(found).astype(np.int64)
    wanted = round(float(found.sum())) if total is None else total
    more = wanted - int(floor.sum())
    lots = (np.random.default_rng(LOTS) if draws is None else draws).permutation(len(found))
    remainders = np.round(found - floor, DIGITS)
    if more > 0:
        order = np.lexsort((lots, -remainders))
        each, extra = divmod(more, len(found))
        floor += each
        floor[order[:extra]] += 1
    elif more < 0:
        for cell in np.lexsort((lots, remainders)):
            taken = min(int(floor[cell]), -more)
            floor[cell] -= taken
            more += taken
            if not more:
                break
    return floor


def never_below_guessing(found: Floats, expected: Floats, truth: NDArray[Any]) -> tuple[float, bool]:
    """How many records the attack gets right or, where that is more, a guess in proportion; and whether it was more.

    Over populations and draws of noise the most likely file is not below the guess; of a single population it can be,
    by a few records, where there is hardly anything but noise. An attacker may always guess, so that the better of the
    two is what is reported: an attack is a lower bound on risk.
    """
    attacked = float(np.minimum(found, truth).sum())
    guessed = float(np.minimum(expected, truth).sum())
    return max(attacked, guessed), attacked >= guessed


def covered(equations: Equations, possible: Booleans) -> Booleans:
    """Which possible cells some number counts: nothing bounds the others."""
    counted = np.zeros(equations.size, dtype=np.bool_)
    counted[equations.cells] = True
    return np.asarray(counted & possible)


def expected_of(equations: Equations, published: Floats, scales: Floats, possible: Booleans) -> Floats:
    """What somebody expects of each place who knows its size, and what all places together are like by these tables.

    Of a single place, equal shares of what can occur. Shapes: `published` (places, rows), result (places, cells).
    """
    able = possible.astype(np.float64)
    sizes = _sizes(equations, published)
    shares = able / able.sum()
    if len(published) > 1:
        start = shares * sizes.sum()
        spread = scales * np.sqrt(len(published))
        together = most_likely(equations, published.sum(axis=0, keepdims=True), scales=spread, expected=start[None])[0]
        shares = together / together.sum() if together.sum() > 0 else shares
    return np.asarray(sizes[:, None] * shares)


def tables_with_noise(
    name: str,
    equations: Equations,
    published: Floats,
    scales: Floats,
    domain: Domain,
    *,
    protection: str,
    prior: str,
    truths: Truths,
) -> NoisyTables:
    """Noisy tables over the cells of a domain, whose places are expected to be as the tables say of all of them."""
    expected = expected_of(equations, published, scales, covered(equations, domain.possible_cells()))
    coarsening = levels_in_words(domain)
    return NoisyTables(name, equations, published, scales, expected, coarsening, protection, truths, prior)


def _sizes(equations: Equations, published: Floats) -> Floats:
    """How many live in each place: the largest sum of the rows of one table, at least 0."""
    tables = [equations.name(row).split(":")[0] for row in range(equations.rows)]
    sums = [published[:, [row for row, each in enumerate(tables) if each == name]].sum(axis=1) for name in set(tables)]
    best = max(sums, key=lambda each: float(each.sum()))
    return np.asarray(np.maximum(best, 0.0))


@dataclass(frozen=True, eq=False)
class KnownNumbers:
    """What is known of each number of each place, shape (places, rows): bounds, and how loud they are.

    A number that was shown exactly has equal bounds and a scale of 0; one with noise has equal bounds and its mean
    absolute noise; a hidden one lies between 0 and infinity.
    """

    least: Floats = field(repr=False)
    largest: Floats = field(repr=False)
    scales: Floats = field(repr=False)

    @classmethod
    def shown(cls, values: NDArray[Any], scales: Floats | float = 0.0) -> KnownNumbers:
        """Numbers that were published, with errors of known size."""
        exact = values.astype(np.float64)
        return cls(exact, exact, np.broadcast_to(np.asarray(scales, dtype=np.float64), exact.shape))

    def beside(self, other: KnownNumbers) -> KnownNumbers:
        """Two things that are known of numbers, the rows of one after the rows of the other."""
        pairs = ((self.least, other.least), (self.largest, other.largest), (self.scales, other.scales))
        return KnownNumbers(*(np.concatenate(pair, axis=1) for pair in pairs))


def stacked(*parts: Equations) -> Equations:
    """The rows of several equations over the same unknowns, in turn."""
    from scipy.sparse import vstack

    return Equations.of_matrix(vstack([each.matrix for each in parts], format="csr"))


def most_likely_within(equations: Equations, known: KnownNumbers, expected: Floats, *, sweeps: int = SWEEPS) -> Floats:
    """The most likely counts of each place; shape (places, unknowns).

    `expected` are counts expected beforehand, in the same shape; 0 is a structural zero. Rows count each unknown once.
    """
    if (equations.coefficients != 1).any():
        raise InvalidRequest(
            "tables with weights or differences",
            why="rows of counts are fitted in proportion, and each counts a record once",
            instead="give the counts that these numbers were made of",
        )
    found = np.where(expected > 0, np.maximum(expected, FEWEST), 0.0)
    scales = np.ascontiguousarray(known.scales)
    _fit(equations.starts, equations.cells, known.least, known.largest, scales, found, sweeps)
    return found


@numba.njit(cache=True, nogil=True)
def _fit(starts: Any, cells: Any, least: Any, largest: Any, scales: Any, found: Any, sweeps: int) -> None:
    rows = len(starts) - 1
    for place in range(len(found)):
        duals = np.zeros(rows)
        x = found[place]
        for _ in range(sweeps):
            moved = 0.0
            for row in range(rows):
                total = 0.0
                for k in range(starts[row], starts[row + 1]):
                    total += x[cells[k]]
                if total <= 0:
                    continue
                limit = np.inf if scales[place, row] <= 0 else 1.0 / scales[place, row]
                # what the row would add up to if it said nothing
                free = total * np.exp(duals[row])
                wanted = min(max(free, least[place, row]), largest[place, row])
                new = np.log(free / wanted) if wanted > 0 else np.inf
                new = min(max(new, -limit), limit)
                step = new - duals[row]
                if step == 0.0:
                    continue
                duals[row] = new
                factor = np.exp(-step)
                for k in range(starts[row], starts[row + 1]):
                    x[cells[k]] *= factor
                if step < np.inf:
                    moved = max(moved, abs(step))
            if moved < SETTLED:
                break


def guess(truth: Integers) -> Floats:
    """What somebody expects of each place who knows its size and everybody elsewhere; of a single place, equal shares.

    Shape as `truth`: (places, cells).
    """
    sizes = truth.sum(axis=1, keepdims=True).astype(np.float64)
    if len(truth) == 1:
        return np.asarray(np.full(truth.shape, 1.0 / truth.shape[1]) * sizes)
    others = truth.sum(axis=0, keepdims=True) - truth
    totals = others.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, others / np.maximum(totals, 1), 1.0 / truth.shape[1])
    return np.asarray(shares * sizes)


def guessers(truth: Integers, expected: Floats) -> tuple[Baseline, Baseline]:
    """How many records those get right who draw in proportion to what they expect, or say the most expected cell.

    Of cells that are expected alike, one is said at random: what is counted is what that comes to on average.
    """
    records = int(truth.sum())
    drawn = min(round(float(np.minimum(expected, truth).sum())), records)
    modal = round(float((truth * modal_shares(expected)).sum()))
    return Baseline("proportional guesser", Rate(drawn, records)), Baseline("modal guesser", Rate(modal, records))


def modal_shares(chances: Floats) -> Floats:
    """1 for the largest of each row, or equal parts for several that are as large; shape as given."""
    most = chances.max(axis=-1, keepdims=True)
    alike = (chances >= most * (1 - ALIKE)) & (chances > 0)
    return np.asarray(alike / np.maximum(alike.sum(axis=-1, keepdims=True), 1))


def of_size(found: Floats, truth: NDArray[Any]) -> Floats:
    """A file as somebody has it who knows how many live in each place; shape as given, (places, cells)."""
    sizes, wanted = found.sum(axis=1, keepdims=True), truth.sum(axis=1, keepdims=True)
    return np.asarray(found * np.divide(wanted, sizes, out=np.zeros_like(sizes), where=sizes > 0))


@dataclass(frozen=True)
class NoisyTablesAttack:
    """The most likely records behind tables with noise, rounding or swapping."""

    effort: Effort = field(default_factory=Effort)
    name: str = "reconstruction from noisy tables"

    def run(self, target: NoisyTables, key: bytes, /) -> tuple[Finding, ...]:
        """The share of records that is right, beside guessers who have no tables.

        Without a truth the attack is run on populations drawn from what is expected, published the same way.
        """
        self.effort.say(f"reconstructing {len(target.published):,} places of {target.name}")
        truths, published = open_truths(target.truths), target.published
        if not truths:
            draws = generator(key, f"noisy tables: {target.name}")
            drawn = draws.poisson(target.expected).astype(np.int64)
            published = target.equations.of(drawn) + draws.laplace(0.0, 1.0, published.shape) * target.scales
            truths = {"synthetic": drawn}
        found = most_likely(target.equations, published, scales=target.scales, expected=target.expected)
        return tuple(
            finding
            for reference, truth in truths.items()
            if truth.sum()
            for finding in self._judged(target, found, reference, truth)
        )

    def _judged(self, target: NoisyTables, found: Floats, reference: Reference, truth: Integers) -> Iterator[Finding]:
        """Records right at the true sizes of places; then precision and recall at those the attacker reckons with.

        Guessers know these sizes and everybody elsewhere, but no table: they do not move with the noise.
        """
        records, places = int(truth.sum()), len(truth)
        believed = of_size(guess(truth) * (target.expected > 0), truth)
        right, better = never_below_guessing(of_size(found, truth), of_size(target.expected, truth), truth)
        behind = f"the most likely file behind {target.name} ({target.protection})"
        taken = "taken as one place" if places == 1 else f"rebuilt place by place, {places:,} of them"
        knows = f"the tables, how their errors were made, and {target.prior}"
        make = partial(
            Finding,
            attack=self.name,
            baselines=guessers(truth, believed),
            coarsening=target.coarsening,
            reference=reference,
        )
        yield make(
            claim=f"records right in {behind}, {taken}"
            + ("" if better else "; the tables gave nothing beyond a guess, and it counts"),
            success=Rate(min(round(right), records), records),
            attacker_knows=f"{knows}; and how many {'there are' if places == 1 else 'live in each place'}, so that "
            "precision and recall are one",
        )
        matched, claimed = round(float(np.minimum(found, truth).sum())), round(float(found.sum()))
        of_own_size = f"{OF_OWN_SIZE} ({claimed:,} records for {records:,})"
        if claimed:
            yield make(
                claim=f"precision: records of {behind} that are real, {of_own_size}",
                success=Rate(min(matched, claimed), claimed),
                attacker_knows=knows,
            )
        yield make(
            claim=f"recall: records that {behind} holds, {of_own_size}",
            success=Rate(min(matched, records), records),
            attacker_knows=knows,
        )


@dataclass(frozen=True, eq=False)
class Decoding:
    """The bits that were found, and the share that theory expects to be right."""

    bits: Booleans = field(repr=False)  # (persons,)
    expected: float  # share right, by ordinary least squares and normal errors


def decode(groups: Booleans, answers: Floats, *, deviation: float, program: bool = False) -> Decoding:
    """Everybody's bit from sums over groups; `groups` has shape (sums, persons), `deviation` is the noise's.

    `program` minimizes absolute errors instead of squared ones: the linear program of [DN03].
    """
    sums, persons = groups.shape
    if len(answers) != sums or not sums or not persons:
        raise InvalidRequest(
            f"{len(answers)} answers to {sums} sums over {persons} persons",
            why="every sum has one answer, over at least one person",
            instead="give one answer a sum",
        )
    if persons > MOST_PERSONS:
        raise TooLarge(
            f"{persons:,} persons",
            why=f"a matrix of {persons:,}² numbers is factored; {MOST_PERSONS:,} are tried at most",
            instead="attack a part of them",
        )
    if program and persons <= MOST_BY_SOLVER:
        found = least_absolute(Equations.of_matrix(groups), answers, scales=np.ones(sums), largest=1.0)
        return Decoding(found > 0.5, _expected(groups.T.astype(np.float64) @ groups, deviation))
    matrix = groups.astype(np.float32)
    gram = _gram(matrix)
    shares = _stepped(matrix, gram, answers.astype(np.float32), max(deviation, 1e-3) if program else None)
    return Decoding(shares > 0.5, _expected(gram, deviation))


def _gram(matrix: NDArray[np.float32]) -> Floats:
    """AᵀA, from the half of it that is computed."""
    from scipy.linalg.blas import ssyrk

    upper = np.triu(ssyrk(1.0, matrix.T)).astype(np.float64)
    return np.asarray(upper + np.triu(upper, 1).T)


def _expected(gram: Floats, deviation: float) -> float:
    """Φ(½/s), s the standard error of one coordinate of ordinary least squares; ½ where it is not determined."""
    from scipy.linalg import cho_factor, cho_solve

    try:
        factor = cho_factor(gram if len(gram) <= MOST_EXACTLY else gram.astype(np.float32))
    except np.linalg.LinAlgError:
        return 0.5
    probes = np.random.default_rng(2003).choice([-1.0, 1.0], (len(gram), 30))  # Hutchinson: the trace of the inverse
    variance = float((probes * cho_solve(factor, probes)).sum() / 30 / len(gram))
    spread = deviation * math.sqrt(max(variance, 0.0))
    return 0.5 * (1 + math.erf(0.5 / spread / math.sqrt(2))) if spread else 1.0


def _stepped(
    matrix: NDArray[np.float32], gram: Floats, answers: NDArray[np.float32], deviation: float | None
) -> NDArray[np.float32]:
    """argmin ‖A·x − y‖² over 0 ≤ x ≤ 1, persons held within their bounds.

    With a deviation argmin Σ |A·x − y|: errors are split off, and shrunk by it.
    """
    weight = np.float32(np.trace(gram) / len(gram))
    inverse, right = _inverse(gram, float(weight)), matrix.T @ answers
    held, dual = np.full(len(gram), 0.5, dtype=np.float32), np.zeros(len(gram), dtype=np.float32)
    price = np.zeros_like(answers)
    bits, still = held > 0.5, 0
    for _ in range(STEPS):
        free = inverse @ (right + weight * (held - dual))
        if deviation is not None:
            misfit = matrix @ free - answers + price
            errors = np.sign(misfit) * np.maximum(np.abs(misfit) - np.float32(deviation), 0)
            price = misfit - errors
            right = matrix.T @ (errors + answers - price)
        held = np.clip(free + dual, 0.0, 1.0)
        dual = dual + free - held
        bits, still = held > 0.5, still + 1 if np.array_equal(bits, held > 0.5) else 0
        if still >= STILL:
            break
    return held


def _inverse(gram: Floats, weight: float) -> NDArray[np.float32]:
    """(AᵀA + weight·1)⁻¹, well conditioned: one matrix, and then nothing but products."""
    from scipy.linalg.lapack import spotrf, spotri

    factor, failed = spotrf((gram + weight * np.eye(len(gram))).astype(np.float32))
    upper, unfit = spotri(factor)
    assert not failed
    assert not unfit
    upper = np.triu(upper)
    return np.asarray(upper + np.triu(upper, 1).T, dtype=np.float32)
