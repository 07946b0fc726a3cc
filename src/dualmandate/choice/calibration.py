"""From calibrated numbers to welfare: each in the unit that its place asks for, or refused."""

from __future__ import annotations

import math
from typing import Literal

from dualmandate.choice.information import (
    FORMS,
    BoundedCost,
    ExponentialCost,
    InformationUtility,
    LinearCost,
    PosteriorCost,
)
from dualmandate.choice.welfare import TableValue
from dualmandate.errors import IncompatibleUnits, InvalidPreferences, MissingKey
from dualmandate.population import Calibrated, Currency, Units

MISSING_PRICE = "squared dollars cannot be added to dollars; state price_of_squared_misallocation"


def population_size(quantity: Calibrated, units: Units) -> float:
    """Number of protected units, N; a public constant."""
    size = quantity.to(units.singular, units).value
    if size <= 0:
        raise InvalidPreferences(
            f"a population of {size:g} {units.plural}",
            why="nobody's privacy would be weighed",
            instead="state how many there are",
        )
    return size


def information_utility(
    form: str,
    mean_disclosure_cost: Calibrated,
    *,
    units: Units,
    currency: Currency = Currency.EPSILON,
    prior: float | None = None,
) -> InformationUtility:
    """What privacy loss costs one protected unit, by the form's name; the cost must be in the unit of that form."""
    if form not in FORMS:
        raise InvalidPreferences(
            f"the information utility '{form}' is not known",
            why=f"the forms are {', '.join(FORMS)}",
            instead="choose one of them",
        )
    if form != "linear" and currency is not Currency.EPSILON:
        raise InvalidPreferences(
            f"the {form} form counts a loss in {currency}",
            why="it is a statement about odds, and odds are bounded by epsilon",
            instead='use "linear" with a cost per rho, or express the frontier in epsilon at a failure_probability',
        )
    if (form == "posterior") != (prior is not None):
        raise InvalidPreferences(
            f"the {form} form is stated {'without' if prior is None else 'with'} a prior",
            why="the posterior form, and only it, starts from what was believed before",
            instead="state prior_probability, between 0 and 1" if prior is None else "leave prior_probability out",
        )
    expected = f"USD per {units.singular}" + (f" per {currency}" if form == "linear" else "")
    if not units.agree(mean_disclosure_cost.unit, expected):
        raise IncompatibleUnits(
            f"the {form} form has a cost in '{mean_disclosure_cost.unit}'",
            why=f"its parameter is in {expected}; the unit differs with the form",
            instead=f"state mean_disclosure_cost in '{expected}', or choose the form that its unit belongs to",
        )
    cost = mean_disclosure_cost.to(expected, units).value
    if prior is not None:
        return PosteriorCost(cost, prior)
    if form == "linear":
        return LinearCost(cost, currency)
    return ExponentialCost(cost) if form == "exponential" else BoundedCost(cost)


def table_value(
    table: str,
    *,
    units: Units,
    unit: str | None = None,
    loss: Literal["squared", "absolute"] = "squared",
    value_of_accuracy: Calibrated | None = None,
    consequence: Calibrated | None = None,
    price: Calibrated | None = None,
) -> TableValue:
    """What errors in one table cost society, b_t: stated directly, or as a consequence times its price.

    `unit` is what the table counts (the protected unit unless stated). Squared loss: `value_of_accuracy` in USD per
    unit², or `consequence` in USD² per unit² × `price` in USD per USD². Absolute loss: USD per unit, and a price, if
    any, is a pure number; a price of squared dollars does not concern it.
    """
    counted = unit or units.singular
    if (value_of_accuracy is None) == (consequence is None):
        raise MissingKey(
            f"table '{table}' has {'no value' if consequence is None else 'two values'}",
            why="what its errors cost decides how much privacy loss it is worth",
            instead="state exactly one of value_of_accuracy and consequence",
        )
    per_unit = f"({counted})^2" if loss == "squared" else counted
    if value_of_accuracy is not None:
        return TableValue(table, value_of_accuracy.to(f"USD per {per_unit}", units).value, measure=loss, unit=counted)
    assert consequence is not None
    if loss == "absolute":
        size = consequence.to(f"USD per {per_unit}", units).value
        if price is None or not units.agree(price.unit, "USD per USD"):
            return TableValue(table, size, measure=loss, unit=counted, consequence=size)
        harm = price.to("USD per USD", units).value
        return TableValue(table, size * harm, measure=loss, unit=counted, consequence=size, price=harm)
    if units.agree(consequence.unit, f"USD per {per_unit}"):
        raise IncompatibleUnits(
            f"the consequence of table '{table}' is in '{consequence.unit}'",
            why="a consequence is in squared dollars, and its price turns it into dollars",
            instead="call it value_of_accuracy: it is in dollars already",
        )
    squared_dollars = consequence.to(f"USD^2 per {per_unit}", units).value
    if price is None:
        raise IncompatibleUnits(
            f"the consequence of table '{table}' is in '{consequence.unit}'",
            why=MISSING_PRICE,
            instead='state price_of_squared_misallocation in "USD per USD^2": half the absolute risk aversion per USD',
        )
    per_squared = price.to("USD per USD^2", units).value
    return TableValue(
        table, squared_dollars * per_squared, unit=counted, consequence=squared_dollars, price=per_squared
    )


def relative_weight(relative_privacy_weight: float | None = None, privacy_weight: float | None = None) -> float:
    """The weight η of privacy against accuracy, from η itself or from φ = η/(1 + η); 1 where neither is stated."""
    if relative_privacy_weight is not None and privacy_weight is not None:
        raise InvalidPreferences(
            f"relative_privacy_weight {relative_privacy_weight:g} and privacy_weight {privacy_weight:g} both stated",
            why="they are two ways to say one thing: η = φ/(1 − φ)",
            instead="state one of them",
        )
    if privacy_weight is not None:
        if not 0 <= privacy_weight < 1:
            raise InvalidPreferences(
                f"a privacy_weight of {privacy_weight:g}",
                why="φ is a share: at 1 accuracy would count for nothing",
                instead="state 0 ≤ privacy_weight < 1",
            )
        return privacy_weight / (1 - privacy_weight)
    return 1.0 if relative_privacy_weight is None else _weight(relative_privacy_weight)


def _weight(weight: float) -> float:
    if not math.isfinite(weight) or weight < 0:
        raise InvalidPreferences(
            f"a relative_privacy_weight of {weight:g}",
            why="privacy cannot count for less than nothing, nor for all",
            instead="state a finite number of at least 0",
        )
    return weight
