"""Prints the figures of docs/explanation/national-accounts.md from the worked program, and draws its picture.

`python -m tests.gallery.national_accounts_figures PICTURE.png`: half a minute of one processor.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from dualmandate import gallery
from dualmandate.gallery.national_accounts import errors_of_accounts, suppressed
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.report.figures import CurveWords, curves

LOSSES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
SECTORS = "payroll by sector"
WAYS = {"detail": "cells, added up", "both": "both", "program": "what is used"}


def plans() -> dict[str, Plan]:
    """The three programs of the folder."""
    with tempfile.TemporaryDirectory() as folder:
        gallery.write("national_accounts", folder)
        return {name: load(Path(folder, f"{name}.toml")).plan() for name in WAYS}


def main(picture: str) -> None:
    """All figures of the page."""
    drawn = {}
    for name, plan in plans().items():
        print(name, plan.choice.epsilon, plan.choice.privacy_cost, plan.choice.data_loss, plan.extensions.clipping)
        found = [(loss, errors_of_accounts(plan, loss)) for loss in LOSSES]
        for loss, errors in found:
            print(loss, errors)
        drawn[WAYS[name]] = [(loss, errors[SECTORS].both / 1e6) for loss, errors in found]
    words = CurveWords(
        title="Cells that are added up miss a fifth of a sector at any loss",
        subtitle="Typical error of the payroll of a sector, which is $5.4 billion on average: noise and what "
        "clipping leaves out; both axes logarithmic",
        sentence="What the reader of the accounts gets from three ways to publish, at each privacy loss.",
        heading="billion USD a sector",
    )
    curves("accounts", drawn, words).save(picture)
    print(suppressed())


if __name__ == "__main__":
    main(sys.argv[1])
