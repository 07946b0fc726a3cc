"""How answers are produced: the measurement, the laws of noise, and one technology a module."""

from dualmandate.mechanism.count_of_counts import (
    GroupForm,
    MeasuredGroups,
    counts_by_size,
    earth_movers_distance,
    measure_groups,
)
from dualmandate.mechanism.data_dependent import Answers, DataDependentMechanism, Keys, simulation_keys
from dualmandate.mechanism.exponential import rate_of, select
from dualmandate.mechanism.gaussian import GAUSSIAN, DiscreteGaussian
from dualmandate.mechanism.geometric import GEOMETRIC, Geometric
from dualmandate.mechanism.k_norm import KNorm
from dualmandate.mechanism.laplace import LAPLACE, Laplace
from dualmandate.mechanism.local.bit_flip import BitFlip
from dualmandate.mechanism.local.one_bit_mean import OneBitMean
from dualmandate.mechanism.local.randomized_response import RandomizedResponse
from dualmandate.mechanism.local.unary_encoding import UnaryEncoding
from dualmandate.mechanism.measurement import Measurement
from dualmandate.mechanism.mechanism import (
    Distribution,
    ExactLaw,
    Measure,
    Mechanism,
    NamedMeasure,
    Noise,
    NoiseLaw,
    Production,
    TableMeasure,
)
from dualmandate.mechanism.multiplicative_weights import (
    InteractiveAnswer,
    InteractiveAnswers,
    InteractiveState,
    InteractiveTerms,
    MultiplicativeWeights,
    threshold_for,
)
from dualmandate.mechanism.partition import PartitionMechanism
from dualmandate.mechanism.rows import MatrixRows, Rows, StrategyRows, TableRows
from dualmandate.mechanism.staircase import STAIRCASE, Staircase
from dualmandate.mechanism.strategy import ExactStrategy, Strategy, optimize_strategy
from dualmandate.mechanism.synthesis import AdaptiveMarginals, Synthesis, TableDistance, synthesize
from dualmandate.mechanism.technologies import (
    NOISE_LAWS,
    MatrixMechanism,
    NoiseMechanism,
    OptimizedMechanism,
    StrategyMechanism,
    gaussian,
    geometric,
    laplace,
    mechanism_named,
    staircase,
)

__all__ = [
    "GAUSSIAN",
    "GEOMETRIC",
    "LAPLACE",
    "NOISE_LAWS",
    "STAIRCASE",
    "AdaptiveMarginals",
    "Answers",
    "BitFlip",
    "DataDependentMechanism",
    "DiscreteGaussian",
    "Distribution",
    "ExactLaw",
    "ExactStrategy",
    "Geometric",
    "GroupForm",
    "InteractiveAnswer",
    "InteractiveAnswers",
    "InteractiveState",
    "InteractiveTerms",
    "KNorm",
    "Keys",
    "Laplace",
    "MatrixMechanism",
    "MatrixRows",
    "Measure",
    "MeasuredGroups",
    "Measurement",
    "Mechanism",
    "MultiplicativeWeights",
    "NamedMeasure",
    "Noise",
    "NoiseLaw",
    "NoiseMechanism",
    "OneBitMean",
    "OptimizedMechanism",
    "PartitionMechanism",
    "Production",
    "RandomizedResponse",
    "Rows",
    "Staircase",
    "Strategy",
    "StrategyMechanism",
    "StrategyRows",
    "Synthesis",
    "TableDistance",
    "TableMeasure",
    "TableRows",
    "UnaryEncoding",
    "counts_by_size",
    "earth_movers_distance",
    "gaussian",
    "geometric",
    "laplace",
    "measure_groups",
    "mechanism_named",
    "optimize_strategy",
    "rate_of",
    "select",
    "simulation_keys",
    "staircase",
    "synthesize",
    "threshold_for",
]
