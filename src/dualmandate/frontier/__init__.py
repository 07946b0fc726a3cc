"""How much accuracy each privacy loss buys, in closed form or simulated: the best technology, splits and limits."""

from dualmandate.frontier.closed_form import ClosedFormCurves, frontier_of, priced
from dualmandate.frontier.converted import ConvertedCurves, in_epsilon
from dualmandate.frontier.curves import CurveFrontier, Curves, TableWeights
from dualmandate.frontier.decision import Decision, FormulaGrant, decision_frontier, noisy_answers
from dualmandate.frontier.envelope import EnvelopeCurves, Switch, envelope
from dualmandate.frontier.error_curve import ErrorCurve, interval
from dualmandate.frontier.frontier import Frontier, Measure
from dualmandate.frontier.guess import GuessCurves, public_guess
from dualmandate.frontier.lower_bound import (
    LowerBound,
    count_bound,
    efficiency,
    matrix_bound,
    strategy_bound,
    unbiased_bound,
)
from dualmandate.frontier.participation import (
    ExponentialResponse,
    ParticipationCurves,
    Response,
    TableTotals,
    peak_of,
    with_participation,
)
from dualmandate.frontier.simulated import Release, SimulatedCurves, Simulation, simulated, simulated_numbers
from dualmandate.frontier.spectrum import Spectrum, spectrum
from dualmandate.frontier.split import Allocation, SplitCurves, power_split, split
from dualmandate.frontier.stated import StatedCurves, stated_split
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
    "ErrorCurve",
    "ExponentialResponse",
    "FormulaGrant",
    "Frontier",
    "GuessCurves",
    "LowerBound",
    "Measure",
    "ParticipationCurves",
    "PowerLawTechnology",
    "Release",
    "Response",
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
    "interval",
    "matrix_bound",
    "multiplicative_weights_exponential",
    "noisy_answers",
    "peak_of",
    "power_split",
    "priced",
    "private_multiplicative_weights",
    "public_guess",
    "simulated",
    "simulated_numbers",
    "spectrum",
    "split",
    "stated_split",
    "strategy_bound",
    "unbiased_bound",
    "with_participation",
]
