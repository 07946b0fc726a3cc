"""Preferences measured: from a survey file to costs and values with their uncertainty, pooled with other evidence.

Choices among alternatives tell tastes, and what they are worth in money; answers to bids tell what people would pay to
have a privacy loss lowered. What was found has the units of a program, and leaves as `[preferences]`: complete TOML
that a program can hold, or refer to with `from`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dualmandate.elicitation.answers import BidAnswers, ChoiceData
from dualmandate.elicitation.contingent import contingent_valuation, turnbull
from dualmandate.elicitation.logit import MOST_STEPS, conditional_logit, mixed_logit
from dualmandate.elicitation.opinions import Polychoric, answer_table, polychoric
from dualmandate.elicitation.pooling import CommonGround, DiscountHorizon, Pooled, Prior, pool
from dualmandate.elicitation.questionnaire import cost_per_parameter
from dualmandate.elicitation.willingness import (
    BoundedWillingness,
    ParameterEstimates,
    Willingness,
    critical_value,
    in_words,
    willingness_correlation,
    willingness_to_pay,
)
from dualmandate.errors import IncompatibleUnits, InvalidPreferences, InvalidSurvey, InvalidValue, NoEstimate
from dualmandate.population import Calibrated, Units
from dualmandate.population.units import is_money
from dualmandate.population.wording import exact, number
from dualmandate.program.file import Document, KeyPath
from dualmandate.survey.questionnaire import belief_scale
from dualmandate.survey.schema import SurveyAttribute
from dualmandate.survey.survey_file import Survey, SurveyAnswers, load_survey, money, read_answers

PREFERENCES_FILE = "preferences.toml"
IN_PREFERENCES = ("mean_disclosure_cost", "price_of_squared_misallocation", "price_of_misallocation")
MEAN_COST = "mean_disclosure_cost"
Progress = Callable[[str], None]
Floats = NDArray[np.float64]
_CLUSTERED = ", errors clustered by respondent"


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
        """The table `[preferences]`, each number with its unit, source, standard error and time base.

        None where nothing in it was measured. Nothing is said of the correlation of errors where one of two numbers is
        not a key here. What a table of the workload states (`value_of_accuracy`) stands in a remark.
        """
        numbers, form = self.numbers(), self.survey.file.report.information_utility
        if MEAN_COST not in numbers:
            return None
        name = self.survey.document.path.name
        lines = [
            "# Label: public.",
            f"# Measured by `dualmandate preferences {name}`. A program states this table, or",
            '# refers to this file: [preferences] with from = "preferences.toml".',
            *("", "[preferences]", f'information_utility = "{form}"'),
        ]
        if form == "posterior":
            lines.append(f"prior_probability = {number_text(self._prior())}")
        stated = [key for key in IN_PREFERENCES if key in numbers]
        if self.correlation is not None and len(stated) == 2:
            lines.append(f"correlation_of_errors = {number_text(self.correlation)}")
        for key in stated:
            lines += ["", f"[preferences.{key}]", *_calibrated(numbers[key])]
        if "value_of_accuracy" in numbers:
            inline = ", ".join(_calibrated(numbers["value_of_accuracy"]))
            lines += ["", "# For a table of the workload:", f"# value_of_accuracy = {{ {inline} }}"]
        return "\n".join(lines) + "\n"

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
    report, horizon = survey.file.report, None
    if (stated := report.horizon) is not None:
        horizon = DiscountHorizon(float(stated.discount_rate), float(stated.years), stated.source)
    units = Units(survey.units.protected_unit, tuple(dict.fromkeys([*survey.units.others, *report.other_units])))
    bridges = tuple(bridge.quantity() for bridge in report.bridges)
    return CommonGround(unit, report.time_base or own, units, bridges, horizon)


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
            scatter = (None if each is None else float(each) for each in (stated.between, stated.at_most))
            prior = Prior(float(stated.center), float(stated.spread), stated.source, *scatter)
        with document.at("report"):
            ground = _ground(survey, first.unit, first.time_base)
        for position, other in others:
            with document.at("source", position):
                ground.brought(other)
        with document.at("prior", key):
            pooled[key] = pool([*own, *(other for _, other in others)], ground, prior=prior)
    return pooled


def _evidence(survey: Survey, progress: Progress) -> dict[str, list[tuple[int, Calibrated]]]:
    """Numbers from elsewhere, by key: published ones, and those of other survey files."""
    evidence: dict[str, list[tuple[int, Calibrated]]] = {}
    for position, source in enumerate(survey.file.source):
        if source.estimate is not None:
            with survey.document.at("source", position, "estimate"):
                evidence.setdefault(source.of, []).append((position, source.estimate.quantity()))
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


@dataclass(frozen=True)
class SurveyFinding:
    """A cost or a value with its interval, as a program states it."""

    key: str  # in a program file
    number: Calibrated
    interval: tuple[float, float]
    level: float
    method: str
    of: str  # what it is, in words
    place: KeyPath  # of what it was estimated from, in the survey file


@dataclass(frozen=True)
class Worth:
    """What one respondent would pay for one more unit of an attribute, USD; below 0 where they pay to avoid it."""

    attribute: str
    amount: BoundedWillingness


@dataclass(frozen=True, eq=False)
class SurveyFindings:
    """What one survey says."""

    survey: Survey
    model: str  # how it was estimated, in words
    respondents: int
    estimates: ParameterEstimates
    found: tuple[SurveyFinding, ...]
    worths: tuple[Worth, ...] = ()
    notes: tuple[str, ...] = ()
    correlation: float | None = None  # of the errors of the two numbers that were found


def number_in(found: Willingness) -> BoundedWillingness:
    """The willingness to pay; refused where it has no bound, so that no number may be told."""
    estimate, error, interval = found.estimate, found.standard_error, found.interval
    if estimate is None or error is None or interval is None or not np.isfinite(interval).all():
        raise NoEstimate(
            "willingness to pay has no number",
            why=in_words(replace(found, estimate=None)),
            instead="ask more people, or offer prices that differ more",
        )
    return BoundedWillingness(estimate, error, interval, found.level, found.method)


def finding_of(
    survey: Survey,
    key: str,
    worth: BoundedWillingness,
    *,
    source: str,
    time_base: str | None,
    place: KeyPath,
    unit: str | None = None,
) -> SurveyFinding:
    """A willingness to pay as a number of a program; refused where people are glad of a loss or an error."""
    form, word = survey.file.report.information_utility, survey.units.singular
    stated = unit or f"USD per {word}" + (" per epsilon" if form == "linear" else "")
    of = f"one {word}'s privacy loss, {form} form" if key == MEAN_COST else f"'{place[-1]}' of all published numbers"
    if worth.estimate <= 0:
        raise InvalidPreferences(
            f"people would pay for more of what they lose: {key} is not positive",
            why="a cost of privacy loss or of errors is what people pay to avoid it",
            instead="check how the attribute and the price are coded; less of both is better",
            where=survey.document.place(place),
        )
    with survey.document.at(*place):
        number = Calibrated(
            worth.estimate, stated, f"{survey.name}: {source}", time_base, standard_error=worth.standard_error
        )
    return SurveyFinding(key, number, worth.interval, worth.level, worth.method, of, place)


def bid_findings(survey: Survey, progress: Progress) -> SurveyFindings:
    """What people would pay to have a privacy loss lowered, from their answers to bids."""
    progress("reading the answers")
    answers, table, document = read_answers(survey.document, survey.source()), survey.file.survey, survey.document
    scenario = survey.file.scenario
    assert scenario is not None
    bids = _bid_answers(survey, answers)
    progress("estimating what people would pay")
    with document.at("survey", "source"):
        people = answers.labels(("survey", "respondent"))
        if survey.file.model.cluster == "respondent" and len(set(people.tolist())) < len(people):
            bids = bids.clustered(people)
        valuation = contingent_valuation(bids)
        bound = turnbull(bids)
    method = survey.file.model.interval
    if bids.spike and method == "fieller":
        method = "krinsky-robb"  # a mean with a spike is no ratio
    with document.at("survey", "bid"):
        paid = number_in(valuation.mean(method=method, level=survey.confidence))
    spike = " with a spike at zero" if bids.spike else ""
    words = f"{table.kind} logit{spike}"
    usd = money(scenario.unit, scenario.in_usd, survey.units, document, "scenario")
    form = survey.file.report.information_utility
    prior = _scenario_prior(survey)
    losses = [float(scenario.epsilon), float(scenario.lowered_to or 0)]
    high, low = cost_per_parameter(form, losses, prior)
    asked = f"contingent valuation, {bids.people:,} respondents; {words}"
    factor = usd / float(high - low)
    base = scenario.time_base or survey.file.report.time_base
    cost = finding_of(
        survey, MEAN_COST, paid.scaled(factor), source=asked, time_base=base, place=("scenario", "epsilon")
    )
    low_bound = (
        f"Turnbull's lower bound of what they would pay, whatever its distribution: {number(bound.lower_bound)} "
        f"{scenario.unit} (standard error {number(bound.standard_error, 2)}); it does not enter the estimate."
    )
    return SurveyFindings(survey, words, bids.people, valuation.estimates, (cost,), notes=(low_bound,))


def _scenario_prior(survey: Survey) -> float | None:
    scenario = survey.file.scenario
    assert scenario is not None
    if survey.file.report.information_utility == "posterior" and scenario.prior is None:
        raise InvalidSurvey(
            "the posterior form has no prior",
            why="it prices how far a belief may move, so it must know where the belief starts",
            instead="state prior in [scenario]",
            where=survey.document.place(("scenario", "prior")),
        )
    return None if scenario.prior is None else float(scenario.prior)


def _bid_answers(survey: Survey, answers: SurveyAnswers) -> BidAnswers:
    """The answers to bids; contradictions are refused here, where their values are not repeated."""
    document, double = survey.document, survey.file.survey.kind == "double-bounded"
    bid, yes = answers.numbers(("survey", "bid")), answers.truths(("survey", "answer")) == 1
    positive = None if survey.file.survey.positive is None else answers.truths(("survey", "positive")) == 1
    asked, key = [bid], ("survey", "bid")
    _refuse(bid <= 0, answers, key, "asks for nothing, or for less")
    if double:
        second = answers.numbers(("survey", "second_bid"))
        again = answers.truths(("survey", "second_answer")) == 1
        asked.append(second)
        _refuse(second <= 0, answers, ("survey", "second_bid"), "asks for nothing, or for less")
        wrong = np.where(yes, second <= bid, second >= bid)
        what = "does not ask for more after a yes, or for less after a no"
        _refuse(wrong, answers, ("survey", "second_bid"), what)
    if positive is not None:
        agreed = yes | again if double else yes
        _refuse(~positive & agreed, answers, ("survey", "positive"), "contradicts a yes to a bid")
    if math.isclose(float(np.ptp(np.concatenate(asked))), 0.0):
        raise InvalidSurvey(
            "everybody was asked the same bid",
            why="how answers change with the bid cannot be seen",
            instead="offer at least two bids, to different people",
            where=document.place(key),
        )
    with document.at(*key):
        if double:
            return BidAnswers.double_bounded(bid, yes, second, again, pays_anything=positive)
        return BidAnswers.single_bounded(bid, yes, pays_anything=positive)


def _refuse(wrong: NDArray[np.bool_], answers: SurveyAnswers, key: KeyPath, what: str) -> None:
    if wrong.any():
        line = answers.lines[int(np.flatnonzero(wrong)[0])]
        raise InvalidSurvey(
            f"the column '{answers.document.value(key)}' {what}, on line {line.number}",
            why="a bid is an amount to be paid, and no answer to it contradicts another",
            instead=f"mend line {line.number} of '{line.file}', or leave out the respondent",
            where=answers.document.place(key),
        )


def choice_findings(survey: Survey, progress: Progress) -> SurveyFindings:
    """Tastes from choices among alternatives, and what they are worth in money."""
    progress("reading the answers")
    answers = read_answers(survey.document, survey.source())
    data = _choice_data(survey, answers)
    price, _ = _of_role(survey, "price")
    model, document = survey.file.model, survey.document
    clustered = model.cluster == "respondent"
    notes: list[str] = []
    progress(f"estimating the {model.estimator}")
    with document.at("survey", "source"):
        if model.estimator == "mixed logit":
            estimates, words = _mixed(survey, data, price, progress)
        else:
            estimates = conditional_logit(data, cluster=clustered, most_steps=model.most_steps or MOST_STEPS)
            words = "conditional logit"
            idle = [key for key in ("random", "draws", "space") if key in model.model_fields_set]
            if idle:
                notes.append(f"A conditional logit does not use {', '.join(idle)}.")
    words += ", plain errors" if model.estimator == "conditional logit" and not clustered else _CLUSTERED
    asked = f"choice experiment, {data.people:,} respondents, {data.tasks:,} choices; {words}"
    worths = _worths(survey, estimates)
    found = tuple(_priced(survey, worths, asked, notes))
    correlation = _correlation(survey, estimates, found, worths)
    if all(each.role != "privacy loss" for each in survey.file.attributes.values()):
        notes.append("No attribute is a privacy loss: nothing here prices epsilon, so no [preferences] follow from it.")
    return SurveyFindings(survey, words, data.people, estimates, found, worths, tuple(notes), correlation)


def _choice_data(survey: Survey, answers: SurveyAnswers) -> ChoiceData:
    document = survey.document
    respondent, task = answers.labels(("survey", "respondent")), answers.labels(("survey", "task"))
    columns = {name: _regressor(survey, name, attribute, answers) for name, attribute in survey.file.attributes.items()}
    chosen = answers.truths(("survey", "chosen"))
    price, _ = _of_role(survey, "price")
    # Tasks are called by the line they begin on: the answers' own labels are not repeated in a refusal.
    first: dict[tuple[str, str], str] = {}
    called = [
        first.setdefault((who, which), f"on line {line.number} of '{line.file}'")
        for who, which, line in zip(respondent.tolist(), task.tolist(), answers.lines, strict=True)
    ]
    _, people = np.unique(respondent, return_inverse=True)
    shown = None
    if survey.file.survey.alternative is not None:
        shown = np.unique(answers.labels(("survey", "alternative")), return_inverse=True)[1]
    alone = min(Counter(called).values()) < 2
    fixed = None if alone else next((name for name, column in columns.items() if not _varies(column, called)), None)
    with document.at("survey", "task") if fixed is None else document.at("attributes", fixed, "column"):
        return ChoiceData.of_columns(
            columns, chosen=chosen, task=np.array(called), respondent=people, alternative=shown, price=price
        )


def _varies(column: Floats, called: list[str]) -> bool:
    """Whether alternatives of some task differ in an attribute."""
    first: dict[str, float] = {}
    return any(first.setdefault(task, value) != value for task, value in zip(called, column.tolist(), strict=True))


def _regressor(survey: Survey, name: str, attribute: SurveyAttribute, answers: SurveyAnswers) -> Floats:
    """What enters the utility: a loss by the form of its cost, an error by its measure, anything else as it is."""
    key = ("attributes", name, "column")
    column = answers.numbers(key)
    if attribute.role == "accuracy" and (column < 0).any():
        raise InvalidSurvey(
            f"the column '{attribute.column}' holds an error below 0",
            why="it says how far off a number is, whichever way",
            instead="record the size of the error",
            where=survey.document.place(key),
        )
    if attribute.role != "privacy loss":
        return column**2 if attribute.role == "accuracy" and attribute.measure == "squared" else column
    with survey.document.at(*key):
        if attribute.recorded_as == "posterior":
            scale = belief_scale(attribute)
            if ((column < scale.prior) | (column >= 1)).any():
                raise InvalidSurvey(
                    f"the column '{attribute.column}' holds a belief that is below the prior, or certain",
                    why="a loss raises the most that may be believed, and never to certainty",
                    instead='record beliefs as numbers from the prior to below 1, or recorded_as = "epsilon"',
                )
            column = scale.epsilon(column)
        elif (column < 0).any():
            raise InvalidSurvey(
                f"the column '{attribute.column}' holds a privacy loss below 0",
                why="no release gives privacy back",
                instead="record ε, or the belief that people were told",
            )
        prior = None if attribute.prior is None else float(attribute.prior)
        form = survey.file.report.information_utility
        if form == "posterior" and prior is None:
            raise InvalidSurvey(
                "the posterior form has no prior",
                why="it prices how far a belief may move, so it must know where the belief starts",
                instead="state prior for this attribute",
            )
        return np.asarray(cost_per_parameter(form, column, prior), dtype=np.float64)


def _mixed(survey: Survey, data: ChoiceData, price: str, progress: Progress) -> tuple[ParameterEstimates, str]:
    model = survey.file.model
    random = {name: "lognormal" if name == price else "normal" for name in model.random}
    if model.space == "preference" and price in random:
        raise InvalidPreferences(
            "tastes for the price differ among people",
            why="a ratio to a taste that may be near zero has no mean",
            instead='state space = "willingness to pay", or leave the price out of random',
            where=survey.document.place(("model", "random")),
        )
    with survey.document.at("model", "random"):
        estimates = mixed_logit(
            data,
            random,  # type: ignore[arg-type]
            space=model.space,
            price=price if model.space == "willingness to pay" else None,
            draws=model.draws,
            progress=progress,
        )
    return estimates, f"mixed logit in {model.space} space with {model.draws:,} draws, random {', '.join(model.random)}"


def _priced(survey: Survey, worths: tuple[Worth, ...], asked: str, notes: list[str]) -> list[SurveyFinding]:
    """The cost of privacy loss and the price of accuracy, where the survey asked for them."""
    found = []
    _, paid = _of_role(survey, "price")
    base = paid.time_base or survey.file.report.time_base
    for worth in worths:
        attribute, place = survey.file.attributes[worth.attribute], ("attributes", worth.attribute)
        if attribute.role == "other":
            continue
        avoided = worth.amount.scaled(-1.0)
        if attribute.role == "privacy loss":
            found.append(finding_of(survey, MEAN_COST, avoided, source=asked, time_base=base, place=place))
            continue
        key, unit = _accuracy_key(survey, worth.attribute, attribute)
        report = survey.file.report
        if report.people is None or report.numbers is None:
            notes.append(f"With people and numbers stated in [report], '{worth.attribute}' becomes {key} in {unit}.")
            continue
        with survey.document.at("report", "people"):
            number = report.people
            size = Calibrated(float(number.value), number.unit, number.source)
            own = survey.units.agree(size.unit, survey.units.singular)
            people = size.to(survey.units.singular if own else "person", survey.units).value
        total = avoided.scaled(people / report.numbers)
        if number.standard_error is not None:
            total = _widened(total, float(number.standard_error / number.value))
        source = f"{asked}; {exact(people)} people, {report.numbers:,} numbers"
        found.append(finding_of(survey, key, total, source=source, time_base=base, place=place, unit=unit))
    return found


def _widened(total: BoundedWillingness, relative: float) -> BoundedWillingness:
    """The same amount where the number of people is uncertain too: relative errors add up in squares."""
    middle, own = total.estimate, relative * total.estimate
    error = math.hypot(total.standard_error, own)
    reach = critical_value(total.level) * own
    low, high = (middle + math.copysign(math.hypot(end - middle, reach), end - middle) for end in total.interval)
    return replace(total, standard_error=error, interval=(low, high))


def _correlation(
    survey: Survey, estimates: ParameterEstimates, found: tuple[SurveyFinding, ...], worths: tuple[Worth, ...]
) -> float | None:
    """How far the errors of the cost and of the price of accuracy go together: both are divided by the same price."""
    if len(found) < 2:
        return None
    names, (price, _) = [str(each.place[-1]) for each in found], _of_role(survey, "price")
    model = survey.file.model
    if model.estimator == "mixed logit" and model.space == "willingness to pay":
        _, spread = estimates.joint((f"willingness to pay for {names[0]}", f"willingness to pay for {names[1]}"))
        correlation = float(spread[0, 1] / np.sqrt(spread[0, 0] * spread[1, 1]))
    else:
        correlation = willingness_correlation(estimates, names[0], names[1], price)
    own = {worth.attribute: worth.amount for worth in worths}
    for name, each in zip(names, found, strict=True):  # what else is uncertain about a number is its own
        assert each.number.standard_error is not None
        relative = each.number.standard_error / each.number.value
        correlation *= abs(own[name].standard_error / own[name].estimate) / relative
    return correlation


def _worths(survey: Survey, estimates: ParameterEstimates) -> tuple[Worth, ...]:
    """What one more unit of each attribute but the price is worth to one respondent, USD."""
    price, paid = _of_role(survey, "price")
    assert paid.unit is not None
    usd = money(paid.unit, paid.in_usd, survey.units, survey.document, "attributes", price)
    names = [name for name in survey.file.attributes if name != price]
    return tuple(Worth(name, _worth(survey, estimates, name, price).scaled(usd)) for name in names)


def _worth(survey: Survey, estimates: ParameterEstimates, name: str, price: str) -> BoundedWillingness:
    """What one more unit of an attribute is worth, in the price's money; refused where it has no bound."""
    model = survey.file.model
    with survey.document.at("attributes", price):
        if model.estimator == "mixed logit" and model.space == "willingness to pay":
            parameter = f"willingness to pay for {name}"
            value, error = estimates.value(parameter), estimates.standard_error(parameter)
            critical = critical_value(survey.confidence)
            scale = "log scale" if price not in model.random else "mean of log scale"
            if critical * estimates.standard_error(scale) >= 1:  # the price's effect e^s has e^s times the error of s
                return number_in(Willingness(None, None, None, survey.confidence, "delta"))
            reach = critical * error
            return BoundedWillingness(value, error, (value - reach, value + reach), survey.confidence, "delta")
        return number_in(willingness_to_pay(estimates, name, price, method=model.interval, level=survey.confidence))


def _accuracy_key(survey: Survey, name: str, attribute: SurveyAttribute) -> tuple[str, str]:
    """The key of a program that prices this accuracy, and its unit."""
    assert attribute.unit is not None
    squared = attribute.measure == "squared"
    with survey.document.at("attributes", name, "unit"):
        if is_money(attribute.unit):
            key = "price_of_squared_misallocation" if squared else "price_of_misallocation"
            return key, "USD per USD^2" if squared else "USD per USD"
        if not survey.units.agree(attribute.unit, survey.units.singular):
            raise IncompatibleUnits(
                f"the errors are in '{attribute.unit}'",
                why=f"a program values errors in dollars, or in {survey.units.plural}",
                instead=f'state unit = "USD" or unit = "{survey.units.singular}"',
            )
    return "value_of_accuracy", f"USD per {survey.units.singular}" + ("^2" if squared else "")


def _of_role(survey: Survey, role: str) -> tuple[str, SurveyAttribute]:
    return next((name, each) for name, each in survey.file.attributes.items() if each.role == role)
