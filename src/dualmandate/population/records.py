"""Counts on domains of any size: a histogram where it fits, else the records themselves, asked for their marginals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from dualmandate.errors import InvalidDomain
from dualmandate.population.arrays import Integers
from dualmandate.population.domain import Domain, Histogram, dense_shape


@runtime_checkable
class Counts(Protocol):
    """Whatever can be asked how many records have each combination of some attributes' levels."""

    @property
    def domain(self) -> Domain:
        """The attributes and their levels."""

    @property
    def total(self) -> int:
        """Number of records, N."""

    def project(self, names: Iterable[str], /) -> Histogram:
        """The histogram of some attributes alone: a marginal."""


@dataclass(frozen=True, eq=False)
class Records:
    """Records by the number of their level on each attribute, for domains that no histogram can hold."""

    domain: Domain
    levels: Integers = field(repr=False)  # shape (records, attributes), 0 ≤ level < size; never printed

    def __post_init__(self) -> None:
        width = len(self.domain.shape)
        if self.levels.ndim != 2 or self.levels.shape[1] != width or self.levels.dtype.kind not in "iu":
            raise InvalidDomain(
                f"records of shape {self.levels.shape} do not fit a domain of {width} attributes",
                why="a record has the number of one level on each attribute",
                instead="give whole numbers, a row a record and a column an attribute",
            )
        if self.levels.size and (self.levels.min() < 0 or np.any(self.levels.max(axis=0) >= self.domain.shape)):
            raise InvalidDomain(
                "a record with a level that its attribute does not have",
                why="levels are numbered from 0 to one less than there are",
                instead="leave out records that do not fit, or declare their levels",
            )

    @property
    def total(self) -> int:
        return len(self.levels)

    def project(self, names: Iterable[str], /) -> Histogram:
        kept = tuple(names)
        domain = self.domain.project(kept)
        shape = dense_shape(domain)
        columns = tuple(self.levels[:, axis] for axis in self.domain.axes(kept))
        cells = np.ravel_multi_index(columns, shape)
        return Histogram(domain, np.bincount(cells, minlength=math.prod(shape)).reshape(shape))
