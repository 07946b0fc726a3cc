"""How answers are produced: one technology a module."""

from dualmandate.mechanism.additive import NoiseMechanism
from dualmandate.mechanism.gaussian import GAUSSIAN, DiscreteGaussian
from dualmandate.mechanism.geometric import GEOMETRIC, Geometric
from dualmandate.mechanism.laplace import LAPLACE, Laplace
from dualmandate.mechanism.matrix import MatrixMechanism
from dualmandate.mechanism.mechanism import Distribution, Measure, Mechanism, NoiseLaw, Production
from dualmandate.mechanism.production import NoiseProduction
from dualmandate.mechanism.randomized_response import RandomizedResponse
from dualmandate.mechanism.registry import NOISE_LAWS, gaussian, geometric, laplace, mechanism_named, staircase
from dualmandate.mechanism.staircase import STAIRCASE, Staircase
from dualmandate.mechanism.strategy import Strategy, optimize_strategy

__all__ = [
    "GAUSSIAN",
    "GEOMETRIC",
    "LAPLACE",
    "NOISE_LAWS",
    "STAIRCASE",
    "DiscreteGaussian",
    "Distribution",
    "Geometric",
    "Laplace",
    "MatrixMechanism",
    "Measure",
    "Mechanism",
    "NoiseLaw",
    "NoiseMechanism",
    "NoiseProduction",
    "Production",
    "RandomizedResponse",
    "Staircase",
    "Strategy",
    "gaussian",
    "geometric",
    "laplace",
    "mechanism_named",
    "optimize_strategy",
    "staircase",
]
