"""`[social_choice]` of a program: other ways to add people up, on the frontier of its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dualmandate.choice import Limits, SocialChoices, SocialChoiceTerms, Society, social_choices
from dualmandate.errors import InvalidLoss, InvalidValue, Place
from dualmandate.planning.welfare import calibrated, units_of
from dualmandate.population import PrivacyMeasure

if TYPE_CHECKING:
    from dualmandate.frontier import Frontier
    from dualmandate.planning.program import Program


def social_choice_of(program: Program, frontier: Frontier, limits: Limits) -> SocialChoices | None:
    """What each rule would choose, who gains and who loses; None where the program does not ask."""
    table = program.file.social_choice
    if table is None:
        return None
    if len(program.welfare.groups) == 1:
        raise InvalidValue(
            "other ways to add people up are asked for, but everybody is alike",
            why="where all want the same, every rule chooses the same",
            instead="state [[preferences.groups]] with their own costs, or leave [social_choice] out",
            where=program.document.place(("social_choice",)),
        )
    with program.document.at("preferences", "groups"):
        society = _society(program)
    terms = SocialChoiceTerms(
        baseline=_baseline(program),
        disagreement_epsilon=_disagreement(program),
        phantoms=tuple(float(place) for place in table.phantoms),
        options=tuple(float(place) for place in table.options),
        status_quo=None if table.status_quo is None else float(table.status_quo),
    )
    with program.document.at("social_choice"), _disagreeing(program):
        return social_choices(frontier, society, limits, rules=table.rules or None, terms=terms)


@contextmanager
def _disagreeing(program: Program) -> Iterator[None]:
    """Give a refusal of the loss without an agreement the place of its key."""
    try:
        yield
    except InvalidLoss as refusal:
        key = f"disagreement_{program.welfare.privacy_measure}"
        named = "disagreement_epsilon" in refusal.what
        raise refusal.at(program.document.place(("social_choice", key)) if named else Place()) from None


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
    units = units_of(program.file, program.document)
    unit = f"USD per {units.singular}"
    common = None
    if table.baseline is not None:
        with program.document.at("social_choice", "baseline"):
            common = calibrated(table.baseline).to(unit, units).value
    own = {}
    for position, group in enumerate(groups):
        if group.baseline is not None:
            with program.document.at("preferences", "groups", position, "baseline"):
                own[group.name] = calibrated(group.baseline).to(unit, units).value
    if not own or common is None:
        return own or common
    return {group.name: own.get(group.name, common) for group in groups}


def _disagreement(program: Program) -> float | None:
    table = program.file.social_choice
    assert table is not None
    rho = program.welfare.privacy_measure is PrivacyMeasure.ZCDP
    ours, other = table.disagreement_epsilon, table.disagreement_rho
    if rho:
        ours, other = other, ours
    if other is not None:
        wrong = "disagreement_epsilon" if rho else "disagreement_rho"
        raise InvalidValue(
            f"{wrong} states a privacy loss that this program does not choose",
            why=f"its cost of disclosure is stated so that the loss is counted in {program.welfare.privacy_measure}",
            instead=f"state disagreement_{program.welfare.privacy_measure}",
            where=program.document.place(("social_choice", wrong)),
        )
    return None if ours is None else float(ours)
