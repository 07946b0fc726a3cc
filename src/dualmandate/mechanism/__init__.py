"""How answers are produced: one technology a module."""

from dualmandate.mechanism.additive import NoiseMechanism
from dualmandate.mechanism.gaussian import GAUSSIAN, DiscreteGaussian
from dualmandate.mechanism.geometric import GEOMETRIC, Geometric
from dualmandate.mechanism.k_norm import KNorm
from dualmandate.mechanism.laplace import LAPLACE, Laplace
from dualmandate.mechanism.matrix import MatrixMechanism
from dualmandate.mechanism.mechanism import Distribution, Measure, Mechanism, NoiseLaw, Production
from dualmandate.mechanism.optimized import OptimizedMechanism, StrategyMechanism
from dualmandate.mechanism.production import NoiseProduction
from dualmandate.mechanism.randomized_response import RandomizedResponse
from dualmandate.mechanism.registry import NOISE_LAWS, gaussian, geometric, laplace, mechanism_named, staircase
from dualmandate.mechanism.staircase import STAIRCASE, Staircase
from dualmandate.mechanism.strategy import ExactStrategy, Strategy, StrategyProduction, optimize_strategy

__all__ = [
    "GAUSSIAN",
    "GEOMETRIC",
    "LAPLACE",
    "NOISE_LAWS",
    "STAIRCASE",
    "DiscreteGaussian",
    "Distribution",
    "ExactStrategy",
    "Geometric",
    "KNorm",
    "Laplace",
    "MatrixMechanism",
    "Measure",
    "Mechanism",
    "NoiseLaw",
    "NoiseMechanism",
    "NoiseProduction",
    "OptimizedMechanism",
    "Production",
    "RandomizedResponse",
    "Staircase",
    "Strategy",
    "StrategyMechanism",
    "StrategyProduction",
    "gaussian",
    "geometric",
    "laplace",
    "mechanism_named",
    "optimize_strategy",
    "staircase",
]
