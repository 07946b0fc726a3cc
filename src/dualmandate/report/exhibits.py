"""The pictures of the dossier: each for a desk and for a phone, with a sentence on how to read it and its table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dualmandate.planning.study import drawn_instead, is_study, marked
from dualmandate.planning.technology import Technology, in_words
from dualmandate.population.wording import percent
from dualmandate.report.figures import (
    NARROW,
    WIDE,
    Twin,
    WhatIf,
    consequences,
    consequences_twin,
    rates,
    rates_twin,
    regret,
    regret_twin,
    strategies,
    strategies_twin,
    tangency,
    tangency_twin,
    technologies,
    technologies_twin,
    tornado,
    tornado_twin,
    welfare_curve,
    welfare_twin,
    what_if,
    what_if_twin,
)
from dualmandate.report.figures.saving import Picture

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan


@dataclass(frozen=True)
class Exhibit:
    """A picture on the page, for a desk and for a phone, with a sentence on how to read it and the table behind it."""

    name: str
    sentence: str
    wide: Picture
    narrow: Picture
    twin: Twin

    @classmethod
    def drawn(cls, name: str, sentence: str, *, draw: Callable[[int], Picture], twin: Twin) -> Exhibit:
        """The exhibit in both widths."""
        return cls(name, sentence, draw(WIDE), draw(NARROW), twin)


def exhibits_of(plan: Plan, grid: WhatIf) -> Iterator[Exhibit]:
    """Every picture of the dossier, in the order of the page."""
    yield from _of_the_choice(plan)
    yield Exhibit.drawn(
        "what-if",
        "The weight on privacy and the value of accuracy are judgments. What would be chosen if they were others was "
        "worked out beforehand; the sliders look it up.",
        draw=lambda width: what_if(plan.frontier, plan.welfare, plan.choice, grid=grid, width=width),
        twin=what_if_twin(grid, plan.choice),
    )
    yield _of_the_saving(plan)
    beside = {noise: other for noise, other in plan.frontiers.items() if other.currency is plan.choice.currency}
    compared, studies = [*beside.values()], tuple(other.name for noise, other in beside.items() if is_study(noise))
    if len(compared) > 1:
        yield Exhibit.drawn(
            "technologies",
            "At the same privacy loss some kinds of noise do less harm to the tables than others. The thick line marks "
            "the best at each privacy loss, of those that can be published.",
            draw=lambda width: technologies(compared, plan.welfare, plan.choice, studies=studies, width=width),
            twin=technologies_twin(compared, plan.welfare, plan.choice, studies=studies),
        )


def _of_the_saving(plan: Plan) -> Exhibit:
    """What the technology in use saves: the plain one, an optimized strategy where it would do better, the one used.

    Beside a study stands what can be published instead.
    """
    saving = plan.saving
    gains = (saving.at_choice["optimized"] or math.inf) < (saving.at_choice["used"] or 0.0)
    instead = plan.technologies.get(drawn_instead(saving.used.noise).name) if plan.study else None
    ways = (saving.plain, saving.optimized if gains else None, instead, saving.used)
    names = {_named(way): way.frontier for way in ways if way is not None}
    costs = {name: partial(plan.welfare.data_loss, frontier) for name, frontier in names.items()}
    used = _named(saving.used)
    least = None if saving.limit is None or instead is not None else saving.limit.at
    return Exhibit.drawn(
        "strategies",
        "What is measured need not be what is published: tables can be put together from better measurements. The "
        "bar at the choice is what the technology in use saves against plain noise on the tables.",
        draw=lambda width: strategies(costs, plan.choice, used=used, least=least, width=width),
        twin=strategies_twin(costs, plan.choice, used=used, least=least),
    )


def _named(technology: Technology) -> str:
    return marked(in_words(technology.noise, technology.strategy), technology.noise)


def _of_the_choice(plan: Plan) -> Iterator[Exhibit]:
    frontier, welfare, choice = plan.frontier, plan.welfare, plan.choice
    yield Exhibit.drawn(
        "tangency",
        "The blue curve is the most accuracy that the technology can give for each privacy loss. Along the orange one "
        "society is equally well off; it is better off above and to the left. The open circle is the best place that "
        "can be reached.",
        draw=lambda width: tangency(frontier, welfare, choice, limits=plan.limits, width=width),
        twin=tangency_twin(frontier, welfare, choice),
    )
    yield Exhibit.drawn(
        "rates",
        "Each further unit of privacy loss buys less accuracy (blue). Society asks for accuracy in return (orange). "
        "While it gets more than it asks for, it should go on.",
        draw=lambda width: rates(frontier, welfare, choice, width=width),
        twin=rates_twin(frontier, welfare, choice),
    )
    yield Exhibit.drawn(
        "welfare",
        "More privacy loss takes away privacy (orange) and takes away errors (blue). The black curve is both together; "
        "dots are other places that were considered, where welfare turns or a limit stops it.",
        draw=lambda width: welfare_curve(frontier, welfare, choice, width=width),
        twin=welfare_twin(frontier, welfare, choice),
    )
    yield Exhibit.drawn(
        "regret",
        _regret_sentence(plan),
        draw=lambda width: regret(frontier, welfare, choice, width=width),
        twin=regret_twin(frontier, welfare, choice),
    )
    yield Exhibit.drawn(
        "tornado",
        "Each bar shows where the choice would fall if one number were different and all others as stated.",
        draw=lambda width: tornado(plan.tornado, choice, width=width),
        twin=tornado_twin(plan.tornado, choice),
    )
    yield Exhibit.drawn(
        "consequences",
        "What a reader of the tables may expect: by how much a published number is off, typically and at most in 95 "
        "of 100 cases, and what an error comes to in dollars.",
        draw=lambda width: consequences(choice, plan.half_widths, width=width),
        twin=consequences_twin(choice, plan.half_widths),
    )


def _regret_sentence(plan: Plan) -> str:
    """How forgiving the choice is, and on which side."""
    choice = plan.choice
    if choice.bound_by != "preferences":
        return (
            "A limit decides, so the curve is no valley: below zero, society would be better off, but the limit "
            "forbids it."
        )
    forgone = {
        multiple: choice.welfare - plan.welfare.at(plan.frontier, multiple * choice.epsilon)
        for multiple in (0.5, 0.9, 1.1, 2.0)
    }
    near = percent(max(forgone[0.9], forgone[1.1]) / abs(choice.welfare))
    side = "too little privacy loss" if forgone[0.5] > forgone[2.0] else "too much privacy loss"
    return (
        f"The valley is flat at the bottom: being off by a tenth costs at most {near} more. Being off by a factor of "
        f"two costs more on the side of {side}."
    )
