"""Sections of a plan about preferences that are not known exactly, or that differ between people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dualmandate.planning.social_choice import social_choice_document
from dualmandate.report.figures.social_choice import gains_table

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan

UNCERTAINTY, SOCIAL_CHOICE = "uncertainty", "social-choice"  # anchors; the names of their pictures begin so


def preference_sections(plan: Plan) -> Iterator[tuple[str, str, list[str]]]:
    """Anchor, heading and sentences of each part that the program's numbers call for."""
    if plan.uncertainty is not None:
        yield UNCERTAINTY, "If preferences are not known exactly", list(plan.uncertainty.sentences())
    if plan.social_choice is not None:
        yield SOCIAL_CHOICE, "Other ways to add people up", plan.social_choice.explain().splitlines()


def preference_parts(plan: Plan) -> dict[str, object]:
    """The same as they stand in the plan's JSON."""
    parts: dict[str, object] = {}
    if plan.uncertainty is not None:
        parts["uncertainty"] = plan.uncertainty.document()
    if plan.social_choice is not None:
        names, rows = plan.social_choice.profile.society.names, gains_table(plan.social_choice).rows
        by_loss = [{"epsilon": row["loss"], "gains": {name: row[name] for name in names}} for row in rows]
        parts["social_choice"] = social_choice_document(plan.social_choice) | {"gains_at_each_loss": by_loss}
    return parts
