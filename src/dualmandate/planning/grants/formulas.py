"""Title I grants by 20 U.S.C. 6331 to 6337: four formulas, each reduced to its appropriation.

What a district may ask for, with E children who count and C, 40 % of what its state spends on a pupil, within bounds:

- basic and concentration grants: E·C, above thresholds;
- targeted grants: W·C, where W weighs children by bracket: more, the more of them or the larger their share;
- incentive grants: a state gets money by E·C·effort·(1.30 − equity), districts within it by W·C.

An appropriation buys the same share λ of what everybody asks for, but nobody gets less than most of last year's amount
(hold-harmless), and no state less than its minimum: Σ_s max(Σ_i max(λ·a_i, h_i), m_s) is the appropriation. It rises
with λ in straight pieces and bends upward, so Newton's method from above ends on its exact piece. Within a state at its
minimum the share is its own.

Left out, for want of public data by district: children in foster homes and in institutions, the counties within New
York and Hawaii, and states' own rules for districts of under 20,000 residents. The formulas are worked through in
[Son16].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualmandate.errors import InvalidValue, InvalidWorkload
from dualmandate.planning.grants.districts import SchoolDistricts
from dualmandate.planning.grants.statute import Row, Statute
from dualmandate.population.arrays import Booleans, Floats, Indices, Integers

FORMULAS = ("basic", "concentration", "targeted", "incentive")
PUERTO_RICO = "PR"
STEPS = 100  # Newton's method ends after as many as there are pieces on its way: some ten.
SLACK = 1e-13  # of an amount


@dataclass(frozen=True, eq=False)
class Grants:
    """What each district gets in a fiscal year, USD, by formula; shape (formulas, districts)."""

    year: int
    codes: tuple[str, ...]
    amounts: Floats
    lapsed: Integers  # years in a row, up to this one, without eligibility for a concentration grant

    @property
    def total(self) -> Floats:
        """Of all four grants, by district."""
        total: Floats = self.amounts.sum(axis=0)
        return total


@dataclass(frozen=True, eq=False)
class TitleI:
    """The grants of a fiscal year as a decision: from counts of children to USD for each district.

    `before` are the grants of the year before, which floors rest on; without them nothing is held harmless. A district
    that was merged or got another code is named in `successors`, by its code of before: its floor moves along.
    """

    districts: SchoolDistricts
    year: int
    statute: Statute
    before: Grants | None = None
    successors: Mapping[str, str] | None = None
    name = "Title I grants"

    def __post_init__(self) -> None:
        self.statute.year(self.year)
        if self.before is not None and self.before.year != self.year - 1:
            raise InvalidValue(
                f"grants of {self.before.year} stand before those of {self.year}",
                why="districts are held harmless against the year before",
                instead=f"divide the grants of {self.year - 1} first",
            )
        strangers = sorted(set((self.successors or {}).values()) - set(self.districts.codes))
        if strangers:
            raise InvalidValue(
                f"{strangers[0]} is said to succeed a district, and is none",
                why="a floor that moves there would vanish in silence",
                instead="name successors by their codes of this year",
            )

    def allocation(self, numbers: Floats, /) -> Floats:
        """USD to each district, by published numbers of children, which noise may have brought below 0."""
        return self.grants(numbers).total

    @property
    def gone(self) -> dict[str, float]:
        """USD of the year before of districts that are there no more: no floor rests on them."""
        if self.before is None:
            return {}
        paid = zip(self.before.codes, self.before.total.tolist(), self._places_now, strict=True)
        return {code: amount for code, amount, place in paid if place < 0}

    @cached_property
    def _places_now(self) -> Indices:
        """Where this year has each district of the year before; −1 for none."""
        assert self.before is not None
        places = {code: place for place, code in enumerate(self.districts.codes)}
        moved = self.successors or {}
        return np.array([places.get(moved.get(code, code), -1) for code in self.before.codes], dtype=np.intp)

    @cached_property
    def available(self) -> dict[str, float]:
        """What is left of each appropriation for states, USD: after the poverty estimates and the reserved share."""
        year = self.statute.year(self.year)
        sums = {name: getattr(year, name) - (year.estimates if name == "basic" else 0.0) for name in FORMULAS}
        return {name: amount * (1 - self.statute.reserved) for name, amount in sums.items()}

    def grants(self, numbers: Floats | None = None) -> Grants:
        """Each district's four grants, by the districts' own counts or by published ones."""
        law, districts = self.statute, self.districts
        counted = np.asarray(districts.children if numbers is None else numbers, dtype=np.float64)
        if counted.shape != (len(districts.codes),):
            raise InvalidWorkload(
                f"{counted.size} numbers for {len(districts.codes)} districts",
                why="grants go by one count of children a district",
                instead="ask for a table with one cell a district, in their order",
            )
        children = np.maximum(counted, 0.0)
        shares = np.divide(children, self._school_age, out=np.zeros_like(children), where=self._school_age > 0)
        enough = children >= law.least_children
        basic = enough & (shares > law.basic_share)
        many = (children > law.concentration_children) | (shares > law.concentration_share)
        targeted = enough & (shares >= law.targeted_share)
        eligible = {"basic": basic, "concentration": basic & many, "targeted": targeted, "incentive": targeted}
        rates = np.asarray(law.hold_harmless_rates)[np.searchsorted(law.hold_harmless_shares, shares, side="right")]
        paid, lapsed_before = self._history
        lapsed = np.where(eligible["concentration"], 0, lapsed_before + 1)
        amounts = np.empty((len(FORMULAS), children.size))
        for place, formula in enumerate(FORMULAS):
            may, amount = eligible[formula], self.available[formula]
            counts = np.where(may, children, 0.0)
            held = may | (lapsed <= law.concentration_years) if formula == "concentration" else may
            floors = np.where(held, rates * paid[place], 0.0)
            weighted = self._weighted(counts, formula)
            by_state = districts.sums(counts)
            minima = self._minima(formula, by_state)
            asked = weighted * self._expenditure[districts.state_of]
            if formula == "incentive":
                pools = by_state * self._incentive_rate
                within = np.arange(by_state.size)
                least = districts.sums(floors)
                totals = state_totals(pools, least, minima, state_of=within, amount=amount, most=np.inf)
            else:
                totals = state_totals(asked, floors, minima, state_of=districts.state_of, amount=amount, most=1.0)
            amounts[place] = within_states(asked, floors, totals, state_of=districts.state_of)
        return Grants(self.year, tuple(districts.codes), amounts, lapsed)

    @cached_property
    def _school_age(self) -> Floats:
        return np.asarray(self.districts.school_age, dtype=np.float64)

    @cached_property
    def _expenditure(self) -> Floats:
        return self._within(self.statute.expenditure_bounds)

    def _within(self, bounds: Row) -> Floats:
        """40 % of a state's expenditure on a pupil, within shares of the nation's, in whole cents; USD by state."""
        national = self.districts.national_expenditure
        spent = self.statute.expenditure_share * self.districts.by_state(self.districts.expenditure, np.nan)
        bounded = np.clip(spent, bounds[0] * national, bounds[1] * national)
        return np.asarray(np.round(bounded, 2), dtype=np.float64)

    @cached_property
    def _equity(self) -> Floats:
        return self.districts.by_state(self.districts.equity, self.statute.unstated_equity)

    @cached_property
    def _incentive_rate(self) -> Floats:
        """C·effort·(1.30 − equity), USD a child, by state; Puerto Rico's effort is the lowest of all."""
        effort = self.districts.by_state(self.districts.effort, self.statute.unstated_effort)
        effort = np.clip(effort, self.statute.effort_bounds[0], self.statute.effort_bounds[1])
        effort = np.where(np.array(self.districts.state_names) == PUERTO_RICO, effort.min(), effort)
        rate: Floats = self._within(self.statute.incentive_bounds) * effort
        return rate * (self.statute.equity_constant - self._equity)

    @cached_property
    def _history(self) -> tuple[Floats, Integers]:
        """Last year's amounts of this year's districts, 0 for new ones, and years without eligibility."""
        count = len(self.districts.codes)
        paid, lapsed = np.zeros((len(FORMULAS), count)), np.zeros(count, dtype=np.int64)
        if self.before is not None:
            there = self._places_now >= 0
            now = self._places_now[there]
            for amounts, before in zip(paid, self.before.amounts, strict=True):
                amounts += np.bincount(now, before[there], count)
            np.maximum.at(lapsed, now, self.before.lapsed[there])
        return paid, lapsed

    @cached_property
    def _classes(self) -> dict[str, Indices]:
        """The class of each district's weights: the first in targeted grants, that of its state in incentive ones."""
        own = np.searchsorted(self.statute.equity_classes, self._equity, side="right")[self.districts.state_of]
        return {"targeted": np.zeros_like(own), "incentive": own}

    def _weighted(self, counts: Floats, formula: str) -> Floats:
        """Children, weighted by bracket where the formula does so: by their number or their share, what is more."""
        if formula not in self._classes:
            return counts
        law, classes = self.statute, self._classes[formula]
        by_number = _in_brackets(counts, np.asarray(law.child_brackets), np.asarray(law.child_weights)[classes])
        edges = np.outer(self._school_age, law.share_brackets)
        weighted = np.maximum(by_number, _in_brackets(counts, edges, np.asarray(law.share_weights)[classes]))
        return np.where(self._in_puerto_rico, np.minimum(weighted, law.most_weight_in_puerto_rico * counts), weighted)

    @cached_property
    def _in_puerto_rico(self) -> Booleans:
        return np.array([state == PUERTO_RICO for state in self.districts.states], dtype=np.bool_)

    def _minima(self, formula: str, children: Floats) -> Floats:
        """The least that a state gets, USD: a share of all, or its average with 1.5 times the nation's a child."""
        law, amount = self.statute, self.available[formula]
        base = {"basic": law.base_year_basic, "concentration": law.base_year_concentration}.get(formula, 0.0)
        flat = law.base_year_minimum * base + law.minimum * max(0.0, amount - base)
        everybody = float(children.sum())
        average = law.average_payments * amount / everybody * children if everybody else np.zeros_like(children)
        if formula == "concentration":
            average = np.maximum(average, law.concentration_minimum)
        least: Floats = np.minimum(flat, (flat + average) / 2)
        return np.where(children > 0, least, 0.0)


def _in_brackets(counts: Floats, edges: Floats, weights: Floats) -> Floats:
    """Σ_k w_k·(what of a count lies in bracket k); edges shape (4,) or (districts, 4), weights (districts, 5)."""
    lower = np.column_stack([np.zeros_like(counts), np.broadcast_to(edges, (counts.size, edges.shape[-1]))])
    beyond = np.maximum(counts[:, None] - lower, 0.0)
    weighted: Floats = (np.diff(weights, axis=1, prepend=0.0) * beyond).sum(axis=1)
    return weighted


def state_totals(
    asked: Floats, floors: Floats, minima: Floats, *, state_of: Indices, amount: float, most: float
) -> Floats:
    """What each state gets of an amount: Σ_i max(λ·asked_i, floor_i), or its minimum; one λ ≤ `most` for all.

    Where floors and minima alone ask for more than the amount, all of them are reduced by the same share.
    """

    def at(level: float) -> tuple[Floats, float]:
        rising = level * asked > floors
        paid = np.bincount(state_of, np.where(rising, level * asked, floors), minima.size)
        above = paid > minima
        slope = np.bincount(state_of, np.where(rising, asked, 0.0), minima.size)[above].sum()
        return np.maximum(paid, minima), float(slope)

    least, everything = at(0.0)[0], float(asked.sum())
    if least.sum() >= amount:
        least *= amount / float(least.sum())
        return least
    if everything == 0:
        return least
    level = min(most, amount / everything)
    for _ in range(STEPS):
        totals, slope = at(level)
        over = float(totals.sum()) - amount
        if over <= SLACK * amount:
            break
        level -= over / slope
    return totals


def within_states(asked: Floats, floors: Floats, totals: Floats, *, state_of: Indices) -> Floats:
    """What each district gets of its state's total: max(λ_s·asked_i, floor_i), or its share of what floors ask for."""

    def summed(amounts: Floats) -> Floats:
        return np.asarray(np.bincount(state_of, amounts, totals.size), dtype=np.float64)

    everything, least = summed(asked), summed(floors)
    levels = np.divide(totals, everything, out=np.zeros_like(totals), where=everything > 0)
    for _ in range(STEPS):
        rising = levels[state_of] * asked > floors
        slopes, rest = summed(np.where(rising, asked, 0.0)), summed(np.where(rising, 0.0, floors))
        nearer = np.divide(totals - rest, slopes, out=np.zeros_like(totals), where=slopes > 0)
        done = np.abs(nearer - levels) <= SLACK * levels
        levels = nearer
        if np.all(done):
            break
    paid = np.maximum(levels[state_of] * asked, floors)
    short = least >= totals
    reduced = np.divide(totals, least, out=np.zeros_like(totals), where=least > 0)
    return np.where(short[state_of], floors * reduced[state_of], paid)
