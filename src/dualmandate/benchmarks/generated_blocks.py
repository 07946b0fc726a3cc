"""A generated census of small blocks, and the tables that used to be published of each: what an attack is run on.

Households are drawn for each block: couples, single people, parents, children, elderly; race and Hispanic origin run in
families and differ from block to block. Ages are in 38 bins: single years to 19, then the bins of the 2010 Census'
table P12 (20, 21, 22-24, 25-29, …, 85 and over). Tables are like those of PL 94-171 and of Summary File 1 by block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dualmandate.benchmarks.census import FIRST_AGES, RACES, only
from dualmandate.benchmarks.rhode_island import HISPANIC_RACES
from dualmandate.population import Attribute, Domain
from dualmandate.workload import Factor, Groups, Identity, Row, Table, Total, Workload

FIRST_OF_BINS = (*range(20), *(age for age in FIRST_AGES if age >= 20))  # 38 bins
BINS = len(FIRST_OF_BINS)
SHAPE = (2, BINS, 2, len(RACES))
VOTING_AGE = 18
NATIONAL_RACES = (0.72, 0.13, 0.01, 0.05, 0.005, 0.085)
HISPANIC_SHARE = 0.16
MIXED_HOUSEHOLDS = 0.06  # whose members do not all share race and origin
LIKENESS = 0.5  # of a block to the nation: dissimilarity of White and Black is then .6, as between block groups in 2010
ORIGIN_LIKENESS = 1.5  # likewise of Hispanic origin: .55
AT_ONCE = 500  # blocks that are generated at a time


@dataclass(frozen=True)
class BlockSizes:
    """How many records a block may have, both ends included."""

    least: int = 30
    most: int = 100


def domain() -> Domain:
    """Sex × age in 38 bins × Hispanic × race: 912 cells."""
    return Domain(
        (
            Attribute.categories("sex", ("male", "female")),
            Attribute.categories("age", [str(age) for age in FIRST_OF_BINS]),
            Attribute.categories("hispanic", ("no", "yes")),
            Attribute.categories("race", RACES),
        )
    )


def tables(*, summary_file: bool = True) -> Workload:
    """P1 to P4 of PL 94-171; with `summary_file` also sex by age (P12, P12A to P12I) and by single years (P14)."""
    everyone: Factor = Total(2)
    sex, hispanic, race, races = Identity(2), Identity(2), Identity(len(RACES)), Total(len(RACES))
    adults = Row(np.array([int(age >= VOTING_AGE) for age in FIRST_OF_BINS]))
    ages = _bins(FIRST_AGES)
    found = [
        Table("P1", (everyone, Total(BINS), everyone, race)),
        Table("P2", (everyone, Total(BINS), hispanic, race)),
        Table("P3", (everyone, adults, everyone, race)),
        Table("P4", (everyone, adults, hispanic, race)),
    ]
    if summary_file:
        found += [
            Table("P12", (sex, ages, everyone, races)),
            *(Table(f"P12{letter}", (sex, ages, everyone, only(len(RACES), [i]))) for i, letter in enumerate("ABCDEF")),
            Table("P12H", (sex, ages, only(2, [1]), races)),
            Table("P12I", (sex, ages, only(2, [0]), only(len(RACES), [0]))),
            Table("P14", (sex, _bins(range(20), closed=True), everyone, races)),
        ]
    return Workload(domain(), tuple(found))


def blocks(count: int, *, seed: int, sizes: BlockSizes | None = None) -> NDArray[np.int64]:
    """Histograms of generated blocks; shape (count, 912)."""
    return np.concatenate(list(block_parts(count, seed=seed, sizes=sizes)))


def block_parts(
    count: int, *, seed: int, sizes: BlockSizes | None = None, at_once: int = AT_ONCE
) -> Iterator[NDArray[np.int64]]:
    """The same blocks, some at a time, so that a census of any size needs little memory; shape (at_once, 912) each."""
    generator = np.random.default_rng(seed)
    between = sizes or BlockSizes()
    for start in range(0, count, at_once):
        found = np.zeros((min(at_once, count - start), int(np.prod(SHAPE))), dtype=np.int64)
        for block in found:
            left = int(generator.integers(between.least, between.most + 1))
            shares = generator.dirichlet(np.array(NATIONAL_RACES) * LIKENESS * len(RACES))
            hispanic = generator.beta(HISPANIC_SHARE * ORIGIN_LIKENESS * 2, (1 - HISPANIC_SHARE) * ORIGIN_LIKENESS * 2)
            cumulated = (shares.cumsum() / shares.cumsum()[-1]).tolist()
            while left:
                members = _household(generator)[:left]
                left -= len(members)
                for cell in _cells(generator, members, cumulated, hispanic):
                    block[cell] += 1
        yield found


def people_of(published: NDArray[np.int64], *, seed: int) -> NDArray[np.int64]:
    """Histograms of blocks with published counts by voting age and column of `rhode_island`; shape (blocks, 912).

    Sizes and who lives together are real; sex and age are drawn for each person from a generated census, and races of
    Hispanic persons from their shares.
    """
    generator = np.random.default_rng(seed)
    everybody = blocks(AT_ONCE, seed=seed).sum(axis=0).reshape(SHAPE).sum(axis=(2, 3))
    hispanic = [*HISPANIC_RACES[:-1], 1 - sum(HISPANIC_RACES[:-1])]  # two or more races count as another one
    races = np.vstack([np.eye(len(RACES)), np.eye(len(RACES))[-1], hispanic])  # of each column
    origins = np.eye(2)[[0] * (len(races) - 1) + [1]]
    adults = np.array(FIRST_OF_BINS) >= VOTING_AGE
    found = np.zeros((len(published), *SHAPE), dtype=np.int64)
    for block, age, column in np.argwhere(published > 0):
        own = everybody * (adults if age else ~adults)
        shares = np.einsum("sa,h,r->sahr", own / own.sum(), origins[column], races[column])
        found[block] += generator.multinomial(published[block, age, column], shares.reshape(-1)).reshape(SHAPE)
    return found.reshape(len(found), -1)


def _household(generator: np.random.Generator) -> list[tuple[int, int]]:
    """Sex and age of the members of one household."""
    kind = generator.random()
    first = int(generator.integers(2))
    if kind < 0.28:  # alone
        return [(first, _age(generator.normal(52, 20), 18, 98))]
    if kind < 0.52:  # a couple without children at home
        age = _age(generator.normal(55, 16), 20, 95)
        return [(0, age), (1, _age(age + generator.normal(-2, 4), 18, 95))]
    if kind < 0.92:  # with children
        age = _age(generator.normal(38, 8), 19, 62)
        adults = [(0, age), (1, _age(age + generator.normal(-2, 4), 18, 60))]
        parents = adults if kind < 0.82 else [adults[1]]
        youngest = max(parents[-1][1] - 20, 0)
        children = 1 + int(generator.binomial(4, 0.28))
        ages = generator.normal(youngest * 0.6, 5, children).tolist()
        return parents + [(int(generator.integers(2)), _age(age, 0, min(youngest + 3, 24))) for age in ages]
    return [  # people who share a home
        (int(generator.integers(2)), _age(generator.normal(27, 7), 18, 70))
        for _ in range(2 + int(generator.binomial(3, 0.4)))
    ]


def _age(years: float, least: int, most: int) -> int:
    return int(min(max(years, least), most))


def _cells(
    generator: np.random.Generator, members: Sequence[tuple[int, int]], cumulated: list[float], hispanic: float
) -> Iterator[int]:
    """The cells of a household's members; `cumulated` are shares of races, summed up."""
    own = bisect_right(cumulated, generator.random()), int(generator.random() < hispanic)
    for sex, age in members:
        race, origin = own
        if generator.random() < MIXED_HOUSEHOLDS:
            race, origin = bisect_right(cumulated, generator.random()), int(generator.random() < hispanic)
        age_bin = bisect_right(FIRST_OF_BINS, age) - 1
        yield ((sex * BINS + age_bin) * 2 + origin) * len(RACES) + race


def _bins(first: Sequence[int], *, closed: bool = False) -> Groups:
    """Groups of age bins that begin at some ages; `closed`: the last one has a single bin."""
    edges = [FIRST_OF_BINS.index(age) for age in first]
    edges.append(edges[-1] + 1 if closed else BINS)
    return Groups.of_lists(BINS, [range(a, b) for a, b in pairwise(edges)], [str(age) for age in first])
