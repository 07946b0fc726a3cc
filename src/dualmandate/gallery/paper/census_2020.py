"""What the 2020 Census chose, read from the scale parameters of its published configurations.

The production configurations state the noise by a rational global scale σ; ρ = 1/σ². The ε at δ = 10⁻¹⁰ is the tight
conversion of Canonne, Kamath and Steinke (2020). An implied η is not given: it would need the workload's frontier.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dualmandate.choice import implied_coefficient_ratio
from dualmandate.gallery.paper.row import Row
from dualmandate.population import PrivacyLoss
from dualmandate.population.conversion import epsilon_at

SECTION = "Beyond the paper: the 2020 Census"
FAILURE_PROBABILITY = 1e-10


@dataclass(frozen=True)
class Product:
    """One released product: its scale and the ε that was announced for it, if any."""

    key: str
    name: str
    global_scale: Fraction
    announced: float | None

    @property
    def loss(self) -> PrivacyLoss:
        """ρ = 1/σ², exact."""
        return PrivacyLoss.concentrated(1 / self.global_scale**2)


PERSONS = Product("pl94_persons", "redistricting, persons", Fraction(339, 542), 17.14)
UNITS = Product("pl94_units", "redistricting, housing units", Fraction(12343, 3379), 2.47)
PRODUCTS = (
    PERSONS,
    UNITS,
    Product("dhc_persons", "demographic and housing characteristics, persons", Fraction(254, 485), None),
    Product("demonstration_12_persons", "April 2021 demonstration (12.2), persons", Fraction(429, 439), 10.3),
    Product("demonstration_12_units", "April 2021 demonstration (12.2), units", Fraction(4499, 959), 1.90),
    Product("demonstration_4_persons", "April 2021 demonstration (4.5), persons", Fraction(2379, 1024), 4.00),
    Product("demonstration_4_units", "April 2021 demonstration (4.5), units", Fraction(17371, 1024), 0.50),
)


def rows() -> list[Row]:
    """ρ and ε of each product, and what the two redistricting budgets imply together."""
    found = []
    for product in PRODUCTS:
        epsilon = epsilon_at(float(product.loss), FAILURE_PROBABILITY)
        announced = "as announced" if product.announced is not None else "converted here; none was announced"
        found.append(
            Row(f"census_2020.{product.key}.rho", SECTION, f"{product.name}: ρ", None, float(product.loss),
                float(product.loss), f"ρ = 1/σ², σ = {product.global_scale}", "rho")
        )
        found.append(
            Row(f"census_2020.{product.key}.epsilon", SECTION, f"{product.name}: ε at δ = 10⁻¹⁰", product.announced,
                epsilon, epsilon, announced, "epsilon")
        )
    ratio = float(implied_coefficient_ratio(PERSONS.loss, UNITS.loss))
    found.append(
        Row("census_2020.implied_ratio", SECTION,
            "how much more the persons' tables must be worth than the units', at one linear cost of ρ", None, ratio,
            ratio, "errors c/ρ and cost K·ρ give c = K·ρ², so the value-weighted coefficients stand as (ρ_p/ρ_u)²")
    )
    return found
