"""The keys of a program file, table by table: what may be written, and what each value must be."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    PlainValidator,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from dualmandate.mechanism.technologies import DATA_DEPENDENT, NOISE_LAWS, WHOLE_NUMBERS
from dualmandate.population.currency import DEFAULT
from dualmandate.population.labels import ENGLISH, LANGUAGE
from dualmandate.program.file import dotted
from dualmandate.program.number import (
    EITHER,
    LEVEL_SCHEMA,
    AnyPart,
    Calibrated,
    Cap,
    Count,
    HorizonTable,
    KeyTable,
    Level,
    Levels,
    NotNegative,
    Number,
    Part,
    Positive,
    Probability,
    QueryWeight,
    Several,
    Text,
    WholeNumber,
    exact_number,
    label,
    lacking,
    refused,
    whole_number,
)

InformationUtility = Literal["linear", "exponential", "bounded", "posterior"]


class GroupTable(KeyTable):
    """People with a cost of their own."""

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
    """How well off one of them is without the release, in money, for the Rawlsian rule of [social_choice]."""


class EstimatesTable(KeyTable):
    """What a survey estimated: jointly normal, each estimate divided by its value, so that each has the mean 1."""

    names: Several[Text]
    """Numbers refer to estimates by their names."""
    covariance: Several[Several[Number]]
    """The covariance of the estimates, each divided by its value: a row for each, in the order of the names."""

    @model_validator(mode="after")
    def _square(self) -> Self:
        if not self.names or len(set(self.names)) != len(self.names):
            raise refused("each estimate has a name of its own", 'write names = ["privacy loss", "price"]', key="names")
        if {len(row) for row in (self.covariance, *self.covariance)} != {len(self.names)}:
            instead = f"write {len(self.names)} rows of {len(self.names)} numbers"
            raise refused("it has a row and a column for each of the names", instead, key="covariance")
        return self


def _stated_or_referred_to(schema: dict[str, Any]) -> None:
    """For editors: a table that refers to a file need not say what that file says."""
    schema["required"] = []
    schema["anyOf"] = [{"required": ["information_utility"]}, {"required": ["from"]}]


class PreferencesTable(KeyTable):
    """What a privacy loss costs people, and how it weighs against accuracy."""

    model_config = ConfigDict(json_schema_extra=_stated_or_referred_to)

    from_: Text | None = Field(default=None, alias="from")
    """A file with these tables, such as `dualmandate preferences` writes; what it states is not stated here again."""
    information_utility: InformationUtility
    """How cost grows with privacy loss must be stated: "linear", "exponential", "bounded" or "posterior"."""
    mean_disclosure_cost: Calibrated | None = None
    """What a privacy loss costs one person (or whatever the unit is). Linear: "USD per person per epsilon", or per rho
    (or in another currency of [program]). Exponential: "USD per person", the harm to be expected by one who is not in
    the data. Bounded: "USD per person", all that can be lost. Posterior: "USD per person", the harm of a certain
    disclosure."""
    prior_probability: Probability | None = None
    """What an attacker believes beforehand; with the posterior form."""
    relative_privacy_weight: Positive | None = None
    """The weight of privacy relative to data, φ/(1 − φ); 1 where not stated."""
    privacy_weight: Probability | None = None
    """The weight of privacy φ between 0 and 1: another way to state relative_privacy_weight."""
    price_of_squared_misallocation: Calibrated | None = None
    """What squared money of misallocation is worth, in "USD per USD^2", or in another currency of [program]."""
    price_of_misallocation: Calibrated | None = None
    """What misallocated money is worth, in "USD per USD", or in another currency of [program]; 1 where not stated."""
    estimates: EstimatesTable | None = None
    """What a survey estimated, and how far the errors of that go together; numbers refer to it by estimated_from."""
    horizon: HorizonTable | None = None
    """How amounts of money that come every year add up to one amount today, where some come every year and others
    once."""
    groups: Several[GroupTable] = ()
    """People with costs of their own; their sizes add up to the population."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.privacy_weight is not None and self.relative_privacy_weight is not None:
            why = "it states the weight of privacy twice: privacy_weight and relative_privacy_weight"
            instead = "keep one; relative_privacy_weight = privacy_weight / (1 − privacy_weight)"
            raise refused(why, instead, key="privacy_weight")
        if self.groups and self.mean_disclosure_cost is not None:
            why = "each group states its own cost, so this one would be nobody's"
            raise refused(why, "leave it out, or leave out the groups", key="mean_disclosure_cost")
        if not self.groups and self.mean_disclosure_cost is None:
            why = "without a cost of privacy loss, more of it is always better"
            instead = 'state { value = …, unit = "…", source = "…" }, or [[preferences.groups]] with their own costs'
            raise lacking("mean_disclosure_cost", why, instead)
        forms = [group.information_utility or self.information_utility for group in self.groups]
        if "posterior" not in forms:
            _check_prior(forms[0] if forms else self.information_utility, self.prior_probability, ())
        for position, (form, group) in enumerate(zip(forms, self.groups, strict=True)):
            prior = group.prior_probability or (self.prior_probability if form == "posterior" else None)
            _check_prior(form, prior, ("groups", position))
        return self


def _check_prior(form: str, prior: object, table: tuple[str | int, ...]) -> None:
    if form == "posterior" and prior is None:
        why = "the posterior form prices how far a belief may move, so it must know where the belief starts"
        raise lacking((*table, "prior_probability"), why, "state prior_probability = 0.01, or the belief you assume")
    if form != "posterior" and prior is not None:
        why = f"a prior belief plays no part in the {form} form"
        instead = 'leave it out, or state information_utility = "posterior"'
        raise refused(why, instead, key=(*table, "prior_probability"))


def _one_currency(table: KeyTable, begins: str) -> None:
    """Refuse a table that states a number both per epsilon and per rho."""
    if getattr(table, f"{begins}_epsilon") is not None and getattr(table, f"{begins}_rho") is not None:
        why = f"it states the {begins.removesuffix('_per')} twice"
        raise refused(why, "keep the one in the program's currency", key=f"{begins}_rho")


Rule = Literal[
    "utilitarian", "weighted", "median", "phantoms", "majority", "rawlsian", "rawlsian against own peak", "nash"
]


class UncertaintyTable(KeyTable):
    """What another survey would measure, so that its worth to the decision can be stated."""

    spread_of_answers: Positive
    """How far one answer is off decides what a survey is worth: the standard deviation of its logarithm."""
    respondents: Count = 1000
    """How many people the survey would ask."""
    parameter: Text | None = None
    """The number that it would ask for, as "mean_disclosure_cost" or "mean_disclosure_cost of GROUP"; the only one that
    has a standard_error where not stated."""
    cost_per_respondent: Calibrated | None = None
    """What asking one person costs, in money; the plan then says how many it pays to ask."""
    source: Text
    """The spread is known from somewhere, and readers must be able to see from where."""


class ReadingTable(KeyTable):
    """Another way to read a number of the program, to be planned with beside it; it moves nothing."""

    reading: Text
    """A reading says in words what is read otherwise."""
    parameter: Text
    """The number that is read otherwise, as "mean_disclosure_cost", "consequence of TABLE" or
    "relative_privacy_weight"."""
    value: Positive | None = None
    """What it then is, in the unit in which the program states it."""
    times: Positive | None = None
    """What it is then multiplied by, in place of a value: the probability of an event, where a cost is stated for those
    to whom it happens."""
    source: Text
    """Another reading comes from somewhere, and readers must be able to see from where."""

    @model_validator(mode="after")
    def _one_number(self) -> Self:
        if self.value is None and self.times is None:
            raise lacking("value", "a reading leads to another number", "state value, or times: a factor")
        if self.value is not None and self.times is not None:
            raise refused("it gives the other number twice, as a value and as a factor", "keep one", key="times")
        return self


class SocialChoiceTable(KeyTable):
    """Other ways to add people up than the sum, to be shown beside it; none of them moves the plan."""

    rules: Several[Rule] = ()
    """The rules to show; all whose terms are stated where none is named."""
    baseline: Calibrated | None = None
    """How well off everybody is without the release, in "USD per person": the Rawlsian rule compares levels. Groups may
    state their own."""
    disagreement_epsilon: Cap | None = None
    """The loss that stands where nothing is agreed on: the Nash product counts gains against it."""
    disagreement_rho: Cap | None = None
    """The same where the privacy loss is counted in rho."""
    phantoms: Several[NotNegative] = ()
    """Ballots that are always cast: losses, 0 for as little as possible."""
    options: Several[Cap] = ()
    """Losses that are put to the vote by pairs; every group's own best ones where none is named."""
    status_quo: Cap | None = None
    """The loss that gains and losses are counted against; the utilitarian one where not stated."""

    @model_validator(mode="after")
    def _terms(self) -> Self:
        if "phantoms" in self.rules and not self.phantoms:
            raise lacking("phantoms", "fixed ballots decide how far the choice leans", "state phantoms = [0.5]")
        if "nash" in self.rules and self.disagreement_epsilon is None and self.disagreement_rho is None:
            instead = "state disagreement_epsilon: the loss that would stand without an agreement"
            raise lacking("disagreement_epsilon", "a gain is a gain against something", instead)
        _one_currency(self, "disagreement")
        return self


class ParticipationTable(KeyTable):
    """How many people take part, and how that falls with the privacy loss they are told of."""

    rate_without_loss: Part
    """The share of people who would take part if nothing could be learned about them must be known."""
    decline_per_epsilon: NotNegative | None = None
    """How fast the share falls: it is rate_without_loss·exp(−decline_per_epsilon·epsilon)."""
    decline_per_rho: NotNegative | None = None
    """The same where the privacy loss is counted in rho."""
    truthful_without_loss: Part = Fraction(1)
    """The share of those who take part that would report the truth if nothing could be learned about them."""
    truthful_decline_per_epsilon: NotNegative | None = None
    """How fast that share falls: it is truthful_without_loss·exp(−truthful_decline_per_epsilon·epsilon); the others
    report falsely."""
    truthful_decline_per_rho: NotNegative | None = None
    """The same where the privacy loss is counted in rho."""
    source: Text
    """How people respond is measured or assumed, and readers must be able to see which."""

    @model_validator(mode="after")
    def _one_decline(self) -> Self:
        if self.decline_per_epsilon is None and self.decline_per_rho is None:
            why = "without it participation would not depend on the privacy loss"
            instead = "state decline_per_epsilon, or decline_per_rho where the loss is counted in rho"
            raise lacking("decline_per_epsilon", why, instead)
        _one_currency(self, "decline_per")
        _one_currency(self, "truthful_decline_per")
        return self


class CollectionTable(KeyTable):
    """What it costs to ask people, to see how many it pays to ask instead of everybody."""

    cost_per_respondent: Calibrated
    """What asking one more person costs, in money per person, decides how many it pays to ask."""


class RandomizedResponseTable(KeyTable):
    """A survey in which everybody randomizes their own answer, so that nobody sees a true one: beside the plan."""

    innocuous_share: Probability | None = None
    """Of two cells, how likely the second is as an innocuous answer; cells are equally likely where not stated."""
    sensitive_share: Probability | None = None
    """Of two cells, which share of people truly belongs to the second; the worst case where not stated."""
    source: Text
    """Why people would be asked in this way must be known to readers."""


_SIMULATED = [WHOLE_NUMBERS, *DATA_DEPENDENT]


def _technology(value: object) -> object:
    """A word of the registry of technologies whose errors depend on the data."""
    known = [WHOLE_NUMBERS, *DATA_DEPENDENT]
    if isinstance(value, str) and value in known:
        return value
    expected = " or ".join(filter(None, [", ".join(map(repr, known[:-1])), repr(known[-1])]))
    raise PydanticCustomError("literal_error", "one of {expected}", {"expected": expected})


class SimulationTable(KeyTable):
    """Technologies whose errors depend on the data, simulated on records that anybody may see: beside the plan."""

    records: Text
    """A file of public or synthetic records with the columns of the program's source; never the records themselves."""
    source: Text
    """Where these records come from must be known to readers, and that they may be shown."""
    technologies: Several[Annotated[str, BeforeValidator(_technology), WithJsonSchema({"enum": _SIMULATED})]] = ()
    """Which ones: all that apply where none is named. "whole numbers" are the plan's own tables, made whole."""
    repetitions: Count = 20
    """Releases that are simulated of each at each loss: the more, the narrower the bands. At least 2."""

    @model_validator(mode="after")
    def _differing(self) -> Self:
        if self.repetitions < 2:
            why = "how far a simulation may be off shows in how its releases differ"
            raise refused(why, "state 2 or more", key="repetitions")
        return self


class ReleasesTable(KeyTable):
    """How preferences change with time: when records are opened, and which releases are to come."""

    discount_factor: Part
    """What 1 in a year is worth today must be stated to weigh later releases."""
    disclosure_after_years: Positive | None = None
    """After how many years the records are opened, as a census after 72; never where not stated."""
    releases: Several[NotNegative]
    """In how many years from now each release is made must be known to share a budget out: 0 is the release planned."""
    largest_total: Cap | None = None
    """The largest sum of the losses of all releases."""
    years_of_use: Positive | None = None
    """For how many years a release is used, unless a newer one comes before; values of accuracy are then meant a year,
    and so is all money that states its time_base. Where it is not stated, they are meant for a release. Not beside
    [preferences.horizon], which adds up years too."""
    depreciation: AnyPart = Fraction(0)
    """The share of its worth that a release loses each year, because the people it counted move on; with
    years_of_use."""
    yearly_value: Calibrated | None = None
    """What the tables are worth in a year when they are fresh and exact, in money: the plan then says how often a new
    release pays; with years_of_use."""
    source: Text
    """Discounting and the calendar are decided somewhere, and readers must be able to see where."""

    @model_validator(mode="after")
    def _some_release(self) -> Self:
        if not self.releases:
            raise refused("no release is named", "state releases = [0, 10]: years from now", key="releases")
        for key in ("depreciation", "yearly_value"):
            if key in self.model_fields_set and self.years_of_use is None:
                raise lacking(
                    "years_of_use", f"{key} speaks of years of use", "state for how many years a release is used"
                )
        if self.depreciation == 1:
            raise refused("a release that is worth nothing after a year is used for one", "state years_of_use = 1")
        return self


class MarketsTable(KeyTable):
    """What must be known to see the same program under private providers, auctions and studies that pay."""

    largest_user_share: Part
    """How much of the value of accuracy the keenest user holds decides what a private provider is paid for."""
    spread_of_tastes: Positive | None = None
    """How users differ in what accuracy is worth to them: the standard deviation of its logarithm; where not stated,
    every taste between nothing and the largest is as frequent as any other."""
    budget: Calibrated | None = None
    """What a buyer of records can pay, in money."""
    harm: Calibrated | None = None
    """The harm that one whose record is not used expects from others' misdeeds, in money per person."""
    target_error: Probability | None = None
    """By which share of the population the one count that an auction buys may be off."""
    failure_probability: Probability = Fraction(1, 20)
    """How often a study that pays for harm may miss the target error."""
    stake: Calibrated | None = None
    """What one who reports falsely stands to lose, in money per person: the chance to be found out times its cost."""
    influence: Calibrated | None = None
    """The most that published numbers could be worth to one person who moved them by a false report, in money per
    person; nothing where not stated. With stake."""
    source: Text
    """Who values accuracy, and how much, is measured or assumed, and readers must be able to see which."""


class SecretTable(KeyTable):
    """A secret about one member of a group whose records go together: what the privacy loss means for it."""

    group: Text
    """Readers must know what goes together: a household, a person's months."""
    shares_counted: Several[NotNegative]
    """Which share of groups has 0, 1, … of its members counted must be known, up to all of them; shares add up to 1."""
    source: Text
    """How often members go together is measured or assumed, and readers must be able to see which."""


class DetailTable(KeyTable):
    """The same table at another detail, to be chosen instead."""

    name: Text
    """A detail is told from the others by its name."""
    by: Several[Text] = ()
    """Attributes or groupings at this detail."""
    value_of_publishing: Calibrated
    """What the table is worth at this detail when it is exact, in money, decides whether it is chosen."""


BEST = "best"


MOST_BINS = 1000


class LogarithmicBins(KeyTable):
    """Bins of amounts of every size, in equal steps of the logarithm, and one from 0 to the least of them."""

    least: Positive
    """The first bin ends somewhere: amounts below are not told apart."""
    largest: Positive
    """The last bin ends somewhere: larger amounts are clamped into it, or dropped, as outside says."""
    bins_per_decade: Count = 4
    """How many bins there are from one power of ten to the next."""

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """0, the least amount, its multiples by powers of 10^(1/n) rounded to two digits, and the largest."""
        between = (
            float(self.least) * 10 ** (place / self.bins_per_decade) for place in range(1, math.ceil(self._steps))
        )
        rounded = {Fraction(f"{edge:.1e}") for edge in between}
        inside = sorted(edge for edge in rounded if self.least < edge < self.largest)
        return (Fraction(0), self.least, *inside, self.largest)

    @property
    def _steps(self) -> float:
        return math.log10(self.largest / self.least) * self.bins_per_decade

    @model_validator(mode="after")
    def _some_bins(self) -> Self:
        if not 0 < self._steps <= MOST_BINS:
            why = f"bins lie between two amounts, and there are at most {MOST_BINS:,} of them"
            raise refused(why, "state least below largest, or fewer bins_per_decade")
        return self


def _quantiles(value: object) -> dict[Fraction, Fraction]:
    """Amounts by the share of records at or below them, from none to all, in order."""
    write = 'write { "0" = 0, "0.5" = 900, "0.99" = 40000, "1" = 2000000 }, each share in quotes'
    if not isinstance(value, dict) or any(isinstance(amount, dict) for amount in value.values()):
        raise refused("quantiles are amounts by the share of records at or below them", write)
    try:
        found = sorted((exact_number(Decimal(share)), exact_number(amount)) for share, amount in value.items())
    except InvalidOperation:
        raise refused("a share is a number between 0 and 1", write) from None
    shares, amounts = [share for share, _ in found], [amount for _, amount in found]
    if not found or shares[0] != 0 or shares[-1] != 1 or len(set(shares)) < len(shares):
        raise refused("they run from the least amount (share 0) to the largest (share 1), each share once", write)
    if amounts != sorted(amounts) or amounts[0] == amounts[-1]:
        raise refused("the larger the share, the larger the amount that it does not exceed", write)
    return dict(found)


Quantiles = Annotated[
    dict[Fraction, Fraction],
    PlainValidator(_quantiles),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "number"}, "minProperties": 2}),
]
_LAWS = {"lognormal": ("median", "spread"), "pareto": ("least", "tail_index")}
_WRITE_DISTRIBUTION = (
    'write { quantiles = { "0" = …, "0.5" = …, "1" = … }, source = "…" }, '
    '{ law = "lognormal", median = …, spread = …, source = "…" }, '
    '{ law = "pareto", least = …, tail_index = …, share = …, source = "…" } or { release = "FOLDER", table = "…" }'
)


class DistributionTable(KeyTable):
    """How an amount is distributed over records, from a public source: what a bound leaves out follows from it."""

    quantiles: Quantiles | None = None
    """Amounts by the share of records at or below them, from "0" to "1"; between them records are taken to spread
    evenly."""
    law: Literal["lognormal", "pareto"] | None = None
    """A law for it: "lognormal", or "pareto" for the largest amounts alone."""
    median: Positive | None = None
    """The median of a lognormal amount."""
    spread: Positive | None = None
    """The standard deviation of the logarithm of a lognormal amount."""
    least: Positive | None = None
    """Where a Pareto tail begins: no bound below it is considered."""
    tail_index: Positive | None = None
    """The index of a Pareto tail: P(more than x) falls as x to minus this. It is above 2, or squared amounts would have
    no mean."""
    share: Part = Fraction(1)
    """The share of records that follow the law: of a lognormal one, those with any amount; of a Pareto tail, those at
    least as large as where it begins."""
    release: Text | None = None
    """The folder of a release that published a table of counts by bins of the amount, found from the program file:
    last year's, or a cheap first one of this year. It is public, so reading it costs nothing more."""
    table: Text | None = None
    """The table of counts by bins in that release."""
    source: Text | None = None
    """Where the distribution is known from; a release speaks for itself."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        stated = self.model_fields_set
        if len(stated & {"quantiles", "law", "release"}) != 1:
            raise refused("a distribution is stated in exactly one way", _WRITE_DISTRIBUTION)
        needed = _LAWS[self.law] if self.law else ("table",) if self.release else ()
        allowed = {"quantiles", "law", "release", *needed, *(("share",) if self.law else ())}
        absent = next((key for key in needed if key not in stated), None)
        stray = next((key for key in sorted(stated) if key not in allowed | {"source"}), None)
        if absent is not None:
            raise lacking(absent, f"the {self.law or 'release'} needs its {absent}", _WRITE_DISTRIBUTION)
        if stray is not None:
            raise refused(f"{stray} says nothing about a distribution of this kind", _WRITE_DISTRIBUTION, key=stray)
        if self.source is None and self.release is None:
            raise lacking("source", "a distribution comes from somewhere, and not from the data", _WRITE_DISTRIBUTION)
        if self.tail_index is not None and self.tail_index <= 2:
            why = "with an index of at most 2 squared amounts have no mean, so no bound has an expected squared error"
            raise refused(why, 'state quantiles up to the largest amount, "1"', key="tail_index")
        return self


class SharesTable(KeyTable):
    """How records, or units, are expected to spread, from a public source."""

    shares: dict[str, NotNegative]
    """The share, or the number, of each; what counts is how they compare. Those not named have none."""
    source: Text
    """It is known from somewhere, and not from the data."""

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not any(self.shares.values()):
            raise refused("all shares are 0", "state one above 0", key="shares")
        return self


class OneRecordTable(KeyTable):
    """That the source has one record a unit."""

    source: Text
    """Nothing in the file shows it: it is known from somewhere."""


def _upper(value: object) -> Fraction | str:
    return BEST if value == BEST else exact_number(value)


Upper = Annotated[
    Fraction | str,
    PlainValidator(_upper),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"const": "best"}]}),
]


def _labels_of_levels(value: object) -> tuple[str, ...] | dict[str, str]:
    """Labels in the order of the levels, or by level."""
    found = _labels(value)
    if found is None:
        why = "labels are texts, one for each level in their order, or by level"
        raise refused(why, 'write ["0 to 17", "18 to 64"], or { R31 = "Region North" }')
    return found


def _labels_of_groups(value: object) -> tuple[str, ...] | dict[str, str]:
    """The same of the groups of one grouping, under whose name they stand."""
    found = _labels(value)
    if found is None:
        why = "labels stand under the grouping that they are of: a hierarchy may have several"
        raise refused(why, 'write labels = { GROUPING = { group = "label", … } }')
    return found


def _labels(value: object) -> tuple[str, ...] | dict[str, str] | None:
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return tuple(value)
    if isinstance(value, dict) and value and all(isinstance(each, str) for each in value.values()):
        return dict(value)
    return None


_LABELS_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
            {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string", "minLength": 1}},
        ]
    }
)
LabelsOfLevels = Annotated[tuple[str, ...] | dict[str, str], PlainValidator(_labels_of_levels), _LABELS_SCHEMA]
LabelsOfGroups = Annotated[tuple[str, ...] | dict[str, str], PlainValidator(_labels_of_groups), _LABELS_SCHEMA]


def _language(value: object) -> str:
    if isinstance(value, str) and LANGUAGE.fullmatch(value):
        return value
    raise refused("a language is named by its code", 'write "en", "fr" or "pt-BR"')


LanguageCode = Annotated[
    str, PlainValidator(_language), WithJsonSchema({"type": "string", "pattern": f"^{LANGUAGE.pattern}$"})
]


# The keys that make each form of an attribute, and the keys that it may carry besides.
FORMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "levels": (("levels",), ("ordered",)),
    "codes": (("codes",), ("column", "ordered")),
    "numbers": (("lower", "upper", "grid"), ("distribution", "bounds")),
    "bins": (("edges",), ()),
    "logarithmic bins": (("logarithmic_bins",), ()),
    "range": (("from", "to"), ("distribution",)),
}
OF_ANY_FORM = ("missing", "outside", "null", "expected", "labels", "labels_in")
_WRITE_ONE = (
    'write a list of levels, or { codes = "file.csv" }, { levels = […], ordered = true }, '
    "{ lower = …, upper = …, grid = … }, { edges = […] } or { from = …, to = … }"
)


class AttributeTable(KeyTable):
    """What one attribute may record: listed levels, a code list, numbers on a grid, bins, or a range of integers."""

    levels: Several[Level] | None = None
    """The values that can be recorded."""
    codes: Text | None = None
    """A CSV file beside the program, one row a code. Or the geographic header of a state's redistricting files, such as
    rigeo2020.pl: every block is then a code, and the other columns are the header's."""
    column: Text | None = None
    """The column of the CSV file that holds the codes; the first one where it is not stated."""
    ordered: bool = False
    """Whether neighbors in the list are neighbors in meaning."""
    missing: Level | None = None
    """The level that records a missing answer."""
    labels: LabelsOfLevels | None = None
    """What readers are shown beside the levels, in the program's language: a list in the order of the levels, or
    { R31 = "Region North" }. A code list may have them in a column `label`. Bins without labels are put in words where
    the language is English."""
    labels_in: dict[LanguageCode, LabelsOfLevels] = {}
    """The same in other languages, as { fr = ["0 à 17 ans", "18 ans et plus"] }; columns `label_fr` of a code list."""
    lower: Number | None = None
    """The lower bound of a number: smaller ones count as this one."""
    upper: Upper | None = None
    """The upper bound of a number: larger ones count as this one. With "best" the plan chooses it, by the distribution
    that is stated: a small bound leaves much out, a large one takes much noise."""
    grid: Positive | None = None
    """What a number is rounded to: sums are whole numbers of it."""
    edges: Several[Number] | None = None
    """The edges of bins, increasing."""
    logarithmic_bins: LogarithmicBins | None = None
    """Bins of amounts of every size, as { least = 100, largest = 1000000, bins_per_decade = 4 }: one from 0 to the
    least, then equal steps of the logarithm."""
    from_: Annotated[WholeNumber | None, Field(alias="from")] = None
    """The first integer of a range."""
    to: WholeNumber | None = None
    """The last integer of a range."""
    distribution: DistributionTable | None = None
    """How the number is distributed over records, from a public source: with it a plan counts what its bounds leave
    out."""
    bounds: Several[Number] | None = None
    """Upper bounds to compare, among which "best" chooses; where not stated they follow from the distribution."""
    expected: SharesTable | None = None
    """How records are expected to spread over its levels, for what clipping leaves out of each cell; evenly where not
    stated."""
    outside: Literal["drop", "clamp", "missing"] | None = None
    """What becomes of a record with a value outside the levels: it is left out ("drop"), takes the nearest number
    ("clamp") or the missing level ("missing"). Where not stated, numbers are clamped and other values dropped."""
    null: Literal["drop", "missing"] | None = None
    """What becomes of a record without a value: it is left out ("drop") or takes the missing level ("missing"), which
    it does where a missing level is declared and nothing is stated."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        stated = {"from" if name == "from_" else name for name in self.model_fields_set}
        forms = [form for form, (needed, _) in FORMS.items() if stated & set(needed)]
        if len(forms) != 1:
            raise refused("an attribute is described in exactly one way", _WRITE_ONE)
        needed, allowed = FORMS[forms[0]]
        absent = next((key for key in needed if key not in stated), None)
        if absent is not None:
            raise lacking(absent, f"with {needed[0]} goes {absent}", _WRITE_ONE)
        stray = next((key for key in sorted(stated) if key not in needed + allowed + OF_ANY_FORM), None)
        if stray is not None:
            raise refused(f"{stray} says nothing about an attribute given by {needed[0]}", _WRITE_ONE, key=stray)
        if self.distribution is None and (self.upper == BEST or self.bounds is not None):
            why = "what a bound leaves out follows from how the number is distributed"
            raise lacking("distribution", why, _WRITE_DISTRIBUTION)
        if self.distribution is not None and self.outside not in (None, "clamp"):
            why = "a distribution says what clipping leaves out, and here records beyond the bounds are not clipped"
            raise refused(why, "leave outside away, or the distribution", key="outside")
        return self


def _table_of(short: type, key: str, why: str, instead: str) -> BeforeValidator:
    """A table, or in place of it a value of a shorter form that is one of its keys."""

    def table(value: object) -> object:
        if not isinstance(value, short | dict):
            raise refused(why, instead)
        return value if isinstance(value, dict) else {key: value}

    return BeforeValidator(table)


@dataclass(frozen=True, eq=False)
class _Or:
    """Says in the JSON Schema that a shorter form will do in place of the table."""

    short: dict[str, Any]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [self.short, handler(core)]}


AttributeForm = Annotated[
    AttributeTable,
    _table_of(list, "levels", "an attribute says which values can be recorded", _WRITE_ONE),
    _Or({"type": "array", "items": LEVEL_SCHEMA, "minItems": 1}),
]


class HierarchyTable(KeyTable):
    """How the levels of one attribute roll up, coarsest first."""

    attribute: Text
    """A hierarchy groups the levels of one attribute."""
    prefixes: dict[str, Count] | None = None
    """The length of the code of each grouping: { state = 2, county = 5 }."""
    columns: Several[Text] | None = None
    """Columns of the attribute's code list, coarsest first."""
    groups: dict[str, Levels] | None = None
    """The levels of each group, where the hierarchy has one grouping of the hierarchy's own name."""
    labels: dict[str, LabelsOfGroups] = {}
    """What readers are shown beside the groups of a grouping, as { state = { "24" = "Maryland" } }. A code list may
    have them in a column `state_label`."""
    labels_in: dict[LanguageCode, dict[str, LabelsOfGroups]] = {}
    """The same in other languages; columns `state_label_fr` of a code list."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [form for form in (self.prefixes, self.columns, self.groups) if form is not None]
        if len(given) != 1 or not given[0]:
            why = "a hierarchy is read off code prefixes, off columns of the code list, or off listed groups"
            instead = 'write prefixes = { state = 2 }, or columns = ["state"], or groups = { young = ["0-17"] }'
            raise refused(why, instead)
        return self


class InvariantTable(KeyTable):
    """An exact total, published without noise: one for each group of `by`, of the records under `where`."""

    name: Text
    """The guarantee names what is not protected."""
    by: Several[Text] = ()
    """Attributes or groupings; none for the grand total."""
    where: dict[str, Levels] = {}
    """Levels that records must have to be counted."""
    total: Calibrated | None = None
    """What it adds up to, from a public source; used where it is the denominator of a ratio."""


_WRITE_SOURCE = (
    'write "file.parquet" (or .csv, .sas7bdat, .dta, .sav), { path = "file.csv", delimiter = ";" }, '
    '{ url = "sqlite:///…", table = "…" }, { url_variable = "…", table = "…" } or { spark = "…" }'
)


def _delimiter(value: object) -> str:
    if not isinstance(value, str) or len(value) != 1:
        raise refused("values are separated by one character", 'write ",", ";" or "\\t", a tab')
    return value


Delimiter = Annotated[
    str, PlainValidator(_delimiter), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 1})
]


class SourceTable(KeyTable):
    """Where the confidential records lie: a file, a table of a database, or a table of Spark."""

    path: Text | None = None
    """A file, found from where the program file stands; its ending says its kind: .parquet, .csv, .sas7bdat, .dta or
    .sav. A text in place of the table is a path."""
    delimiter: Delimiter | None = None
    """What separates the values of a CSV file; a comma where it is not stated."""
    url: Text | None = None
    """The SQLAlchemy URL of a database, without password, user or host: this file is public, and releases carry it."""
    url_variable: Text | None = None
    """The environment variable that holds the URL, which may then have all of them."""
    table: Text | None = None
    """The table or view of the database: `name` or `schema.name`."""
    spark: Text | None = None
    """A table or view that the Spark session knows."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        stated = self.model_fields_set
        if len(stated & {"path", "url", "url_variable", "spark"}) != 1:
            raise refused("records lie in exactly one place", _WRITE_SOURCE)
        in_database = bool(stated & {"url", "url_variable"})
        if in_database and self.table is None:
            raise lacking("table", "a database has many tables", _WRITE_SOURCE)
        for key, fits in (("table", in_database), ("delimiter", self.path is not None)):
            if key in stated and not fits:
                raise refused(f"{key} says nothing about a source of this kind", _WRITE_SOURCE, key=key)
        return self


SourceForm = Annotated[
    SourceTable,
    _table_of(str, "path", "a source is a file or a table", _WRITE_SOURCE),
    _Or({"type": "string", "minLength": 1}),
]


class PopulationTable(KeyTable):
    """Who is counted and protected."""

    account: Text
    """The ledger's account says whose privacy is spent."""
    unit: Text
    """A guarantee protects somebody: a person, a household, an establishment."""
    neighbors: Literal["add-or-remove", "replace-one"]
    """A guarantee says which two files cannot be told apart: "add-or-remove" or "replace-one"."""
    population_size: Calibrated
    """The planner adds up everybody's privacy cost; it never opens the data, so it cannot count them."""
    attributes: dict[str, AttributeForm]
    """Tables are made of attributes, and what can be recorded is stated here, never found in the data."""
    most_records_per_unit: Count = 1
    """The most records that one unit may contribute."""
    identifier: Text | None = None
    """The column that names the unit. Without it, and without one_record_per_unit, the guarantee protects a record and
    not a unit."""
    one_record_per_unit: OneRecordTable | None = None
    """That the source has one record a unit, as { source = "…" }: who vouches for it, where no identifier shows it."""
    records_per_unit: SharesTable | None = None
    """How many records units have, as { shares = { "1" = 0.8, "2" = 0.2 }, source = "…" }, from a public source: with
    it a plan counts what is lost with records beyond most_records_per_unit."""
    household_size: Count | None = None
    """The size of a household for which the guarantee is stated too."""
    records_changing_together: Count | None = None
    """How many records change together where invariants cross: less than the exact totals need is refused, with the
    number."""
    source: SourceForm | None = None
    """The confidential file or table; `plan` never opens it."""
    unknown_where_impossible: Text | None = None
    """The attribute that takes its missing level in a record that lies in a structural zero; where it is not stated,
    such a record is left out."""
    dropping_is_public: bool = False
    """Whether it is accepted, under replace-one neighbors, that leaving out a record with odd values is not
    protected."""
    hierarchies: dict[str, HierarchyTable] = {}
    """How levels roll up."""
    structural_zeros: Several[dict[str, Levels]] = ()
    """Combinations of levels that cannot occur."""
    seen_in_the_data: Several[Text] = ()
    """What was taken from the confidential records and from no public source, by its key in this table, as
    ["attributes.region"]: the guarantee does not cover it. Whoever replaces it by a public source takes it off this
    list; with something left on it a plan is approved only by a word of its own."""

    @model_validator(mode="after")
    def _seen_where_stated(self) -> Self:
        stated = {dotted((key,)) for key in self.model_fields_set - {"seen_in_the_data"}}
        stated |= {dotted(("attributes", name)) for name in self.attributes}
        stated |= {dotted(("hierarchies", name)) for name in self.hierarchies}
        for position, key in enumerate(self.seen_in_the_data):
            if key not in stated or key in self.seen_in_the_data[:position]:
                why = "it marks a key of this table, as attributes.NAME, that is stated, and each once"
                raise refused(why, "leave it out, or write the key as it stands", key=("seen_in_the_data", position))
        return self

    @model_validator(mode="after")
    def _found_or_vouched_for(self) -> Self:
        if self.one_record_per_unit is not None and self.identifier is not None:
            raise refused(
                "an identifier finds the records of one unit, and bounds them",
                "leave out one_record_per_unit, or the identifier",
                key="one_record_per_unit",
            )
        return self


_PART = "[0-9]{1,15}/[1-9][0-9]{0,14}"
_PARTS = rf"^{_PART}( \* {_PART}){{0,7}}$"


def _share(value: object) -> Fraction:
    """A share of the loss: a number, or fractions multiplied, exactly."""
    if isinstance(value, str):
        if re.fullmatch(_PARTS, value) is None:
            raise refused("a share is a part of the whole loss", 'write 0.25, "447/4099" or "447/4099 * 1/3"')
        number = math.prod((Fraction(part) for part in value.split(" * ")), start=Fraction(1))
    else:
        number = exact_number(value)
    if not 0 < number <= 1:
        raise refused("a share is larger than 0 and at most the whole loss", 'write 0.25, or "447/4099"')
    return number


Share = Annotated[
    Fraction,
    PlainValidator(_share),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1}, {"type": "string", "pattern": _PARTS}]}
    ),
]


class FitnessForUse(KeyTable):
    """The least accuracy with which a table is of use."""

    largest_root_mean_squared_error: Positive | None = None
    """The largest typical error of one number of the table, in the table's unit, with which it is still of use."""
    largest_root_mean_squared_consequence: Positive | None = None
    """The same in money, by the consequence of the table."""

    @model_validator(mode="after")
    def _some_floor(self) -> Self:
        if self.largest_root_mean_squared_error is None and self.largest_root_mean_squared_consequence is None:
            why = "a table is fit for use up to some error, and none is stated"
            instead = "state largest_root_mean_squared_error, in the table's unit"
            raise lacking("largest_root_mean_squared_error", why, instead)
        return self


class TitleITable(KeyTable):
    """Grants under Title I, as 20 U.S.C. 6331 to 6337 divides them: the table counts children by school district."""

    fiscal_year: Count
    """Appropriations are by fiscal year."""
    districts: Text
    """A CSV file beside the program, one row a district: its code, in a column named as in `by`, its `state`, and its
    children of `school_age` (5 to 17)."""
    states: Text
    """A CSV file beside the program, one row a state: its `expenditure` on a pupil in USD, and where known its `effort`
    and `equity`; and a row US for the nation."""
    paid_before: Text | None = None
    """A CSV file beside the program of the fiscal year before, one row a district: its code, what it was paid of each
    grant (`basic`, `concentration`, `targeted`, `incentive`), and for how many years it had `lapsed` from concentration
    grants. Without it nobody is held harmless."""
    statute: Text | None = None
    """A file of the law's numbers beside the program; the law as it is where not stated."""


class DecisionTable(KeyTable):
    """A grant by formula that reads the table: so much a head to places that are large enough, or by a law."""

    per_head: Calibrated | None = None
    """What a formula turns counted heads into: money per unit of the table."""
    title_i: TitleITable | None = None
    """Grants under Title I, in place of so much a head."""
    threshold: NotNegative | None = None
    """A place with fewer counted heads than this gets nothing."""
    appropriation: Calibrated | None = None
    """What there is to give out, in money; where the formula asks for more, every place gets the same share of what it
    asks for."""
    repetitions: Count = 200
    """How often the decision is made with noisy numbers at each simulated privacy loss."""

    @model_validator(mode="after")
    def _one_formula(self) -> Self:
        if (self.per_head is None) == (self.title_i is None):
            why = "a decision follows one formula: so much a head, or a law"
            raise lacking("per_head", why, "state per_head, or title_i, and not both")
        if self.title_i is not None and (self.threshold is not None or self.appropriation is not None):
            key = "threshold" if self.appropriation is None else "appropriation"
            raise refused("the law has thresholds and appropriations of its own", "leave it out", key=key)
        return self

    @model_validator(mode="after")
    def _repeated(self) -> Self:
        if self.repetitions < 2:
            why = "how far a simulation may be off is seen where repetitions differ"
            raise refused(why, "repeat at least twice", key="repetitions")
        return self


class WealthTable(KeyTable):
    """People whose wealth hangs on the numbers of the table: what its accuracy is worth to them follows."""

    name: Text
    """A group is known by its name."""
    people: Positive
    """How many are exposed decides what accuracy is worth to all of them."""
    exposure: Calibrated
    """By how much the wealth of one of them moves with a number of the table: money per unit."""
    exposed_to: Literal["one", "all"] = "one"
    """Whether each of them is exposed to one number of the table, evenly spread, or to every one."""
    risk_aversion: Calibrated
    """Who does not mind risk does not pay for accuracy: absolute risk aversion, in 1/money, as "1/EUR"."""
    source: Text
    """Who is exposed is measured or assumed, and readers must be able to see which."""


Loss = Literal["squared", "absolute", "relative", "tail", "worst-case"]


def _sums(value: object) -> str | tuple[tuple[str, str], ...]:
    """How levels are added up; each range by its two ends."""
    if isinstance(value, str) and value in ADDED_UP:
        return value
    if not isinstance(value, list) or not value:
        raise refused(
            f"it is one of {', '.join(map(repr, ADDED_UP))}, or a list of ranges",
            'write sums = "prefix" for everything up to each level, or [["first level", "last level"], …]',
        )
    if any(not isinstance(ends, list) or len(ends) != 2 for ends in value):
        raise refused("a range has two ends", 'write each as ["first level", "last level"]')
    return tuple((label(first), label(last)) for first, last in value)


ADDED_UP = ("prefix", "ranges")
_ENDS = {"type": "array", "items": LEVEL_SCHEMA, "minItems": 2, "maxItems": 2}
SumsOfLevels = Annotated[
    Literal["prefix", "ranges"] | tuple[tuple[str, str], ...],
    PlainValidator(_sums),
    WithJsonSchema({"anyOf": [{"enum": [*ADDED_UP]}, {"type": "array", "items": _ENDS, "minItems": 1}]}),
]


class AddedUp(KeyTable):
    """An attribute of a table whose levels are added up in their order."""

    attribute: Text
    """An attribute of ordered levels, bins or numbers."""
    sums: SumsOfLevels
    """"prefix" is everything up to each level, a cumulative table; "ranges" every range of levels; or some ranges, each
    by its first and its last level: [["0", "9"], ["10", "99"]]."""


def _form_of(value: object) -> str:
    return EITHER[isinstance(value, dict | AddedUp)]


# A refusal names the form that was written, never the other one; its name is no key of the file.
By = Annotated[Annotated[Text, Tag(EITHER[0])] | Annotated[AddedUp, Tag(EITHER[1])], Discriminator(_form_of)]


class WorkloadTable(KeyTable):
    """A table: its cells, and how much society would pay for its accuracy."""

    name: Text
    """A published table is known by its name."""
    by: Several[By] = ()
    """Attributes or groupings, one number for each combination; none for a grand total. An attribute whose levels are
    added up in order is written { attribute = "income", sums = "prefix" }."""
    every: Count | None = None
    """Not one table but many: one by every so many of the names in `by`, or of all attributes where `by` is left out.
    every = 2 asks for all two-way tables. Each is named after this entry and its attributes; what else the entry says,
    its value too, holds for each of them."""
    where: dict[str, Levels] = {}
    """Levels that records must have to be counted."""
    weights: dict[str, dict[str, QueryWeight]] = {}
    """Weights in [-1, 1] of some levels of an attribute, summed over; levels not named weigh 0."""
    sum_of: Text | None = None
    """A numeric attribute to add up instead of counting records."""
    at_bound_of: Text | None = None
    """A numeric attribute: records are counted whose number is clipped to its upper bound, or
    rounded to it. How many they are is measured with noise and paid for, as in any table."""
    unit: Text | None = None
    """What the table counts: the protected unit where not stated; needed with sum_of."""
    loss: Loss = "squared"
    """Whether harm grows with the square of an error or with its size ("absolute"), with the square of its share in the
    number that is expected ("relative"), comes each time that a number is off by more than a threshold ("tail"), or
    grows with the worst error of the table ("worst-case")."""
    consequence: Calibrated | None = None
    """What an error does: "USD^2 per person^2" (squared loss) or "USD per person" (absolute loss), in the program's
    currency and in the unit of the table."""
    value_of_accuracy: Calibrated | None = None
    """What society would pay: "USD per person^2" (squared loss) or "USD per person" (absolute and worst-case loss), in
    the program's currency; in money what a number costs that is off by all of what is expected (relative loss), or each
    time (tail loss)."""
    threshold: Calibrated | None = None
    """By how much a number must be off, in the table's unit, to do harm; with tail loss."""
    miss_probability: Probability | None = None
    """With which probability some number of the table may be off by more than its worst error; with worst-case
    loss."""
    expected_number: Calibrated | None = None
    """How large a number of the table is publicly expected to be, in its unit; with relative loss."""
    public_numbers: Text | None = None
    """A CSV file beside the program with a public number for each cell of the table, such as last year's: a column for
    each of `by`, and `number`. With relative loss, or a decision."""
    decision: DecisionTable | None = None
    """A grant by formula that reads the table: what it misallocates is then what errors cost."""
    wealth: Several[WealthTable] = ()
    """People whose wealth hangs on the numbers of the table: its value of accuracy is then derived, not stated."""
    fitness_for_use: FitnessForUse | None = None
    """The least accuracy with which the table is of use."""
    share: Share | None = None
    """The part of the loss that measures this table: a number, or fractions multiplied, as "447/4099 * 1/3". Stated
    for every table or for none, and 1 in all, it takes the place of the shares that the tables' values would lead to;
    tables that are measured together add theirs."""

    estimates: Literal["population", "superpopulation"] = "population"
    """What the numbers are about: the people who are counted, or what a like population would show on average
    ("superpopulation"), of which these people are one draw. Sampling error then counts beside noise, and intervals of
    a release hold the expected number. For counts with squared loss."""
    existing_error: Calibrated | None = None
    """The typical error (RMSE) that a number of the table had before noise, from sampling or otherwise, in its unit.
    With squared loss it moves nothing; it is reported beside the noise."""
    total: Calibrated | None = None
    """What the table adds up to, in its unit, from a public source; used with [participation], for ratios and by
    estimates of a superpopulation, where the whole population is taken if it is not stated."""
    standard_deviation: Calibrated | None = None
    """How much the numbers of the table differ from one another, in its unit, from a public source; used where
    [participation] lets people report falsely."""
    falsely_counted: AnyPart | None = None
    """How likely a false report is to be counted somewhere in the table, evenly over its numbers; 1 where the table
    counts everybody, to be stated where it counts some; used where [participation] lets people report falsely."""
    value_of_publishing: Calibrated | None = None
    """What the table is worth to its users when it is exact, in money: whether it earns its place is then reported."""
    details: Several[DetailTable] = ()
    """Other details at which the table could be published; needs value_of_publishing."""

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes and groupings of `by`."""
        return tuple(each if isinstance(each, str) else each.attribute for each in self.by)

    @property
    def sums(self) -> dict[str, Literal["prefix", "ranges"] | tuple[tuple[str, str], ...]]:
        """The attributes of `by` whose levels are added up in order, and how."""
        return {each.attribute: each.sums for each in self.by if not isinstance(each, str)}

    @model_validator(mode="after")
    def _worth_its_details(self) -> Self:
        if self.details and self.value_of_publishing is None:
            why = "details are chosen by what the table is worth at each of them"
            raise lacking("value_of_publishing", why, "state value_of_publishing of the table as it stands")
        if self.details and self.public_numbers is not None:
            why = "public_numbers are about the table's own cells, and other details have others"
            raise refused(why, "leave the details out, or use another loss", key="details")
        names = [detail.name for detail in self.details]
        if len(set(names)) != len(names):
            raise refused("two details have the same name", "give each detail a name of its own", key="details")
        return self

    @model_validator(mode="after")
    def _terms_of_loss(self) -> Self:
        decided = self.decision is not None
        if decided and self.loss not in ("squared", "absolute"):
            why = "what a decision misallocates counts by its square or by its size"
            raise refused(why, 'state loss = "absolute" or "squared"', key="loss")
        needed = {"tail": "threshold", "worst-case": "miss_probability"}.get(self.loss)
        if needed is not None and getattr(self, needed) is None:
            why = f"{self.loss} loss does not say where harm begins without it"
            example = '{ value = …, unit = "…", source = "…" }' if needed == "threshold" else "0.05"
            raise lacking(needed, why, f"state {needed} = {example}")
        relative = self.loss == "relative"
        if ((relative and self.expected_number is None) or decided) and self.public_numbers is None:
            why = "an error is a share of something" if relative else "a decision is tried out on public numbers"
            instead = 'state public_numbers = "file.csv"' + (", or one expected_number for all" if relative else "")
            raise lacking("public_numbers", why, instead)
        if relative and self.expected_number is not None and self.public_numbers is not None:
            why = "it says twice how large numbers are expected to be"
            raise refused(why, "keep expected_number or public_numbers", key="expected_number")
        fits = {
            "threshold": self.loss == "tail",
            "miss_probability": self.loss == "worst-case",
            "expected_number": relative,
            "public_numbers": relative or decided,
            "consequence": self.loss in ("squared", "absolute") and not decided and not self.wealth,
            "value_of_accuracy": not decided and not self.wealth,
            "decision": not self.wealth,
        }
        if self.wealth and self.loss != "squared":
            why = "what risk costs people grows with the square of an error"
            raise refused(why, 'state loss = "squared", or leave wealth out', key="loss")
        for key, fit in fits.items():
            if getattr(self, key) is not None and not fit:
                why = f"it plays no part in {self.loss} loss"
                if decided or self.wealth:
                    why = f"{'wealth' if self.wealth else 'the decision'} says what errors cost"
                raise refused(why, "leave it out, or change the loss", key=key)
        return self

    @model_validator(mode="after")
    def _counts_of_a_draw(self) -> Self:
        if self.estimates == "superpopulation":
            if self.sum_of is not None or self.weights:
                why = "how far amounts and weighted counts are off by sampling depends on what is not public"
                raise refused(why, "publish counts, or leave estimates out", key="estimates")
            if self.loss != "squared" or self.decision is not None or self.existing_error is not None:
                why = "sampling error adds to noise in squares, and is the error that was there before"
                raise refused(why, 'use loss = "squared" without a decision or existing_error', key="estimates")
        return self

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        derived = self.decision is not None or self.wealth
        if not derived and self.consequence is None and self.value_of_accuracy is None:
            why = "without a value of its accuracy a table has no weight in the choice"
            raise lacking("consequence", why, "state its consequence, or its value_of_accuracy")
        if self.consequence is not None and self.value_of_accuracy is not None:
            why = "it gives the worth of accuracy twice, as a consequence and as a value of accuracy"
            raise refused(why, "keep one of the two", key="value_of_accuracy")
        fitness = self.fitness_for_use
        if self.consequence is None and fitness and fitness.largest_root_mean_squared_consequence is not None:
            instead = "state the consequence, or largest_root_mean_squared_error in the table's unit"
            raise lacking("consequence", "a largest consequence in money needs what an error does", instead)
        if self.at_bound_of is not None and self.sum_of is not None:
            why = "records at a bound are counted, not added up"
            raise refused(why, "leave sum_of out, or state it in a table of its own", key="at_bound_of")
        if self.sum_of is not None and self.unit is None:
            raise lacking("unit", f"a sum of {self.sum_of} is not a number of records", 'state unit = "…" of the sum')
        return self


class RatioTable(KeyTable):
    """A mean, a share or a rate: each number of one table over the number of another that it belongs to.

    Nothing more is measured for it, so that it costs no privacy loss.
    """

    name: Text
    """A published ratio is known by its name."""
    numerator: Text
    """The table, or exact total, whose numbers are divided; the ratio has its breakdown."""
    denominator: Text
    """The table, or exact total, that they are divided by: broken down in the same way, or more coarsely."""
    typical_value: Calibrated | None = None
    """What the ratio is about, in its unit, from a public source: its expected error is linearized there. Where not
    stated, it follows from what both tables add up to."""
    denominator_shares: dict[str, dict[str, Part]] = {}
    """The share of each level of a column in the denominator, from a public source; 1 in all. A column that is not
    named spreads as its attribute is expected to, and evenly where nothing is."""
    source: Text | None = None
    """Where the shares of the denominator come from."""
    consequence: Calibrated | None = None
    """What an error of the ratio does: squared money per squared unit."""
    value_of_accuracy: Calibrated | None = None
    """What society would pay for its accuracy: money per squared unit; nothing where neither is stated."""

    @model_validator(mode="after")
    def _stated_once(self) -> Self:
        if self.consequence is not None and self.value_of_accuracy is not None:
            why = "it gives the worth of accuracy twice, as a consequence and as a value of accuracy"
            raise refused(why, "keep one of the two", key="value_of_accuracy")
        if self.denominator_shares and self.source is None:
            raise lacking("source", "shares are known from somewhere", "state the source of denominator_shares")
        return self


SCHEMA_VERSION = 1


def _version(value: object) -> int:
    if whole_number(value) != SCHEMA_VERSION:
        instead = f"write schema = {SCHEMA_VERSION}, or use the version of dualmandate that the file was written for"
        raise refused(f"this version reads program files of schema {SCHEMA_VERSION}", instead)
    return SCHEMA_VERSION


Version = Annotated[int, BeforeValidator(_version), WithJsonSchema({"const": SCHEMA_VERSION})]


def _day(value: str) -> str:
    """A day of the calendar as it is written in ISO 8601."""
    try:
        same = date.fromisoformat(value).isoformat() == value
    except ValueError:
        same = False
    if not same:
        raise refused("it is no day of the calendar", 'write a day as "2026-11-18"')
    return value


class ProgramTable(KeyTable):
    """The name of the program."""

    name: Text
    """A plan and its dossier are filed under the program's name."""
    schema_: Annotated[Version, Field(alias="schema")]
    """The version of the keys: a later one may mean something else by them."""
    description: Text | None = None
    """What the program publishes, for readers."""
    language: LanguageCode = ENGLISH
    """The language of its labels, by its code: "en" where it is not stated."""
    title: Text | None = None
    """The heading of its dossier; the description where it is not stated."""
    agency: Text | None = None
    """Who publishes: stands on the dossier, with the next three."""
    author: Text | None = None
    """Who wrote the program, or answers for it."""
    version: Text | None = None
    """Which version of the program this is."""
    date: Annotated[Text, WithJsonSchema({"type": "string", "format": "date"}), AfterValidator(_day)] | None = None
    """Of this version, as "2026-11-18", in quotes. No clock is read: a plan made again says the same."""
    currency: Annotated[Text, WithJsonSchema({"type": "string", "pattern": "^[A-Z]{3}$"})] = DEFAULT
    """The money of the whole program, by its code in ISO 4217: "USD" where it is not stated."""
    public_total: Calibrated | None = None
    """A public total that readers know, in the program's currency, such as the money that the tables allot: what
    privacy loss and errors cost in all stands beside it."""


Measured = Literal["optimized", "workload", "identity"]


def _noise(value: object) -> object:
    """A word of the registry of laws, or the best of all."""
    known = [*NOISE_LAWS, BEST]
    if isinstance(value, str) and value in known:
        return value
    expected = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
    raise PydanticCustomError("literal_error", "one of {expected}", {"expected": expected})


def _measured(value: object) -> object:
    if value in ("together", "apart"):
        return value
    if isinstance(value, list) and value and all(_is_names(group) for group in value):
        return tuple(tuple(group) for group in value)
    why = "tables are measured together, each apart, or in groups of named tables"
    raise refused(why, 'write "together", "apart", or [["one table", "another"], ["a third"]]')


def _is_names(group: object) -> bool:
    return isinstance(group, list) and bool(group) and all(isinstance(name, str) and name for name in group)


_NAMES = {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}
_MEASURED_SCHEMA = WithJsonSchema(
    {"anyOf": [{"enum": ["together", "apart"]}, {"type": "array", "minItems": 1, "items": _NAMES}]}
)


def _published_technology(value: object) -> object:
    if not isinstance(value, str) or value not in DATA_DEPENDENT:
        raise PydanticCustomError("literal_error", "one of {expected}", {"expected": _listed([*DATA_DEPENDENT])})
    return value


def _listed(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


class MechanismTable(KeyTable):
    """The technology: what noise is added to what."""

    noise: Annotated[str, BeforeValidator(_noise), WithJsonSchema({"enum": [*NOISE_LAWS, BEST], "type": "string"})]
    """The noise decides how much accuracy a privacy loss buys. "geometric" and "gaussian" are drawn exactly, and "best"
    is the best of them; "laplace" and "staircase" are studies, to compare and not to publish."""
    strategy: Measured = "optimized"
    """What is measured: whatever serves the tables best, weighed by their value ("optimized"), the tables themselves
    ("workload"), or every cell of the domain ("identity"). Where it is not stated, whichever of them leaves society
    best off; the tables themselves where nothing better can be found."""
    measured: Annotated[str | tuple[tuple[str, ...], ...], BeforeValidator(_measured), _MEASURED_SCHEMA] = "together"
    """What shares a measurement. With "together" the plan finds the best scales: one measurement for all tables, one
    for counts and one for each amount, one for tables of the same cells, or one for each table, which then split the
    loss by their value. "apart", or groups of tables, state it."""
    technology: (
        Annotated[
            str, BeforeValidator(_published_technology), WithJsonSchema({"enum": [*DATA_DEPENDENT], "type": "string"})
        ]
        | None
    ) = None
    """A technology whose errors depend on the data, in place of measurements: "partition", "multiplicative weights" or
    "adaptive marginals". It needs [simulation], because its errors are simulated on public records; "geometric" noise
    counts its loss in epsilon, "gaussian" noise in rho. Measurements where it is not stated."""
    failure_probability: Probability | None = None
    """The δ at which Gaussian noise is expressed in epsilon."""

    @property
    def states_strategy(self) -> bool:
        """Whether the file says what is measured, or leaves it to the plan."""
        return "strategy" in self.model_fields_set


class LimitsTable(KeyTable):
    """Caps that law or policy sets, whatever preferences say."""

    largest_epsilon: Cap | None = None
    """The largest epsilon that may be chosen."""
    largest_rho: Cap | None = None
    """The largest rho that may be chosen, where the privacy loss is counted in rho."""


class PublicationTable(KeyTable):
    """How a release is made. Every table is written as Parquet; the forms here come besides."""

    formats: Several[Literal["csv", "sdmx-csv", "sdmx-ml"]] = ("csv",)
    """Further forms of the tables: "csv", and for agencies "sdmx-csv" and "sdmx-ml", each beside its structure."""
    agency: Text | None = None
    """The agency that SDMX names as the maintainer of its structures."""
    synthetic_records: bool = False
    """Whether the records of nobody from which the tables in whole numbers are counted are written as a file of their
    own, one row a record. They rest on published numbers alone."""
    engine: Literal["local", "spark"] = "local"
    """Where records are tabulated, noise is drawn and tables are made consistent: here, or by the workers of a Spark
    cluster as far as the tables allow it; the numbers are the same."""


class ProgramKeys(KeyTable):
    """A program: who is counted, what is asked, how it is produced and what society prefers."""

    program: ProgramTable
    """A program has a name and a schema version."""
    population: PopulationTable
    """Who is counted and who is protected must be stated."""
    workload: Several[WorkloadTable]
    """A program that asks nothing publishes nothing."""
    mechanism: MechanismTable
    """How answers are produced decides how much accuracy a privacy loss buys."""
    preferences: PreferencesTable
    """The optimum balances technology against preferences: without them no privacy loss is better than another."""
    limits: LimitsTable = LimitsTable()
    """Caps set from outside."""
    invariants: Several[InvariantTable] = ()
    """Totals that are published without noise."""
    ratios: Several[RatioTable] = ()
    """Means, shares and rates of the tables, published as tables of their own."""
    publication: PublicationTable = PublicationTable()
    """In which forms a release is written."""
    participation: ParticipationTable | None = None
    """How participation falls with the privacy loss; everybody takes part where it is not stated."""
    collection: CollectionTable | None = None
    """What asking people costs; everybody is in the data where it is not stated."""
    randomized_response: RandomizedResponseTable | None = None
    """What is needed to compare the program with randomized response."""
    simulation: SimulationTable | None = None
    """Public records to simulate technologies on whose errors depend on the data."""
    horizon: ReleasesTable | None = None
    """Releases to come, and when records are opened."""
    markets: MarketsTable | None = None
    """What is needed to compare the program with markets."""
    secret: SecretTable | None = None
    """A secret of a group, to be counted beside the privacy loss of one record."""
    uncertainty: UncertaintyTable | None = None
    """What a further survey of preferences would measure."""
    readings: Several[ReadingTable] = ()
    """Other ways to read numbers of the program, each shown with what would then be chosen."""
    social_choice: SocialChoiceTable | None = None
    """Other ways to add people up, beside the sum."""

    @property
    def superpopulation(self) -> frozenset[str]:
        """The tables that estimate what a like population would show."""
        return frozenset(table.name for table in self.workload if table.estimates == "superpopulation")

    @property
    def shares(self) -> dict[str, Fraction]:
        """The stated share of each table in the loss; nothing where none is stated."""
        return {table.name: table.share for table in self.workload if table.share is not None}
