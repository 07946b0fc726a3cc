"""What no strategy errs less than, also where numbers of people and sums of their amounts stand side by side.

Every query is linear in an amount, so the two ends of each amount bound all levels between. Noise on whole numbers
gains on its continuous twin as its loss grows: ψ(l) = l²·V(l), in ρ l·V(l), falls from what it is for that twin. A row
that counts people may get all of the loss, ψ_c = ψ(l). A row with an amount of n steps moves by n/2 or more at one of
its ends, so that a step gets at most 2l/n (in ρ 4l/n²) of the loss, and ψ_a is nearly that of the twin.

For masses d ≥ 0 of cells, Σd = 1, and Π the projector on D^½ times all that does not depend on amounts, let
M = D^½(ψ_c·Π + ψ_a·(I − Π))D^½. With Q = RA, rows a_i of loss l_i and E the error, the nuclear norm of QM^½ is at most
‖R·diag(√ψ_i/l_i)‖·‖diag(l_i/√ψ_i)·AM^½‖ ≤ √E·l, because a_iMa_iᵀ ≤ ψ_i·a_iDa_iᵀ and Σ_i l_i²a_ij² ≤ l² for every
cell j: E ≥ (tr (QMQᵀ)^½)²/l². With ψ_c = ψ_a it is the dual of the matrix mechanism. Source: [LM13], [ENU20].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dualmandate.mechanism.strategy.axes import Axis
from dualmandate.mechanism.strategy.dual import SymmetryBlock, gaussian_optimum, solve
from dualmandate.mechanism.strategy.marginal_rows import MARGINALS_FROM, least_variance
from dualmandate.mechanism.strategy.strategy import BOUND_TOLERANCE
from dualmandate.mechanism.strategy.workload_blocks import WorkloadBlock, outer, parts_of, public_tables
from dualmandate.population import Protection
from dualmandate.population.arrays import Floats, Indices
from dualmandate.workload import Factor, Workload

LARGEST_BLOCK = 128  # orbits of a sector whose eigenvalues are asked for at every loss
BALANCES = (0.0, 0.5, 1.0)  # how far the masses of the dual are spread evenly over the ends of amounts


@dataclass(frozen=True, eq=False)
class LeastError:
    """The least error coefficient of any strategy, for noise that is coarser on people than on amounts."""

    rest: float  # the factor of parts that have no amounts
    blocks: tuple[SymmetryBlock, ...] = ()  # of the part with amounts, at their ends
    labels: tuple[Indices, ...] = ()  # for each block: orbits with equal labels differ in amounts only
    masses: tuple[Floats, ...] = ()  # choices of d

    def coefficient(self, counted: float, summed: float) -> float:
        """max over d of (tr (QMQᵀ)^½)², for ψ_c ≤ ψ_a."""
        if not self.blocks:
            return self.rest * counted
        return self.rest * max(self._trace(masses, counted, summed) for masses in self.masses) ** 2

    def _trace(self, masses: Floats, counted: float, summed: float) -> float:
        total = 0.0
        for block, labels in zip(self.blocks, self.labels, strict=True):
            root = np.sqrt(masses[block.cells])
            same = labels[:, None] == labels[None, :]
            whole = np.bincount(labels, root**2)[labels]
            projector = np.where(same, np.multiply.outer(root, root) / whole[:, None], 0.0)
            scale = math.sqrt(summed) * (np.eye(len(root)) - projector) + math.sqrt(counted) * projector
            values = np.linalg.eigvalsh(scale @ (root[:, None] * block.matrix * root) @ scale)
            kept = values[values > max(float(values[-1]), 0.0) * len(values) * np.finfo(np.float64).eps]
            total += block.multiplicity * float(np.sqrt(kept).sum())
        return total


def least_error(workload: Workload, values: Mapping[str, float], protection: Protection) -> LeastError:
    """The bound for tables whose squared errors cost what `values` says, each more than 0; for units of one record."""
    public = public_tables(workload.domain, protection)
    rest, mixed = 1.0, None
    for part in parts_of(workload, {name: Fraction(value) for name, value in values.items()}, public=public):
        ends = part.ends()
        if ends is not part and mixed is None and not public and 0 < _largest_sector(ends) <= LARGEST_BLOCK:
            mixed = part, ends
        else:
            rest *= _least_of(ends)
    return LeastError(rest) if mixed is None else _with_amounts(*mixed, rest)


def _least_of(part: WorkloadBlock) -> float:
    """What no strategy for a part errs less than."""
    if part.is_symmetric and part.possible is None and not part.public and part.merged_size > MARGINALS_FROM:
        return least_variance(part)[1]
    return gaussian_optimum(part, BOUND_TOLERANCE).lower


def amount_steps(workload: Workload) -> dict[int, int]:
    """The grid steps from end to end of each attribute that is only counted and summed, by its place in the domain."""
    found = {}
    for part in parts_of(workload):
        for place, (level, end) in enumerate(zip(part.levels, part.ends().levels, strict=True)):
            if end is not level:
                found[part.axes[place]] = max(_steps(level, factors[place]) for factors in part.tables.values())
    return found


def _steps(level: Axis, factor: Factor) -> int:
    values = factor.columns(level.kept)[0]
    return int(np.ptp(values)) // (int(np.gcd.reduce(values - values[0])) or 1)


def _largest_sector(part: WorkloadBlock) -> int:
    """The most orbits that a sector has; 0 where nothing is asked."""
    shape = part.orbit_shape
    return max((math.prod(shape[place] for place in part.averaged(sector)) for sector in part.sectors), default=0)


def _with_amounts(part: WorkloadBlock, ends: WorkloadBlock, rest: float) -> LeastError:
    """Over all orbits at the ends: also a record without an amount limits what counts people."""
    shape, sizes = ends.orbit_shape, outer([level.members.astype(np.float64) for level in ends.levels])
    summed = [place for place, level in enumerate(ends.levels) if level is not part.levels[place]]
    told = tuple(1 if place in summed else size for place, size in enumerate(shape))
    people = np.broadcast_to(np.arange(math.prod(told)).reshape(told), shape).reshape(-1)
    blocks = []
    for sector in ends.sectors:
        orbits = ends.orbits_of(sector)
        scales = 1.0 / np.sqrt(sizes[orbits])
        gram = ends.gram(sector) * np.multiply.outer(scales, scales)
        blocks.append(SymmetryBlock(ends.multiplicity(sector), gram, False, orbits))
    found = solve(blocks, sizes / sizes.sum(), BOUND_TOLERANCE).masses
    even = np.bincount(people, found)[people] / np.bincount(people)[people]
    masses = tuple((1.0 - share) * found + share * even for share in BALANCES)
    labels = (np.unique(people[block.cells], return_inverse=True)[1].reshape(-1) for block in blocks)
    return LeastError(rest, tuple(blocks), tuple(labels), masses)
