"""How a loss is shared along the chain: the shares that make the estimates of all tables most precise.

With σ² = 1/(loss·share) for the share of each table, and tables of every level of the tree measured in the same
proportions, minimize Σ_l Σ_k v_k·L_l·(mean variance of the groups of level k at the nodes of level l), the variances
those of the best linear unbiased estimates. L_l is the share of level l: without it, the level with the least loss
would decide alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dualmandate.population.arrays import Floats
from dualmandate.publication.consistency.gls_weights import (
    Pair,
    Weights,
    final_variances,
    table_variances,
    upward_variances,
)
from dualmandate.publication.consistency.partitions import PartitionChain, Tree

PARTS = 1000  # A share is a whole number of this many parts.


@dataclass(frozen=True)
class BudgetAllocation:
    """A loss over the levels of a tree and of a chain: both lists of shares sum to 1.

    What is known exactly is not measured; its share goes to the other tables of that level, in proportion.
    """

    levels: tuple[Fraction, ...]
    tables: tuple[Fraction, ...]
    known: frozenset[Pair] = frozenset()

    def shares(self) -> dict[Pair, Fraction]:
        """The share of each table that is measured; they sum to 1."""
        pairs = [(level, k) for level in range(len(self.levels)) for k in range(len(self.tables))]
        measured = (pair for pair in pairs if pair not in self.known and self.tables[pair[1]])
        return {pair: math.prod(self.parts(*pair), start=Fraction(1)) for pair in measured}

    def parts(self, level: int, k: int) -> tuple[Fraction, Fraction]:
        """The share of a level in the loss, and that of a table in what its level gets."""
        whole = sum((part for i, part in enumerate(self.tables) if (level, i) not in self.known), Fraction(0))
        return self.levels[level], self.tables[k] / whole


def allocate_budget(
    tree: Tree,
    chain: PartitionChain,
    levels: Sequence[Fraction],
    values: Mapping[Pair, float],
    known: Collection[Pair] = (),
) -> BudgetAllocation:
    """The best shares of a chain's tables, in thousandths; `values` are v of the tables that count, any subset."""
    from scipy.optimize import minimize

    def sharing(logits: Floats) -> BudgetAllocation:
        exponentials = np.exp(np.append(logits, 0.0))
        return BudgetAllocation(tuple(levels), thousandths(exponentials / exponentials.sum()), frozenset(known))

    def loss(logits: Floats) -> float:
        exponentials = np.exp(np.append(logits, 0.0))
        return weighted_variance(tree, chain, levels, exponentials / exponentials.sum(), values, known)

    best = minimize(loss, np.zeros(chain.last), method="L-BFGS-B", bounds=[(-6.0, 6.0)] * chain.last)
    return sharing(best.x)


def weighted_variance(
    tree: Tree,
    chain: PartitionChain,
    levels: Sequence[Fraction],
    tables: Floats,
    values: Mapping[Pair, float],
    known: Collection[Pair] = (),
) -> float:
    """Σ v·L·(mean variance of a table's numbers), for a loss of 1."""
    variances = dict.fromkeys(known, 0.0)
    for level, share in enumerate(levels):
        measured = [k for k in range(len(tables)) if (level, k) not in variances]
        whole = sum(tables[k] for k in measured)
        variances |= {(level, k): whole / float(share) / tables[k] for k in measured}
    weights = Weights.of(chain, variances, levels=len(levels))
    upward, _ = upward_variances(tree, weights)
    final = final_variances(tree, upward, upward[0])
    loss = 0.0
    for level in sorted({level for level, _ in values}):
        means = tuple(each.mean(axis=0, keepdims=True) for each in final[level])  # tables are linear in innovations
        for k, each in enumerate(table_variances(weights, means)):
            loss += values.get((level, k), 0.0) * float(levels[level]) * each.mean()
    return float(loss)


def thousandths(shares: Floats) -> tuple[Fraction, ...]:
    """Shares rounded to thousandths that sum to 1, by largest remainders; none below one thousandth."""
    parts = np.maximum(np.floor(shares * PARTS), 1).astype(np.int64)
    order = np.argsort(-(shares * PARTS - parts), kind="stable")
    parts[order[: max(PARTS - int(parts.sum()), 0)]] += 1
    parts[np.argmax(parts)] -= parts.sum() - PARTS
    return tuple(Fraction(int(part), PARTS) for part in parts)
