"""How much accuracy each privacy loss buys, in closed form or simulated: the best technology, splits and limits."""

from dualmandate.frontier.closed_form import ClosedFormCurves, frontier_of
from dualmandate.frontier.converted import ConvertedCurves, in_epsilon
from dualmandate.frontier.curves import CurveFrontier, Curves, TableWeights
from dualmandate.frontier.envelope import EnvelopeCurves, GuessCurves, Switch, envelope, public_guess
from dualmandate.frontier.frontier import Frontier, Measure
from dualmandate.frontier.lower_bound import (
    LowerBound,
    Spectrum,
    count_bound,
    efficiency,
    matrix_bound,
    spectrum,
    strategy_bound,
)
from dualmandate.frontier.participation import (
    ExponentialResponse,
    ParticipationCurves,
    ParticipationResponse,
    TableTotals,
    peak_of,
    with_participation,
)
from dualmandate.frontier.simulated import (
    Decision,
    FormulaGrant,
    ReleaseChain,
    SimulatedCurves,
    Simulation,
    decision_frontier,
    noisy_answers,
    simulated,
    simulated_numbers,
)
from dualmandate.frontier.split import Allocation, SplitCurves, StatedCurves, power_split, split, stated_split
from dualmandate.frontier.worst_case import (
    PowerLawTechnology,
    multiplicative_weights_exponential,
    private_multiplicative_weights,
)

__all__ = [
    "Allocation",
    "ClosedFormCurves",
    "ConvertedCurves",
    "CurveFrontier",
    "Curves",
    "Decision",
    "EnvelopeCurves",
    "ExponentialResponse",
    "FormulaGrant",
    "Frontier",
    "GuessCurves",
    "LowerBound",
    "Measure",
    "ParticipationCurves",
    "ParticipationResponse",
    "PowerLawTechnology",
    "ReleaseChain",
    "SimulatedCurves",
    "Simulation",
    "Spectrum",
    "SplitCurves",
    "StatedCurves",
    "Switch",
    "TableTotals",
    "TableWeights",
    "count_bound",
    "decision_frontier",
    "efficiency",
    "envelope",
    "frontier_of",
    "in_epsilon",
    "matrix_bound",
    "multiplicative_weights_exponential",
    "noisy_answers",
    "peak_of",
    "power_split",
    "private_multiplicative_weights",
    "public_guess",
    "simulated",
    "simulated_numbers",
    "spectrum",
    "split",
    "stated_split",
    "strategy_bound",
    "with_participation",
]
