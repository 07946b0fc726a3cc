"""Sections of a plan about preferences that are not known exactly, or that differ between people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan

UNCERTAINTY, SOCIAL_CHOICE = "uncertainty", "social-choice"  # anchors; the names of their pictures begin so


def preference_sections(plan: Plan) -> Iterator[tuple[str, str, list[str]]]:
    """Anchor, heading and sentences of each part that the program's numbers call for."""
    if plan.uncertainty is not None:
        yield UNCERTAINTY, "If preferences are not known exactly", list(plan.uncertainty.sentences())
    if plan.social_choice is not None:
        yield SOCIAL_CHOICE, "Other ways to add people up", plan.social_choice.explain().splitlines()
