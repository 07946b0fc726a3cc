"""One secret bit a person from many noisy sums over random groups: Dinur and Nissim's attack [DN03], beside theory.

Too many answers that are too good give everything away, whoever asks. Two attacks within [0, 1]: least squares, and the
linear program of least absolute errors, which is the better one where noise has long tails. Both take one factorization
and cheap steps (alternating directions), and so reach thousands of people; hundreds are left to a solver of linear
programs, which ends at a vertex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Floats
from dualmandate.errors import InvalidRequest, TooLarge

STEPS = 300
SETTLED = 40  # After this many steps without a bit that changes, bits are taken as found.
MOST_PERSONS = 5_000
MOST_BY_SOLVER = 500
MOST_EXACTLY = 2_000  # Up to this many persons, theory is computed in double precision.


@dataclass(frozen=True, eq=False)
class Decoding:
    """The bits that were found, and the share that theory expects to be right."""

    bits: NDArray[np.bool_] = field(repr=False)  # (persons,)
    expected: float  # share right, by ordinary least squares and normal errors


def decode(groups: NDArray[np.bool_], answers: Floats, *, deviation: float, program: bool = False) -> Decoding:
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
        gram = groups.T.astype(np.float64) @ groups
        return Decoding(_program(groups, answers) > 0.5, _expected(gram, deviation))
    matrix = groups.astype(np.float32)
    gram = _gram(matrix)
    expected = _expected(gram, deviation)
    right = answers.astype(np.float32)
    found = _absolute(matrix, gram, right, deviation) if program else _boxed(gram, matrix.T @ right)
    return Decoding(found > 0.5, expected)


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


def _boxed(gram: Floats, right: NDArray[np.float32]) -> Floats:
    """argmin ‖A·x − y‖² over 0 ≤ x ≤ 1, from AᵀA and Aᵀy."""
    weight = float(np.trace(gram)) / len(gram)
    inverse = _inverse(gram, weight)
    held, dual = np.full(len(gram), 0.5, dtype=np.float32), np.zeros(len(gram), dtype=np.float32)
    bits, still = held > 0.5, 0
    for _ in range(STEPS):
        free = inverse @ (right + np.float32(weight) * (held - dual))
        held = np.clip(free + dual, 0.0, 1.0)
        dual = dual + free - held
        bits, still = held > 0.5, still + 1 if np.array_equal(bits, held > 0.5) else 0
        if still >= SETTLED:
            break
    return held.astype(np.float64)


def _absolute(matrix: NDArray[np.float32], gram: Floats, answers: NDArray[np.float32], deviation: float) -> Floats:
    """argmin Σ |A·x − y| over 0 ≤ x ≤ 1: errors are split off and shrunk, persons held within their bounds."""
    persons, weight = len(gram), float(np.trace(gram)) / len(gram)
    inverse, shrunk = _inverse(gram, weight), np.float32(max(deviation, 1e-3))
    held, dual = np.full(persons, 0.5, dtype=np.float32), np.zeros(persons, dtype=np.float32)
    errors, price = np.zeros_like(answers), np.zeros_like(answers)
    bits, still = held > 0.5, 0
    for _ in range(STEPS):
        free = inverse @ (matrix.T @ (errors + answers - price) + np.float32(weight) * (held - dual))
        misfit = matrix @ free - answers
        errors = np.sign(misfit + price) * np.maximum(np.abs(misfit + price) - shrunk, 0)
        price = price + misfit - errors
        held = np.clip(free + dual, 0.0, 1.0)
        dual = dual + free - held
        bits, still = held > 0.5, still + 1 if np.array_equal(bits, held > 0.5) else 0
        if still >= SETTLED:
            break
    return held.astype(np.float64)


def _inverse(gram: Floats, weight: float) -> NDArray[np.float32]:
    """(AᵀA + weight·1)⁻¹, well conditioned: one matrix, and then nothing but products."""
    from scipy.linalg.lapack import spotrf, spotri

    factor, failed = spotrf((gram + weight * np.eye(len(gram))).astype(np.float32))
    upper, unfit = spotri(factor)
    assert not failed
    assert not unfit
    upper = np.triu(upper)
    return np.asarray(upper + np.triu(upper, 1).T, dtype=np.float32)


def _program(groups: NDArray[np.bool_], answers: Floats) -> Floats:
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    sums, persons = groups.shape
    equal = hstack([csr_array(groups.astype(np.float64)), eye_array(sums), -eye_array(sums)])
    bounds = [(0, 1)] * persons + [(0, None)] * (2 * sums)
    cost = np.concatenate([np.zeros(persons), np.ones(2 * sums)])
    found = linprog(cost, A_eq=equal, b_eq=answers, bounds=bounds, method="highs-ipm")
    return np.asarray(found.x[:persons])
