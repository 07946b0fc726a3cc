"""Consistent tables on a cluster: one subtree of the hierarchy is one piece of work, solved as on one machine.

Everything here is noisy already and public. What subtrees know rises to the machine that asked, the tree above is
solved there, and its tables are handed down; the bytes are those of the whole tree solved at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import ReleaseConflict
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.estimates import Innovations, Pair, TreeEstimates, Weights, pass_down, pass_up
from dualmandate.publication.consistency.partitions import Tree
from dualmandate.publication.consistency.top_down_rounding import top_down
from dualmandate.publication.spark.session import Batches, gathered, map_batches, partitions, records_at_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Measured = dict[Pair, NDArray[Any]]
Solve = Callable[[int, Tree, Measured], Iterator[dict[str, Any]]]
# Of one table in one subtree, row-major: nodes × the table's groups; doubles, and little-endian 64-bit integers.
TABLES = "kernel int, subtree long, estimates binary, errors binary, values binary"
LEAVES = -1  # Stands in place of a kernel: the values of all cells of all leaves.
BYTES_AT_ONCE = 2**26  # One batch holds at most so many bytes of blocks.


@dataclass(frozen=True, eq=False)
class KernelPlace:
    """What a kernel measured: a level of the whole tree and one of the chain, and its number for each group of that."""

    pair: Pair
    groups: Integers = field(repr=False)


@dataclass(frozen=True, eq=False)
class SubtreeCut:
    """A hierarchy cut below some level: the nodes of that level are the roots of the subtrees.

    `kernels` are those that measured the cut's level and what lies below; block n of each holds what lies in subtree n.
    Of two that measured the same the later one counts. `digests` are the SHA-256 of blocks, where these were published:
    a block that a worker lost and made again from records that were changed meanwhile is refused.
    """

    tree: Tree
    weights: Weights
    level: int
    kernels: Mapping[int, KernelPlace]
    digests: Mapping[tuple[int, int], bytes] = field(default_factory=dict, repr=False)

    def edges(self, pair: Pair) -> tuple[int, ...]:
        """Where the rows of each subtree start in a measurement of the whole tree, for its kernel."""
        return tuple((self.nodes(pair[0]) * self.weights.chain.sizes[pair[1]]).tolist())

    def nodes(self, level: int) -> Integers:
        """Where the nodes of each subtree start at a level from the cut downward, and where the last end."""
        starts = np.arange(self.tree.sizes[self.level] + 1)
        for below in self.tree.starts[self.level : level]:
            starts = below[starts]
        return starts

    @property
    def above(self) -> Tree:
        """The tree whose leaves are the roots of the subtrees."""
        return Tree(self.tree.parents[: self.level])

    @property
    def largest(self) -> int:
        return max(int(np.diff(self.edges(placed.pair)).max()) for placed in self.kernels.values())

    def of_subtree(self, blocks: Sequence[dict[str, Any]]) -> Measured:
        """The measurements of one subtree, levels counted from its root."""
        found: Measured = {}
        for block in blocks:
            number, placed = block["kernel"], self.kernels[block["kernel"]]
            if self.digests and sha256(block["values"]).digest() != self.digests[number, block["block"]]:
                raise changed_meanwhile()
            (level, step), values = placed.pair, np.frombuffer(block["values"], dtype="<i8")
            found[level - self.level, step] = values.reshape(-1, self.weights.chain.sizes[step])[:, placed.groups]
        return found


def changed_meanwhile() -> ReleaseConflict:
    """The refusal of a release whose records did not stay as they were."""
    return ReleaseConflict(
        "the records were changed while they were published",
        why="the same noise on other data would expose the difference exactly",
        instead="restore what the release was begun with",
    )


def in_subtrees(
    session: SparkSession,
    blocks: DataFrame,
    cut: SubtreeCut,
    *,
    above: Measured,
    asked: Sequence[int],
    leaves: bool = False,
) -> tuple[TreeEstimates, tuple[NDArray[Any], ...], DataFrame]:
    """Estimates and tables of the levels down to the cut, here; and the tables below it (`TABLES`), on the cluster.

    `blocks` are what `measured` gives for the kernels of the cut, kept where they can be read twice; `above` are the
    measurements of the levels above it. `asked` are kernels, below the cut, whose tables are wanted; `leaves` adds the
    values of all cells of the leaves.
    """
    public = session.sparkContext.broadcast(cut)

    def told_upward(number: int, tree: Tree, found: Measured) -> Iterator[dict[str, Any]]:
        root = pass_up(tree, public.value.weights.below(public.value.level), found).root
        for step, (values, variances) in enumerate(zip(root.values, root.variances, strict=True)):
            yield {"subtree": number, "step": step, "values": values.tobytes(), "variances": variances.tobytes()}

    up = "subtree long, step int, values binary, variances binary"
    with records_at_once(session, BYTES_AT_ONCE // (8 * cut.largest)):
        told = gathered(_solved(session, blocks, public, told_upward, up))
    estimates = pass_down(upward := pass_up(cut.above, cut.weights, above, _state(told.to_pylist(), cut)), upward.root)
    tables = top_down(estimates)
    final = session.sparkContext.broadcast((estimates.state(cut.level), tables[-1]))

    def told_downward(number: int, tree: Tree, found: Measured) -> Iterator[dict[str, Any]]:
        state, roots = final.value
        weights = public.value.weights.below(public.value.level)
        own = pass_down(pass_up(tree, weights, found), state.only(number))
        yield from _tables(own, top_down(own, roots[number]), public.value, number, asked, leaves=leaves)

    return estimates, tables, _solved(session, blocks, public, told_downward, TABLES)


def _tables(
    own: TreeEstimates,
    counts: Sequence[NDArray[Any]],
    cut: SubtreeCut,
    number: int,
    asked: Sequence[int],
    *,
    leaves: bool,
) -> Iterator[dict[str, Any]]:
    """The tables of a subtree, each in the order of its own groups."""
    for kernel in asked:
        placed = cut.kernels[kernel]
        level, step = placed.pair[0] - cut.level, placed.pair[1]
        whole = own.chain.sums(counts[level], step)
        numbers = own.tables(level, finest=step)[step], own.standard_errors(level, finest=step)[step], whole
        names = "estimates", "errors", "values"
        said = {name: _ordered(each, placed.groups) for name, each in zip(names, numbers, strict=True)}
        yield {"kernel": kernel, "subtree": number, **said}
    if leaves:
        cells = np.asarray(counts[-1], dtype="<i8").tobytes()
        yield {"kernel": LEAVES, "subtree": number, "estimates": b"", "errors": b"", "values": cells}


def _ordered(numbers: NDArray[Any], groups: Integers) -> bytes:
    found = np.empty_like(numbers)
    found[:, groups] = numbers
    return found.tobytes()


def _solved(session: SparkSession, blocks: DataFrame, public: Any, solve: Solve, schema: str) -> DataFrame:
    """What a function says of each subtree, all of whose blocks are brought together first."""

    def kernel(batches: Batches) -> Batches:
        import pyarrow

        cut: SubtreeCut = public.value
        types = {"kernel": pyarrow.int32(), "step": pyarrow.int32()}
        for number, found in _subtrees(batches):
            tree, _ = cut.tree.subtree(cut.level, number)
            for said in solve(number, tree, cut.of_subtree(found)):
                yield pyarrow.record_batch(
                    {name: pyarrow.array([each], types.get(name)) for name, each in said.items()}
                )

    together = blocks.repartition(partitions(session), "block").sortWithinPartitions("block", "kernel")
    return map_batches(together, kernel, schema, name="the measurements")


def _subtrees(batches: Batches) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The blocks of one subtree after the other."""
    rows: list[dict[str, Any]] = []
    for batch in batches:
        for row in batch.to_pylist():
            if rows and rows[0]["block"] != row["block"]:
                yield rows[0]["block"], rows
                rows = []
            rows.append(row)
    if rows:
        yield rows[0]["block"], rows


def _state(rows: Sequence[dict[str, Any]], cut: SubtreeCut) -> Innovations:
    """What all subtrees told, as the leaves of the tree above."""
    nodes, steps = cut.tree.sizes[cut.level], range(cut.weights.chain.last + 1)
    parts = {(row["step"], row["subtree"]): row for row in rows}

    def whole(name: str) -> tuple[Floats, ...]:
        return tuple(np.stack([np.frombuffer(parts[step, node][name]) for node in range(nodes)]) for step in steps)

    return Innovations(whole("values"), whole("variances"))
