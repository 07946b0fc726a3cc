"""SurveyEstimates preferences as the JSON document `preferences/1`, and a questionnaire as `questionnaire/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from dualmandate.report.documents.document import (
    Count,
    DocumentModel,
    IfAny,
    NotNegative,
    Number,
    Pair,
    Positive,
    Public,
    Schema,
    Text,
    Whole,
)

if TYPE_CHECKING:
    from dualmandate.elicitation.pooling import Pooled
    from dualmandate.survey.estimates import Opinions, SurveyEstimates
    from dualmandate.survey.questionnaire import SurveyQuestionnaire


class MeasuredNumberPart(DocumentModel):
    """A number with its unit and its source."""

    value: Positive = Field(description="In the unit.")
    unit: Text = Field(description="As a program states it.")
    source: Text = Field(description="Where it comes from.")
    standard_error: Number | None = Field(description="In the unit.")
    time_base: Text | None = Field(description="The time that it covers.")


class _Key(DocumentModel):
    """What a program calls a number."""

    key: Text = Field(description="In [preferences] of a program, or of its table.")


class PreferencePart(MeasuredNumberPart, _Key):
    """A number for a program."""


class FoundPart(PreferencePart):
    """A number that was found in the answers."""

    interval: Pair[Number] = Field(description="Where it lies, in the unit.")
    level: Positive = Field(description="The probability of that.")
    method: Text = Field(description="How the interval was made.")
    of: Text = Field(description="Of whom: the mean, or the median, of people.")


class EstimatePart(DocumentModel):
    """A parameter of the model."""

    name: Text = Field(description="Its name.")
    value: Number = Field(description="As estimated.")
    standard_error: NotNegative = Field(description="Of the estimate.")


class WorthPart(DocumentModel):
    """What one respondent would pay for one more unit of an attribute."""

    attribute: Text = Field(description="Its name.")
    value: Number = Field(description="In the unit; below 0 where it is paid to be avoided.")
    unit: Text = Field(description="The currency of the survey.")
    standard_error: NotNegative = Field(description="In the unit.")
    interval: Pair[Number] = Field(description="Where it lies, in the unit.")


class PoolPriorPart(DocumentModel):
    """What was believed before."""

    center: Positive = Field(description="The median, in the unit.")
    spread: Positive = Field(description="Standard deviation of its logarithm.")
    source: Text = Field(description="Where it comes from.")


class ConflictPart(DocumentModel):
    """Two sources that disagree."""

    first: Text = Field(description="One of them.")
    second: Text = Field(description="The other.")
    distance: Number = Field(description="In standard errors.")
    probability: NotNegative = Field(description="Of so large a distance by chance.")


class PooledPart(PreferencePart):
    """A number of several sources."""

    interval: Pair[Number] = Field(description="Where it lies, in the unit.")
    median: Positive = Field(description="In the unit.")
    between: NotNegative = Field(description="How far sources differ beyond their errors, in logarithms.")
    prior: PoolPriorPart
    sources: tuple[MeasuredNumberPart, ...]
    conflicts: tuple[ConflictPart, ...]


class CorrelationPart(DocumentModel):
    """How far two opinions go together."""

    first: Text = Field(description="One question.")
    second: Text = Field(description="The other.")
    correlation: Number = Field(description="Behind the answers, from -1 to 1.")
    standard_error: NotNegative = Field(description="Of the correlation.")
    respondents: Count = Field(description="Who answered both.")


class PreferencesDocument(Public):
    """Preferences measured: costs and values with their uncertainty, or correlations of opinions."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": ["found", "preferences", "block"]}, {"required": ["correlations"]}],
        }
    )

    schema_: Schema[Literal["preferences/1"]]
    survey: Text = Field(description="Its name.")
    kind: Literal["choice", "single-bounded", "double-bounded", "likert"] = Field(description="How people were asked.")
    unit: Text = Field(description="Whose privacy it is about.")
    respondents: Count = Field(description="How many answered.")
    answers: IfAny[Count] = Field(None, description="How many answers they gave.")
    model: IfAny[Text] = Field(None, description="How tastes were estimated.")
    information_utility: IfAny[Literal["linear", "exponential", "bounded", "posterior"]] = Field(
        None, description="How privacy loss enters."
    )
    log_likelihood: IfAny[Number] = Field(None, description="Of the answers.")
    estimates: IfAny[tuple[EstimatePart, ...]] = None
    found: IfAny[tuple[FoundPart, ...]] = None
    worths: IfAny[tuple[WorthPart, ...]] = None
    pooled: IfAny[tuple[PooledPart, ...]] = None
    preferences: IfAny[tuple[PreferencePart, ...]] = None
    block: Text | None = Field(None, description="The same as TOML for a program; null where nothing was found.")
    notes: IfAny[tuple[Text, ...]] = Field(None, description="What a reader should know besides.")
    correlations: IfAny[tuple[CorrelationPart, ...]] = None

    @model_validator(mode="after")
    def _something_found(self) -> Self:
        if self.correlations is None and not {"found", "preferences", "block"} <= self.model_fields_set:
            raise ValueError("neither preferences nor correlations")
        return self


class LevelPart(DocumentModel):
    """A level of an attribute."""

    words: Text = Field(description="As respondents read it.")
    recorded: Number = Field(description="As answers record it.")
    shown: Whole = Field(description="How often it is shown.")


class AskedAttributePart(DocumentModel):
    """An attribute of the alternatives."""

    name: Text = Field(description="Its name.")
    role: Text = Field(description="Privacy loss, accuracy, price or other.")
    levels: tuple[LevelPart, ...]


class QuestionnaireDocument(Public):
    """A questionnaire: its tasks, how good they are, and how many must answer."""

    schema_: Schema[Literal["questionnaire/1"]]
    title: Text = Field(description="As respondents read it.")
    tasks: Count = Field(description="In all blocks.")
    alternatives: Count = Field(description="Of one task.")
    blocks: Count = Field(description="A respondent answers the tasks of one.")
    tasks_each: Count = Field(description="How many a respondent answers.")
    d_error: Positive = Field(description="Of one respondent; smaller is better.")
    attributes: tuple[AskedAttributePart, ...]
    respondents: Count = Field(description="How many must answer.")
    coefficient_of_variation: Positive = Field(description="Of one respondent.")
    within: Positive = Field(description="Epsilon will be known within this share of it.")
    confidence: Positive = Field(description="With this probability.")


def preferences_document(measured: SurveyEstimates | Opinions) -> dict[str, Any]:
    """What was found in a survey, as JSON."""
    from dualmandate.report.survey_words import NO_NOISE
    from dualmandate.survey.estimates import Opinions  # here: a schema needs none of the estimation

    file, unit = measured.survey.file, measured.survey.units.singular
    head = {"survey": measured.survey.name, "kind": file.survey.kind, "unit": unit}
    if isinstance(measured, Opinions):
        correlations = [
            CorrelationPart.made_of(pair, first=one, second=other, respondents=int(pair.observations))
            for (one, other), pair in measured.correlations.items()
        ]
        return PreferencesDocument.made_of(
            **head, respondents=measured.respondents, correlations=correlations
        ).as_json()
    findings, estimates = measured.findings, measured.findings.estimates
    return PreferencesDocument.made_of(
        **head,
        respondents=findings.respondents,
        answers=estimates.observations,
        model=findings.model,
        information_utility=file.report.information_utility,
        log_likelihood=estimates.log_likelihood,
        estimates=[
            EstimatePart(name=name, value=estimates.value(name), standard_error=estimates.standard_error(name))
            for name in estimates.names
        ],
        found=[
            FoundPart.made_of(
                each.number, key=each.key, interval=each.interval, level=each.level, method=each.method, of=each.of
            )
            for each in measured.found
        ],
        worths=[
            WorthPart.made_of(
                worth.amount,
                attribute=worth.attribute,
                value=worth.amount.estimate,
                unit=measured.survey.units.currency,
            )
            for worth in findings.worths
        ],
        pooled=[_pooled(key, pooled) for key, pooled in measured.pooled.items()],
        preferences=[PreferencePart.made_of(number, key=key) for key, number in measured.numbers().items()],
        block=measured.block(),
        notes=[*measured.remarks(), NO_NOISE],
    ).as_json()


def _pooled(key: str, pooled: Pooled) -> PooledPart:
    return PooledPart.made_of(
        pooled.calibrated(),
        pooled,
        key=key,
        interval=pooled.interval(),
        between=pooled.scatter,
        conflicts=pooled.agreement.conflicts,
    )


def questionnaire_document(asking: SurveyQuestionnaire) -> dict[str, Any]:
    """A questionnaire that can be handed out, as JSON."""
    asked, design = asking.questionnaire, asking.questionnaire.design
    tasks, alternatives, _ = design.levels.shape
    balance = design.balance()
    return QuestionnaireDocument.made_of(
        asked,
        design,
        asking.precision,
        tasks=int(tasks),
        alternatives=int(alternatives),
        d_error=design.error,
        attributes=[
            AskedAttributePart.made_of(
                each,
                levels=[
                    LevelPart(words=words, recorded=recorded, shown=shown)
                    for words, recorded, shown in zip(each.words, each.recorded, balance[each.name], strict=True)
                ],
            )
            for each in asked.attributes
        ],
        respondents=asking.respondents,
        coefficient_of_variation=asked.coefficient_of_variation(),
    ).as_json()
