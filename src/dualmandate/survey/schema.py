"""The survey file: whose answers to what, how they are estimated, what is reported, and what to ask beforehand."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from dualmandate.population.currency import DEFAULT
from dualmandate.population.time_base import TimeBase
from dualmandate.program.number import (
    Calibrated,
    Count,
    HorizonTable,
    KeyTable,
    NotNegative,
    Number,
    Positive,
    Probability,
    Several,
    Text,
    WholeNumber,
    lacking,
    refused,
    whole_number,
)
from dualmandate.program.schema import InformationUtility

SURVEY_SCHEMA = 1
_BOUNDED = ("single-bounded", "double-bounded")
_COLUMNS = {  # what a kind of survey must name, and what else it may name
    "choice": (("respondent", "task", "chosen"), ("alternative",)),
    "single-bounded": (("respondent", "bid", "answer"), ("positive",)),
    "double-bounded": (("respondent", "bid", "answer", "second_bid", "second_answer"), ("positive",)),
    "likert": (("items",), ("respondent",)),
}
_TABLES = {  # which kinds need a table: why, what to write, what the others lack, what to do with it there
    "attributes": (
        ("choice",),
        "alternatives differ in something",
        "write [attributes.price] and others",
        "shows no alternatives",
        "leave them out",
    ),
    "scenario": (
        _BOUNDED,
        "a bid is for something",
        "write [scenario] with epsilon = …",
        "has no bids",
        "leave it out",
    ),
}
Priced = Literal[
    "mean_disclosure_cost", "price_of_misallocation", "price_of_squared_misallocation", "value_of_accuracy"
]
Kind = Literal["choice", "single-bounded", "double-bounded", "likert"]
Role = Literal["price", "privacy loss", "accuracy", "other"]
_ALL_COLUMNS = tuple(dict.fromkeys(name for needed, allowed in _COLUMNS.values() for name in (*needed, *allowed)))


class QuestionnaireTable(KeyTable):
    """Tasks to be shown, and what is expected of the answers beforehand."""

    title: Text
    """A questionnaire has a title that respondents read."""
    expected: dict[str, Positive]
    """What people may pay to avoid one unit of each attribute but the price, in its money: answers tell most where they
    are in doubt."""
    choice_noise: Positive
    """The difference, in the price's money, at which the better alternative is chosen 73 times in 100."""
    uncertainty: NotNegative | None = None
    """How uncertain these expectations are: the standard deviation of their logarithms; 0 takes them as known, 0.5
    where not stated."""
    spread: NotNegative | None = None
    """The coefficient of variation of costs among people, 1 where not stated; it decides how many must be asked."""
    tasks: Count = 8
    """How many tasks one respondent answers."""
    alternatives: Count = 2
    """How many alternatives a task shows."""
    blocks: Count = 4
    """How many different sets of tasks there are."""
    seed: WholeNumber = 1
    """Public: the same seed gives the same design."""
    within: Positive | None = None
    """How precisely epsilon is to be known: within this share of it, 0.2 where not stated."""
    confidence: Probability | None = None
    """How surely; 0.95 where not stated."""
    elasticity: Positive | None = None
    """By how many percent epsilon falls when the cost rises by one: a third where not stated, as for a linear cost and
    errors that go with 1/epsilon^2."""
    introduction: Text | None = None
    """What respondents read before the first task: who asks, about which data, and what the tables are for."""
    about: Text = "something about you"
    """What somebody could come to believe: the secret, as respondents read it."""
    contact: Text | None = None
    """Whom respondents may ask."""


def _version(value: object) -> int:
    if whole_number(value) != SURVEY_SCHEMA:
        raise refused(f"this version reads survey files of schema {SURVEY_SCHEMA}", f"write schema = {SURVEY_SCHEMA}")
    return SURVEY_SCHEMA


class SurveyTable(KeyTable):
    """Where the answers lie and what their columns are called."""

    kind: Kind
    """What people did: "choice" among alternatives, answers to one bid ("single-bounded") or two ("double-bounded"),
    or agreement with statements ("likert")."""
    schema_: Annotated[
        int, BeforeValidator(_version), Field(alias="schema"), WithJsonSchema({"const": SURVEY_SCHEMA})
    ] = SURVEY_SCHEMA
    """The version of the keys."""
    name: Text | None = None
    """What the survey is called in the source of its numbers; the name of the file where not stated."""
    currency: Text = DEFAULT
    """The money of what is found, by its code in ISO 4217: that of the program that will use it."""
    unit: Text = "person"
    """Whose record is at stake for one respondent: the protected unit of the program that will use the numbers."""
    source: Text | None = None
    """The answers: a CSV file beside this one, UTF-8 with a header, or a folder of such files, as the web form saves
    them. Confidential: no message repeats a value of them."""
    respondent: Text | None = None
    """The column that says who answered; answers of one person hang together."""
    task: Text | None = None
    """The column that numbers the tasks (of one respondent, or of all); for choices."""
    alternative: Text | None = None
    """The column that says which alternative a row is; for choices."""
    chosen: Text | None = None
    """The column that is 1 for the alternative that was chosen and 0 for the others; for choices."""
    bid: Text | None = None
    """The column of the amount that was asked for; for bids."""
    answer: Text | None = None
    """The column of the answer to it, 1 for yes and 0 for no; for bids."""
    second_bid: Text | None = None
    """The column of the second amount; double-bounded."""
    second_answer: Text | None = None
    """The column of the answer to it; double-bounded."""
    positive: Text | None = None
    """The column that is 1 where somebody would pay anything at all; with it zero is a spike."""
    items: Several[Text] = ()
    """The columns of the statements, with agreement as whole numbers; likert."""

    @model_validator(mode="after")
    def _columns(self) -> Self:
        needed, allowed = _COLUMNS[self.kind]
        stated = {name for name in _ALL_COLUMNS if getattr(self, name)}
        for name in needed:
            if name not in stated:
                raise lacking(name, f"a survey of kind '{self.kind}' has this column", f'state {name} = "…"')
        for name in _ALL_COLUMNS:
            if name in stated and name not in (*needed, *allowed):
                raise refused(f"a survey of kind '{self.kind}' has no such column", "leave it out", key=name)
        if self.kind == "likert" and len(self.items) < 2:
            raise refused("correlations need two statements or more", "name the columns of the items", key="items")
        return self


class SurveyAttribute(KeyTable):
    """What the alternatives of a task differ in."""

    column: Text
    """Answers hold an attribute in a column."""
    role: Role
    """What it is decides what follows from it: "price", "privacy loss", "accuracy" or "other"."""
    unit: Text | None = None
    """What its numbers count; a price and an accuracy must say it."""
    exchange_rate: Positive | None = None
    """What one unit of a price in other money is in the currency of the survey."""
    time_base: TimeBase | None = None
    """Over what time a price is paid; that of the report where not stated."""
    measure: Literal["absolute", "squared"] = "absolute"
    """Whether harm grows with the size of an error or with its square; for accuracy."""
    stated_as: Literal["epsilon", "posterior"] = "posterior"
    """How people were told a privacy loss: as a number, or as what somebody may come to believe."""
    recorded_as: Literal["epsilon", "posterior"] = "epsilon"
    """What the column holds: ε itself, or the belief that people were told."""
    prior: Probability | None = None
    """What somebody believed before; needed where a belief was told."""
    secret: Literal["in or out", "one attribute or another"] = "in or out"
    """What the belief is about: whether one is in the file, or which of two records one has."""
    neighbors: Literal["add-or-remove", "replace-one"] = "add-or-remove"
    """The neighbors of the program: two records differ by two steps under add-or-remove."""
    levels: Several[Number] = ()
    """The levels that a questionnaire shows."""
    words: Several[Text] = ()
    """Those levels in words, where ours will not do; one for each."""
    heading: Text | None = None
    """What a questionnaire calls it."""

    @model_validator(mode="after")
    def _fits_its_role(self) -> Self:
        stated = self.model_fields_set
        if self.role in ("price", "accuracy") and self.unit is None:
            raise lacking("unit", "a number without its unit cannot be added to another", 'state unit = "…"')
        belief = {"stated_as", "recorded_as", "prior", "secret", "neighbors"}
        for keys, role in (
            (belief, "privacy loss"),
            ({"measure"}, "accuracy"),
            ({"exchange_rate", "time_base"}, "price"),
        ):
            wrong = sorted(stated & keys) if self.role != role else []
            if wrong:
                raise refused(f"it is said of an attribute with the role '{role}'", "leave it out", key=wrong[0])
        if self.role == "privacy loss":
            if self.prior is None and "posterior" in (self.stated_as, self.recorded_as):
                raise lacking(
                    "prior",
                    "what somebody may come to believe starts from what they believed",
                    'state prior = 0.01, or stated_as = "epsilon" if people were told a number',
                )
            if self.unit not in (None, "epsilon"):
                raise refused(
                    "a privacy loss is asked in epsilon", 'write unit = "epsilon", or leave it out', key="unit"
                )
        if self.words and len(self.words) != len(self.levels):
            raise refused("there is one wording for each level", "write as many words as levels", key="words")
        return self


class ScenarioTable(KeyTable):
    """What people bid for: a privacy loss that is lowered."""

    epsilon: Positive
    """A bid is about a privacy loss."""
    unit: Text | None = None
    """The money of the bids; the currency of the survey where not stated."""
    lowered_to: NotNegative | None = None
    """The loss that remains for those who pay; none where not stated."""
    exchange_rate: Positive | None = None
    """What one unit of other money is in the currency of the survey."""
    time_base: TimeBase | None = None
    """Over what time a bid is paid; that of the report where not stated."""
    prior: Probability | None = None
    """What somebody believed before; for the posterior form."""

    @model_validator(mode="after")
    def _lower(self) -> Self:
        if self.lowered_to is not None and self.lowered_to >= self.epsilon:
            raise refused("people pay for a loss below epsilon", "state a smaller loss", key="lowered_to")
        return self


class ModelTable(KeyTable):
    """How tastes are estimated."""

    estimator: Literal["conditional logit", "mixed logit"] = "conditional logit"
    """Of choices: one taste for all ("conditional logit"), or tastes that differ between people ("mixed logit")."""
    random: Several[Text] = ()
    """The attributes in which tastes differ; mixed logit."""
    draws: Count = 500
    """Simulated people for each respondent; mixed logit."""
    space: Literal["preference", "willingness to pay"] = "preference"
    """What is normal among people: their tastes, or what they would pay; mixed logit."""
    cluster: Literal["respondent", "none"] = "respondent"
    """Whether answers of one person hang together; in a mixed logit they do."""
    interval: Literal["delta", "krinsky-robb", "fieller"] = "fieller"
    """How an interval of a ratio is made."""
    confidence: Probability | None = None
    """How often such intervals hold what they should; 0.95 where not stated."""
    most_steps: Count | None = None
    """After how many steps the search for a conditional logit gives up."""


class ReportTable(KeyTable):
    """What the numbers will be used for."""

    time_base: TimeBase | None = None
    """Over what time costs and values run: "once", "lifetime", "per year" or per another time."""
    information_utility: InformationUtility = "linear"
    """How cost grows with privacy loss: the form in which a program will state it."""
    people: Calibrated | None = None
    """How many people pay for accuracy as a respondent does: with `numbers`, it gives accuracy a price."""
    numbers: Count | None = None
    """How many published numbers are each off as an accuracy attribute says."""
    horizon: HorizonTable | None = None
    """How yearly and lifetime amounts are related, where both occur: as in a program."""
    other_units: Several[Text] = ()
    """Units that other evidence is stated in, such as "household"."""
    bridges: Several[Calibrated] = ()
    """What relates them: 2.5 "person per household"."""

    @model_validator(mode="after")
    def _together(self) -> Self:
        for one, other in (("people", "numbers"), ("numbers", "people")):
            if getattr(self, one) is not None and getattr(self, other) is None:
                raise lacking(
                    other,
                    "the price of accuracy is what all people pay, over all numbers that are off",
                    f"state {other}, or leave out {one}",
                )
        return self


class EvidenceTable(KeyTable):
    """What is known from elsewhere: a published estimate, or another survey file."""

    name: Text
    """Evidence is known by its name."""
    survey: Text | None = None
    """Another survey file, estimated as this one."""
    estimate: Calibrated | None = None
    """A published number with its standard error, unit, source and time base."""
    of: Priced = "mean_disclosure_cost"
    """What the published number is an estimate of."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.survey is None) == (self.estimate is None):
            raise refused("evidence is one of two things", 'state either survey = "…" or estimate = { … }', key="name")
        if self.estimate is not None and self.estimate.standard_error is None:
            raise lacking(
                ("estimate", "standard_error"),
                "evidence weighs by how certain it is",
                "state standard_error, in the unit of the value",
            )
        return self


class PriorTable(KeyTable):
    """What was believed of a number before any answer, and by whom."""

    center: Positive
    """The median of what was believed, in the unit and on the time base of the report."""
    spread: Positive
    """The standard deviation of the logarithm of what was believed: 1 allows for a factor of 7 either way."""
    source: Text
    """A review board must be able to see whose belief enters."""
    between: Positive | None = None
    """How far sources differ beyond their errors: the scale of a half-normal prior, in logarithms."""
    at_most: Positive | None = None
    """The same as a uniform prior up to this."""

    @model_validator(mode="after")
    def _one_scatter(self) -> Self:
        if self.between is None and self.at_most is None:
            raise lacking("between", "sources may differ beyond their errors", "state between = 0.5, or at_most")
        if self.between is not None and self.at_most is not None:
            raise refused("how far sources may differ has one prior", "state between or at_most", key="at_most")
        return self


class SurveyFile(KeyTable):
    """A survey: its answers, its model, and what is reported."""

    survey: SurveyTable
    """A survey has a kind, and its answers have columns."""
    attributes: dict[str, SurveyAttribute] = {}
    """What alternatives differ in; for choices."""
    scenario: ScenarioTable | None = None
    """What people bid for; for bids."""
    model: ModelTable = ModelTable()
    """How tastes are estimated."""
    report: ReportTable = ReportTable()
    """What the numbers will be used for."""
    prior: dict[str, PriorTable] = {}
    """What was believed of a number before any answer, by the name of the number."""
    source: Several[EvidenceTable] = ()
    """Other evidence, pooled with this survey."""
    questionnaire: QuestionnaireTable | None = None
    """What to ask before any answers exist."""

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        # Not a union of kinds: a table or a column of another kind is told so, and not that it is unknown.
        kind = self.survey.kind
        for key, (kinds, why, write, lacks, leave) in _TABLES.items():
            if kind in kinds and not getattr(self, key):
                raise lacking(key, why, write)
            if kind not in kinds and getattr(self, key):
                raise refused(f"a survey of kind '{kind}' {lacks}", leave, key=key)
        return self

    @model_validator(mode="after")
    def _roles_of_attributes(self) -> Self:
        if self.survey.kind != "choice":
            return self
        for role in ("price", "privacy loss", "accuracy"):
            named = [name for name, attribute in self.attributes.items() if attribute.role == role]
            if role == "price" and not named:
                raise lacking("attributes", "nothing has a price without one", 'give an attribute role = "price"')
            if len(named) > 1:
                raise refused(
                    f"two attributes have the role '{role}'", "keep one", key=("attributes", named[1], "role")
                )
        columns = [attribute.column for attribute in self.attributes.values()]
        for position, (name, column) in enumerate(zip(self.attributes, columns, strict=True)):
            if column in columns[:position]:
                raise refused("another attribute has this column", "name its own", key=("attributes", name, "column"))
        for position, name in enumerate(self.model.random):
            if name not in self.attributes:
                raise refused(
                    "there is no such attribute", f"use {', '.join(self.attributes)}", key=("model", "random", position)
                )
        return self

    @model_validator(mode="after")
    def _evidence_is_pooled(self) -> Self:
        for name in self.prior:
            if name not in get_args(Priced):
                allowed = ", ".join(get_args(Priced))
                raise refused("a prior belongs to a number that is estimated", f"use {allowed}", key=("prior", name))
        for position, source in enumerate(self.source):
            needed = source.of if source.survey is None else "mean_disclosure_cost"
            if needed not in self.prior and (source.survey is None or not self.prior):
                raise lacking(
                    ("prior", needed),
                    "evidence is pooled with what was believed before",
                    f"write [prior.{needed}] with center, spread, between and source",
                )
            if source.survey is not None and self.survey.kind == "likert":
                raise refused("opinions cannot be pooled with prices", "leave it out", key=("source", position))
        return self
