"""The dossier: one page on which a review board finds what was chosen, why, at what price, and what it rests on.

Every picture stands on the page as drawn SVG, once for a desk and once for a phone, so the page shows without scripts,
prints, and needs no charting library. The one thing that moves, two sliders over a grid of choices made beforehand, is
a few lines of script that look up and never compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualmandate.choice import plural
from dualmandate.errors import Refusal
from dualmandate.figures import (
    DARK,
    LIGHT,
    NARROW,
    WIDE,
    Column,
    Twin,
    WhatIf,
    consequences,
    consequences_twin,
    headline,
    inline_svg,
    rates,
    rates_twin,
    regret,
    regret_twin,
    svg,
    tangency,
    tangency_twin,
    technologies,
    technologies_twin,
    tornado,
    tornado_twin,
    welfare_curve,
    welfare_twin,
    what_if,
    what_if_choices,
    what_if_twin,
    write,
)
from dualmandate.figures.saving import Picture, svg_to_png
from dualmandate.figures.theme import FONT, Palette
from dualmandate.figures.twin import Cell
from dualmandate.figures.wording import money, number, percent, plain_number, plain_unit, stated_loss
from dualmandate.program.schema import CalibratedNumber

if TYPE_CHECKING:
    from dualmandate.choice import Choice
    from dualmandate.program.plan import Plan

PAGE, FIGURES = "dossier.html", "figures"
JUDGMENTS = (
    "population.neighbors",
    "population.most_records",
    "population.household",
    "mechanism",
    "preferences",
    "limits",
)
CONTENTS = (
    ("choice", "The choice"),
    ("guarantee", "The promise"),
    ("reasons", "Why"),
    ("regret", "If it is wrong"),
    ("tables", "Each table"),
    ("what-if", "Other weights"),
    ("technologies", "Technologies"),
    ("inputs", "Inputs and sources"),
    ("notes", "Notes"),
)


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


def write_dossier(plan: Plan, directory: Path | str) -> tuple[Path, ...]:
    """Write the page and its pictures (SVG and PNG, in a folder `figures`) for a plan; returns what was written.

    Files of an earlier dossier in the directory are replaced; nothing else there is touched.
    """
    directory = Path(directory)
    grid = what_if_choices(plan.frontier, plan.welfare, plan.limits)
    exhibits = {exhibit.name: exhibit for exhibit in _exhibits(plan, grid)}
    written = [write(directory / PAGE, _page(plan, exhibits, grid).encode())]
    for name, exhibit in exhibits.items():
        drawing = svg(exhibit.wide)
        written.append(write(directory / FIGURES / f"{name}.svg", drawing.encode()))
        written.append(write(directory / FIGURES / f"{name}.png", svg_to_png(drawing)))
    return tuple(written)


def _exhibits(plan: Plan, grid: WhatIf) -> Iterator[Exhibit]:
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
    yield Exhibit.drawn(
        "what-if",
        "The weight on privacy and the value of accuracy are judgments. What would be chosen if they were others was "
        "worked out beforehand; the sliders look it up.",
        draw=lambda width: what_if(frontier, welfare, choice, grid=grid, width=width),
        twin=what_if_twin(grid, choice),
    )
    compared = [other for other in plan.frontiers.values() if other.currency is choice.currency]
    if len(compared) > 1:
        yield Exhibit.drawn(
            "technologies",
            "At the same privacy loss some kinds of noise do less harm to the tables than others. The thick line marks "
            "the best at each privacy loss.",
            draw=lambda width: technologies(compared, welfare, choice, width=width),
            twin=technologies_twin(compared, welfare, choice),
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


def _page(plan: Plan, exhibits: Mapping[str, Exhibit], grid: WhatIf) -> str:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("dualmandate.program").joinpath("templates")
    environment = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = {name: _shown(exhibit) for name, exhibit in exhibits.items()}
    header, choice = plan.program.file.program, plan.choice
    return environment.get_template("dossier.html").render(
        name=header.name,
        description=header.description,
        loss=stated_loss(choice.loss),
        light=_variables(LIGHT),
        dark=_variables(DARK),
        font=FONT,
        contents=CONTENTS if plan.notes else CONTENTS[:-1],
        explanation=choice.explain().splitlines(),
        numbers=_numbers(plan),
        guarantee=plan.guarantee,
        reasons=[shown["tangency"], shown["rates"], shown["welfare"]],
        risks=[shown["regret"], shown["tornado"]],
        consequences=shown["consequences"],
        what_if=shown["what-if"],
        technologies=shown.get("technologies"),
        compared=_compared(plan),
        inputs=_inputs(plan),
        notes=plan.notes,
        sliders=_sliders(plan, grid),
        last_step=len(grid.multiples) - 1,
        digest=plan.digest,
    )


def _shown(exhibit: Exhibit) -> dict[str, Any]:
    from markupsafe import Markup

    finding, units = headline(exhibit.wide)
    return {
        "name": exhibit.name,
        "finding": finding,
        "units": units,
        "sentence": exhibit.sentence,
        "wide": Markup(inline_svg(exhibit.wide, f"{exhibit.name}-wide")),
        "narrow": Markup(inline_svg(exhibit.narrow, f"{exhibit.name}-narrow")),
        "twin": exhibit.twin,
    }


def _variables(palette: Palette) -> str:
    return " ".join(f"--dm-{name}: {color};" for name, color in asdict(palette).items())


def _numbers(plan: Plan) -> list[tuple[str, str]]:
    """The few numbers to remember."""
    choice, probability = plan.choice, plan.technology.producer.failure_probability
    numbers = [("privacy loss", stated_loss(choice.loss))]
    if probability is not None:
        numbers += [("failure probability δ", number(probability)), ("spent, exactly", stated_loss(plan.loss))]
    if choice.root_mean_squared_error is not None:
        unit = plural(choice.tables[0].unit)
        numbers.append(("typical error of a number", f"{number(choice.root_mean_squared_error)} {unit}"))
    if choice.root_mean_squared_consequence is not None:
        numbers.append(("what such an error comes to", money(choice.root_mean_squared_consequence)))
    return [
        *numbers,
        ("cost in privacy", money(choice.privacy_cost)),
        ("cost in errors", money(choice.data_loss)),
        ("decided by", choice.bound_by),
    ]


def _compared(plan: Plan) -> Twin:
    """What each kind of noise would choose, beside what was chosen."""
    rows: list[dict[str, Cell]] = []
    for other in plan.comparisons:
        row: dict[str, Cell] = {
            "noise": other.noise,
            "marked": other.noise == plan.technology.noise,
            "why": other.why or None,
        }
        if other.choice is not None:
            row |= {
                "loss": float(other.choice.loss),
                "error": other.choice.root_mean_squared_error,
                "consequence": other.choice.root_mean_squared_consequence,
                "cost": -other.choice.welfare,
            }
        rows.append(row)
    return Twin(
        caption="What each kind of noise would choose, and what society would then lose; the one used is set off",
        columns=(
            Column("noise", "noise", "text"),
            Column("loss", f"chosen {plan.choice.currency}", "loss"),
            Column("error", "typical error (RMSE)"),
            Column("consequence", "what such an error comes to", "money"),
            Column("cost", "cost to society", "money"),
            Column("why", "no choice of its own, because", "text"),
        ),
        rows=tuple(rows),
    )


def _inputs(plan: Plan) -> tuple[Twin, Twin]:
    """Every calibrated number of the program file, and every judgment stated beside them, by key."""
    numbers: list[dict[str, Cell]] = []
    judgments: list[dict[str, Cell]] = []
    for key, stated in _stated(plan.program.file, ""):
        if isinstance(stated, CalibratedNumber):
            base = f" ({stated.time_base})" if stated.time_base else ""
            row: dict[str, Cell] = {"key": key, "value": float(stated.value), "unit": plain_unit(stated.unit)}
            numbers.append(row | {"source": stated.source + base})
        elif key.startswith(JUDGMENTS) or ".fitness_for_use." in key:
            words = stated if isinstance(stated, str) else plain_number(float(stated))
            judgments.append({"key": key, "value": words})
    name = Column("key", "key", "text")
    return (
        Twin(
            caption="Calibrated numbers of the program file",
            columns=(
                name,
                Column("value", "value", "stated"),
                Column("unit", "unit", "text"),
                Column("source", "source", "text"),
            ),
            rows=tuple(numbers),
        ),
        Twin(
            caption="Judgments of the program file: law, policy and weights, which no source can settle",
            columns=(name, Column("value", "stated", "text")),
            rows=tuple(judgments),
        ),
    )


def _stated(part: object, key: str) -> Iterator[tuple[str, CalibratedNumber | str | int | Fraction]]:
    """Every number and word below a part of the program file, with its key."""
    from pydantic import BaseModel

    if isinstance(part, CalibratedNumber | str | int | Fraction):
        yield key, part
    elif isinstance(part, BaseModel):
        for name in type(part).model_fields:
            if name != "name":  # a table that has one stands under it
                yield from _stated(getattr(part, name), f"{key}.{name}" if key else name)
    elif isinstance(part, tuple) and part and all(isinstance(member, str) for member in part):
        yield key, ", ".join(part)
    elif isinstance(part, tuple):
        for i, member in enumerate(part):
            yield from _stated(member, f"{key} '{member.name}'" if hasattr(member, "name") else f"{key}[{i}]")


def _sliders(plan: Plan, grid: WhatIf) -> dict[str, Any]:
    """What the two sliders say and look up: words for each step, the choice at each ratio, the cost at each pair."""
    weights = {group.relative_privacy_weight for group in plan.welfare.groups}
    prices = {value.price if value.measure == "squared" else None for value in plan.welfare.table_values}
    weight, price = weights.pop() if len(weights) == 1 else None, prices.pop() if len(prices) == 1 else None
    times = [f"{plain_number(float(f'{multiple:.3g}'))} × as stated" for multiple in grid.multiples]
    privacy = times if weight is None else [plain_number(float(f"{weight * m:.3g}")) for m in grid.multiples]
    accuracy = times
    if price is not None:
        accuracy = [f"{plain_number(float(f'{price * m:.3g}'))} USD per USD²" for m in grid.multiples]
    choices, place = [], 0
    for made in grid.choices:
        possible = not isinstance(made, Refusal)
        choices.append({"words": _chosen_words(made), "place": place if possible else None})
        place += possible
    steps = range(len(grid.multiples))
    costs = [[grid.cost(i, j) for j in steps] for i in steps]
    return {
        "privacy": "weight on privacy" if weight is None else "relative privacy weight",
        "accuracy": "value of accuracy" if price is None else "price of squared misallocation",
        "data": {
            "privacy": privacy,
            "accuracy": accuracy,
            "choices": choices,
            "cost": [["" if cost is None else f"Society loses {money(cost)} in all." for cost in row] for row in costs],
        },
    }


def _chosen_words(made: Choice | Refusal) -> str:
    """One choice of the grid in a sentence."""
    if isinstance(made, Refusal):
        return f"No choice: {made.what}."
    words = f"The choice would be {stated_loss(made.loss)}, decided by {made.bound_by}"
    if made.root_mean_squared_error is not None:
        words += f", with a typical error of {number(made.root_mean_squared_error)} {plural(made.tables[0].unit)}"
    if made.root_mean_squared_consequence is not None:
        words += f", worth {money(made.root_mean_squared_consequence)}"
    return f"{words}."
