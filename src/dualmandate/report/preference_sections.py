"""Sections and pictures of a plan about preferences that are not known exactly, or that differ between people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dualmandate.planning.social_choice import social_choice_sentences
from dualmandate.report.exhibits import Exhibit
from dualmandate.report.figures import (
    charges,
    charges_twin,
    distribution,
    distribution_twin,
    regret_distribution,
    regret_distribution_twin,
    robust,
    robust_twin,
    social_choice,
    social_choice_twin,
    survey_worth,
    survey_worth_twin,
    votes,
    votes_twin,
)

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan

UNCERTAINTY, SOCIAL_CHOICE = "uncertainty", "social-choice"  # anchors; the names of their pictures begin so


def preference_sections(plan: Plan) -> Iterator[tuple[str, str, list[str]]]:
    """Anchor, heading and sentences of each part that the program's numbers call for."""
    if plan.uncertainty is not None:
        yield UNCERTAINTY, "If preferences are not known exactly", list(plan.uncertainty.sentences())
    if plan.social_choice is not None:
        yield SOCIAL_CHOICE, "Other ways to add people up", list(social_choice_sentences(plan.social_choice))


def preference_exhibits(plan: Plan) -> Iterator[Exhibit]:
    """Their pictures."""
    part = plan.uncertainty
    known = None if part is None else part.known
    if part is not None and known is not None:
        yield Exhibit.drawn(
            UNCERTAINTY,
            "The line marks the choice: the loss at which expected welfare is highest. The curve says where the best "
            "one would lie if preferences were known.",
            draw=lambda width: distribution(known, width=width),
            twin=distribution_twin(known),
        )
        yield Exhibit.drawn(
            f"{UNCERTAINTY}-regret",
            "The curve falls from all cases to few: how likely it is that the choice turns out to cost more than an "
            "amount, against the best one.",
            draw=lambda width: regret_distribution(known, width=width),
            twin=regret_distribution_twin(known),
        )
    survey = None if part is None else part.survey
    if known is not None and survey is not None:
        yield Exhibit.drawn(
            f"{UNCERTAINTY}-survey",
            "Asking more people is worth more to this decision, but never more than knowing preferences exactly.",
            draw=lambda width: survey_worth(known, spread=survey.spread, parameter=survey.parameter, width=width),
            twin=survey_worth_twin(known, spread=survey.spread, parameter=survey.parameter),
        )
    choice = None if part is None else part.robust
    if choice is not None:
        yield Exhibit.drawn(
            f"{UNCERTAINTY}-robust",
            "Where only a range is agreed on, the open circle is the loss whose worst regret over the range is least.",
            draw=lambda width: robust(choice, width=width),
            twin=robust_twin(choice),
        )
    rules = plan.social_choice
    if rules is not None:
        yield Exhibit.drawn(
            SOCIAL_CHOICE,
            "The plan follows the utilitarian rule. The others say what society would choose if it counted people in "
            "another way, and the lower part who would gain and who would lose.",
            draw=lambda width: social_choice(rules, width=width),
            twin=social_choice_twin(rules),
        )
        if len(rules.majority.options) > 1:
            yield Exhibit.drawn(
                f"{SOCIAL_CHOICE}-votes",
                "Each pair of losses put to the vote, every group with as many votes as it has members.",
                draw=lambda width: votes(rules, width=width),
                twin=votes_twin(rules),
            )
        yield Exhibit.drawn(
            f"{SOCIAL_CHOICE}-charges",
            "Nobody is charged anything. The bars say who would have to be paid, and by whom, for all to agree.",
            draw=lambda width: charges(rules, width=width),
            twin=charges_twin(rules),
        )
