"""One function a picture, each with the table behind it; drawn offline, in light and dark, for desk and phone.

Every picture is an Altair chart made from the rows of its twin: what the picture shows and what the table says cannot
differ. `save` writes PNG, SVG or a self-contained page.
"""

from dualmandate.report.figures.auctions import auction_picture, auction_twin, monopoly_picture, monopoly_twin
from dualmandate.report.figures.consequences import consequences, consequences_twin
from dualmandate.report.figures.cover import cover, cover_twins
from dualmandate.report.figures.decisions import decisions_picture, decisions_twin
from dualmandate.report.figures.existing import existing_picture, existing_twin
from dualmandate.report.figures.institutions import institutions, institutions_twin
from dualmandate.report.figures.offering import offering_picture, offering_twin
from dualmandate.report.figures.participation import participation_picture, participation_twin
from dualmandate.report.figures.paths import path_picture, path_twin
from dualmandate.report.figures.pooled import forest, pooled_twin
from dualmandate.report.figures.provision import provision_picture, provision_twin
from dualmandate.report.figures.rates import rates, rates_twin
from dualmandate.report.figures.regret import regret, regret_twin
from dualmandate.report.figures.risk import risk, risk_twin
from dualmandate.report.figures.robust import robust, robust_twin
from dualmandate.report.figures.saving import headline, inline_svg, png, save, specification, svg, write
from dualmandate.report.figures.social_choice import gains_twin, social_choice, social_choice_twin
from dualmandate.report.figures.strategies import strategies, strategies_twin
from dualmandate.report.figures.studies import study_picture, study_twin
from dualmandate.report.figures.survey_worth import survey_worth, survey_worth_twin
from dualmandate.report.figures.tangency import tangency, tangency_twin
from dualmandate.report.figures.technologies import technologies, technologies_twin
from dualmandate.report.figures.theme import DARK, LIGHT, NARROW, WIDE
from dualmandate.report.figures.tornado import tornado, tornado_twin
from dualmandate.report.figures.twin import Column, Twin
from dualmandate.report.figures.uncertainty import (
    distribution,
    distribution_twin,
    regret_distribution,
    regret_distribution_twin,
)
from dualmandate.report.figures.valuation import valuation_curve, valuation_twin
from dualmandate.report.figures.votes_and_charges import charges, charges_twin, votes, votes_twin
from dualmandate.report.figures.welfare import welfare_curve, welfare_twin
from dualmandate.report.figures.what_if import WhatIf, what_if, what_if_choices, what_if_twin

__all__ = [
    "DARK",
    "LIGHT",
    "NARROW",
    "WIDE",
    "Column",
    "Twin",
    "WhatIf",
    "auction_picture",
    "auction_twin",
    "charges",
    "charges_twin",
    "consequences",
    "consequences_twin",
    "cover",
    "cover_twins",
    "decisions_picture",
    "decisions_twin",
    "distribution",
    "distribution_twin",
    "existing_picture",
    "existing_twin",
    "forest",
    "gains_twin",
    "headline",
    "inline_svg",
    "institutions",
    "institutions_twin",
    "monopoly_picture",
    "monopoly_twin",
    "offering_picture",
    "offering_twin",
    "participation_picture",
    "participation_twin",
    "path_picture",
    "path_twin",
    "png",
    "pooled_twin",
    "provision_picture",
    "provision_twin",
    "rates",
    "rates_twin",
    "regret",
    "regret_distribution",
    "regret_distribution_twin",
    "regret_twin",
    "risk",
    "risk_twin",
    "robust",
    "robust_twin",
    "save",
    "social_choice",
    "social_choice_twin",
    "specification",
    "strategies",
    "strategies_twin",
    "study_picture",
    "study_twin",
    "survey_worth",
    "survey_worth_twin",
    "svg",
    "tangency",
    "tangency_twin",
    "technologies",
    "technologies_twin",
    "tornado",
    "tornado_twin",
    "valuation_curve",
    "valuation_twin",
    "votes",
    "votes_twin",
    "welfare_curve",
    "welfare_twin",
    "what_if",
    "what_if_choices",
    "what_if_twin",
    "write",
]
