"""The optional parts of a plan in sentences for a board."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dualmandate.population import plural
from dualmandate.population.wording import money, number, quantity

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan

NO_DIFFERENCE = 1e-9  # A share of a cost below this is no difference.


def extension_sections(plan: Plan) -> Iterator[tuple[str, str, list[str]]]:
    """Anchor, heading and sentences of each part that the program asks for."""
    parts = (
        ("participation", "Who still takes part", _participation(plan)),
        ("existing", "Errors that were there before", _existing(plan)),
        ("offering", "Which tables earn their place", _offering(plan)),
        ("path", "Releases to come", _path(plan)),
        ("markets", "The same program in a market", _markets(plan)),
    )
    for anchor, heading, sentences in parts:
        lines = list(sentences)
        if lines:
            yield anchor, heading, lines


def _participation(plan: Plan) -> Iterator[str]:
    part, privacy_measure, unit = (
        plan.extensions.participation,
        plan.choice.privacy_measure,
        plural(plan.program.protection.unit),
    )
    if part is None:
        return
    yield (
        f"At this {privacy_measure} {part.rate:.1%} of the {unit} take part, {part.rate_without_loss:.1%} if "
        "nothing could be "
        "learned about them. Errors count the noise weighted up for them, and that the others are missing at random."
    )
    times = number(1 / part.rate)
    yield f"A release counts those who take part: to stand for all {unit}, multiply its numbers by {times}."
    if part.peak is not None:
        yield (
            f"Accuracy peaks at {privacy_measure} = {number(part.peak)}: beyond it so many stay away that tables "
            "become less accurate. Whatever lies beyond is worse for privacy and for accuracy, and is never chosen. "
            "Where this plan speaks of larger losses, errors are counted as at the peak; they would be larger."
        )
    if part.assumed_totals:
        named = ", ".join(f"'{name}'" for name in part.assumed_totals[:3])
        yield f"The total of {named} is not stated: all {unit} are taken to be counted there, to be on the safe side."


def _existing(plan: Plan) -> Iterator[str]:
    for row in plan.extensions.existing:
        yield (
            f"A number of '{row.table}' was typically off by {quantity(row.before, row.unit)} before noise; with noise "
            f"it is off by {quantity(row.together, row.unit)}, {row.added:.2%} more."
        )
    if plan.extensions.existing:
        yield "Where harm grows with the square of an error, what was there before does not move the choice."


def _offering(plan: Plan) -> Iterator[str]:
    offering = plan.extensions.offering
    if offering is None:
        if plan.extensions.no_offering:
            yield f"Whether tables earn their place could not be worked out: {plan.extensions.no_offering}."
        return
    for verdict in offering.verdicts:
        word = "earns its place" if verdict.published else "does not earn its place"
        yield (
            f"'{verdict.name}' {word}: it is worth {money(verdict.value)}, and publishing it costs "
            f"{money(verdict.price)} in privacy and errors."
        )
    if any(verdict.published for verdict in offering.verdicts):
        yield (
            f"Published by themselves, those that do would take {offering.privacy_measure} = "
            f"{number(offering.epsilon)} in all and leave society {money(offering.net)} better off."
        )
    else:
        yield "No table is worth its price."
    yield "This is advice: the plan above is for all tables as stated."
    if not offering.exact:
        yield f"Not every combination could be looked at; none gains more than {money(offering.bound)}."


def _path(plan: Plan) -> Iterator[str]:
    path, privacy_measure = plan.extensions.path, plan.choice.privacy_measure
    if path is None:
        return
    losses = ", ".join(f"{number(release.epsilon)} in year {release.year:g}" for release in path.releases)
    yield f"The best {privacy_measure} of each release: {losses}; {number(path.total)} in all."
    if path.cap is not None and path.price > 0:
        yield (
            f"Without the cap of {number(path.cap)} on all of them they would spend "
            f"{number(sum(release.alone for release in path.releases))}; one more unit is worth {money(path.price)}. "
            "This plan is for one release: the cap is kept only if its own largest loss is set accordingly."
        )


def _markets(plan: Plan) -> Iterator[str]:
    privacy_measure = plan.choice.privacy_measure
    for row in plan.extensions.markets:
        if row.epsilon is None:
            yield f"{_raised(row.name)}: no choice, because {row.why}."
        elif row.forgone is not None:
            paid = "" if row.total is None else f", {money(row.total)} paid to people"
            worse = row.forgone > NO_DIFFERENCE * -plan.choice.welfare
            cost = f"society is {money(row.forgone)} worse off" if worse else "society is as well off"
            if row.one_count:
                cost = "it buys no table of this program"
            yield f"{_raised(row.name)} ({row.why}): {privacy_measure} = {number(row.epsilon)}{paid}; {cost}."


def _raised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
