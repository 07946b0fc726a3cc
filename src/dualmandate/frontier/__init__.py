"""How much accuracy each privacy loss buys, in closed form or simulated: the best technology, splits and limits."""

from dualmandate.frontier.envelope import EnvelopeCurves, envelope, public_guess
from dualmandate.frontier.frontier import (
    ClosedFormCurves,
    Curves,
    Frontier,
    TableWeights,
    frontier_of,
    in_epsilon,
    in_order,
    priced,
)
from dualmandate.frontier.lower_bound import (
    LowerBound,
    count_bound,
    efficiency,
    matrix_bound,
    scale_bound,
    strategy_bound,
)
from dualmandate.frontier.measures import RelativeErrors, TailMisses, WorstError
from dualmandate.frontier.participation import ExponentialResponse, TableTotals, peak_of, with_participation
from dualmandate.frontier.secrets import GroupSecret, by_secret
from dualmandate.frontier.simulated import (
    Decision,
    FormulaGrant,
    Misallocation,
    Simulation,
    SimulationError,
    decision_frontier,
    frontier_on,
    joined,
    noisy_answers,
    simulated,
    simulation_error,
)
from dualmandate.frontier.split import power_split, split, stated_split
from dualmandate.frontier.worst_case import (
    PowerLawTechnology,
    multiplicative_weights_exponential,
    private_multiplicative_weights,
)
from dualmandate.mechanism import Measure

__all__ = [
    "ClosedFormCurves",
    "Curves",
    "Decision",
    "EnvelopeCurves",
    "ExponentialResponse",
    "FormulaGrant",
    "Frontier",
    "GroupSecret",
    "LowerBound",
    "Measure",
    "Misallocation",
    "PowerLawTechnology",
    "RelativeErrors",
    "Simulation",
    "SimulationError",
    "TableTotals",
    "TableWeights",
    "TailMisses",
    "WorstError",
    "by_secret",
    "count_bound",
    "decision_frontier",
    "efficiency",
    "envelope",
    "frontier_of",
    "frontier_on",
    "in_epsilon",
    "in_order",
    "joined",
    "matrix_bound",
    "multiplicative_weights_exponential",
    "noisy_answers",
    "peak_of",
    "power_split",
    "priced",
    "private_multiplicative_weights",
    "public_guess",
    "scale_bound",
    "simulated",
    "simulation_error",
    "split",
    "stated_split",
    "strategy_bound",
    "with_participation",
]
