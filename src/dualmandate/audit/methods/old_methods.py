"""The methods before differential privacy, applied to the same data: so that their risk and accuracy can be compared.

They have no ε. Each is a point with a measured accuracy and a measured risk, and nothing bounds what another attack
finds. All draws come from a key of the audit's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.suppression.cells import LinkedTables, audit_suppression
from dualmandate.errors import InvalidRequest

Floats = NDArray[np.float64]


def swap(records: Integers, places: Integers, *, share: float, alike: Integers, draws: np.random.Generator) -> Integers:
    """Data swapping: some records exchange their places with records of other places that are alike in a stated way.

    `records` are cells and `places` where each record lives, shape (records,); `alike` is the class of each cell within
    which records are swapped (whatever is counted by class stays exact). Returns the new places. About a share of the
    records moves; a record without a partner stays.
    """
    _check_share(share)
    moved = places.copy()
    chosen = np.flatnonzero(draws.random(len(records)) < share)
    for one_class in np.unique(alike[records[chosen]]):
        members = draws.permutation(chosen[alike[records[chosen]] == one_class])
        # neighbors in a random order, sorted by place and folded in the middle: partners live apart where they can
        members = members[np.argsort(places[members], kind="stable")]
        half = len(members) // 2
        left, right = members[:half], members[half : 2 * half]
        moved[left], moved[right] = places[right], places[left]
    return moved


def round_randomly(values: Integers, *, base: int, draws: np.random.Generator) -> Integers:
    """Random rounding to multiples of a base, unbiased: up with the probability of the remainder; multiples stay."""
    if base < 2:
        raise InvalidRequest(
            f"rounding to base {base}", why="it would change nothing", instead="state a base from 2 on"
        )
    low, remainder = values // base * base, values % base
    return low + base * (draws.random(values.shape) * base < remainder)


def cell_key_noise(counts: Integers, keys: Integers, *, deviation: float, most: int) -> Integers:
    """Cell-key noise: looked up by the sum of the random keys of a cell's records, so the same for the same records.

    `keys` are sums modulo 2³² of the keys of each cell's records; noise is normal with this deviation, rounded, cut at
    `most` and at the count itself, and 0 where the count is 0. A cell has the same noise wherever it is published.
    """
    from scipy.stats import norm

    share = ((keys % 2**32).astype(np.float64) + 0.5) / 2**32
    noise = np.clip(np.rint(norm.ppf(share) * deviation), -most, most).astype(np.int64)
    return np.where(counts > 0, np.maximum(counts + noise, 0), 0)


def top_cap(values: Floats, *, share: float) -> float:
    """Where the top begins: the largest number so that at least this share of the values is not below it."""
    _check_share(share)
    top = max(math.ceil(share * len(values) - 1e-9), 1)  # less what a share in decimals is too large by
    return float(np.sort(values)[-top])


def top_code(values: Floats, *, cap: float) -> Floats:
    """Top-coding: values from the cap on are replaced by their mean."""
    top = values >= cap
    return np.where(top, values[top].mean() if top.any() else cap, values)


def microaggregate(values: Floats, *, size: int) -> Floats:
    """Micro-aggregation of one number: in sorted groups of `size` or more, each record gets the mean of its group."""
    if not 2 <= size <= len(values):
        raise InvalidRequest(
            f"groups of {size} among {len(values)} records",
            why="a group hides its members among each other",
            instead="state a size from 2 to the number of records",
        )
    order = np.argsort(values, kind="stable")
    groups = np.minimum(np.arange(len(values)) // size, len(values) // size - 1)
    means = np.bincount(groups, weights=values[order]) / np.bincount(groups)
    found = np.empty(len(values))
    found[order] = means[groups]
    return found


class PrimaryRule(Protocol):
    """Which cells of a magnitude table are sensitive by themselves."""

    def sensitive(self, contributions: Floats) -> bool:
        """Whether a cell with these contributions, largest first, must not be shown."""
        ...


@dataclass(frozen=True)
class Threshold:
    """Fewer than so many contributors."""

    least: int = 3

    def sensitive(self, contributions: Floats) -> bool:
        """An occupied cell with too few contributors."""
        return 0 < len(contributions) < self.least


@dataclass(frozen=True)
class Dominance:
    """The (n, k) rule: n contributors make up more than a share k of the cell."""

    contributors: int = 2
    share: float = 0.85

    def sensitive(self, contributions: Floats) -> bool:
        """Whether the largest contributors dominate."""
        total = contributions.sum()
        return bool(total > 0 and contributions[: self.contributors].sum() > self.share * total)


@dataclass(frozen=True)
class PriorPosterior:
    """The p % rule: the second largest could tell the largest within p % of it."""

    share: float = 0.10

    def sensitive(self, contributions: Floats) -> bool:
        """Whether what is left after the two largest is less than p % of the largest."""
        if not len(contributions) or contributions[0] <= 0:
            return False
        return bool(contributions[2:].sum() < self.share * contributions[0])


def suppress(
    relations: Equations, values: Integers, primary: NDArray[np.bool_], *, share: float, rounds: int = 1000
) -> NDArray[np.bool_]:
    """Complementary suppression: as many further cells as it takes until no sensitive cell can be told within a share.

    Greedy: where a sensitive cell is too well bounded, the smallest shown and occupied cell of its sums is hidden too.
    Not the fewest cells, and a cell that no more suppression can protect is left as it is.
    """
    _check_share(share)
    hidden, given_up = primary.copy(), np.zeros_like(primary)
    cell_starts, cell_rows = relations.by_cell
    for _ in range(rounds):
        audit = audit_suppression(LinkedTables(relations, values, hidden))
        exposed = [c for c in audit.unprotected(values, share=share) if primary[c] and not given_up[c]]
        if not exposed:
            break
        for cell in exposed:
            rows = cell_rows[cell_starts[cell] : cell_starts[cell + 1]]
            best = _smallest_shown(relations, values, hidden, rows)
            if best is None:
                given_up[cell] = True
            else:
                hidden[best] = True
    return hidden


def _smallest_shown(relations: Equations, values: Integers, hidden: NDArray[np.bool_], rows: Any) -> int | None:
    parts = [relations.cells[relations.starts[row] : relations.starts[row + 1]] for row in rows]
    cells = np.unique(np.concatenate(parts)) if parts else np.array([], dtype=np.int64)
    shown = cells[~hidden[cells] & (values[cells] > 0)]
    return int(shown[np.argmin(values[shown])]) if shown.size else None


def _check_share(share: float) -> None:
    if not 0 <= share <= 1:
        raise InvalidRequest(f"a share of {share:g}", why="a share lies between 0 and 1", instead="state one there")
