"""Measured preferences in words; and a questionnaire as files to hand out."""

from __future__ import annotations

from collections.abc import Iterator

from dualmandate.elicitation.questionnaire import answer_sheet, design_table, form_content
from dualmandate.elicitation.willingness import ParameterEstimates, in_words
from dualmandate.population.wording import number
from dualmandate.report.theme import rendered
from dualmandate.survey.estimates import MEAN_COST, Opinions, SurveyEstimates, SurveyFinding, Worth
from dualmandate.survey.questionnaire import SurveyQuestionnaire

NO_NOISE = "These numbers are estimated without noise: they protect respondents only by adding many of them up."
FORM, SHEET, DESIGN = "form.html", "answer-sheet.csv", "design.csv"


def words(measured: SurveyEstimates | Opinions) -> str:
    """What was found, in sentences."""
    if isinstance(measured, Opinions):
        return _opinions_in_words(measured)
    findings, survey = measured.findings, measured.survey
    estimates = findings.estimates
    lines = [
        f"{survey.name}: {findings.respondents:,} respondents, {estimates.observations:,} answers; {findings.model}.",
        "",
        *(_found_in_words(found) for found in measured.found),
        *(_worth_in_words(worth, measured) for worth in findings.worths if worth.attribute not in _stated(measured)),
        *(f"Pooled, {key}: {pooled.explain()}" for key, pooled in measured.pooled.items()),
        *measured.remarks(),
        NO_NOISE,
        "",
        f"log likelihood {estimates.log_likelihood:,.3f}",
        *_estimates_in_words(estimates),
    ]
    return "\n".join(lines)


def _found_in_words(found: SurveyFinding) -> str:
    estimate, (low, high) = found.number, found.interval
    base = f", {estimate.time_base}" if estimate.time_base else ""
    what = "A unit of privacy loss costs" if found.key == MEAN_COST else "Accuracy is worth"
    if found.key == MEAN_COST and not estimate.unit.endswith("epsilon"):
        what = "The parameter of the cost of privacy loss is"
    error = "" if estimate.standard_error is None else f"; standard error {number(estimate.standard_error)}"
    return (
        f"{what} {number(estimate.value, 6)} {estimate.unit}{base} ({found.of}; {100 * found.level:g} % interval "
        f"{number(low, 6)} to {number(high, 6)}, {found.method}{error})."
    )


def _stated(measured: SurveyEstimates) -> set[object]:
    """Attributes whose worth was said already, as a number of a program."""
    return {found.place[-1] for found in measured.found}


def _worth_in_words(worth: Worth, measured: SurveyEstimates) -> str:
    amount = worth.amount
    squared = " squared" if measured.survey.file.attributes[worth.attribute].measure == "squared" else ""
    verb = "for" if amount.estimate >= 0 else "to avoid"
    turned = amount if amount.estimate >= 0 else amount.scaled(-1.0)
    said = in_words(turned, measured.survey.units.currency)
    return f"One respondent would pay {verb} one more unit of '{worth.attribute}'{squared}: {said}."


def _estimates_in_words(estimates: ParameterEstimates) -> Iterator[str]:
    width = max(len(name) for name in estimates.names)
    for name in estimates.names:
        value, error = estimates.value(name), estimates.standard_error(name)
        yield f"  {name:<{width}}  {value:>13.6g}  (standard error {number(error)})"


def _opinions_in_words(opinions: Opinions) -> str:
    lines = [
        f"{opinions.survey.name}: {opinions.respondents:,} respondents. Correlations behind their answers:",
        *(
            f"  {one} and {other}: {found.correlation:+.3f} (standard error {found.standard_error:.3f})"
            for (one, other), found in opinions.correlations.items()
        ),
        "Agreement has no unit: it prices nothing, so no [preferences] follow from it.",
        NO_NOISE,
    ]
    return "\n".join(lines)


def questionnaire_files(asking: SurveyQuestionnaire) -> dict[str, str]:
    """What is written: the tasks in words, a sheet to fill in, and a page that asks."""
    asked = asking.questionnaire
    return {DESIGN: design_table(asked), SHEET: answer_sheet(asked), FORM: _form(asking)}


def _form(asking: SurveyQuestionnaire) -> str:
    table, questionnaire = asking.survey.file.questionnaire, asking.questionnaire
    assert table is not None
    return rendered(
        "questionnaire.html",
        title=table.title,
        introduction=[part for part in (table.introduction or "").split("\n\n") if part.strip()],
        about=table.about,
        contact=table.contact,
        unit=asking.survey.units.singular,
        tasks=questionnaire.tasks_each,
        privacy=questionnaire.privacy,
        price=questionnaire.price,
        accuracy=next((each for each in questionnaire.attributes if each.role == "accuracy"), None),
        data=form_content(questionnaire),
    )
