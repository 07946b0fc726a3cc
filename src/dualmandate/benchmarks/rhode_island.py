"""Persons of Rhode Island in 2010, generated to match its published block counts: 25,181 blocks × 2,016 cells.

The block file tells, for each block, the persons and those of voting age who are Hispanic, of one race alone, or of
two or more races (these not Hispanic). What it does not tell is generated under a fixed seed: which of the 57
combinations persons of several races name, the races of Hispanic persons, and group quarters, of which few blocks have
any. Where the file is not at hand, the blocks themselves are generated, with as many at each level.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualmandate.publication.consistency.partitions import PartitionChain, Tree

SEED = 2010
FILE = Path("census_blocks", "ri_2010_block.csv.gz")
SINGLE = ("white", "black", "aian", "asian", "nhpi", "other")
COLUMNS = (*SINGLE, "two", "hisp")
RACES, QUARTERS = 63, 8
CELLS = 2 * 2 * RACES * QUARTERS
LEVELS = ("state", "county", "tract", "block group", "block")
DIGITS = (5, 11, 12)  # of a block's code: its county, tract and block group
SIZES = (5, 244, 815, 25181)  # of the generated blocks: counties, tracts, block groups, blocks
HISPANIC_RACES = (0.45, 0.07, 0.012, 0.006, 0.002, 0.38)  # one race alone; the rest of two or more
COMBINATIONS = 0.85 ** np.arange(RACES - len(SINGLE))  # of races: the first are the usual ones
QUARTER_RATES = (0.004, 0.001, 0.004, 0.0005, 0.004, 0.0005, 0.006)  # blocks with each kind of group quarters
QUARTER_SHARES = (0.8, 0.3, 0.5, 0.2, 0.7, 0.3, 0.15)  # of such a block's adults


@dataclass(frozen=True, eq=False)
class Blocks:
    """Published counts: persons by block, voting age (no, yes) and column; shape (blocks, 2, 8)."""

    codes: tuple[str, ...] = field(repr=False)
    persons: NDArray[np.int64] = field(repr=False)
    real: bool  # from the block file; otherwise the blocks are generated too

    @cached_property
    def tree(self) -> Tree:
        """State, county, tract, block group, block; blocks in the order of their codes."""
        groups = [np.unique([code[:digits] for code in self.codes], return_inverse=True)[1] for digits in DIGITS]
        return Tree.of([group.reshape(-1).astype(np.int64) for group in groups])[0]


def chain() -> PartitionChain:
    """Total ⊂ voting age × Hispanic ⊂ × race ⊂ × quarters."""
    return PartitionChain(
        (np.zeros(4, dtype=np.int64), np.repeat(np.arange(4), RACES), np.repeat(np.arange(4 * RACES), QUARTERS))
    )


def block_file() -> Path | None:
    """The block file in the folder of real data, if it is there."""
    beside = Path(__file__).parents[4] / "shared" / "data"
    path = Path(os.environ.get("DUALMANDATE_DATA", beside)) / FILE
    return path if path.is_file() else None


def published_blocks(path: Path) -> Blocks:
    """The counts of the block file, sorted by code."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["GEOID"])
    counts = np.array([[[int(row[f"{kind}_{name}"]) for name in COLUMNS] for kind in ("pop", "vap")] for row in rows])
    return Blocks(tuple(row["GEOID"] for row in rows), _by_age(counts), real=True)


def generated_blocks(sizes: tuple[int, int, int, int] = SIZES) -> Blocks:
    """A stand-in: nested codes, three in ten blocks empty, the others skewed, with the state's mix of columns."""
    generator = np.random.default_rng(SEED)
    group = np.arange(sizes[3]) * sizes[2] // sizes[3]
    tract = group * sizes[1] // sizes[2]
    county = tract * sizes[0] // sizes[1]
    places = zip(county, tract, group - _firsts(tract, group), np.arange(sizes[3]) - _firsts(group), strict=True)
    codes = tuple(f"44{c:03}{t:06}{g + 1}{n:04}" for c, t, g, n in places)  # increasing, as the Bureau's are
    sized = generator.lognormal(3.57, 1.0, sizes[-1]) * (generator.random(sizes[-1]) > 0.3)
    mix = generator.dirichlet(80 * np.array([0.764, 0.049, 0.005, 0.028, 0.001, 0.007, 0.022, 0.124]), sizes[1])
    persons = generator.poisson(sized[:, None] * mix[tract])
    adults = generator.binomial(persons, np.array([0.81, 0.7, 0.72, 0.75, 0.7, 0.7, 0.55, 0.65]))
    return Blocks(codes, _by_age(np.stack([persons, adults], axis=1)), real=False)


def _firsts(labels: NDArray[np.int64], values: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """For each place the first value (the place itself, where none are given) with the same label; labels increase."""
    starts = np.searchsorted(labels, labels)
    return starts if values is None else values[starts]


def _by_age(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """From all persons and adults to minors and adults."""
    return np.stack([counts[:, 0] - counts[:, 1], counts[:, 1]], axis=1)


def cells(blocks: Blocks) -> NDArray[np.int32]:
    """Persons by block and cell, in the order of the chain; shape (blocks, 2,016)."""
    generator = np.random.default_rng(SEED)
    found = np.zeros((len(blocks.codes), 2, 2, RACES, QUARTERS), dtype=np.int32)
    kinds = _quarters(generator, len(blocks.codes))
    mix = COMBINATIONS / COMBINATIONS.sum()
    hispanic = np.concatenate([HISPANIC_RACES, (1 - sum(HISPANIC_RACES)) * mix])
    for age in (0, 1):
        races = np.zeros((len(blocks.codes), 2, RACES), dtype=np.int64)
        races[:, 0, : len(SINGLE)] = blocks.persons[:, age, : len(SINGLE)]
        races[:, 0, len(SINGLE) :] = generator.multinomial(blocks.persons[:, age, -2], mix)
        races[:, 1] = generator.multinomial(blocks.persons[:, age, -1], hispanic)
        block, origin, race = np.nonzero(races)
        rates = kinds if age else _minors(kinds)
        found[block, age, origin, race] = generator.multinomial(races[block, origin, race], rates[block])
    return found.reshape(len(blocks.codes), CELLS)


def _quarters(generator: np.random.Generator, blocks: int) -> NDArray[np.float64]:
    """The share of each kind of quarters among the adults of each block, households first."""
    has = generator.random((blocks, QUARTERS - 1)) < QUARTER_RATES
    shares = has * np.array(QUARTER_SHARES)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    return np.column_stack([1 - shares.sum(axis=1), shares])


def _minors(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minors live in households, in places for juveniles, or in places of the last kind."""
    kept = np.where(np.isin(np.arange(QUARTERS), (2, QUARTERS - 1)), rates, 0.0)
    kept[:, 0] = 1 - kept.sum(axis=1)
    return kept


def write_persons(found: NDArray[np.int32], blocks: Blocks, path: Path) -> None:
    """One row a person, in an order that tells nothing, as Parquet."""
    import pyarrow
    from pyarrow import parquet

    block, cell = (np.repeat(each, found[found > 0]) for each in np.nonzero(found))
    order = np.random.default_rng(SEED).permutation(block.size)
    codes = pyarrow.array(blocks.codes).take(pyarrow.array(block[order]))
    columns = {"block": codes} | dict(_columns(cell[order]))
    parquet.write_table(pyarrow.table(columns), path)


def _columns(cell: NDArray[np.int64]) -> Iterator[tuple[str, object]]:
    import pyarrow

    places = np.unravel_index(cell, (2, 2, RACES, QUARTERS))
    for name, place in zip(("voting_age", "hispanic"), places[:2], strict=True):
        yield name, pyarrow.array(["no", "yes"]).take(pyarrow.array(place))
    for name, place in zip(("race", "quarters"), places[2:], strict=True):
        yield name, pyarrow.array(place.astype(np.int8))
