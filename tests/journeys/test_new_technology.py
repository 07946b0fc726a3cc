"""A new technology is one class and one line of the registry: planned, approved, published, read back and audited."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dualmandate import load, load_release
from dualmandate.apps.publish import publish
from dualmandate.audit import audit as run_audit
from dualmandate.audit.claims.attack import ClaimAttack, ClaimedNoise
from dualmandate.audit.finding import Range, Rate
from dualmandate.audit.targets.of_release import claim_of
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.mechanism import GEOMETRIC, NOISE_LAWS, Geometric
from dualmandate.mechanism.noise import LaplaceSampler, Sampler
from dualmandate.planning.release_spec import release_spec_of_plan
from dualmandate.population import PrivacyLoss, PrivacyMeasure


@dataclass(frozen=True)
class CautiousLaw:
    """Discrete Laplace noise that is half as broad again as it need be: scale 3/(2u) at unit loss u."""

    name: ClassVar[str] = "cautious"
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.PURE_DP
    needs_whole_numbers: ClassVar[bool] = True
    publishable: ClassVar[bool] = True
    published_as: ClassVar[str] = "cautious"

    def at(self, unit_loss: float) -> Geometric:
        return GEOMETRIC.at(unit_loss / 1.5)

    def variance(self, unit_loss: float) -> float:
        return GEOMETRIC.variance(unit_loss / 1.5)

    def variance_slope(self, unit_loss: float) -> float:
        return GEOMETRIC.variance_slope(unit_loss / 1.5) / 1.5

    def variance_curvature(self, unit_loss: float) -> float:
        return GEOMETRIC.variance_curvature(unit_loss / 1.5) / 1.5**2

    def mean_absolute(self, unit_loss: float) -> float:
        return GEOMETRIC.mean_absolute(unit_loss / 1.5)

    def mean_absolute_slope(self, unit_loss: float) -> float:
        return GEOMETRIC.mean_absolute_slope(unit_loss / 1.5) / 1.5

    def parameter(self, unit_loss: Fraction) -> Fraction:
        return 1 / unit_loss

    def unit_loss(self, parameter: Fraction) -> Fraction:
        return 1 / parameter

    def sampler(self, parameter: Fraction) -> Sampler:
        return LaplaceSampler(parameter * Fraction(3, 2))

    def loss_distribution(self, parameter: Fraction, shift: int, fineness: float) -> Any | None:
        del parameter, shift, fineness
        return None


PROGRAM = """\
[program]
schema = 1
name   = "town"

[population]
account         = "residents"
unit            = "person"
neighbors       = "add-or-remove"
population_size = { value = 900, unit = "person", source = "made up" }
source          = "residents.csv"
attributes.ward = ["north", "east", "south"]
attributes.age  = { from = 0, to = 3 }

[[workload]]
name = "wards"
by   = ["ward"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "made up" }

[[workload]]
name = "ages"
by   = ["age"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "made up" }

[mechanism]
noise    = "cautious"
strategy = "STRATEGY"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = { value = 2, unit = "USD per person per epsilon", source = "made up" }
"""


@pytest.mark.parametrize("strategy", ["workload", "optimized"])
def test_one_class_and_one_line(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NOISE_LAWS, "cautious", CautiousLaw())  # the line
    (tmp_path / "program.toml").write_text(PROGRAM.replace("STRATEGY", strategy), encoding="utf-8")
    rows = "".join(f"{ward},{age}\n" for ward in ("north", "east") for age in range(4) for _ in range(20))
    (tmp_path / "residents.csv").write_text("ward,age\n" + rows, encoding="utf-8")

    plan = load(tmp_path / "program.toml").plan()
    assert plan.technology.noise == "cautious"
    known = {row.noise: row.choice.welfare for row in plan.comparisons if row.choice is not None}
    assert known["cautious"] < known["geometric"]  # it is compared with the others, and they say what it costs

    ledger = open_ledger(tmp_path / "ledger.sqlite", make_key(tmp_path / "key"), create=True)
    ledger.open_account(Account("residents", "person", PrivacyLoss.pure(100)), by="Ann")
    ledger.approve(Approval("residents", plan.digest, plan.charge, "person", by="Ben"))
    assert plan.program.source is not None
    release = load_release(
        publish(plan, plan.program.source, ledger, out=tmp_path / "out", by="Eve", unchecked=True).folder
    )
    stated = {each["law"] for group in release.facts["groups"] for each in group["noises"]}
    assert stated == {"cautious"}
    order = release_spec_of_plan(plan)
    for name, loss in plan.allocation.items():
        promise = plan.technology.measurements[name].table_errors(float(loss))
        for table, error in promise.items():
            found = float(np.square(release.published(table).standard_errors).sum())
            if release.facts["estimated_together"]:  # tables that cross each other are better than each by itself
                assert 0.5 * error < found < error
            else:
                assert found == pytest.approx(error, rel=1e-9)
            width = release.interval(table, probability=0.9)
            assert width.probability >= 0.9
    assert order.groups[0].noises[0].sampler() == LaplaceSampler(order.groups[0].noises[0].parameter * Fraction(3, 2))

    noise, lost, drawn, *_ = ClaimAttack().run(claim_of(release, load(tmp_path / "program.toml")), b"key")
    assert noise.success == Rate(0, len({each.parameter for group in order.groups for each in group.noises}))
    assert isinstance(lost.success, Range)
    assert lost.success.largest == pytest.approx(float(plan.loss), rel=1e-3)
    assert isinstance(drawn.success, Range)
    assert 0 < drawn.success.least < float(plan.loss) / 1.5 * 1.01  # it loses less than it says: two thirds
    assert run_audit(release.folder).findings


def test_a_law_that_loses_more_than_it_says_is_caught() -> None:
    """The audit holds the probabilities of a law that it does not know against what the law says of itself."""
    from dualmandate.mechanism import Noise

    @dataclass(frozen=True)
    class ShamelessLaw(CautiousLaw):
        published_as: ClassVar[str] = "shameless"

        def unit_loss(self, parameter: Fraction) -> Fraction:
            return 1 / (2 * parameter)

        def at(self, unit_loss: float) -> Geometric:
            return GEOMETRIC.at(2 * unit_loss)

    noise = Noise(ShamelessLaw(), Fraction(3))
    law = noise.distribution()
    claimed = ClaimedNoise("shameless", noise.law, noise.parameter, lambda k: law.log_likelihood(float(k)), noise)
    assert claimed.unit_loss() == Fraction(1, 6)
    check = claimed.check()
    assert check.broken
    assert math.isclose(float(check.words.split("the loss is ")[1].split(" ")[0]), 1 / 3)
