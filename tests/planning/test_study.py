"""The best noise is the best of what is drawn: a study that errs less is compared, and never used."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism import NOISE_LAWS
from dualmandate.planning.program import load
from dualmandate.planning.saved_plan import SavedPlan
from dualmandate.planning.study import drawn_instead, is_study, may_be_used
from dualmandate.program.schema import BEST


def test_best_ranges_over_what_is_drawn() -> None:
    assert {noise for noise in NOISE_LAWS if may_be_used(noise, BEST)} == {"geometric", "gaussian"}
    assert all(may_be_used(noise, noise) for noise in NOISE_LAWS)
    assert not may_be_used("laplace", "geometric")
    assert {noise: drawn_instead(noise).name for noise in NOISE_LAWS if is_study(noise)} == dict.fromkeys(
        ("laplace", "staircase"), "geometric"
    )


@pytest.mark.parametrize("noise", list(NOISE_LAWS))
def test_what_is_not_drawn_is_not_published(noise: str) -> None:
    plan = SavedPlan({"exact": {"mechanism": {"noise": noise}}})
    if NOISE_LAWS[noise].publishable:
        plan.check_publishable()
    else:
        with pytest.raises(InvalidMechanism, match=f"a study: {noise} noise") as refused:
            plan.check_publishable()
        assert refused.value.instead.startswith('state noise = "geometric" or "best"')


def test_a_study_that_errs_less_is_not_the_best(embedded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    law = type(NOISE_LAWS["staircase"])
    for name in ("variance", "variance_slope", "variance_curvature"):
        honest = getattr(law, name)
        monkeypatch.setattr(law, name, lambda self, unit_loss, honest=honest: 1e-3 * honest(self, unit_loss))
    plan = load(embedded).plan()
    rows = {row.noise: row for row in plan.comparisons}
    assert rows["staircase"].choice is not None
    assert rows["staircase"].study
    assert rows["staircase"].choice.welfare > plan.choice.welfare
    assert plan.technology.noise == "geometric"
    assert not plan.study
    assert not any("Staircase" in note for note in plan.notes)
