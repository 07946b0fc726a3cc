"""Records from noisy tables: the most likely file, given the noise and what people in general are like.

Noisy tables contradict each other, so equations become likelihoods. With expected counts μ (what an attacker believes
of a place beforehand, Poisson) and noise of scale b on each number (Laplace), the most likely counts minimize

    Σ |(A·x)_r − y_r| / b_r  +  Σ x_i·ln(x_i/μ_i) − x_i + μ_i.

Its dual has one bounded number a row: x = μ·exp(−Aᵀλ), |λ_r| ≤ 1/b_r. Raising one λ_r until its row is met, or until
its bound, is iterative proportional fitting with a limit to how much each row may say; every step is the best for its
row, and all of them end at the optimum. Without noise it is proportional fitting itself, with nothing but noise it is
μ: the proportional guesser. On average over populations it is not below that guesser; of one population it can be by
a few records, and `never_below_guessing` then counts the guess. Rounded numbers, cell keys and swapping are attacked
the same way, with their own scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.reconstruction.fitting import SWEEPS, Known, most_likely_within

Floats = NDArray[np.float64]


def most_likely(
    equations: Equations, published: Floats, *, scales: Floats, expected: Floats, sweeps: int = SWEEPS
) -> Floats:
    """The most likely counts of each place; shape (places, unknowns).

    `published` has shape (places, rows) and `scales`, the mean absolute noise of each row (0: exact), shape (rows,).
    `expected` are counts expected beforehand, shape (places, unknowns); 0 is a structural zero.
    """
    return most_likely_within(equations, Known.shown(published, scales), expected, sweeps=sweeps)


def least_absolute(equations: Equations, published: Floats, *, scales: Floats) -> Floats:
    """The counts x ≥ 0 of one place with the least Σ |A·x − y|/b, by a linear program; shape (unknowns,).

    No prior: where little is published, or noise is large, it does worse than guessing. A scale of 0 counts as tiny.
    """
    import highspy

    rows, size = equations.rows, equations.size
    price = 1.0 / np.maximum(scales, 1e-3)
    model = highspy.Highs()
    model.silent()
    model.setOptionValue("threads", 1)
    model.addVars(size + 2 * rows, np.zeros(size + 2 * rows), np.full(size + 2 * rows, highspy.kHighsInf))
    columns = np.arange(size, size + 2 * rows, dtype=np.int32)
    model.changeColsCost(2 * rows, columns, np.concatenate([price, price]))
    from scipy.sparse import csr_array, eye_array, hstack

    whole = csr_array(hstack([equations.matrix.astype(np.float64), eye_array(rows), -eye_array(rows)]))
    right = published.astype(np.float64)
    model.addRows(
        rows, right, right, whole.nnz, whole.indptr[:-1].astype(np.int32), whole.indices.astype(np.int32), whole.data
    )
    model.run()
    return np.asarray(np.maximum(np.array(model.getSolution().col_value)[:size], 0.0))


def whole_records(found: Floats, *, total: int | None = None) -> Integers:
    """Whole counts near real ones with a given total (the nearest by default); largest remainders are rounded up."""
    floor = np.floor(found).astype(np.int64)
    wanted = round(float(found.sum())) if total is None else total
    more = wanted - int(floor.sum())
    if more > 0:
        order = np.argsort(-(found - floor), kind="stable")
        each, extra = divmod(more, len(found))
        floor += each
        floor[order[:extra]] += 1
    elif more < 0:
        for cell in np.argsort(found - floor, kind="stable"):
            taken = min(int(floor[cell]), -more)
            floor[cell] -= taken
            more += taken
            if not more:
                break
    return floor


def proportional_guess(expected: Floats, total: int) -> Floats:
    """The expected share of records that a guesser gets right who draws them in proportion to what is expected.

    Returns the expected counts of such a guess; shape as `expected`.
    """
    share = expected.sum()
    return expected * (total / share) if share > 0 else expected


def never_below_guessing(found: Floats, expected: Floats, truth: NDArray[Any]) -> tuple[float, bool]:
    """How many records the attack gets right or, where that is more, a guess in proportion; and whether it was more.

    Over populations and draws of noise the most likely file is not below the guess; of a single population it can be,
    by a few records, where there is hardly anything but noise. An attacker may always guess, so that the better of the
    two is what is reported: an attack is a lower bound on risk.
    """
    attacked = float(np.minimum(found, truth).sum())
    guessed = float(np.minimum(expected, truth).sum())
    return max(attacked, guessed), attacked >= guessed


def agreement(found: NDArray[Any], truth: NDArray[Any]) -> float:
    """Share of true records that are in the found file, Σ min(found, truth)/records; 1 for a place of nobody."""
    records = float(truth.sum())
    return float(np.minimum(found, truth).sum()) / records if records else 1.0
