"""Points that fill a cube evenly: the Halton sequence with permuted digits, the same ones in every run.

Simulated likelihoods average over such draws. They stand for taste that differs, protect nobody, and are public.
`scipy.stats.qmc.Halton` permutes other digits: designs that were handed out, and estimates of their answers, would not
be found again (the worked survey's price of accuracy becomes 0.99 where it was 1.0).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]
SEED = 2009  # The seed is public: estimates do not change from run to run.


def halton(points: int, dimensions: int) -> Floats:
    """(dimensions, points) in the open interval (0, 1): the i-th point mirrors i's digits in a prime base at the comma.

    Each digit of each dimension is permuted at random once [Owe17], which breaks the bands that plain sequences
    of large bases show, and leaves every point uniform.
    """
    return np.stack([_column(base, points) for base in _primes(dimensions)])


def normal_draws(people: int, draws: int, dimensions: int) -> Floats:
    """(people, dimensions, draws) standard normal draws; each person has a stretch of the sequence of her own."""
    cube = halton(people * draws, dimensions).reshape(dimensions, people, draws)
    return np.ascontiguousarray(ndtri(cube).transpose(1, 0, 2))


def triangular(normal: Floats) -> Floats:
    """Symmetric triangular draws on (−1, 1) in place of standard normal ones, rank by rank; their variance is 1/6."""
    tail = np.sqrt(2 * ndtr(-np.abs(normal)))
    return np.asarray(np.sign(normal) * (1 - tail))


def _column(base: int, points: int) -> Floats:
    generator = np.random.default_rng((SEED, base))
    values, width = np.zeros(1), 1.0
    while len(values) < points or width > 2.0**-53:
        width /= base
        digits = generator.permutation(base) * width
        blocks = min(base, -(-points // len(values)))  # the next digit of a number: a block for each of its values
        values = (digits[:blocks, None] + values).reshape(-1)[:points]
    return np.clip(values, 2.0**-54, 1 - 2.0**-53)


def _primes(count: int) -> list[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return found
