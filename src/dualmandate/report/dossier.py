"""The dossier: one page on which a review board finds what was chosen, why, at what price, and what it rests on.

Every picture stands on the page as drawn SVG, once for a desk and once for a phone, so the page shows without scripts,
prints, and needs no charting library. The one thing that moves, two sliders over a grid of choices made beforehand, is
a few lines of script that look up and never compute.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualmandate.errors import Refusal
from dualmandate.planning.study import is_study, marked, study_words
from dualmandate.planning.technology import Technology, in_words, measured_words
from dualmandate.population import PrivacyMeasure, plural
from dualmandate.population.wording import SYMBOLS, chosen_loss, exact, money, number, stated_loss
from dualmandate.program.number import CalibratedNumber
from dualmandate.report import figures
from dualmandate.report.figures import Figure, WhatIf
from dualmandate.report.figures.figure import svg_to_png, write
from dualmandate.report.plan_words import (
    choice_words,
    clipped_sentences,
    measurement_words,
    optional_sections,
    saving_words,
)
from dualmandate.report.theme import Cell, Column, FigureTable, cells, plain_unit, rendered, shown_figure
from dualmandate.semantics import PRIORS, at_most, chance, rounded_up, secret_bounds, sentences

if TYPE_CHECKING:
    from dualmandate.choice import Choice
    from dualmandate.planning.plan import Plan

PAGE, FIGURES = "dossier.html", "figures"
MOST_READINGS = 3  # that stand beside the choice
MOST_BOUNDS = 4  # that are drawn; plan.json holds all
JUDGMENTS = (
    "population.neighbors",
    "population.most_records",
    "population.household",
    "mechanism",
    "preferences",
    "limits",
    "participation",
    "collection",
    "randomized_response",
    "simulation",
    "horizon",
    "markets",
    "secret",
    "uncertainty",
    "social_choice",
)
CONTENTS = (
    ("choice", "The choice"),
    ("guarantee", "The promise"),
    ("reasons", "Why"),
    ("regret", "If it is wrong"),
    ("tables", "Each table"),
    ("what-if", "Other weights"),
    ("technologies", "Mechanisms"),
    ("inputs", "Inputs and sources"),
    ("notes", "Notes"),
    ("decision", "Decision"),
)


def write_dossier(plan: Plan, directory: Path | str) -> tuple[Path, ...]:
    """Write the page and its pictures (SVG and PNG, in a folder `figures`) for a plan; returns what was written.

    Files of an earlier dossier in the directory are replaced; nothing else there is touched.
    """
    directory = Path(directory)
    page, drawn = _drawn(plan)
    written = [write(directory / PAGE, page.encode())]
    for figure in drawn:
        drawing = figure.svg()
        written.append(write(directory / FIGURES / f"{figure.name}.svg", drawing.encode()))
        written.append(write(directory / FIGURES / f"{figure.name}.png", svg_to_png(drawing)))
    return tuple(written)


def dossier_texts(plan: Plan) -> dict[str, str]:
    """The page, which holds its pictures, and the drawings beside it, by their names."""
    page, drawn = _drawn(plan)
    return {PAGE: page} | {f"{FIGURES}/{figure.name}.svg": figure.svg() for figure in drawn}


def _drawn(plan: Plan) -> tuple[str, list[Figure]]:
    grid = figures.what_if_choices(plan.frontier, plan.welfare, plan.limits)
    drawn = list(plan_figures(plan, grid))
    return _page(plan, drawn, grid), drawn


def _page(plan: Plan, drawn: Sequence[Figure], grid: WhatIf) -> str:
    shown = {figure.name: shown_figure(figure) for figure in drawn}
    header, choice = plan.program.file.program, plan.choice
    beyond, last = optional_sections(plan), [each for each in CONTENTS[-3:] if plan.notes or each[0] != "notes"]
    return rendered(
        "dossier.html",
        name=header.name,
        heading=header.title or header.description or header.name,
        description=header.description if header.title else None,
        about=_about(plan),
        readings=_first_readings(plan),
        beliefs=_beliefs(plan),
        told=_told(plan),
        loss=stated_loss(choice.loss),
        study=study_words(plan.technology.noise) if plan.study else None,
        contents=[*CONTENTS[:-3], *((anchor, heading) for anchor, heading, _ in beyond), *last],
        explanation=choice_words(plan),
        numbers=_numbers(plan),
        guarantee=plan.guarantee,
        reasons=[shown["tangency"], shown["rates"], shown["welfare"]],
        risks=[shown[name] for name in ("regret", "tornado") if name in shown],
        rests_on=_rests_on(plan),
        consequences=shown["consequences"],
        clipped=clipped_sentences(plan),
        what_if=shown["what-if"],
        technologies=[shown[name] for name in ("strategies", "technologies") if name in shown],
        saved=[*([] if plan.technology.found else measurement_words(plan)), *saving_words(plan)],
        measured=measurement_words(plan) if plan.technology.found else [],
        compared=_compared(plan),
        inputs=_inputs(plan),
        beyond=[(anchor, heading, lines, _belonging(shown, anchor)) for anchor, heading, lines in beyond],
        notes=plan.notes,
        sliders=_sliders(plan, grid),
        last_step=len(grid.multiples) - 1,
        digest=plan.digest,
        account=plan.program.file.population.account,
        account_identifier=plan.account_identifier,
    )


def _about(plan: Plan) -> list[tuple[str, str]]:
    """Whose dossier this is, from the program file: no clock is read, so that a plan made again says the same."""
    header = plan.program.file.program
    stated = {"agency": header.agency, "author": header.author, "version": header.version, "date": header.date}
    return [("program", header.name), *((key, value or "not stated") for key, value in stated.items())]


def _first_readings(plan: Plan) -> list[str]:
    """The readings of the program that would move the choice most."""
    chosen, letter = float(plan.choice.loss), SYMBOLS[plan.choice.privacy_measure]
    far = [
        (abs(math.log(float(row.choice.loss) / chosen)), row.reading, row.choice)
        for row in plan.robustness.readings
        if row.choice is not None
    ]
    ranked = sorted(far, key=lambda each: -each[0])[:MOST_READINGS]
    return [
        f"{reading}: {letter} = {chosen_loss(float(read.loss))}"
        + ("" if read.bound_by == plan.choice.bound_by else f", decided by {read.bound_by}")
        for distance, reading, read in ranked
        if distance > 0
    ]


def _bounded(plan: Plan) -> tuple[float | None, bool]:
    """The failure probability that beliefs are stated at, and whether any are."""
    probability = plan.program.file.mechanism.failure_probability
    known = plan.loss.privacy_measure is not PrivacyMeasure.ZCDP or probability is not None
    return (None if probability is None else float(probability)), known


def _beliefs(plan: Plan) -> FigureTable | None:
    """What somebody who thought a secret so likely may come to think, each belief once."""
    probability, known = _bounded(plan)
    if not known:
        return None
    secrets = secret_bounds(plan.loss, plan.program.protection, failure_probability=probability)
    rows: list[dict[str, Cell]] = [
        {
            "secret": words,
            "factor": rounded_up(bound.factor),
            **{str(prior): f"at most {at_most(bound.belief(prior).highest)}" for prior in PRIORS},
        }
        for words, bound in secrets
    ]
    return FigureTable.of(
        rows,
        "How likely somebody may come to think a secret, by how likely they thought it before; bounds are rounded up",
        Column("secret", "secret", "text"),
        *(Column(str(prior), f"thought {chance(prior)} likely before", "text") for prior in PRIORS),
        Column("factor", "odds move by a factor of at most", "text"),
    )


def _told(plan: Plan) -> tuple[str, ...]:
    """The sentences on what the loss means that the table of beliefs does not hold."""
    probability, known = _bounded(plan)
    if not known:
        return plan.guarantee.beliefs
    told = sentences(plan.loss, plan.program.protection, failure_probability=probability)
    tabled = len(secret_bounds(plan.loss, plan.program.protection, failure_probability=probability))
    return told[2:] if tabled == 2 else (told[0], *told[2:])


def _belonging(shown: Mapping[str, dict[str, object]], anchor: str) -> list[dict[str, object]]:
    """The pictures of a section: the one named after it, and those whose names go on from there."""
    return [one for name, one in shown.items() if name == anchor or name.startswith(f"{anchor}-")]


def _numbers(plan: Plan) -> list[tuple[str, str]]:
    """The few numbers to remember."""
    choice, probability, currency = plan.choice, plan.technology.failure_probability, plan.choice.currency
    known = plan.robustness
    sure = f"none: {known.why_no_interval}" if known.span is None else known.span
    numbers = [("chosen privacy loss", stated_loss(choice.loss)), ("95 % interval of the best one", sure)]
    if probability is not None:
        numbers += [("failure probability δ", number(probability)), ("spent, exactly", stated_loss(plan.loss))]
    if choice.root_mean_squared_error is not None:
        unit = plural(choice.tables[0].unit)
        numbers.append(("typical error of a number", f"{number(choice.root_mean_squared_error)} {unit}"))
    if choice.root_mean_squared_consequence is not None:
        numbers.append(("what such an error comes to", money(choice.root_mean_squared_consequence, currency)))
    saved, alone = plan.saving.saved or 0.0, plan.saving.naive
    plain = []
    if saved > 0 and alone.choice is not None and plan.saving.welfare_gained is not None:
        worth = alone.choice.root_mean_squared_consequence
        chosen = stated_loss(alone.choice.loss) + ("" if worth is None else f" and {money(worth, currency)}")
        plain = [
            (f"{marked(in_words(*alone.kind), alone.noise)} would give", chosen),
            ("what the better technology is worth", money(plan.saving.welfare_gained, currency)),
        ]
    return [
        *numbers,
        ("cost in privacy", money(choice.privacy_cost, currency)),
        ("cost in errors", money(choice.data_loss, currency)),
        *plain,
        ("decided by", choice.bound_by),
    ]


def _compared(plan: Plan) -> FigureTable:
    """What each technology would choose, beside what was chosen."""
    rows: list[dict[str, Cell]] = []
    for other in plan.comparisons:
        row: dict[str, Cell] = {
            "noise": marked(other.noise, other.noise),
            "measured": measured_words(other.strategy, other.measured),
            "marked": plan.uses(other),
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
    return FigureTable.of(
        rows,
        "What each technology would choose, and what society would then lose; the one used is set off. A study "
        "is listed for comparison only: its noise is not drawn exactly, so it cannot be published",
        Column("noise", "noise", "text"),
        Column("measured", "on", "text"),
        Column("loss", f"chosen {plan.choice.privacy_measure}", "loss"),
        Column("error", "typical error (RMSE)"),
        Column("consequence", "what such an error comes to", plan.choice.currency),
        Column("cost", "cost to society", plan.choice.currency),
        Column("why", "no choice of its own, because", "text"),
    )


def _rests_on(plan: Plan) -> list[FigureTable]:
    """By how much each number moves the choice, and what would be chosen if the program were read otherwise."""
    letter, known = SYMBOLS[plan.choice.privacy_measure], plan.robustness
    moved = [
        cells(row, "value", "elasticity", input=row.name.replace("_", " "), unit=plain_unit(row.unit))
        for row in known.elasticities
    ]
    read = [
        cells(
            row,
            *("reading", "value", "source"),
            parameter=row.parameter.replace("_", " "),
            unit=None if row.unit is None else plain_unit(row.unit),
            loss=None if row.choice is None else float(row.choice.loss),
            bound_by=row.why_not if row.choice is None else row.choice.bound_by,
        )
        for row in known.readings
    ]
    tables = [
        FigureTable.of(
            moved,
            f"By how many percent the chosen {letter} moves when one number is one percent larger",
            Column("input", "number", "text"),
            Column("value", "stated"),
            Column("unit", "unit", "text"),
            Column("elasticity", f"{letter} moves by, percent"),
        ),
        FigureTable.of(
            read,
            f"Other readings of the program, and the {letter} that each would choose on the same frontier",
            Column("reading", "read otherwise", "text"),
            Column("parameter", "number", "text"),
            Column("value", "then"),
            Column("unit", "unit", "text"),
            Column("loss", f"chosen {letter}", "loss"),
            Column("bound_by", "decided by", "text"),
            Column("source", "source", "text"),
        ),
    ]
    return [table for table in tables if table.rows]


def _inputs(plan: Plan) -> tuple[FigureTable, FigureTable]:
    """Every calibrated number of the program file, and every judgment stated beside them, by key."""
    numbers: list[dict[str, Cell]] = []
    judgments: list[dict[str, Cell]] = []
    for key, stated in _stated(plan.program.file, ""):
        if isinstance(stated, CalibratedNumber):
            base = f" ({stated.time_base})" if stated.time_base else ""
            row: dict[str, Cell] = {"key": _in_words(key), "value": _value(stated), "unit": plain_unit(stated.unit)}
            kind = stated.kind or "not stated"
            numbers.append(row | {"error": _error(stated), "source": stated.source + base, "kind": kind})
        elif key.startswith("preferences.estimates"):
            continue  # of the survey behind the numbers above
        elif key.startswith(JUDGMENTS) or ".fitness_for_use." in key:
            words = stated if isinstance(stated, str) else exact(float(stated))
            judgments.append({"key": _in_words(key), "value": words})
    name = Column("key", "in the program file", "text")
    return (
        FigureTable.of(
            numbers,
            "Calibrated numbers of the program file",
            name,
            Column("value", "value", "exact"),
            Column("unit", "unit", "text"),
            Column("error", "how sure", "text"),
            Column("kind", "measured, assumed or judgment", "text"),
            Column("source", "source", "text"),
        ),
        FigureTable.of(
            judgments,
            "Judgments of the program file: law, policy and weights, which no source can settle",
            name,
            Column("value", "stated", "text"),
        ),
    )


def _in_words(key: str) -> str:
    """Where a number stands in the program file, as words: "preferences: mean disclosure cost"."""
    parts = re.split(r"\.(?=[^']*(?:'[^']*'[^']*)*$)", key)  # names of tables may have dots
    return ": ".join(part if "'" in part else part.replace("_", " ") for part in parts)


def _value(stated: CalibratedNumber) -> float | str:
    """A number as it was stated; an estimate with no more digits than its standard error supports."""
    value = float(stated.value)
    if stated.standard_error is None or value == 0:
        return value
    digits = 2 + math.floor(math.log10(abs(value))) - math.floor(math.log10(float(stated.standard_error)))
    return number(value, min(max(digits, 2), 10))


def _error(stated: CalibratedNumber) -> str:
    """What is stated of how sure a number is."""
    error = None if stated.standard_error is None else number(float(stated.standard_error), 2)
    least, largest = (None if each is None else exact(float(each)) for each in (stated.least, stated.largest))
    said = [*([f"standard error {error}"] if error else []), *([f"{least} to {largest}"] if least else [])]
    return ", ".join(said) or "not stated"


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
    currency = plan.choice.currency
    weights = {group.relative_privacy_weight for group in plan.welfare.groups}
    prices = {value.price if value.measure == "squared" else None for value in plan.welfare.table_values}
    weight, price = weights.pop() if len(weights) == 1 else None, prices.pop() if len(prices) == 1 else None
    times = [f"{number(multiple, 3)} × as stated" for multiple in grid.multiples]
    privacy = times if weight is None else [number(weight * m, 3) for m in grid.multiples]
    accuracy = times
    if price is not None:
        accuracy = [f"{number(price * m, 3)} {currency} per {currency}²" for m in grid.multiples]
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
            "cost": [[_lost(cost, currency) for cost in row] for row in costs],
        },
    }


def _lost(cost: float | None, currency: str) -> str:
    return "" if cost is None else f"Society loses {money(cost, currency)} in all."


def _chosen_words(made: Choice | Refusal) -> str:
    """One choice of the grid in a sentence."""
    if isinstance(made, Refusal):
        return f"No choice: {made.what}."
    words = f"The choice would be {stated_loss(made.loss)}, decided by {made.bound_by}"
    if made.root_mean_squared_error is not None:
        words += f", with a typical error of {number(made.root_mean_squared_error)} {plural(made.tables[0].unit)}"
    if made.root_mean_squared_consequence is not None:
        words += f", worth {money(made.root_mean_squared_consequence, made.currency)}"
    return f"{words}."


def plan_figures(plan: Plan, grid: WhatIf) -> Iterator[Figure]:
    """Every figure of the dossier; none is drawn yet. `grid` holds the choices under other weights."""
    frontier, welfare, choice = plan.frontier, plan.welfare, plan.choice
    yield figures.tangency(frontier, welfare, choice, limits=plan.limits)
    yield figures.rates(frontier, welfare, choice)
    yield figures.welfare_curve(frontier, welfare, choice)
    least, most = frontier.known_losses
    if least <= choice.epsilon / 2 and choice.epsilon * 2 <= most:
        yield figures.regret(frontier, welfare, choice)
    if plan.robustness.judged:
        yield figures.tornado(plan.robustness.tornado, choice)
    yield figures.consequences(choice, plan.half_widths)
    yield figures.what_if(frontier, welfare, choice, grid=grid)
    yield _saving(plan)
    beside = {
        noise: other for noise, other in plan.frontiers.items() if other.privacy_measure is choice.privacy_measure
    }
    studies = tuple(other.name for noise, other in beside.items() if is_study(noise))
    if len(beside) > 1:
        yield figures.technologies([*beside.values()], welfare, choice, studies=studies)
    yield from _of_preferences(plan)
    yield from _of_extensions(plan)


def _saving(plan: Plan) -> Figure:
    """What the technology in use saves: the plain one, the best of all compared that can be published, the one used."""
    saving = plan.saving
    better = saving.beaten_by
    names = {_named(way): way.frontier for way in (saving.plain, better, saving.used) if way is not None}
    used, at = _named(saving.used), plan.choice.epsilon
    costs = {name: partial(plan.welfare.data_loss, frontier) for name, frontier in names.items()}
    # What costs nothing at the choice, in floats, has no place on a scale of costs.
    costs = {name: cost for name, cost in costs.items() if name == used or 0 < cost(at) < math.inf}
    if saving.limit is None or (better is not None and better.noise != saving.used.noise):
        return figures.strategies(costs, plan.choice, used=used, within=plan.frontier.known_losses)
    bound = saving.limit
    return figures.strategies(costs, plan.choice, used=used, least=bound.at, valid_for=bound.bound.valid_for)


def _named(technology: Technology) -> str:
    return marked(in_words(*technology.kind), technology.noise)


def _of_preferences(plan: Plan) -> Iterator[Figure]:
    """Preferences that are not known exactly, or that differ between people."""
    part, rules = plan.uncertainty, plan.social_choice
    if part is not None and part.known is not None:
        yield figures.distribution(part.known)
        yield figures.regret_distribution(part.known)
        if part.survey is not None:
            yield figures.survey_worth(part.known, spread=part.survey.spread, parameter=part.survey.parameter)
    if part is not None and part.robust is not None:
        yield figures.robust(part.robust)
    if rules is not None:
        yield figures.social_choice(rules)
        if len(rules.majority.options) > 1:
            yield figures.votes(rules)
        yield figures.charges(rules)


def _of_extensions(plan: Plan) -> Iterator[Figure]:
    """The optional parts, each figure named after its section."""
    parts, privacy_measure = plan.extensions, plan.choice.privacy_measure
    responding = parts.participation
    if responding is not None and responding.peak is not None:
        yield figures.participation(responding.noise_cost, responding.cost, plan.choice, peak=responding.peak)
    if parts.existing:
        yield figures.existing(parts.existing)
    noisy = [curve for curve in parts.clipping if curve.rows[0].noise > 0 and len(curve.rows) > 1]
    yield from (figures.clipping(curve, plan.choice.currency) for curve in noisy[:MOST_BOUNDS])
    if parts.offering is not None:
        yield figures.offering(parts.offering, plan.choice.currency)
    if parts.path is not None:
        yield figures.path(parts.path, privacy_measure, currency=plan.choice.currency)
    if parts.simulation is not None and any(each.errors for each in parts.simulation.technologies):
        yield figures.simulated(parts.simulation, privacy_measure)
    if parts.markets:
        yield figures.institutions(parts.markets, privacy_measure, currency=plan.choice.currency)
