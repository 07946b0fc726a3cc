"""Preferences that are not known exactly, or that differ: the best loss as a distribution, robust choices, other rules.

The uncertain numbers of a program, and its `[social_choice]`, carried into its plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from dualmandate.choice import (
    Beliefs,
    Limits,
    RobustChoice,
    SocialChoices,
    SocialChoiceTerms,
    Society,
    SurveyValue,
    Uncertain,
    UncertainChoice,
    best_survey,
    choose_under_uncertainty,
    inputs,
    minimax_regret,
    share_in_words,
    social_choices,
    survey_value,
)
from dualmandate.choice.beliefs import number_asked_for
from dualmandate.choice.estimates import JointEstimates
from dualmandate.choice.social_choice import rules_asked_for
from dualmandate.errors import InvalidLoss, InvalidValue, Refusal
from dualmandate.frontier.numerics import log_grid
from dualmandate.planning.welfare import amount_in, float_or_none, in_currency
from dualmandate.population.wording import chosen_loss, exact, money, number
from dualmandate.program.file import dotted
from dualmandate.program.number import calibrated_numbers
from dualmandate.program.schema import BEST

if TYPE_CHECKING:
    from dualmandate.frontier import Frontier
    from dualmandate.planning.program import Program
    from dualmandate.program.file import Document
    from dualmandate.program.number import CalibratedNumber
    from dualmandate.program.schema import (
        ProgramKeys,
        RatioTable,
        SocialChoiceTable,
        UncertaintyTable,
        WorkloadTable,
    )

ERRORS_AGREE = 0.01  # A stated standard error and the one of its estimates differ by at most this share.
QUANTILES = (0.005, 0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975, 0.995)
LEVEL = 0.95
JUDGED = {  # keys of [preferences] by the number that they state
    "prior_probability": ("prior_probability",),
    "relative_privacy_weight": ("relative_privacy_weight", "privacy_weight"),
}
MARGIN, LEAST_MARGIN = 1.4, 1.002  # times the lowest and the highest loss of peaks and rules, at most and at least


@dataclass(frozen=True)
class UncertainNumber:
    """A number of the program that states a standard error or a range, in the unit that welfare counts it in."""

    name: str  # as in the tornado
    unit: str
    value: float
    standard_error: float | None
    least: float | None
    largest: float | None


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """What a plan says about numbers that are not known exactly; `why_not` where that cannot be worked out."""

    numbers: tuple[UncertainNumber, ...]
    currency: str
    known: UncertainChoice | None = None  # where some number states a standard error
    survey: SurveyValue | None = None  # where [uncertainty] says what a survey would measure
    worthwhile: SurveyValue | None = None  # the survey that pays best, where a cost per respondent is stated
    cost_per_respondent: float | None = None
    robust: RobustChoice | None = None  # where some number states a range
    relative: RobustChoice | None = None
    why_not: str | None = None

    def sentences(self) -> Iterator[str]:
        """What a board should know of it."""
        if self.why_not is not None:
            yield f"What the uncertain numbers mean could not be worked out: {self.why_not}."
        if self.known is not None:
            yield from self.known.explain().splitlines()
            yield from _together(self.known.beliefs)
        if self.survey is not None:
            yield f"{str(self.survey)[:1].upper()}{str(self.survey)[1:]}."
        if self.cost_per_respondent is not None:
            cost = money(self.cost_per_respondent, self.currency)
            if self.worthwhile is None:
                yield f"At {cost} a person no survey is worth its cost."
            else:
                size, value = self.worthwhile.respondents, money(self.worthwhile.value, self.currency)
                yield f"At {cost} a person it pays best to ask {size:,} people: that is worth {value}."
        if self.robust is not None:
            yield from self.robust.explain().splitlines()
        if self.relative is not None and self.relative.regret > 0:
            yield (
                f"Counted as a share of what is lost at best, {self.relative.privacy_measure} = "
                f"{chosen_loss(self.relative.epsilon)} has the least worst regret: "
                f"{_bounded(self.relative.regret)} more."
            )


def check_uncertainty(program: Program) -> None:
    """Refuse errors, surveys and rules that are stated and lead to nothing: before a search, which may take minutes."""
    numbers = tuple(_numbers(program))
    _refuse_uncarried(program, {number.name for number in numbers})
    table, uncertain = program.file.uncertainty, [n.name for n in numbers if n.standard_error is not None]
    if table is not None:
        if not uncertain:
            raise _idle(program)
        with _asking(program, table):
            number_asked_for(uncertain, table.parameter)
        _cost_of_an_answer(program, table)
    if program.file.social_choice is not None:
        society, terms = _society_and_terms(program, program.file.social_choice)
        with program.document.at("social_choice"):
            rules_asked_for(society, terms, program.file.social_choice.rules or None)


def uncertainty_of(program: Program, frontier: Frontier, limits: Limits) -> Uncertainty | None:
    """Everything that follows from standard errors and ranges; None where no number states any."""
    numbers = tuple(_numbers(program))
    if not numbers:
        return None
    try:
        beliefs = _beliefs(program, numbers)
        known = None if beliefs is None else choose_under_uncertainty(frontier, beliefs, limits)
        survey, worthwhile, cost = (None, None, None) if known is None else _surveys(program, known)
        ranges = {n.name: (n.least, n.largest) for n in numbers if n.least is not None and n.largest is not None}
        robust = relative = None
        if ranges:
            robust = minimax_regret(frontier, program.welfare, ranges, limits=limits)
            relative = minimax_regret(frontier, program.welfare, ranges, limits=limits, relative=True)
    except Refusal as refusal:
        if refusal.where is not None and refusal.where.line is not None:
            raise  # a key of the file, not the economics, is to blame
        return Uncertainty(numbers, program.units.currency, why_not=f"{refusal.what}: {refusal.why}")
    return Uncertainty(numbers, program.units.currency, known, survey, worthwhile, cost, robust, relative)


def _numbers(program: Program) -> Iterator[UncertainNumber]:
    """Stated numbers with a standard error or a range, under the names of the tornado."""
    rows = {row.name: row for row in inputs(program.welfare)}
    for name, stated in stated_numbers(program):
        quantity = None if stated is None else stated.quantity()
        if quantity is None or not quantity.uncertain or name not in rows or quantity.value <= 0:
            continue
        row, scale = rows[name], rows[name].value / quantity.value
        spread = (quantity.standard_error, quantity.least, quantity.largest)
        yield UncertainNumber(name, row.unit, row.value, *(None if each is None else each * scale for each in spread))


def stated_numbers(program: Program) -> Iterator[tuple[str, CalibratedNumber | None]]:
    """Every calibrated number that the choice rests on, under the names of the tornado; None where it is not stated."""
    file = program.file
    preferences, groups = file.preferences, file.preferences.groups
    yield "mean_disclosure_cost", preferences.mean_disclosure_cost
    if not groups:
        yield "population_size", file.population.population_size
    for group in groups:
        of = f" of {group.name}" if len(groups) > 1 else ""
        yield f"mean_disclosure_cost{of}", group.mean_disclosure_cost
        yield (f"size{of}" if of else "population_size"), group.size
    tables: tuple[WorkloadTable | RatioTable, ...] = (*file.workload, *file.ratios)
    for table in tables:
        of = f" of {table.name}" if len(program.welfare.table_values) > 1 else ""
        yield f"value_of_accuracy{of}", table.value_of_accuracy
        yield f"consequence{of}", table.consequence
    yield "price_of_squared_misallocation", preferences.price_of_squared_misallocation
    yield "price_of_misallocation", preferences.price_of_misallocation


def numbers_without_errors(program: Program) -> Iterator[str]:
    """What the choice rests on besides, of which no error can be carried into it: taken as it stands in the file."""
    file = program.file
    for table in file.workload:
        of = f" of {table.name}"
        if table.decision is not None:
            given = [
                name for name in ("per_head", "title_i", "threshold", "appropriation") if getattr(table.decision, name)
            ]
            yield from (f"{name}{of}" for name in given)
        for group in table.wealth:
            yield from (f"{name} of {group.name}" for name in ("people", "exposure", "risk_aversion"))
        stated = [name for name in ("threshold", "expected_number", "public_numbers") if getattr(table, name)]
        counted = ("total", "standard_deviation", "falsely_counted") if file.participation is not None else ()
        stated += [name for name in counted if getattr(table, name) is not None]
        yield from (f"{name}{of}" for name in stated)
    yield from (
        f"typical_value of {ratio.name}" for ratio in file.ratios if _is_paid_for(ratio) and ratio.typical_value
    )
    # What clipping leaves out moves the choice where it decides a bound, or whether a table is fit for use.
    fit = {table.sum_of for table in file.workload if table.fitness_for_use is not None}
    for name, attribute in file.population.attributes.items():
        if attribute.distribution is not None and (attribute.upper == BEST or name in fit):
            yield f"distribution of {name}"
    if file.population.records_per_unit is not None and fit:
        yield "records_per_unit"
    if file.participation is not None:
        answered = file.participation.model_fields_set - {"source"}
        yield from (name for name in type(file.participation).model_fields if name in answered)


def judgments(program: Program) -> Iterator[str]:
    """Numbers of [preferences] that have no error to state, and that other readings alone can move."""
    stated = (program.file.preferences, *program.file.preferences.groups)
    for row in inputs(program.welfare, program.limits, tables=()):
        keys = JUDGED.get(row.name.split(" of ")[0], ())
        if any(getattr(table, key, None) is not None for table in stated for key in keys):
            yield row.name


def _is_paid_for(ratio: RatioTable) -> bool:
    return ratio.consequence is not None or ratio.value_of_accuracy is not None


def _refuse_uncarried(program: Program, carried: set[str]) -> None:
    """An error that is stated of a number moves the choice, or is refused: it is never passed over."""
    known = [stated for name, stated in stated_numbers(program) if name in carried]
    for key, stated in calibrated_numbers(program.file):
        error = next((name for name in ("standard_error", "least", "largest") if getattr(stated, name) is not None), "")
        if error and not any(stated is each for each in known):
            raise InvalidValue(
                f"{dotted(key)} states how uncertain it is, and the plan does not use that",
                why="errors of costs, values and prices that move the choice are carried into it, of no other number",
                instead=f"leave {error} out, and plan with another value to see what it would change",
                where=program.document.place((*key, error)),
            )


def _beliefs(program: Program, numbers: tuple[UncertainNumber, ...]) -> Beliefs | None:
    """What is believed of the numbers that state a standard error; None where none does."""
    uncertain = [Uncertain(n.name, n.value, n.standard_error) for n in numbers if n.standard_error is not None]
    if not uncertain:
        return None
    ratios = {
        name: stated.estimated_from for name, stated in stated_numbers(program) if stated and stated.estimated_from
    }
    measured = {number.name: ratios[number.name] for number in uncertain if number.name in ratios}
    if program.estimates is None or not measured:
        return Beliefs.lognormal(program.welfare, uncertain)
    others = [number for number in uncertain if number.name not in measured]
    return Beliefs.estimated(program.welfare, program.estimates, measured, others)


def estimates_of(file: ProgramKeys, document: Document) -> JointEstimates | None:
    """What a survey estimated; refused where it and the numbers that refer to it do not fit together."""
    import numpy as np

    table, found = file.preferences.estimates, None
    if table is not None:
        with document.at("preferences", "estimates", "covariance"):
            found = JointEstimates(table.names, np.array(table.covariance, dtype=np.float64))
    for key, stated in calibrated_numbers(file):
        if stated.estimated_from:
            with document.at(*key, "estimated_from"):
                _check_estimated(stated, found)
    return found


def _check_estimated(stated: CalibratedNumber, estimates: JointEstimates | None) -> None:
    """A number that comes from estimates names one or two of them, and states the error that follows from theirs."""
    known = () if estimates is None else estimates.names
    named = stated.estimated_from
    if estimates is None or len(set(named)) != len(named) or len(named) > 2 or not set(named) <= set(known):
        raise InvalidValue(
            f"there are no estimates {' and '.join(map(repr, named))} to divide",
            why=f"[preferences.estimates] names {', '.join(known) or 'none'}; a number comes from one or two of them",
            instead="name one of them, or two: what it is proportional to, and what it is divided by",
        )
    error = math.sqrt(float(estimates.relative_covariance([named])[0, 0])) * float(stated.value)
    own = float(stated.standard_error or 0)
    if not math.isclose(error, own, rel_tol=ERRORS_AGREE):
        raise InvalidValue(
            f"the standard_error is {exact(own) if own else 'not stated'}, and by its estimates {number(error)}",
            why="a number that comes from estimates is as uncertain as they are",
            instead=f"state standard_error = {error:.6g}, or leave estimated_from out",
        )


def _surveys(program: Program, known: UncertainChoice) -> tuple[SurveyValue | None, SurveyValue | None, float | None]:
    table = program.file.uncertainty
    if table is None:
        return None, None, None
    spread, parameter = float(table.spread_of_answers), table.parameter
    with _asking(program, table):
        survey = survey_value(known, table.respondents, spread=spread, parameter=parameter)
    cost = _cost_of_an_answer(program, table)
    if cost is None:
        return survey, None, None
    with program.document.at("uncertainty", "cost_per_respondent"):
        return survey, best_survey(known, cost_per_respondent=cost, spread=spread, parameter=parameter), cost


def _asking(program: Program, table: UncertaintyTable) -> AbstractContextManager[None]:
    """Where a survey says what it asks for."""
    return program.document.at("uncertainty", *(["parameter"] if table.parameter else []))


def _cost_of_an_answer(program: Program, table: UncertaintyTable) -> float | None:
    return amount_in(program, program.units.currency, table.cost_per_respondent, "uncertainty", "cost_per_respondent")


def _idle(program: Program) -> InvalidValue:
    """[uncertainty] without a number that a survey could make surer says nothing."""
    return InvalidValue(
        "a survey is described, but no number has a standard_error",
        why="a survey is worth something only where something is not known",
        instead="state standard_error beside the numbers that are uncertain, or leave [uncertainty] out",
        where=program.document.place(("uncertainty",)),
    )


def _together(beliefs: Beliefs) -> Iterator[str]:
    """How far errors go together, where there are several."""
    if len(beliefs.names) < 2 or beliefs.log_covariance is None:
        return
    pairs = [
        f"those of {one} and {other} go together as their survey says"
        for (i, one), (j, other) in combinations(enumerate(beliefs.names), 2)
        if beliefs.log_covariance[i, j] != 0
    ]
    alone = "The errors of these numbers are taken as independent of each other"
    if pairs and len(beliefs.names) == 2:
        yield f"Of their errors, {pairs[0]}."
    else:
        yield f"{alone}{'; only ' if pairs else ''}{', '.join(pairs)}."


def _bounded(share: float) -> str:
    words = share_in_words(share)
    return f"at most {words}" if words[0].isdigit() else words


def social_choice_of(program: Program, frontier: Frontier, limits: Limits) -> SocialChoices | None:
    """What each rule would choose, who gains and who loses; None where the program does not ask."""
    table = program.file.social_choice
    if table is None:
        return None
    society, terms = _society_and_terms(program, table)
    with program.document.at("social_choice"):
        try:
            return social_choices(frontier, society, limits, rules=table.rules or None, terms=terms)
        except InvalidLoss as refusal:
            if "disagreement_epsilon" not in refusal.what:
                raise
            key = f"disagreement_{program.welfare.privacy_measure}"
            raise refusal.at(program.document.place(("social_choice", key))) from None


def _society_and_terms(program: Program, table: SocialChoiceTable) -> tuple[Society, SocialChoiceTerms]:
    """Who has a say, and what the rules ask for; refused where they could say nothing."""
    if len(program.welfare.groups) == 1:
        raise InvalidValue(
            "other ways to add people up are asked for, but everybody is alike",
            why="where all want the same, every rule chooses the same",
            instead="state [[preferences.groups]] with their own costs, or leave [social_choice] out",
            where=program.document.place(("social_choice",)),
        )
    with program.document.at("preferences", "groups"):
        society = _society(program)
    measure, key = program.welfare.privacy_measure, ("social_choice", "disagreement")
    terms = SocialChoiceTerms(
        baseline=_baseline(program),
        disagreement_epsilon=float_or_none(in_currency(table, key, "states", measure, program.document)),
        phantoms=tuple(float(place) for place in table.phantoms),
        options=tuple(float(place) for place in table.options),
        status_quo=float_or_none(table.status_quo),
    )
    return society, terms


def _society(program: Program) -> Society:
    groups = program.file.preferences.groups
    stated = {group.name: group.share_of_accuracy for group in groups if group.share_of_accuracy is not None}
    missing = [group.name for group in groups if group.share_of_accuracy is None]
    if stated and missing:
        raise InvalidValue(
            f"'{missing[0]}' states no share_of_accuracy, '{next(iter(stated))}' does",
            why="shares add up to 1 over everybody, so they are stated for all groups or for none",
            instead="state share_of_accuracy for every group, 0 where accuracy is worth nothing to it",
        )
    weights = {group.name: float(group.welfare_weight) for group in groups if group.welfare_weight is not None}
    shares = {name: float(share) for name, share in stated.items()}
    return Society.of(program.welfare, shares or None, weights)


def _baseline(program: Program) -> Mapping[str, float] | float | None:
    """How well off people are without the release, USD a member: by group, or one for all."""
    table, groups = program.file.social_choice, program.file.preferences.groups
    assert table is not None
    unit = f"{program.units.currency} per {program.units.singular}"
    common = amount_in(program, unit, table.baseline, "social_choice", "baseline")
    own = {}
    for position, group in enumerate(groups):
        stated = amount_in(program, unit, group.baseline, "preferences", "groups", position, "baseline")
        if stated is not None:
            own[group.name] = stated
    if not own or common is None:
        return own or common
    return dict.fromkeys((group.name for group in groups), common) | own


def gains_at_each_loss(choices: SocialChoices) -> dict[float, dict[str, float]]:
    """What one member of each group gains, USD, against the status quo, at losses around all peaks and rules."""
    peaks = [peak.epsilon for peak in choices.profile.peaks]
    wanted = [*peaks, *(row.epsilon for row in choices.rows if row.epsilon is not None), choices.against]
    places = [place for place in wanted if 0 < place < math.inf]
    apart = max(places) / min(places) if all(0 < peak < math.inf for peak in peaks) else math.inf
    margin = MARGIN if apart == 1 else min(max(math.sqrt(apart), LEAST_MARGIN), MARGIN)
    low, high = choices.profile.span
    ends = max(min(places) / margin, low), min(max(places) * margin, high)
    losses = log_grid(*ends, through=(choices.against,), points=81)
    return {loss: choices.profile.gains(loss, choices.against) for loss in losses}
