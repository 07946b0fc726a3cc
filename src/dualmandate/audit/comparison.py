"""Risk beside accuracy on the same records: the methods before differential privacy, and DP at each ε.

The attack is the same everywhere: the most likely file, by an attacker who knows how large the errors of the tables are
and what people elsewhere are like. The old methods have no ε: each is a point, and nothing bounds another attack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.finding import Effort
from dualmandate.audit.noisy import most_likely
from dualmandate.audit.old_methods import cell_key_noise, generator, round_randomly, swap
from dualmandate.audit.rates import Rate
from dualmandate.audit.table_attacks import guess
from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import GEOMETRIC

Floats = NDArray[np.float64]
Family = Literal["exact", "swapping", "rounding", "cell key", "suppression", "differential privacy"]
SWAPPED, BASES, DEVIATIONS, THRESHOLDS = (0.01, 0.05, 0.2, 0.5), (3, 5, 10), (1.0, 2.0), (3, 6)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
MOST_NOISE = 5  # of a cell key
UNSEEN = 0.01  # belief in what no other place has
NOTHING = 1e9  # the scale of a number that says nothing
THRESHOLD_GUESS = 1.0  # what a reader takes a suppressed number for


@dataclass(frozen=True)
class Compared:
    """One way to publish: the mean absolute error of its numbers, and the records that an attack gets right.

    `guess` is what the proportional guesser gets right who has no tables.
    """

    family: Family
    name: str
    epsilon: float | None  # None: the method has none
    error: float
    right: Rate
    guess: Rate

    @property
    def above_guess(self) -> float:
        """The share of records right, less what a guesser gets right."""
        return self.right.value - self.guess.value


def compare(
    equations: Equations,
    truth: Integers,
    *,
    tables: float,
    key: bytes,
    epsilons: Sequence[float] = EPSILONS,
    effort: Effort | None = None,
) -> tuple[Compared, ...]:
    """Every method on the same records; `truth` has shape (places, cells).

    `tables` is how many numbers one record changes at most, by 1 each: the sensitivity of all tables together.
    """
    if len(truth) < 2 or not truth.sum():
        raise InvalidRequest(
            f"{len(truth)} places with {int(truth.sum()):,} records",
            why="swapping exchanges records of two places, and a guesser learns from the others",
            instead="give at least two places, and somebody in them",
        )
    work, expected = effort or Effort(), _believed(truth)
    exact = equations.of(truth)
    found = []
    for family, name, epsilon, published in _published(equations, truth, tables, key, epsilons):
        work.say(f"comparing methods: {name}")
        shown = ~np.isnan(published)
        stated = np.where(shown, published, THRESHOLD_GUESS)
        errors = np.abs(stated - exact)
        seen = float(errors[shown].mean()) if shown.any() else 0.0
        records = _attack(equations, published, seen, expected)
        rates = _right(records, truth), _right(expected, truth)
        found.append(Compared(family, name, epsilon, float(errors.mean()), *rates))
    return tuple(found)


def _believed(truth: Integers) -> Floats:
    """The guess from other places, with a little belief in whatever no other place has seen."""
    equal = truth.sum(axis=1, keepdims=True) / truth.shape[1]
    return np.asarray((1 - UNSEEN) * guess(truth) + UNSEEN * equal)


def _right(found: Floats, truth: Integers) -> Rate:
    records = int(truth.sum())
    return Rate(min(round(float(np.minimum(found, truth).sum())), records), records)


def _attack(equations: Equations, published: Floats, scale: float, expected: Floats) -> Floats:
    hidden = np.isnan(published)
    if not hidden.any():
        return most_likely(equations, published, scales=np.full(equations.rows, scale), expected=expected)
    found = np.empty_like(expected)
    for place, marks in enumerate(hidden):
        own = slice(place, place + 1)
        scales = np.where(marks, NOTHING, scale)
        found[own] = most_likely(equations, np.nan_to_num(published[own]), scales=scales, expected=expected[own])
    return found


Published = tuple[Family, str, float | None, Floats]


def _published(
    equations: Equations, truth: Integers, tables: float, key: bytes, epsilons: Sequence[float]
) -> Iterator[Published]:
    exact = equations.of(truth)
    yield "exact", "exact tables", None, exact.astype(np.float64)
    places, records = np.divmod(np.repeat(np.arange(truth.size), truth.reshape(-1)), truth.shape[1])
    alike = np.zeros(truth.shape[1], dtype=np.int64)
    for share in SWAPPED:
        moved = swap(records, places, share=share, alike=alike, draws=generator(key, f"swap {share}"))
        swapped = np.zeros_like(truth)
        np.add.at(swapped, (moved, records), 1)
        yield "swapping", f"{share:.0%} swapped", None, equations.of(swapped).astype(np.float64)
    for base in BASES:
        rounded = round_randomly(exact, base=base, draws=generator(key, f"round {base}"))
        yield "rounding", f"rounded to {base}", None, rounded.astype(np.float64)
    keys = np.zeros_like(truth)
    np.add.at(keys, (places, records), generator(key, "cell keys").integers(0, 2**32, len(records)))
    for deviation in DEVIATIONS:
        noisy = cell_key_noise(exact, equations.of(keys), deviation=deviation, most=MOST_NOISE)
        yield "cell key", f"cell key, deviation {deviation:g}", None, noisy.astype(np.float64)
    for least in THRESHOLDS:
        shown = np.where((exact > 0) & (exact < least), np.nan, exact.astype(np.float64))
        yield "suppression", f"suppressed below {least}", None, shown
    for epsilon in epsilons:
        law = GEOMETRIC.at(epsilon / tables)
        noise = law.draw(generator(key, f"epsilon {epsilon}"), exact.shape)
        yield "differential privacy", f"ε = {epsilon:g}", epsilon, exact + noise
