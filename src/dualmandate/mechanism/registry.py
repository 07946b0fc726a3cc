"""The technologies by the name they have in a program file."""

from __future__ import annotations

import difflib

from dualmandate.errors import UnknownName
from dualmandate.mechanism.additive import NoiseMechanism
from dualmandate.mechanism.gaussian import GAUSSIAN
from dualmandate.mechanism.geometric import GEOMETRIC
from dualmandate.mechanism.laplace import LAPLACE
from dualmandate.mechanism.mechanism import NoiseLaw
from dualmandate.mechanism.staircase import STAIRCASE

NOISE_LAWS: dict[str, NoiseLaw] = {law.name: law for law in (LAPLACE, GEOMETRIC, GAUSSIAN, STAIRCASE)}


def laplace() -> NoiseMechanism:
    """The paper's mechanism: Laplace noise on every answer, under pure ε."""
    return NoiseMechanism(LAPLACE)


def geometric() -> NoiseMechanism:
    """Two-sided geometric noise on every count, under pure ε."""
    return NoiseMechanism(GEOMETRIC)


def gaussian() -> NoiseMechanism:
    """Discrete Gaussian noise on every count, under zero-concentrated privacy (ρ)."""
    return NoiseMechanism(GAUSSIAN)


def staircase() -> NoiseMechanism:
    """Staircase noise on every count, under pure ε."""
    return NoiseMechanism(STAIRCASE)


def mechanism_named(name: str) -> NoiseMechanism:
    """The technology that a program file names."""
    if name not in NOISE_LAWS:
        near = difflib.get_close_matches(name, NOISE_LAWS, n=1)
        raise UnknownName(
            f"'{name}' is not a kind of noise",
            why=f"known are {', '.join(NOISE_LAWS)}",
            instead=f"did you mean '{near[0]}'?" if near else "use one of these",
        )
    return NoiseMechanism(NOISE_LAWS[name])
