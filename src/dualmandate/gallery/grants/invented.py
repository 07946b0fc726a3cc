"""The school districts of the worked program, and what its files say of them: last year's counts, money, grants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dualmandate.planning.grants import FORMULAS, SchoolDistricts, TitleI, read_statute

YEAR = 2019  # the fiscal year of the worked program
CHANGE = 0.1  # the standard deviation of how the logarithm of a district's count changes in a year


def invented_districts() -> SchoolDistricts:
    """The 13,000 districts of the worked program, with invented expenditures: always the same."""
    from dualmandate.gallery.districts import SEED, counts, districts

    codes, states, _ = zip(*districts(), strict=True)
    children = counts()
    names = sorted(set(states))
    amounts = 12_000 * np.exp(0.25 * np.random.Generator(np.random.PCG64(SEED)).standard_normal(len(names)))
    expenditure = {state: float(round(amount)) for state, amount in zip(names, amounts, strict=True)}
    whole = children.sum(axis=1).astype(np.float64)
    eligible = children[:, 1].astype(np.float64)
    return SchoolDistricts(codes, states, eligible, whole, expenditure, 12_000.0, residents=6 * whole)


def invented_grants() -> TitleI:
    """Grants by last year's counts, which are public and not those of today; held harmless against the year before."""
    today, law = invented_districts(), read_statute()
    moved = np.exp(CHANGE * np.random.default_rng(YEAR).standard_normal(len(today.codes)))
    last = np.minimum(np.rint(np.asarray(today.children) * moved), np.asarray(today.school_age))
    districts = replace(today, children=last)
    return TitleI(districts, YEAR, law, before=TitleI(districts, YEAR - 1, law).grants())


def law_files() -> dict[str, str]:
    """What the program under the law names: districts, states, and what each district was paid the year before."""
    grants = invented_grants()
    places, before = grants.districts, grants.before
    assert before is not None
    columns = (places.codes, places.states, places.children, places.school_age)
    rows = [f"{code},{state},{round(school)}" for code, state, _, school in zip(*columns, strict=True)]
    counts = [f"{code},{round(children)}" for code, _, children, _ in zip(*columns, strict=True)]
    spent = [
        f"{state},{amount:.0f}" for state, amount in {"US": places.national_expenditure, **places.expenditure}.items()
    ]
    paid = [
        f"{code},{','.join(f'{amount:.2f}' for amount in amounts)},{lapsed}"
        for code, amounts, lapsed in zip(before.codes, before.amounts.T.tolist(), before.lapsed.tolist(), strict=True)
    ]
    return {
        "school_districts.csv": _csv("district,state,school_age", rows),
        "counts.csv": _csv("district,number", counts),
        "states.csv": _csv("state,expenditure", spent),
        "paid_before.csv": _csv(f"district,{','.join(FORMULAS)},lapsed", paid),
    }


def _csv(header: str, rows: list[str]) -> str:
    return "\n".join([header, *rows]) + "\n"
