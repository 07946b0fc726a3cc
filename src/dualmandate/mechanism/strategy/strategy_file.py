"""A short name for what is measured: rows, their weights and their order, as they are kept; floats never enter.

A weight is written as a fraction, a row as its whole numbers: of groups of levels where it counts these, of orbits of
cells where it weighs them. The levels behind groups and orbits are written out too.

The levels behind the rows follow from the workload and the protection, so they are not in the document; the digest is,
and a document that does not lead back to it is refused. What puts queries together is worked out anew from the rows.
Only the values of tables lie outside the digest: they say what the rows were chosen for. Whatever they say, the rows
that are measured and the answers from them stay what they are, or the document is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, Refusal
from dualmandate.mechanism.strategy.exact import ExactBlock, ExactStrategy
from dualmandate.mechanism.strategy.integer_rounding import least_squares, right_inverse
from dualmandate.mechanism.strategy.integer_rows import IntegerRows, IntegerSector, lengths
from dualmandate.mechanism.strategy.marginal_rows import IntegerMarginals, residuals_of
from dualmandate.mechanism.strategy.nested_rows import BlockRows, IntegerNest
from dualmandate.mechanism.strategy.partitions import BITS, IntegerPartitions, Partition
from dualmandate.mechanism.strategy.workload_blocks import Sector, WorkloadBlock, parts_of, public_tables
from dualmandate.population import Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.rational import read_exact
from dualmandate.workload import Factor, Workload
from dualmandate.workload.factor import LARGEST_DENSE
from dualmandate.workload.levels import column_classes
from dualmandate.workload.sensitivity import Norm

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


def _rows(part: ExactBlock) -> Iterator[bytes]:
    if isinstance(part, IntegerMarginals):
        yield b"differences" if part.residual else b"counts"
        for kept, weight in zip(part.sets, part.weights, strict=True):
            yield _listed("marginal", (*kept, weight.as_integer_ratio()))
        return
    if isinstance(part, IntegerPartitions):
        for grouping, weights in zip(part.groupings, part.weights, strict=True):
            for coding in grouping:
                yield from (_listed("groups", map(int, coding.groups)), _listed("fine", map(int, coding.fine)))
            yield _listed("weights", (weight.as_integer_ratio() for weight in weights.reshape(-1).tolist()))
        return
    if isinstance(part, IntegerNest):
        for size in part.sizes:
            yield _integers(size.numbers)
            yield _listed("block", (weight.as_integer_ratio() for weight in size.weights))
        return
    assert isinstance(part, IntegerRows)
    for sector, rows in part.sectors.items():
        yield _listed("sector", sorted((int(place), int(one)) for place, one in sector))
        yield _integers(rows.numbers)
        yield _listed("weights", (weight.as_integer_ratio() for weight in rows.weights))


def _listed(what: str, items: Iterable[object]) -> bytes:
    return f"{what} {list(items)}".encode("ascii")


def _integers(numbers: NDArray[Any]) -> bytes:
    return f"{numbers.shape} ".encode("ascii") + numbers.astype("<i8").tobytes()


LONGEST_LIST = 4_096  # whole numbers that are written one by one; longer arrays are packed
AS_WRITTEN = "rows as they were written"
KINDS = ("<i1", "<i2", "<i4", "<i8")  # of packed numbers: the shortest that holds them

Document = dict[str, Any]


def strategy_document(exact: ExactStrategy) -> Document:
    """What is measured, as the JSON document `strategy/1`: rows in their order, and their rational weights."""
    return {
        "schema": VERSION,
        "digest": strategy_digest(exact),
        "norm": exact.norm,
        "shape": list(exact.workload.domain.shape),
        "values": {name: str(value) for name, value in exact.values.items()},
        "public": _public_name(exact.parts[0].part.public),
        "parts": [_part_document(part) for part in exact.parts],
    }


def strategy_from(document: Mapping[str, Any], workload: Workload, protection: Protection) -> ExactStrategy:
    """The strategy of a document, for the workload and the protection that it was made for; refused for any other."""
    try:
        found = _strategy(document, workload, protection)
        named = strategy_digest(found) == document["digest"]
    except Refusal:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, np.linalg.LinAlgError):
        named = False
    if not named:
        raise InvalidMechanism(
            "a written strategy that is not the one its digest names",
            why="it was changed after it was written, or it is for another workload or another protection",
            instead="take the strategy and the program from the same plan or release",
        )
    return found


def _strategy(document: Mapping[str, Any], workload: Workload, protection: Protection) -> ExactStrategy:
    if document["schema"] != VERSION or document["norm"] not in ("l1", "l2"):
        raise ValueError
    values = {table.name: read_exact(document["values"][table.name]) for table in workload.tables}
    dearest, written = max(values.values()), document["parts"]
    relative = {name: value / dearest for name, value in values.items()}
    public = public_tables(workload.domain, protection)
    if document["public"] != _public_name(public):
        raise ValueError
    parts = parts_of(workload, relative, split=len(written) > 1, public=public)
    found = [_part_from(each, part, document["norm"]) for each, part in zip(written, parts, strict=True)]
    return ExactStrategy(workload, document["norm"], tuple(found), values)


def _public_name(tables: tuple[tuple[Factor, ...], ...]) -> str | None:
    """A short name for totals that are known without being measured, which queries are put together with."""
    if not tables:
        return None
    hashed = hashlib.sha256()
    for factor in (factor for table in tables for factor in table):
        hashed.update(np.asarray([factor.rows, factor.size], dtype="<i8").tobytes())
        hashed.update(column_classes([factor], factor.size).astype("<i8").tobytes())
    return hashed.hexdigest()


def _part_document(part: ExactBlock) -> Document:
    apart = all(level.orbits == level.merged for level in part.part.levels)
    document: Document = {"axes": list(part.part.axes), "cell_by_cell": apart}
    if isinstance(part, IntegerMarginals):
        kinds = [str(step) for step in part.steps]
        sets = [[list(kept), kind] for kept, kind in zip(part.sets, part.kind_of.tolist(), strict=True)]
        return {**document, "differences": part.residual, "weights": kinds, "marginals": sets}
    if isinstance(part, IntegerPartitions):
        pairs = zip(part.groupings, part.weights, strict=True)
        return {**document, "tables": [_table_document(grouping, weights) for grouping, weights in pairs]}
    if isinstance(part, IntegerNest):
        return {**document, "blocks": [_block_document(size) for size in part.sizes]}
    assert isinstance(part, IntegerRows)
    return {**document, "sectors": [_sector_document(sector, rows) for sector, rows in part.sectors.items()]}


def _part_from(document: Mapping[str, Any], part: WorkloadBlock, norm: Norm) -> ExactBlock:
    if tuple(document["axes"]) != part.axes:
        raise ValueError
    part = part.cell_by_cell() if document["cell_by_cell"] else part
    if "marginals" in document:
        return _marginals_from(document, part)
    if "tables" in document:
        tables = [_table_from(each) for each in document["tables"]]
        groupings, weights = (tuple(each) for each in zip(*tables, strict=True))
        return IntegerPartitions(part, groupings, weights, AS_WRITTEN)
    if "blocks" in document:
        return _nest_from(document["blocks"], part)
    sectors = dict(_sector_from(each, part, norm) for each in document["sectors"])
    return IntegerRows(part, AS_WRITTEN, sectors)


def _marginals_from(document: Mapping[str, Any], part: WorkloadBlock) -> IntegerMarginals:
    weights = list(map(Fraction, document["weights"]))
    pairs = [(tuple(map(int, places)), weights[kind]) for places, kind in document["marginals"]]
    sets, chosen = zip(*pairs, strict=True)
    if (
        not part.is_symmetric
        or part.public
        or min(weights) <= 0
        or any(list(each) != sorted(set(each)) for each in sets)
    ):
        raise ValueError
    found = IntegerMarginals(part, sets, chosen, bool(document["differences"]), AS_WRITTEN)
    if not residuals_of(part).keys() <= found.sources.keys():
        raise ValueError  # some query would have no answer
    return found


def _block_document(size: BlockRows) -> Document:
    return {"numbers": _packed(size.numbers), "weights": [str(weight) for weight in size.weights]}


def _nest_from(document: list[Mapping[str, Any]], part: WorkloadBlock) -> IntegerNest:
    sizes = [BlockRows(_unpacked(each["numbers"]), tuple(map(read_exact, each["weights"]))) for each in document]
    found = IntegerNest(part, tuple(sizes), AS_WRITTEN)
    bad = any(len(each.weights) != len(each.numbers) or min(each.weights) <= 0 for each in sizes)
    if bad or not found.cells <= found.lengths[-1] <= 2 * LARGEST_DENSE or found.solved[0].total <= 0:
        raise ValueError
    return found


def _table_document(grouping: tuple[Partition, ...], weights: Floats) -> Document:
    """A table of counts: the group of each class of levels, and weights in units of 2^-BITS."""
    return {
        "groups": [[int(group) for group in coding.groups] for coding in grouping],
        "fine": [[bool(fine) for fine in coding.fine] for coding in grouping],
        "weights": _packed(np.rint(np.ldexp(weights, BITS)).astype(np.int64)),
    }


def _table_from(document: Mapping[str, Any]) -> tuple[tuple[Partition, ...], Floats]:
    pairs = zip(document["groups"], document["fine"], strict=True)
    grouping = tuple(Partition(tuple(map(int, groups)), tuple(map(bool, fine))) for groups, fine in pairs)
    return grouping, np.ldexp(_unpacked(document["weights"]).astype(np.float64), -BITS)


def _sector_document(sector: Sector, rows: IntegerSector) -> Document:
    """A list of rows; the order of the sector's attributes is that of its copies."""
    return {
        "sector": [[int(place), int(one)] for place, one in sector],
        "numbers": _packed(rows.numbers),
        "weights": [str(weight) for weight in rows.weights],
    }


def _sector_from(document: Mapping[str, Any], part: WorkloadBlock, norm: Norm) -> tuple[Sector, IntegerSector]:
    pairs = [(int(place), int(one)) for place, one in document["sector"]]
    sector: Sector = frozenset(sorted(pairs))
    if list(sector) != pairs:
        raise ValueError
    numbers, weights = _unpacked(document["numbers"]), tuple(map(read_exact, document["weights"]))
    return sector, IntegerSector(numbers, weights, _inverse(part, sector, numbers, weights=weights, norm=norm))


def _inverse(
    part: WorkloadBlock, sector: Sector, numbers: Integers, *, weights: tuple[Fraction, ...], norm: Norm
) -> Floats:
    """A_S⁺ less what is public, as it is worked out where the rows are rounded; shape (orbits, rows)."""
    rows = np.array([float(weight) for weight in weights])[:, None] * numbers.astype(np.float64)
    scales, public = lengths(part, sector), part.public_basis(sector)
    if norm == "l1":
        return least_squares(rows * scales, public)
    if rows.shape[0] == rows.shape[1]:
        return np.asarray(np.linalg.inv(rows)) / scales[:, None]
    spanned = rows * scales
    return right_inverse(spanned - (spanned @ public.T) @ public)


def _packed(numbers: Integers) -> Document:
    """Whole numbers with their shape: as a list, or compressed little-endian integers where they are many."""
    if numbers.size <= LONGEST_LIST:
        return {"shape": list(numbers.shape), "list": numbers.reshape(-1).tolist()}
    kind = next(each for each in KINDS if np.iinfo(each).min <= numbers.min() and numbers.max() <= np.iinfo(each).max)
    content = zlib.compress(np.ascontiguousarray(numbers, dtype=kind).tobytes())
    return {"shape": list(numbers.shape), "kind": kind, "zlib": base64.b64encode(content).decode("ascii")}


def _unpacked(document: Mapping[str, Any]) -> Integers:
    shape = tuple(int(size) for size in document["shape"])
    count = math.prod(shape)
    if min(shape, default=1) < 0 or count > LARGEST_DENSE:
        raise ValueError
    if "list" in document:
        return np.array(document["list"], dtype=np.int64).reshape(shape)
    kind = KINDS[KINDS.index(document["kind"])]
    try:
        content = zlib.decompressobj().decompress(base64.b64decode(document["zlib"], validate=True), 8 * count + 1)
    except (binascii.Error, zlib.error):
        raise ValueError from None
    return np.frombuffer(content, dtype=kind).astype(np.int64).reshape(shape)
