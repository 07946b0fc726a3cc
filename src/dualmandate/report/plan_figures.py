"""The figures of a plan, in the order of the dossier: of every plan, then of the parts that a program asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from dualmandate.planning.study import drawn_instead, is_study, marked
from dualmandate.planning.technology import Technology, in_words
from dualmandate.report.figures import (
    Figure,
    WhatIf,
    charges,
    consequences,
    distribution,
    existing,
    institutions,
    offering,
    participation,
    path,
    rates,
    regret,
    regret_distribution,
    robust,
    social_choice,
    strategies,
    survey_worth,
    tangency,
    technologies,
    tornado,
    votes,
    welfare_curve,
    what_if,
)

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan


def plan_figures(plan: Plan, grid: WhatIf) -> Iterator[Figure]:
    """Every figure of the dossier; none is drawn yet. `grid` holds the choices under other weights."""
    frontier, welfare, choice = plan.frontier, plan.welfare, plan.choice
    yield tangency(frontier, welfare, choice, limits=plan.limits)
    yield rates(frontier, welfare, choice)
    yield welfare_curve(frontier, welfare, choice)
    yield regret(frontier, welfare, choice)
    yield tornado(plan.tornado, choice)
    yield consequences(choice, plan.half_widths)
    yield what_if(frontier, welfare, choice, grid=grid)
    yield _saving(plan)
    beside = {
        noise: other for noise, other in plan.frontiers.items() if other.privacy_measure is choice.privacy_measure
    }
    studies = tuple(other.name for noise, other in beside.items() if is_study(noise))
    if len(beside) > 1:
        yield technologies([*beside.values()], welfare, choice, studies=studies)
    yield from _of_preferences(plan)
    yield from _of_extensions(plan)


def _saving(plan: Plan) -> Figure:
    """What the technology in use saves: the plain one, an optimized strategy where it would do better, the one used.

    Beside a study stands what can be published instead.
    """
    saving = plan.saving
    gains = (saving.at_choice["optimized"] or math.inf) < (saving.at_choice["used"] or 0.0)
    instead = plan.technologies.get(drawn_instead(saving.used.noise).name) if plan.study else None
    ways = (saving.plain, saving.optimized if gains else None, instead, saving.used)
    names = {_named(way): way.frontier for way in ways if way is not None}
    costs = {name: partial(plan.welfare.data_loss, frontier) for name, frontier in names.items()}
    least = None if saving.limit is None or instead is not None else saving.limit.at
    return strategies(costs, plan.choice, used=_named(saving.used), least=least)


def _named(technology: Technology) -> str:
    return marked(in_words(technology.noise, technology.strategy), technology.noise)


def _of_preferences(plan: Plan) -> Iterator[Figure]:
    """Preferences that are not known exactly, or that differ between people."""
    part, rules = plan.uncertainty, plan.social_choice
    if part is not None and part.known is not None:
        yield distribution(part.known)
        yield regret_distribution(part.known)
        if part.survey is not None:
            yield survey_worth(part.known, spread=part.survey.spread, parameter=part.survey.parameter)
    if part is not None and part.robust is not None:
        yield robust(part.robust)
    if rules is not None:
        yield social_choice(rules)
        if len(rules.majority.options) > 1:
            yield votes(rules)
        yield charges(rules)


def _of_extensions(plan: Plan) -> Iterator[Figure]:
    """The optional parts, each figure named after its section."""
    parts, privacy_measure = plan.extensions, plan.choice.privacy_measure
    responding = parts.participation
    if responding is not None and responding.peak is not None:
        yield participation(responding.noise_cost, responding.cost, plan.choice, peak=responding.peak)
    if parts.existing:
        yield existing(parts.existing)
    if parts.offering is not None:
        yield offering(parts.offering)
    if parts.path is not None:
        yield path(parts.path, privacy_measure)
    if parts.markets:
        yield institutions(parts.markets, privacy_measure)
