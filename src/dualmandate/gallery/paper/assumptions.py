"""What the assumptions of the Title I section do to its numbers, one changed at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dualmandate.choice import ExponentialCost, LinearCost, WealthRisk
from dualmandate.gallery.paper.row import Computed
from dualmandate.gallery.paper.title_i import PRINTED_EPSILON, Calibration
from dualmandate.population import Neighbors

UNCONDITIONAL_COST = 61.0  # USD per person and year: 15.4 billion of losses over 251 million residents of 16 and over
SMALL_DISTRICT = 10  # eligible children; the statute's smallest count for a grant


def computed() -> dict[str, Computed]:
    """The section's numbers under other forms of cost, units, noise and neighbors."""
    return {**_costs(), **_noise(), **_utility()}


def _costs() -> dict[str, Computed]:
    paper = Calibration()
    light = replace(paper, relative_privacy_weight=0.15)
    best, light_best = paper.choice.epsilon, light.choice.epsilon
    exponential = ExponentialCost(1_400.0)

    def against(changed: Calibration) -> Computed:
        return Computed(best, changed.choice.epsilon)

    return {
        "title_i.exponential": against(replace(paper, information_utility=exponential)),
        "title_i.exponential_of_others": Computed(
            light_best, replace(light, information_utility=exponential).choice.epsilon
        ),
        "title_i.linearity": Computed.same(math.expm1(best) / best),
        "title_i.linearity_of_others": Computed.same(math.expm1(light_best) / light_best),
        "title_i.marginal_linearity": Computed.same(math.exp(best)),
        "title_i.marginal_linearity_of_others": Computed.same(math.exp(light_best)),
        "title_i.worst_case_loss": Computed(math.expm1(best), -math.expm1(-best), math.expm1(PRINTED_EPSILON)),
        "title_i.unconditional": against(replace(paper, information_utility=LinearCost(UNCONDITIONAL_COST))),
        "title_i.in_cents": against(replace(paper, price=100.0)),
        "title_i.in_thousands": against(replace(paper, price=1e-3)),
        "title_i.replace_one": against(replace(paper, neighbors=Neighbors.REPLACE_ONE)),
    }


def _noise() -> dict[str, Computed]:
    paper, geometric = Calibration(), Calibration(noise="geometric")
    best, right = paper.choice.epsilon, geometric.choice.epsilon
    light = replace(paper, relative_privacy_weight=0.15)
    light_geometric = replace(geometric, relative_privacy_weight=0.15)
    light_best, light_right = light.choice.epsilon, light_geometric.choice.epsilon
    scale = 1 / 0.1  # Laplace noise at ε = 0.1
    return {
        "title_i.geometric": Computed(best, right),
        "title_i.geometric_error": Computed(paper.misallocation(best), geometric.misallocation(right)),
        "title_i.geometric_of_others": Computed(light_best, light_right),
        "title_i.geometric_error_of_others": Computed(
            light.misallocation(light_best), light_geometric.misallocation(light_right)
        ),
        "title_i.curvature": Computed.same(paper.frontier.second_derivative(best)),
        # E[max(0, n + X)] − n of Laplace noise X with scale s is (s/2)·e^(−n/s).
        "title_i.range_edit": Computed.same(scale / 2 * math.exp(-SMALL_DISTRICT / scale), paper=0.0),
    }


def _utility() -> dict[str, Computed]:
    """Exact cost of Laplace noise to a risk-averse person, over its Taylor approximation, at s = r|a|ΔA/ε."""
    risk = WealthRisk(risk_aversion=1.0, exposures=np.array([1.0]))
    return {f"utility.taylor.{s:g}": Computed.same(risk.diagnostic(1 / s).ratio, paper=1.0) for s in (0.5, 0.9)}
