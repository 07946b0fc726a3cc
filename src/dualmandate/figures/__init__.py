"""One function a picture, each with the table behind it; drawn offline, in light and dark, for desk and phone.

Every picture is an Altair chart made from the rows of its twin: what the picture shows and what the table says cannot
differ. `save` writes PNG, SVG or a self-contained page.
"""

from dualmandate.figures.consequences import consequences, consequences_twin
from dualmandate.figures.cover import cover, cover_twins
from dualmandate.figures.rates import rates, rates_twin
from dualmandate.figures.regret import regret, regret_twin
from dualmandate.figures.risk import risk, risk_twin
from dualmandate.figures.saving import headline, inline_svg, png, save, specification, svg, write
from dualmandate.figures.strategies import strategies, strategies_twin
from dualmandate.figures.tangency import tangency, tangency_twin
from dualmandate.figures.technologies import technologies, technologies_twin
from dualmandate.figures.theme import DARK, LIGHT, NARROW, WIDE
from dualmandate.figures.tornado import tornado, tornado_twin
from dualmandate.figures.twin import Column, Twin
from dualmandate.figures.welfare import welfare_curve, welfare_twin
from dualmandate.figures.what_if import WhatIf, what_if, what_if_choices, what_if_twin

__all__ = [
    "DARK",
    "LIGHT",
    "NARROW",
    "WIDE",
    "Column",
    "Twin",
    "WhatIf",
    "consequences",
    "consequences_twin",
    "cover",
    "cover_twins",
    "headline",
    "inline_svg",
    "png",
    "rates",
    "rates_twin",
    "regret",
    "regret_twin",
    "risk",
    "risk_twin",
    "save",
    "specification",
    "strategies",
    "strategies_twin",
    "svg",
    "tangency",
    "tangency_twin",
    "technologies",
    "technologies_twin",
    "tornado",
    "tornado_twin",
    "welfare_curve",
    "welfare_twin",
    "what_if",
    "what_if_choices",
    "what_if_twin",
    "write",
]
