"""A short name for what is measured: rows, their weights and their order, as they are kept; floats never enter.

A weight is written as a fraction, a row as its whole numbers: of groups of levels where it counts these, of orbits of
cells where it weighs them. The levels behind groups and orbits are written out too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.strategy.exact import ExactPart, ExactStrategy
from dualmandate.mechanism.strategy.whole_groups import WholeGroups
from dualmandate.mechanism.strategy.whole_rows import WholeRows

VERSION = "strategy/1"  # of what is written: raised whenever a piece changes its meaning


def strategy_digest(exact: ExactStrategy) -> str:
    """SHA-256 over every piece, each after its length: 64 hexadecimal digits."""
    hashed = hashlib.sha256()
    for piece in _pieces(exact):
        hashed.update(len(piece).to_bytes(8, "big"))
        hashed.update(piece)
    return hashed.hexdigest()


def _pieces(exact: ExactStrategy) -> Iterator[bytes]:
    yield f"{VERSION} {exact.norm} {exact.workload.domain.shape}".encode("ascii")
    for part in exact.parts:
        yield _listed("part", part.part.axes)
        for level in part.part.levels:
            merged = np.arange(level.size) if level.labels is None else level.labels
            yield from (_integers(merged), _integers(level.classes))
        yield from _rows(part)


def _rows(part: ExactPart) -> Iterator[bytes]:
    if isinstance(part, WholeGroups):
        for grouping, weights in zip(part.stack.groupings, part.stack.weights, strict=True):
            for coding in grouping:
                yield from (_listed("groups", map(int, coding.groups)), _listed("fine", map(int, coding.fine)))
            yield _listed("weights", (weight.as_integer_ratio() for weight in weights.reshape(-1).tolist()))
        return
    assert isinstance(part, WholeRows)
    for sector, rows in part.sectors.items():
        yield _listed("sector", sorted((int(place), int(one)) for place, one in sector))
        yield _integers(rows.numbers)
        yield _listed("weights", (weight.as_integer_ratio() for weight in rows.weights))


def _listed(what: str, items: Iterable[object]) -> bytes:
    return f"{what} {list(items)}".encode("ascii")


def _integers(numbers: NDArray[Any]) -> bytes:
    return f"{numbers.shape} ".encode("ascii") + numbers.astype("<i8").tobytes()
