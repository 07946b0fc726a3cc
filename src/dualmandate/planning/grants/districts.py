"""School districts as the Title I formulas see them: children by district, expenditure by state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualmandate.errors import InvalidValue
from dualmandate.population.arrays import Floats, Indices


@dataclass(frozen=True, eq=False)
class SchoolDistricts:
    """Districts, all of them public: who is counted in them, and what their states spend on a pupil.

    `children` are those who count for grants (mostly 5 to 17 in poverty), `school_age` all of 5 to 17, `residents`
    everybody. Expenditure is in USD a pupil, by state; effort and equity are the factors of 20 U.S.C. 6337, where they
    are known.
    """

    codes: Sequence[str]
    states: Sequence[str]  # of each district
    children: Sequence[float] | Floats
    school_age: Sequence[float] | Floats
    expenditure: Mapping[str, float]  # by state
    national_expenditure: float
    residents: Sequence[float] | Floats | None = None
    effort: Mapping[str, float] | None = None
    equity: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        columns = {"states": self.states, "children": self.children, "school_age": self.school_age}
        if self.residents is not None:
            columns["residents"] = self.residents
        for name, column in columns.items():
            if len(column) != len(self.codes):
                raise _no_districts(f"{len(column)} {name} for {len(self.codes)} districts", "give one a district")
        twice = [code for code, times in Counter(self.codes).items() if times > 1]
        if twice:
            raise _no_districts(f"district {twice[0]} is given twice", "add its rows up, or give each a code")
        for name in ("children", "school_age", "residents"):
            column = columns.get(name, ())
            wrong = np.flatnonzero(~(np.isfinite(np.asarray(column, float)) & (np.asarray(column, float) >= 0)))
            if wrong.size:
                raise _no_districts(
                    f"{name} of district {self.codes[wrong[0]]} is missing or below 0", "state it; 0 where nobody is"
                )
        more = np.flatnonzero(np.asarray(self.children) > np.asarray(self.school_age))
        if more.size:
            raise _no_districts(
                f"district {self.codes[more[0]]} has more children who count than children",
                "give counts of the same year and the same borders",
            )
        without = sorted(set(self.states) - set(self.expenditure))
        if without:
            raise _no_districts(f"no expenditure is stated for {', '.join(without)}", "state it for every state")
        money = {"the nation": self.national_expenditure, **self.expenditure}
        for state, amount in money.items():
            if not 0 < amount < np.inf:
                raise _no_districts(f"the expenditure of {state} is {amount}", "state USD a pupil, above 0")

    @cached_property
    def state_names(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.states)))

    @cached_property
    def state_of(self) -> Indices:
        """The place of each district's state in `state_names`."""
        places = {state: place for place, state in enumerate(self.state_names)}
        return np.array([places[state] for state in self.states], dtype=np.intp)

    def by_state(self, stated: Mapping[str, float] | None, unstated: float) -> Floats:
        """A number of each state, in the order of `state_names`."""
        return np.array([(stated or {}).get(state, unstated) for state in self.state_names], dtype=np.float64)

    def sums(self, amounts: Floats) -> Floats:
        """Sums of districts' amounts, by state."""
        return np.asarray(np.bincount(self.state_of, amounts, len(self.state_names)), dtype=np.float64)


def _no_districts(what: str, instead: str) -> InvalidValue:
    why = "a grant rests on every one of these numbers, and nothing is dropped or guessed in silence"
    return InvalidValue(what, why=why, instead=instead)
