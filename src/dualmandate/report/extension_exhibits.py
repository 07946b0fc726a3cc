"""Pictures of the optional parts of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dualmandate.report.exhibits import Exhibit
from dualmandate.report.figures import (
    existing_picture,
    existing_twin,
    institutions,
    institutions_twin,
    offering_picture,
    offering_twin,
    participation_picture,
    participation_twin,
    path_picture,
    path_twin,
)

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan


def extension_exhibits(plan: Plan) -> Iterator[Exhibit]:
    """One picture a part that the program asks for, named after its section."""
    parts, currency, choice = plan.extensions, plan.choice.currency, plan.choice
    part = parts.participation
    if part is not None and part.peak is not None:
        noise, cost, peak = part.noise_cost, part.cost, part.peak
        yield Exhibit.drawn(
            "participation",
            "Noise falls with the privacy loss; so does the number of people who take part. The curve is what errors "
            "cost with those who do, the dashed line what they would cost with everybody.",
            draw=lambda width: participation_picture(noise, cost, choice, peak=peak, width=width),
            twin=participation_twin(noise, cost, choice, peak=peak),
        )
    if parts.existing:
        yield Exhibit.drawn(
            "existing",
            "How large the errors of noise are beside those that the numbers had before, table by table.",
            draw=lambda width: existing_picture(parts.existing, width=width),
            twin=existing_twin(parts.existing),
        )
    offering, path = parts.offering, parts.path
    if offering is not None:
        yield Exhibit.drawn(
            "offering",
            "A table earns its place where the filled circle, its worth, lies right of the hollow one, its price.",
            draw=lambda width: offering_picture(offering, width=width),
            twin=offering_twin(offering),
        )
    if path is not None:
        yield Exhibit.drawn(
            "path",
            "Each circle is a release. Later releases have fewer years to do harm until records are opened, and their "
            "errors count less today.",
            draw=lambda width: path_picture(path, currency, width=width),
            twin=path_twin(path, currency),
        )
    if parts.markets:
        yield Exhibit.drawn(
            "markets",
            "Each line leads from the planner's choice to what another institution would choose on the same frontier.",
            draw=lambda width: institutions(parts.markets, currency, width=width),
            twin=institutions_twin(parts.markets, currency),
        )
