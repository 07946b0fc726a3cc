"""What the 2020 Census chose, read from the scale parameters of its published configurations.

The production configurations state the noise by a rational global scale σ; ρ = 1/σ². The ε at δ = 10⁻¹⁰ is the tight
conversion of Canonne, Kamath and Steinke (2020). An implied η is not given: it would need the workload's frontier.
"""

from __future__ import annotations

from fractions import Fraction

from dualmandate.choice import implied_coefficient_ratio
from dualmandate.gallery.paper.row import Computed
from dualmandate.population import PrivacyLoss
from dualmandate.population.conversion import epsilon_at

FAILURE_PROBABILITY = 1e-10


SCALES = {
    "pl94_persons": Fraction(339, 542),
    "pl94_units": Fraction(12343, 3379),
    "dhc_persons": Fraction(254, 485),
    "demonstration_12_persons": Fraction(429, 439),
    "demonstration_12_units": Fraction(4499, 959),
    "demonstration_4_persons": Fraction(2379, 1024),
    "demonstration_4_units": Fraction(17371, 1024),
}


def computed() -> dict[str, Computed]:
    """ρ and ε of each product, and what the two redistricting budgets imply together."""
    losses = {product: PrivacyLoss.concentrated(1 / scale**2) for product, scale in SCALES.items()}
    epsilons = {product: epsilon_at(float(loss), FAILURE_PROBABILITY) for product, loss in losses.items()}
    ratio = implied_coefficient_ratio(losses["pl94_persons"], losses["pl94_units"])
    return {
        **{f"census_2020.{product}.rho": Computed.same(float(loss)) for product, loss in losses.items()},
        **{f"census_2020.{product}.epsilon": Computed.same(epsilon) for product, epsilon in epsilons.items()},
        "census_2020.implied_ratio": Computed.same(float(ratio)),
    }
