"""One secret bit a person from many noisy sums over random groups: Dinur and Nissim's attack [DN03], beside theory.

Too many answers that are too good give everything away, whoever asks. Least squares within [0, 1] by one factorization
and cheap steps (alternating directions) reach thousands of people; the linear program of least
absolute errors is for hundreds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest, TooLarge

Floats = NDArray[np.float64]
STEPS = 300
MOST_PERSONS = 5_000
MOST_IN_PROGRAM = 500


@dataclass(frozen=True, eq=False)
class Decoded:
    """The bits that were found, and the share that theory expects to be right."""

    bits: NDArray[np.bool_] = field(repr=False)  # (persons,)
    expected: float  # share right, by ordinary least squares and normal errors


def decode(groups: NDArray[np.bool_], answers: Floats, *, deviation: float, program: bool = False) -> Decoded:
    """Everybody's bit from sums over groups; `groups` has shape (sums, persons), `deviation` is the noise's.

    `program` minimizes absolute errors instead of squared ones.
    """
    sums, persons = groups.shape
    if len(answers) != sums or not sums or not persons:
        raise InvalidRequest(
            f"{len(answers)} answers to {sums} sums over {persons} persons",
            why="every sum has one answer, over at least one person",
            instead="give one answer a sum",
        )
    most = MOST_IN_PROGRAM if program else MOST_PERSONS
    if persons > most:
        raise TooLarge(
            f"{persons:,} persons",
            why=f"a matrix of {persons:,}² numbers is factored; {most:,} are tried at most",
            instead="attack a part of them" + (", or use least squares" if program else ""),
        )
    matrix = groups.astype(np.float32)
    gram = (matrix.T @ matrix).astype(np.float64)
    expected = _expected(gram, deviation)
    found = _program(groups, answers) if program else _boxed(gram, (matrix.T @ answers.astype(np.float32)))
    return Decoded(found > 0.5, expected)


def _expected(gram: Floats, deviation: float) -> float:
    """Φ(½/s), s the standard error of one coordinate of ordinary least squares; ½ where it is not determined."""
    from scipy.linalg import cho_factor, cho_solve

    try:
        factor = cho_factor(gram)
    except np.linalg.LinAlgError:
        return 0.5
    probes = np.random.default_rng(2003).choice([-1.0, 1.0], (len(gram), 30))  # Hutchinson: the trace of the inverse
    variance = float((probes * cho_solve(factor, probes)).sum() / 30 / len(gram))
    spread = deviation * math.sqrt(max(variance, 0.0))
    return 0.5 * (1 + math.erf(0.5 / spread / math.sqrt(2))) if spread else 1.0


def _boxed(gram: Floats, right: NDArray[np.float32]) -> Floats:
    """argmin ‖A·x − y‖² over 0 ≤ x ≤ 1, from AᵀA and Aᵀy."""
    from scipy.linalg import cho_factor, cho_solve

    weight = float(np.trace(gram)) / len(gram)
    factor = cho_factor((gram + weight * np.eye(len(gram))).astype(np.float32))
    held, dual = np.full(len(gram), 0.5, dtype=np.float32), np.zeros(len(gram), dtype=np.float32)
    for _ in range(STEPS):
        free = cho_solve(factor, right + weight * (held - dual))
        before, held = held, np.clip(free + dual, 0.0, 1.0)
        dual = dual + free - held
        if float(np.abs(held - before).max()) < 1e-5 and float(np.abs(free - held).max()) < 1e-4:
            break
    return held.astype(np.float64)


def _program(groups: NDArray[np.bool_], answers: Floats) -> Floats:
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    sums, persons = groups.shape
    equal = hstack([csr_array(groups.astype(np.float64)), eye_array(sums), -eye_array(sums)])
    bounds = [(0, 1)] * persons + [(0, None)] * (2 * sums)
    cost = np.concatenate([np.zeros(persons), np.ones(2 * sums)])
    found = linprog(cost, A_eq=equal, b_eq=answers, bounds=bounds, method="highs-ipm")
    return np.asarray(found.x[:persons])
