"""Prints the figures of docs/explanation/redistricting.md from the program `redistricting`, and draws its picture.

`python -m tests.gallery.redistricting_figures PICTURE.png`: three minutes of one processor.
"""

from __future__ import annotations

import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

from dualmandate import gallery
from dualmandate.choice import implied_cost
from dualmandate.gallery.redistricting import DistrictErrors, Districts, district_errors, invented_state
from dualmandate.planning.program import load
from dualmandate.report.figures import CurveWords, curves

LOSSES = (0.1, 0.3, 1.2, 2.5562, 10.0)
BUDGETS = {"April 2021 demonstration": Fraction(439, 429) ** 2, "production, 2020": Fraction(542, 339) ** 2}
BLOCKS = "voting age, origin and race by block"
ALONG, ACROSS = "population, along the geography", "population, scattered blocks"
COMPOSITION, EXACT = "minority share", "minority share, exact blocks"


def main(picture: str) -> None:
    """All figures of the page."""
    state = invented_state()
    along = Districts.of(state.districts)
    across = Districts.of([str(place % len(along.names)) for place in range(len(state.codes))])
    found: dict[str, list[DistrictErrors]] = {}
    with tempfile.TemporaryDirectory() as folder:
        gallery.write("redistricting", folder)
        plans = {name: load(Path(folder, f"{name}.toml")).plan() for name in ("program", "exact_blocks")}
    for name, plan in plans.items():
        print(name, plan.choice.epsilon, plan.choice.privacy_cost, plan.choice.data_loss)
        for each, rho in BUDGETS.items():
            print("  implied", each, float(rho), implied_cost(plan.technology.frontier, plan.welfare, float(rho)))
        for kind, districts in (("along", along), ("across", across)):
            errors = district_errors(plan, state.today, districts, LOSSES, table=BLOCKS, progress=_say)
            found[f"{name} {kind}"] = list(errors)
            print(*errors, sep="\n")
    drawn = {
        ACROSS: [(each.loss, each.deviation) for each in found["program across"]],
        ALONG: [(each.loss, each.deviation) for each in found["program along"]],
        COMPOSITION: [(each.loss, each.composition) for each in found["program along"]],
        EXACT: [(each.loss, each.composition) for each in found["exact_blocks along"]],
    }
    chosen = found["program along"][LOSSES.index(1.2)]
    words = CurveWords(
        title=f"At the planned loss a district's population is off by {100 * chosen.deviation:.2f} %",
        subtitle=f"Mean error of {len(along.names)} districts of {int(state.today.sum()):,} people, over "
        "four simulated releases; both axes logarithmic",
        sentence="How far off districts are by published numbers, at each privacy loss.",
        heading="mean error of a district",
        loss="ρ",
        labels="percent",
    )
    curves("districts", drawn, words).save(picture)
    print("population by the last census' districts", along.sums(state.today.sum(axis=(1, 2, 3))).astype(np.int64))


def _say(words: str) -> None:
    print(words, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
