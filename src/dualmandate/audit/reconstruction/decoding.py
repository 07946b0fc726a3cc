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

from dualmandate.audit.equations import Equations, Floats
from dualmandate.audit.reconstruction.noisy import least_absolute
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
        found = least_absolute(Equations.of_matrix(groups), answers, scales=np.ones(sums), largest=1.0)
        return Decoding(found > 0.5, _expected(groups.T.astype(np.float64) @ groups, deviation))
    matrix = groups.astype(np.float32)
    gram = _gram(matrix)
    found = _stepped(matrix, gram, answers.astype(np.float32), max(deviation, 1e-3) if program else None)
    return Decoding(found > 0.5, _expected(gram, deviation))


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
        if still >= SETTLED:
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
