"""What answers to bids say: what people would pay to have a privacy loss lowered."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualmandate.elicitation.bids import BidAnswers
from dualmandate.elicitation.coding import cost_per_parameter
from dualmandate.elicitation.contingent import contingent_valuation
from dualmandate.elicitation.turnbull import turnbull
from dualmandate.errors import InvalidSurvey
from dualmandate.population.wording import number
from dualmandate.program.lines import KeyPath
from dualmandate.survey.answers import Answers, read_answers
from dualmandate.survey.findings import MEAN_COST, Findings, found_of, number_in, scaled
from dualmandate.survey.survey_file import Survey, money

Progress = Callable[[str], None]


def bid_findings(survey: Survey, progress: Progress) -> Findings:
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
    cost = found_of(
        survey, MEAN_COST, scaled(paid, factor), source=asked, time_base=base, place=("scenario", "epsilon")
    )
    low_bound = (
        f"Turnbull's lower bound of what they would pay, whatever its distribution: {number(bound.lower_bound)} "
        f"{scenario.unit} (standard error {number(bound.standard_error, 2)}); it does not enter the estimate."
    )
    return Findings(survey, words, bids.people, valuation.estimates, (cost,), notes=(low_bound,))


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


def _bid_answers(survey: Survey, answers: Answers) -> BidAnswers:
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
        _refuse(
            np.where(yes, second <= bid, second >= bid),
            answers,
            ("survey", "second_bid"),
            "does not ask for more after a yes, or for less after a no",
        )
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


def _refuse(wrong: NDArray[np.bool_], answers: Answers, key: KeyPath, what: str) -> None:
    if wrong.any():
        line = answers.lines[int(np.flatnonzero(wrong)[0])]
        raise InvalidSurvey(
            f"the column '{answers.document.value(key)}' {what}, on line {line.number}",
            why="a bid is an amount to be paid, and no answer to it contradicts another",
            instead=f"mend line {line.number} of '{line.file}', or leave out the respondent",
            where=answers.document.place(key),
        )
