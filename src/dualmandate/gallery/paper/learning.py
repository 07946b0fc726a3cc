"""Sections I and IV.A and Appendices A and D: what an attacker can learn, and how many equations were published."""

from __future__ import annotations

import math

from dualmandate.gallery.paper.row import Computed
from dualmandate.gallery.paper.title_i import Calibration
from dualmandate.population import PrivacyLoss
from dualmandate.semantics import Secret, odds_bound, posterior

STATISTICS = (2.8e9, 2.8e9, 2.1e9, 31e6)  # linearly independent: PL 94-171, the balance of SF1, SF2, the PUMS
PERSONS = 309e6  # in the 2010 Census
CELLS, BLOCKS = 500_000, 10**7
COMPANION_LOSSES = (0.5, 3.0)  # where the companion paper's figure, PF = 1 − e^−ε, draws its tangents


def computed() -> dict[str, Computed]:
    """The bound on learning and the arithmetic of reconstruction."""
    attributes = {loss: odds_bound(PrivacyLoss.pure(loss), Secret.ATTRIBUTE).factor for loss in ("1", "0.25", "0.1")}
    epsilon = Calibration().choice.epsilon
    statistics = math.fsum(STATISTICS)
    return {
        "semantics.in_or_out": Computed.same(odds_bound(PrivacyLoss.pure(1), Secret.IN_OR_OUT).factor, paper=math.e),
        **{f"semantics.attribute.{loss}": Computed.same(factor) for loss, factor in attributes.items()},
        **{f"companion.accuracy.{loss:g}": Computed.same(-math.expm1(-loss)) for loss in COMPANION_LOSSES},
        **{f"companion.slope.{loss:g}": Computed.same(math.exp(-loss)) for loss in COMPANION_LOSSES},
        **{f"semantics.belief.{prior:g}": Computed.same(posterior(prior, epsilon)) for prior in (0.01, 0.1, 0.5)},
        "reconstruction.statistics": Computed.same(statistics),
        "reconstruction.per_person": Computed.same(statistics / PERSONS),
        "reconstruction.cells": Computed.same(float(CELLS * BLOCKS)),
    }
