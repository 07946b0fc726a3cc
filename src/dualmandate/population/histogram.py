"""How many records fall into each cell: the paper's x. Public or synthetic here; confidential ones travel boxed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidDomain, TooLarge
from dualmandate.population.domain import Domain

LARGEST_DENSE_HISTOGRAM = 2**28  # cells; 2 GiB of 64-bit counts


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of records by cell, dense, in the shape of the domain (x; ‖x‖₁ = N)."""

    domain: Domain
    counts: NDArray[np.int64] = field(repr=False)  # shape domain.shape, ≥ 0; never printed

    def __post_init__(self) -> None:
        if self.counts.shape != self.domain.shape:
            raise InvalidDomain(
                f"counts of shape {self.counts.shape} do not fit a domain of shape {self.domain.shape}",
                why="a histogram has one count a cell",
                instead="reshape the counts in row-major order of the attributes",
            )
        if self.counts.dtype.kind not in "iu" or (self.counts.size and int(self.counts.min()) < 0):
            raise InvalidDomain(
                "counts that are not whole numbers of records",
                why="a histogram counts records",
                instead="give integers of at least 0",
            )

    @classmethod
    def zeros(cls, domain: Domain) -> Histogram:
        """The empty file."""
        return cls(domain, np.zeros(dense_shape(domain), dtype=np.int64))

    @property
    def total(self) -> int:
        """Number of records, N."""
        return int(self.counts.sum())

    def project(self, names: Iterable[str]) -> Histogram:
        """The histogram of some attributes alone."""
        kept = tuple(names)
        axes = self.domain.axes(kept)
        dropped = tuple(axis for axis in range(len(self.domain.shape)) if axis not in axes)
        summed = self.counts.sum(axis=dropped) if dropped else self.counts
        order = np.argsort(np.argsort(axes))
        return Histogram(self.domain.project(kept), np.transpose(summed, tuple(int(i) for i in order)))


def dense_shape(domain: Domain) -> tuple[int, ...]:
    """The domain's shape, refused where a dense array of it would not fit."""
    if domain.size > LARGEST_DENSE_HISTOGRAM:
        raise TooLarge(
            f"a dense histogram of {domain.size:.3g} cells was asked for",
            why=f"at most {LARGEST_DENSE_HISTOGRAM:,} cells are held densely",
            instead="ask for tables of fewer attributes; workloads and sensitivities never need the dense domain",
        )
    return domain.shape
