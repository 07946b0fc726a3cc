"""Preferences measured: from a survey file to costs and values with their uncertainty, pooled with other evidence.

Choices among alternatives tell tastes, and what they are worth in money; answers to bids tell what people would pay to
have a privacy loss lowered. What was found has the units of a program, and leaves as `[preferences]`: complete TOML
that a program can hold, or refer to with `from`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dualmandate.choice.estimates import JointEstimates, Ratio
from dualmandate.elicitation.answers import BidAnswers, ChoiceData
from dualmandate.elicitation.contingent import contingent_valuation, turnbull
from dualmandate.elicitation.logit import MOST_STEPS, conditional_logit, mixed_logit
from dualmandate.elicitation.opinions import Polychoric, answer_table, polychoric
from dualmandate.elicitation.pooling import CommonGround, Pooled, Prior, pool
from dualmandate.elicitation.questionnaire import cost_per_parameter
from dualmandate.elicitation.willingness import (
    BoundedWillingness,
    ParameterEstimates,
    Willingness,
    critical_value,
    in_words,
    ratio_willingness,
)
from dualmandate.errors import IncompatibleUnits, InvalidPreferences, InvalidSurvey, InvalidValue, NoEstimate
from dualmandate.population import Calibrated
from dualmandate.population.currency import currency_of
from dualmandate.population.wording import exact, number
from dualmandate.program.file import Document, KeyPath, toml_text
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


def _calibrated(number: Calibrated, estimated_from: Ratio = ()) -> list[str]:
    stated = [
        f"value = {number_text(number.value)}",
        f"unit = {toml_text(number.unit)}",
        f"source = {toml_text(number.source)}",
        'kind = "measured"',
    ]
    if number.standard_error is not None:
        stated.append(f"standard_error = {number_text(number.standard_error)}")
    if number.time_base is not None:
        stated.append(f"time_base = {toml_text(number.time_base)}")
    if estimated_from:
        stated.append(f"estimated_from = [{', '.join(map(toml_text, estimated_from))}]")
    return stated


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

        None where nothing in it was measured. Beside the numbers stand the estimates that they come from, unless they
        were pooled. What a table of the workload states (`value_of_accuracy`) stands in a remark.
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
        measured = {found.key: found.estimated_from for found in self.found if found.key not in self.pooled}
        for key in stated:
            lines += ["", f"[preferences.{key}]", *_calibrated(numbers[key], measured.get(key, ()))]
        names = list(dict.fromkeys(name for ratio in measured.values() for name in ratio))
        if names and self.findings.joint is not None:
            rows = self.findings.joint.only(names).covariance.tolist()
            listed = ",\n".join(f"  [{', '.join(map(number_text, row))}]" for row in rows)
            lines += ["", "[preferences.estimates]  # each divided by its value"]
            lines += [f"names = [{', '.join(map(toml_text, names))}]", f"covariance = [\n{listed},\n]"]
        if "value_of_accuracy" in numbers:
            inline = ", ".join(_calibrated(numbers["value_of_accuracy"], measured.get("value_of_accuracy", ())))
            lines += ["", "# For a table of the workload:", f"# value_of_accuracy = {{ {inline} }}"]
        return "\n".join(lines) + "\n"

    def remarks(self) -> tuple[str, ...]:
        """All that must be said beside the numbers."""
        doubtful = tuple(
            f"The interval of {found.key} reaches down to 0: the answers do not rule out that nobody pays for it, and "
            "a plan says what that leaves open."
            for found in self.found
            if found.interval[0] <= 0
        )
        correlation = self.findings.correlation
        if correlation is None:
            return (*self.findings.notes, *doubtful)
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
        return (*self.findings.notes, *doubtful, together)

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
    return replace(found, number=number, interval=(low, high))


def _ground(survey: Survey, unit: str, own: str | None) -> CommonGround:
    report = survey.file.report
    horizon = None if report.horizon is None else report.horizon.discounting()
    others = tuple(dict.fromkeys([*survey.units.others, *report.other_units]))
    units = replace(survey.units, others=others)
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
    estimated_from: Ratio = ()  # the estimates that it is a ratio of, or proportional to


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
    joint: JointEstimates | None  # of which what was found is made
    worths: tuple[Worth, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def correlation(self) -> float | None:
        """How far the errors of the two numbers that were found go together; None where there is one."""
        if len(self.found) < 2 or self.joint is None:
            return None
        spread = self.joint.relative_covariance([found.estimated_from for found in self.found])
        return float(spread[0, 1] / math.sqrt(spread[0, 0] * spread[1, 1]))


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
    stated = unit or f"{survey.units.currency} per {word}" + (" per epsilon" if form == "linear" else "")
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
    with document.at("survey", "bid"):
        paid = number_in(valuation.mean(method=survey.file.model.interval, level=survey.confidence))
    spike = " with a spike at zero" if bids.spike else ""
    words = f"{table.kind} logit{spike}"
    paid_in = scenario.unit or survey.units.currency
    rate = money(paid_in, scenario.exchange_rate, survey.units, document, "scenario")
    form = survey.file.report.information_utility
    prior = _scenario_prior(survey)
    losses = [float(scenario.epsilon), float(scenario.lowered_to or 0)]
    high, low = cost_per_parameter(form, losses, prior)
    asked = f"contingent valuation, {bids.people:,} respondents; {words}"
    factor = rate / float(high - low)
    base = scenario.time_base or survey.file.report.time_base
    cost = finding_of(
        survey, MEAN_COST, paid.scaled(factor), source=asked, time_base=base, place=("scenario", "epsilon")
    )
    low_bound = (
        f"Turnbull's lower bound of what they would pay, whatever its distribution: {number(bound.lower_bound)} "
        f"{paid_in} (standard error {number(bound.standard_error, 2)}); it does not enter the estimate."
    )
    joint, found = _joined(survey, ("amount", "bid"), *valuation.mean_ratio(), (cost,))
    return SurveyFindings(survey, words, bids.people, valuation.estimates, found, joint, notes=(low_bound,))


def _joined(
    survey: Survey, names: tuple[str, ...], values: Floats, covariance: Floats, found: tuple[SurveyFinding, ...]
) -> tuple[JointEstimates | None, tuple[SurveyFinding, ...]]:
    """The estimates behind what was found, a numerator for each number and what all are divided by, if anything.

    Where intervals are made by the delta method the numbers themselves are taken as normal.
    """
    if not found:
        return None, found
    joint, below = JointEstimates(names, covariance / np.outer(values, values)), names[len(found) :]
    ratios = [(name, *below) for name in names[: len(found)]]
    if survey.file.model.interval == "delta":
        joint = JointEstimates(names[: len(found)], joint.relative_covariance(ratios))
        ratios = [ratio[:1] for ratio in ratios]
    return joint, tuple(replace(each, estimated_from=ratio) for each, ratio in zip(found, ratios, strict=True))


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
    found = tuple(_priced(survey, estimates, asked, notes))
    joint, found = _behind(survey, estimates, found)
    if all(each.role != "privacy loss" for each in survey.file.attributes.values()):
        notes.append("No attribute is a privacy loss: nothing here prices epsilon, so no [preferences] follow from it.")
    return SurveyFindings(survey, words, data.people, estimates, found, joint, worths, tuple(notes))


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


def _priced(survey: Survey, estimates: ParameterEstimates, asked: str, notes: list[str]) -> list[SurveyFinding]:
    """The cost of privacy loss and the price of accuracy, where the survey asked for them."""
    found = []
    _, paid = _of_role(survey, "price")
    base = paid.time_base or survey.file.report.time_base
    for name, attribute in survey.file.attributes.items():
        place = ("attributes", name)
        if attribute.role == "privacy loss":
            avoided = _worth(survey, estimates, name).scaled(-1.0)
            found.append(finding_of(survey, MEAN_COST, avoided, source=asked, time_base=base, place=place))
        if attribute.role != "accuracy":
            continue
        key, unit = _accuracy_key(survey, name, attribute)
        report = survey.file.report
        if report.people is None or report.numbers is None:
            notes.append(f"With people and numbers stated in [report], '{name}' becomes {key} in {unit}.")
            continue
        with survey.document.at("report", "people"):
            number = report.people
            size = Calibrated(float(number.value), number.unit, number.source)
            own = survey.units.agree(size.unit, survey.units.singular)
            people = size.to(survey.units.singular if own else "person", survey.units).value
        total = _worth(survey, estimates, name, _people_error(survey)).scaled(-people / report.numbers)
        source = f"{asked}; {exact(people)} people, {report.numbers:,} numbers"
        found.append(finding_of(survey, key, total, source=source, time_base=base, place=place, unit=unit))
    return found


def _people_error(survey: Survey) -> float:
    """The relative error of the number of people who pay for accuracy; 0 where none is stated."""
    people = survey.file.report.people
    return 0.0 if people is None or people.standard_error is None else float(people.standard_error / people.value)


def _behind(
    survey: Survey, estimates: ParameterEstimates, found: tuple[SurveyFinding, ...]
) -> tuple[JointEstimates | None, tuple[SurveyFinding, ...]]:
    """What the numbers of a choice experiment are ratios of: effects of their attributes, over that of the price."""
    names = tuple(str(each.place[-1]) for each in found)
    price, _ = _of_role(survey, "price")
    parameters = tuple(f"willingness to pay for {name}" for name in names) if _in_money(survey) else (*names, price)
    values, covariance = estimates.joint(parameters)
    for place, each in enumerate(found):
        if each.key != MEAN_COST:
            covariance[place, place] += (_people_error(survey) * values[place]) ** 2
    return _joined(survey, names if _in_money(survey) else parameters, values, covariance, found)


def _in_money(survey: Survey) -> bool:
    """Whether what people would pay was estimated itself, and not as a ratio."""
    return survey.file.model.estimator == "mixed logit" and survey.file.model.space == "willingness to pay"


def _worths(survey: Survey, estimates: ParameterEstimates) -> tuple[Worth, ...]:
    """What one more unit of each attribute but the price is worth to one respondent, USD."""
    names = [name for name, attribute in survey.file.attributes.items() if attribute.role != "price"]
    return tuple(Worth(name, _worth(survey, estimates, name)) for name in names)


def _worth(survey: Survey, estimates: ParameterEstimates, name: str, relative_error: float = 0.0) -> BoundedWillingness:
    """What one more unit of an attribute is worth, USD; refused where it has no bound.

    `relative_error` is that of what it will be multiplied by.
    """
    model, (price, paid) = survey.file.model, _of_role(survey, "price")
    assert paid.unit is not None
    rate = money(paid.unit, paid.exchange_rate, survey.units, survey.document, "attributes", price)
    with survey.document.at("attributes", price):
        if _in_money(survey):
            parameter = f"willingness to pay for {name}"
            value = estimates.value(parameter)
            error = math.hypot(estimates.standard_error(parameter), relative_error * value)
            critical = critical_value(survey.confidence)
            scale = "log scale" if price not in model.random else "mean of log scale"
            if critical * estimates.standard_error(scale) >= 1:  # the price's effect e^s has e^s times the error of s
                return number_in(Willingness(None, None, None, survey.confidence, "delta"))
            reach = critical * error
            worth = BoundedWillingness(value, error, (value - reach, value + reach), survey.confidence, "delta")
            return worth.scaled(rate)
        values, covariance = estimates.joint((name, price))
        covariance[0, 0] += (relative_error * values[0]) ** 2
        found = ratio_willingness(values, covariance, method=model.interval, level=survey.confidence)
        return number_in(found).scaled(rate)


def _accuracy_key(survey: Survey, name: str, attribute: SurveyAttribute) -> tuple[str, str]:
    """The key of a program that prices this accuracy, and its unit."""
    assert attribute.unit is not None
    squared, currency = attribute.measure == "squared", survey.units.currency
    with survey.document.at("attributes", name, "unit"):
        if currency_of(attribute.unit) == currency:
            key = "price_of_squared_misallocation" if squared else "price_of_misallocation"
            return key, f"{currency} per {currency}" + ("^2" if squared else "")
        if not survey.units.agree(attribute.unit, survey.units.singular):
            raise IncompatibleUnits(
                f"the errors are in '{attribute.unit}'",
                why=f"a program values errors in {currency}, or in {survey.units.plural}",
                instead=f'state unit = "{currency}" or unit = "{survey.units.singular}"',
            )
    return "value_of_accuracy", f"{currency} per {survey.units.singular}" + ("^2" if squared else "")


def _of_role(survey: Survey, role: str) -> tuple[str, SurveyAttribute]:
    return next((name, each) for name, each in survey.file.attributes.items() if each.role == role)
