"""Preferences measured: from a survey file to costs and values with their uncertainty, pooled with other evidence.

They leave as `[preferences]`: complete TOML that a program can hold, or refer to with `from`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

from dualmandate.elicitation.opinions import Polychoric, answer_table, polychoric
from dualmandate.elicitation.pooling import CommonGround, DiscountHorizon, Pooled, Prior, pool
from dualmandate.errors import InvalidValue
from dualmandate.population import Calibrated, Units
from dualmandate.program.file import Document
from dualmandate.program.number import CalibratedNumber
from dualmandate.survey.answers import read_answers
from dualmandate.survey.findings import MEAN_COST, SurveyFinding, SurveyFindings, bid_findings, choice_findings
from dualmandate.survey.survey_file import Survey, load_survey

PREFERENCES_FILE = "preferences.toml"
IN_PREFERENCES = ("mean_disclosure_cost", "price_of_squared_misallocation", "price_of_misallocation")
Progress = Callable[[str], None]


def preferences_block(
    form: str,
    numbers: Mapping[str, Calibrated],
    *,
    prior: float | None,
    correlation: float | None,
    remarks: tuple[str, ...],
) -> str:
    """The table `[preferences]`, each number with its unit, source, standard error and time base.

    `correlation` is that of the errors of its two numbers; nothing is said of it where one of them is not a key here.
    What a table of the workload states (`value_of_accuracy`) stands in a remark: it is not a key of `[preferences]`.
    """
    lines = [*(f"# {remark}" for remark in remarks), "", "[preferences]", f'information_utility = "{form}"']
    if prior is not None:
        lines.append(f"prior_probability = {number_text(prior)}")
    if correlation is not None and sum(key in numbers for key in IN_PREFERENCES) == 2:
        lines.append(f"correlation_of_errors = {number_text(correlation)}")
    for key in IN_PREFERENCES:
        if key in numbers:
            lines += ["", f"[preferences.{key}]", *_calibrated(numbers[key])]
    if "value_of_accuracy" in numbers:
        inline = ", ".join(_calibrated(numbers["value_of_accuracy"]))
        lines += ["", "# For a table of the workload:", f"# value_of_accuracy = {{ {inline} }}"]
    return "\n".join(lines).lstrip("\n") + "\n"


def number_text(value: float) -> str:
    """A number with ten significant digits, as TOML reads it."""
    return f"{float(f'{value:.10g}')!r}"


def _calibrated(number: Calibrated) -> list[str]:
    stated = [
        f"value = {number_text(number.value)}",
        f"unit = {_text(number.unit)}",
        f"source = {_text(number.source)}",
    ]
    if number.standard_error is not None:
        stated.append(f"standard_error = {number_text(number.standard_error)}")
    if number.time_base is not None:
        stated.append(f"time_base = {_text(number.time_base)}")
    return stated


def _text(words: str) -> str:
    """A TOML basic string: JSON's escapes are among TOML's, apart from DEL."""
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")


@dataclass(frozen=True, eq=False)
class SurveyEstimates:
    """What a survey file says about preferences."""

    survey: Survey
    findings: SurveyFindings
    found: tuple[SurveyFinding, ...]  # on the time base of the report
    pooled: dict[str, Pooled]  # by the key of a program

    def numbers(self) -> dict[str, Calibrated]:
        """Each number as a program should state it: pooled where other evidence was stated."""
        alone = {found.key: found.number for found in self.found}
        return {**alone, **{key: pooled.calibrated() for key, pooled in self.pooled.items()}}

    def block(self) -> str | None:
        """The table `[preferences]`; None where nothing in it was measured."""
        numbers = self.numbers()
        if MEAN_COST not in numbers:
            return None
        form = self.survey.file.report.information_utility
        remarks = (
            "Label: public.",
            f"Measured by `dualmandate preferences {self.survey.document.path.name}`. A program states this table, or",
            'refers to this file: [preferences] with from = "preferences.toml".',
        )
        return preferences_block(
            form,
            numbers,
            prior=self._prior() if form == "posterior" else None,
            correlation=self.correlation,
            remarks=remarks,
        )

    @property
    def correlation(self) -> float | None:
        """How far the errors of the numbers go together; other evidence, where it is pooled, hides that."""
        return None if self.pooled else self.findings.correlation

    def remarks(self) -> tuple[str, ...]:
        """All that must be said beside the numbers."""
        correlation = self.findings.correlation
        if correlation is None:
            return self.findings.notes
        one, other = (found.key for found in self.found)
        taken = (
            "A plan takes pooled numbers as independent, so that its interval of epsilon is "
            f"{'wider' if correlation > 0 else 'narrower'} than it should be."
            if self.pooled
            else "A plan takes that into account."
        )
        together = (
            f"Errors of {one} and {other} go together (correlation {correlation:.2f}: the effect of the price is in "
            f"both). {taken}"
        )
        return (*self.findings.notes, together)

    def _prior(self) -> float:
        scenario = self.survey.file.scenario
        priors = [scenario.prior if scenario else None, *(each.prior for each in self.survey.file.attributes.values())]
        return float(next(prior for prior in priors if prior is not None))


@dataclass(frozen=True, eq=False)
class Opinions:
    """Correlations behind agreement with statements. They price nothing."""

    survey: Survey
    respondents: int
    correlations: dict[tuple[str, str], Polychoric]


def measure(survey: Survey, progress: Progress = lambda _: None) -> SurveyEstimates | Opinions:
    """Estimate what the answers of a survey file say; refused with its place where they say nothing."""
    kind = survey.file.survey.kind
    if kind == "likert":
        return _opinions(survey, progress)
    findings = choice_findings(survey, progress) if kind == "choice" else bid_findings(survey, progress)
    found = tuple(_timed(survey, each) for each in findings.found)
    return SurveyEstimates(survey, findings, found, _pooled(survey, found, progress))


def _opinions(survey: Survey, progress: Progress) -> Opinions:
    progress("reading the answers")
    answers = read_answers(survey.document, survey.source())
    items = survey.file.survey.items
    columns = {name: answers.levels(("survey", "items", place)) for place, name in enumerate(items)}
    progress("correlating the items")
    found = {}
    for one, other in combinations(items, 2):
        with survey.document.at("survey", "items", items.index(other)):
            found[one, other] = polychoric(answer_table(columns[one], columns[other]))
    return Opinions(survey, len(answers.lines), found)


def _timed(survey: Survey, found: SurveyFinding) -> SurveyFinding:
    """The number on the time base of the report, its interval with it."""
    if found.number.time_base is None:
        return found
    with survey.document.at("report", "time_base"):
        number = _ground(survey, found.number.unit, found.number.time_base).brought(found.number)
    factor = number.value / found.number.value
    low, high = (end * factor for end in found.interval)
    return SurveyFinding(found.key, number, (low, high), found.level, found.method, found.of, found.place)


def _ground(survey: Survey, unit: str, own: str | None) -> CommonGround:
    report = survey.file.report
    horizon = report.horizon
    words = dict.fromkeys([*survey.units.others, *report.other_units])
    return CommonGround(
        unit,
        report.time_base or own,
        Units(survey.units.protected_unit, tuple(words)),
        tuple(_number(bridge) for bridge in report.bridges),
        None
        if horizon is None
        else DiscountHorizon(float(horizon.discount_rate), float(horizon.years), horizon.source),
    )


def _pooled(survey: Survey, found: tuple[SurveyFinding, ...], progress: Progress) -> dict[str, Pooled]:
    """The posterior of each number of which other evidence, or a prior, is stated."""
    document, pooled = survey.document, {}
    evidence = _evidence(survey, progress)
    for key, stated in survey.file.prior.items():
        own = [each.number for each in found if each.key == key]
        others = evidence.get(key, [])
        if not own and not others:
            raise InvalidValue(
                f"there is nothing to pool for {key}",
                why="neither this survey nor another source says anything about it",
                instead="leave the prior out, or state a source",
                where=document.place(("prior", key)),
            )
        first = own[0] if own else others[0][1]
        with document.at("prior", key):
            prior = Prior(
                float(stated.center),
                float(stated.spread),
                stated.source,
                between=None if stated.between is None else float(stated.between),
                at_most=None if stated.at_most is None else float(stated.at_most),
            )
        with document.at("report"):
            ground = _ground(survey, first.unit, first.time_base)
        for position, number in others:
            with document.at("source", position):
                ground.brought(number)
        with document.at("prior", key):
            pooled[key] = pool([*own, *(number for _, number in others)], ground, prior=prior)
    return pooled


def _evidence(survey: Survey, progress: Progress) -> dict[str, list[tuple[int, Calibrated]]]:
    """Numbers from elsewhere, by key: published ones, and those of other survey files."""
    evidence: dict[str, list[tuple[int, Calibrated]]] = {}
    for position, source in enumerate(survey.file.source):
        if source.estimate is not None:
            with survey.document.at("source", position, "estimate"):
                evidence.setdefault(source.of, []).append((position, _number(source.estimate)))
            continue
        assert source.survey is not None
        progress(f"estimating {source.name}")
        for found in _other_survey(survey.document, position, source.survey):
            evidence.setdefault(found.key, []).append((position, found.number))
    return evidence


def _other_survey(document: Document, position: int, name: str) -> tuple[SurveyFinding, ...]:
    """What another survey file says by itself; its own other evidence is not counted twice."""
    with document.at("source", position, "survey"):
        other = load_survey(document.path.parent / name)
        if other.file.survey.kind == "likert" or other.document.path.resolve() == document.path.resolve():
            raise InvalidValue(
                f"'{name}' cannot be pooled with this survey",
                why="it is this survey itself, or one that prices nothing",
                instead="name another survey of choices or bids",
            )
    findings = (choice_findings if other.file.survey.kind == "choice" else bid_findings)(other, lambda _: None)
    return tuple(_timed(other, found) for found in findings.found)


def _number(number: CalibratedNumber) -> Calibrated:
    error = number.standard_error
    return Calibrated(
        float(number.value),
        number.unit,
        number.source,
        number.time_base,
        standard_error=None if error is None else float(error),
    )
