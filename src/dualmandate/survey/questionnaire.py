"""From `[questionnaire]` to what is asked: the design, an answer sheet, a web form, and how many must answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dualmandate.elicitation.design import CUBE_ROOT, Precision
from dualmandate.elicitation.questionnaire import (
    AnswerColumns,
    BeliefScale,
    Questionnaire,
    QuestionnairePlan,
    ShownAttribute,
    questionnaire_of,
    shown_attribute,
)
from dualmandate.errors import InvalidValue, MissingKey
from dualmandate.population import Neighbors
from dualmandate.population.wording import number, percent
from dualmandate.semantics.guarantee import Secret
from dualmandate.survey.schema import QuestionnaireTable, SurveyAttribute
from dualmandate.survey.survey_file import Survey

UNCERTAINTY, SPREAD, WITHIN, CONFIDENCE = 0.5, 1.0, 0.2, 0.95  # These hold where the file says nothing.


@dataclass(frozen=True, eq=False)
class SurveyQuestionnaire:
    """A questionnaire that can be handed out. All of it is public: nobody has answered yet."""

    survey: Survey
    questionnaire: Questionnaire
    precision: Precision

    @property
    def respondents(self) -> int:
        """How many must answer."""
        return self.questionnaire.respondents(self.precision)

    def words(self) -> str:
        """What will be asked, how good that is, and how many must answer."""
        asked, design = self.questionnaire, self.questionnaire.design
        variation = asked.coefficient_of_variation()
        tasks, alternatives, _ = design.levels.shape
        lines = [
            f"{asked.title}: {tasks} tasks of {alternatives} alternatives in {design.blocks} blocks; a respondent "
            f"answers {asked.tasks_each}.",
            f"D-error {number(design.error)} for one respondent (smaller is better; coefficients per range of levels).",
            "How often each level is shown:",
            *(
                f"  {attribute.name}: "
                + ", ".join(f"{words} {count}×" for words, count in zip(attribute.words, counts, strict=True))
                for attribute, counts in zip(asked.attributes, design.balance().values(), strict=True)
            ),
            f"Ask {self.respondents:,} people: epsilon will then be known within ±{percent(self.precision.within)} "
            f"with confidence {self.precision.confidence:g}, if tastes are as expected and all else is known.",
            f"That rests on a coefficient of variation of {number(variation, 3)} for one respondent: costs that differ "
            f"by {asked.spread:g} of their mean among people, the rest from chance in their choices.",
        ]
        return "\n".join(lines)


def survey_questionnaire(survey: Survey) -> SurveyQuestionnaire:
    """The questionnaire of a survey file, designed; refused where the file does not say what to ask."""
    table, document = survey.file.questionnaire, survey.document
    if table is None:
        raise MissingKey(
            "the survey does not state 'questionnaire'",
            why="what to ask is designed from levels and from what is expected",
            instead="write a table [questionnaire], and levels for each attribute",
            where=document.place(("questionnaire",)),
        )
    if survey.file.survey.kind != "choice":
        raise InvalidValue(
            f'kind = "{survey.file.survey.kind}" cannot be designed',
            why="a questionnaire is made of choices between alternatives",
            instead='write kind = "choice"',
            where=document.place(("survey", "kind")),
        )
    shown = [_shown(survey, name, attribute) for name, attribute in survey.file.attributes.items()]
    unknown = next((name for name in table.expected if name not in survey.file.attributes), None)
    if unknown is not None:
        raise InvalidValue(
            f"there is no attribute '{unknown}' to expect anything of",
            why=f"the attributes are {', '.join(survey.file.attributes)}",
            instead="name one of them, without the price",
            where=document.place(("questionnaire", "expected", unknown)),
        )
    stated = ((key, getattr(survey.file.survey, key)) for key in ("respondent", "task", "alternative", "chosen"))
    columns = AnswerColumns(**{key: name for key, name in stated if name})
    with document.at("questionnaire"):
        made = questionnaire_of(table.title, shown, _asked(table), columns=columns)
        precision = Precision(
            _float(table.within, WITHIN), _float(table.confidence, CONFIDENCE), _float(table.elasticity, CUBE_ROOT)
        )
    return SurveyQuestionnaire(survey, made, precision)


def belief_scale(attribute: SurveyAttribute) -> BeliefScale:
    """How this privacy loss was told as a belief."""
    assert attribute.prior is not None
    return BeliefScale(float(attribute.prior), Secret(attribute.secret), Neighbors(attribute.neighbors))


def _asked(table: QuestionnaireTable) -> QuestionnairePlan:
    return QuestionnairePlan(
        expected={name: float(value) for name, value in table.expected.items()},
        choice_noise=float(table.choice_noise),
        tasks=table.tasks,
        alternatives=table.alternatives,
        blocks=table.blocks,
        uncertainty=_float(table.uncertainty, UNCERTAINTY),
        spread=_float(table.spread, SPREAD),
        seed=table.seed,
    )


def _shown(survey: Survey, name: str, attribute: SurveyAttribute) -> ShownAttribute:
    document, key = survey.document, ("attributes", name)
    if not attribute.levels:
        raise MissingKey(
            f"'attributes.{name}' does not state 'levels'",
            why="a questionnaire shows levels",
            instead="write levels = [ … ], two or more",
            where=document.place((*key, "levels")),
        )
    levels = [float(level) for level in attribute.levels]
    with document.at(*key, "levels"):
        made = _by_role(survey, name, attribute, levels)
        if attribute.recorded_as == "posterior":  # a belief that is read back as the loss that the words say
            scale = belief_scale(attribute)
            beliefs = (max(float(f"{scale.highest(loss):.10g}"), scale.prior) for loss in made.recorded)
            made = replace(made, recorded=tuple(beliefs))
        made.designed  # noqa: B018 - refused where levels repeat
    return replace(made, words=attribute.words) if attribute.words else made


def _by_role(survey: Survey, name: str, attribute: SurveyAttribute, levels: list[float]) -> ShownAttribute:
    report, role, prior = survey.file.report, attribute.role, attribute.prior
    if min(levels) < 0 and role != "other":
        raise InvalidValue(
            f"a level of '{name}' is below 0",
            why="prices, errors and privacy losses are not negative",
            instead="write levels of at least 0",
        )
    if role == "privacy loss" and report.information_utility == "posterior" and prior is None:
        raise MissingKey(
            f"'attributes.{name}' does not state 'prior'",
            why="the posterior form prices how far a belief may move, so it must know where the belief starts",
            instead="write prior = 0.01",
            where=survey.document.place(("attributes", name, "prior")),
        )
    return shown_attribute(
        name,
        role,
        levels,
        unit=attribute.unit or "",
        scale=belief_scale(attribute) if role == "privacy loss" and attribute.stated_as == "posterior" else None,
        prior=None if prior is None else float(prior),
        form=report.information_utility,
        measure=attribute.measure,
        time_base=attribute.time_base or report.time_base,
        column=attribute.column,
        heading=attribute.heading,
    )


def _float(number: object, default: float) -> float:
    return default if number is None else float(number)  # type: ignore[arg-type]
