"""Sections I and IV.A and Appendices A and D: what an attacker can learn, and how many equations were published."""

from __future__ import annotations

import math

from dualmandate.gallery.paper.row import CONFIRMED, Row
from dualmandate.gallery.paper.title_i import Calibration
from dualmandate.population import PrivacyLoss
from dualmandate.semantics import Secret, odds_bound

BOUND = "IV.A. The semantic bound"
RECONSTRUCTION = "I and Appendix A. Reconstruction"
STATISTICS = {"PL 94-171": 2.8e9, "the balance of SF1": 2.8e9, "SF2": 2.1e9, "the PUMS": 31e6}  # linearly independent
PERSONS_2010 = 309e6
CELLS, BLOCKS = 500_000, 1e7


def rows() -> list[Row]:
    """The bound on learning and the arithmetic of reconstruction."""
    return [*_bounds(), *_beliefs(), *_reconstruction()]


def _bounds() -> list[Row]:
    found = []
    for epsilon, printed in (("1", 7.4), ("1/4", 1.65), ("1/10", 1.22)):
        loss = PrivacyLoss.pure(epsilon)
        factor = odds_bound(loss, Secret.ATTRIBUTE).factor
        found.append(
            Row(f"semantics.attribute.{float(loss):g}", BOUND,
                f"companion paper: largest change of the odds of one attribute against another, ε = {float(loss):g}",
                printed, factor, factor, f"{CONFIRMED}: two neighbor steps under add-or-remove, so e^2ε")
        )
    one = PrivacyLoss.pure(1)
    in_or_out = odds_bound(one, Secret.IN_OR_OUT).factor
    return [
        Row("semantics.in_or_out", BOUND, "equation (6): largest change of the odds of in against out, ε = 1",
            math.e, in_or_out, in_or_out,
            f"{CONFIRMED}, for independent records (Kifer and Machanavajjhala 2012)"),
        *found,
    ]


def _beliefs() -> list[Row]:
    loss = PrivacyLoss.chosen(Calibration().choice.epsilon)
    bound = odds_bound(loss, Secret.IN_OR_OUT)
    return [
        Row(f"semantics.belief.{prior:g}", BOUND,
            f"at the Title I optimum, belief that was {prior:g} may become at most", None,
            bound.belief(prior).highest, bound.belief(prior).highest,
            "not in the paper: prior p becomes at most p·e^ε/(1 − p + p·e^ε)", "probability")
        for prior in (0.01, 0.1, 0.5)
    ]


def _reconstruction() -> list[Row]:
    statistics = math.fsum(STATISTICS.values())
    return [
        Row("reconstruction.statistics", RECONSTRUCTION, "statistics published from the 2010 Census", 7.7e9, statistics,
            statistics, f"{CONFIRMED}: {' + '.join(f'{count:.3g}' for count in STATISTICS.values())}"),
        Row("reconstruction.per_person", RECONSTRUCTION, "statistics per person", 25, statistics / PERSONS_2010,
            statistics / PERSONS_2010, CONFIRMED),
        Row("reconstruction.cells", RECONSTRUCTION, "cells of the person domain by block", 500_000 * 1e7, CELLS * BLOCKS,
            CELLS * BLOCKS, f"{CONFIRMED}: 500,000 cells in each of 10⁷ blocks; zeros in exact tables remove most"),
    ]
