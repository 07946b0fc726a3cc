"""Noise for audits: drawn as releases draw it, exactly and on whole numbers, from the audit's own key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Floats, Integers
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler, NoiseKey, Sampler

Law = Literal["laplace", "gaussian"]
LogPmf = Callable[[Floats, NDArray[np.intp]], Floats]  # of noise in some columns, up to a constant; (draws, columns)


def audit_noise(key: bytes, purpose: str, law: Law, parameter: Fraction, shape: tuple[int, ...]) -> Integers:
    """Discrete noise for one purpose of an audit; `parameter` is the scale of Laplace or the σ² of Gaussian noise.

    Equal for an equal key and purpose. The key is the audit's own: no release draws from it.
    """
    sampler = LaplaceSampler(parameter) if law == "laplace" else GaussianSampler(parameter)
    return drawn_from(sampler, key, purpose, shape)


def drawn_from(sampler: Sampler, key: bytes, purpose: str, shape: tuple[int, ...]) -> Integers:
    """The same of any exact noise."""
    own = NoiseKey(hashlib.blake2b(f"noise: {purpose}".encode(), key=key[:64], digest_size=32).digest())
    return sampler.draw(own, range(int(np.prod(shape)))).reshape(shape)


def own_law(word: str) -> Law | None:
    """The law that a release names, where the audit has arithmetic of its own for it."""
    return "laplace" if word == "laplace" else "gaussian" if word == "gaussian" else None


def log_weights(law: Law, parameters: Fraction | Floats) -> LogPmf:
    """The logarithm of the probability of noise, up to a constant that cancels in ratios.

    `parameters` is one for all columns, or one a column.
    """
    power = 1 if law == "laplace" else 2
    scales = np.atleast_1d(np.asarray(parameters, dtype=np.float64)) * power

    def logarithms(noise: Floats, columns: NDArray[np.intp]) -> Floats:
        return np.asarray(np.abs(noise) ** power / -(scales[columns] if len(scales) > 1 else scales))

    return logarithms
