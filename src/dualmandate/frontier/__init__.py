"""How much accuracy each privacy loss buys, in closed form or simulated: the best technology, splits and limits."""

from dualmandate.frontier.closed_form import ClosedFormCurves, frontier_of
from dualmandate.frontier.converted import ConvertedCurves, in_epsilon
from dualmandate.frontier.curves import CurveFrontier, Curves, TableWeights
from dualmandate.frontier.envelope import EnvelopeCurves, Switch, envelope
from dualmandate.frontier.error_curve import ErrorCurve, interval, measured_error, relative_error
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
from dualmandate.frontier.simulated import Release, SimulatedCurves, Simulation, simulated
from dualmandate.frontier.spectrum import Spectrum, spectrum
from dualmandate.frontier.split import Allocation, SplitCurves, power_split, split

__all__ = [
    "Allocation",
    "ClosedFormCurves",
    "ConvertedCurves",
    "CurveFrontier",
    "Curves",
    "EnvelopeCurves",
    "ErrorCurve",
    "Frontier",
    "GuessCurves",
    "LowerBound",
    "Measure",
    "Release",
    "SimulatedCurves",
    "Simulation",
    "Spectrum",
    "SplitCurves",
    "Switch",
    "TableWeights",
    "count_bound",
    "efficiency",
    "envelope",
    "frontier_of",
    "in_epsilon",
    "interval",
    "matrix_bound",
    "measured_error",
    "power_split",
    "public_guess",
    "relative_error",
    "simulated",
    "spectrum",
    "split",
    "strategy_bound",
    "unbiased_bound",
]
