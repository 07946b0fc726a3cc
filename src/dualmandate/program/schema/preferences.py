"""`[preferences]`: what privacy and accuracy are worth to society."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dualmandate.program.schema.calibrated import Calibrated
from dualmandate.program.schema.number import (
    CLOSED,
    Correlation,
    NotNegative,
    Positive,
    Probability,
    Several,
    Text,
    lacking,
    refused,
)

InformationUtility = Literal["linear", "exponential", "bounded", "posterior"]


class GroupTable(BaseModel):
    """People with a cost of their own."""

    model_config = CLOSED

    name: Text
    """A group is known by its name."""
    size: Calibrated
    """The number of units in the group."""
    mean_disclosure_cost: Calibrated
    """What a privacy loss costs one of them, in the unit of their form."""
    information_utility: InformationUtility | None = None
    """The form of their cost, where it differs from everybody's."""
    prior_probability: Probability | None = None
    """What an attacker believes beforehand; with the posterior form."""
    relative_privacy_weight: Positive | None = None
    """The weight of their privacy, where it differs from everybody's."""
    share_of_accuracy: NotNegative | None = None
    """Their share of what accuracy is worth, for [social_choice]; by head where no group states one. Shares add up
    to 1."""
    welfare_weight: NotNegative | None = None
    """The weight of all that they lose, in the weighted rule of [social_choice]; 1 where not stated."""
    baseline: Calibrated | None = None
    """How well off one of them is without the release, in USD, for the Rawlsian rule of [social_choice]."""


def _stated_or_referred_to(schema: dict[str, Any]) -> None:
    """For editors: a table that refers to a file need not say what that file says."""
    schema["required"] = []
    schema["anyOf"] = [{"required": ["information_utility"]}, {"required": ["from"]}]


class PreferencesTable(BaseModel):
    """What a privacy loss costs people, and how it weighs against accuracy."""

    model_config = CLOSED | ConfigDict(json_schema_extra=_stated_or_referred_to)

    from_: Text | None = Field(default=None, alias="from")
    """A file with these tables, such as `dualmandate preferences` writes; what it states is not stated here again."""
    information_utility: InformationUtility
    """How cost grows with privacy loss must be stated: "linear", "exponential", "bounded" or "posterior"."""
    mean_disclosure_cost: Calibrated | None = None
    """What a privacy loss costs one person (or whatever the unit is). Linear: USD per person per epsilon, or per rho.
    Exponential: USD per person, the harm to be expected by one who is not in the data. Bounded: USD per person, all
    that can be lost. Posterior: USD per person, the harm of a certain disclosure."""
    prior_probability: Probability | None = None
    """What an attacker believes beforehand; with the posterior form."""
    relative_privacy_weight: Positive | None = None
    """The weight of privacy relative to data, φ/(1 − φ); 1 where not stated."""
    privacy_weight: Probability | None = None
    """The weight of privacy φ between 0 and 1: another way to state relative_privacy_weight."""
    price_of_squared_misallocation: Calibrated | None = None
    """What a squared dollar of misallocation is worth, in USD per USD^2."""
    price_of_misallocation: Calibrated | None = None
    """What a misallocated dollar is worth, in USD per USD; 1 where not stated."""
    correlation_of_errors: Correlation | None = None
    """How far the errors of mean_disclosure_cost and of the price of misallocation go together, where one survey
    measured both."""
    groups: Several[GroupTable] = ()
    """People with costs of their own; their sizes add up to the population."""

    @property
    def correlated(self) -> tuple[str, str] | None:
        """The two numbers whose errors go together; None where not exactly two state an error."""
        names = "mean_disclosure_cost", "price_of_squared_misallocation", "price_of_misallocation"
        numbers = {name: getattr(self, name) for name in names}
        sure = [name for name, number in numbers.items() if number is None or number.standard_error is None]
        uncertain = [name for name in names if name not in sure]
        return (uncertain[0], uncertain[1]) if len(uncertain) == 2 and uncertain[0] == names[0] else None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.privacy_weight is not None and self.relative_privacy_weight is not None:
            raise refused(
                "it states the weight of privacy twice: privacy_weight and relative_privacy_weight",
                "keep one; relative_privacy_weight = privacy_weight / (1 − privacy_weight)",
                key="privacy_weight",
            )
        if self.groups and self.mean_disclosure_cost is not None:
            raise refused(
                "each group states its own cost, so this one would be nobody's",
                "leave it out, or leave out the groups",
                key="mean_disclosure_cost",
            )
        if not self.groups and self.mean_disclosure_cost is None:
            raise lacking(
                "mean_disclosure_cost",
                "without a cost of privacy loss, more of it is always better",
                'state { value = …, unit = "…", source = "…" }, or [[preferences.groups]] with their own costs',
            )
        if self.correlation_of_errors is not None and self.correlated is None:
            raise refused(
                "it is between the errors of mean_disclosure_cost and of one price of misallocation, and not both are "
                "stated",
                "state standard_error in both, or leave the correlation out",
                key="correlation_of_errors",
            )
        forms = [group.information_utility or self.information_utility for group in self.groups]
        if "posterior" not in forms:
            _check_prior(forms[0] if forms else self.information_utility, self.prior_probability, ())
        for position, (form, group) in enumerate(zip(forms, self.groups, strict=True)):
            prior = group.prior_probability or (self.prior_probability if form == "posterior" else None)
            _check_prior(form, prior, ("groups", position))
        return self


def _check_prior(form: str, prior: object, table: tuple[str | int, ...]) -> None:
    if form == "posterior" and prior is None:
        raise lacking(
            (*table, "prior_probability"),
            "the posterior form prices how far a belief may move, so it must know where the belief starts",
            "state prior_probability = 0.01, or the belief you assume",
        )
    if form != "posterior" and prior is not None:
        raise refused(
            f"a prior belief plays no part in the {form} form",
            'leave it out, or state information_utility = "posterior"',
            key=(*table, "prior_probability"),
        )
