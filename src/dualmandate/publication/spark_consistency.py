"""Consistent tables on a cluster: one subtree of the hierarchy is one piece of work, solved as on one machine.

Everything here is noisy already and public. What subtrees know rises to the machine that asked, the tree above is
solved there, and its tables are handed down; the bytes are those of the whole tree solved at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.publication.consistency import (
    Estimates,
    Pair,
    State,
    Tree,
    Weights,
    rise,
    settle,
    solve_subtree,
    top_down,
)
from dualmandate.publication.spark_session import Batches, gathered, map_batches, partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Measured = dict[Pair, NDArray[Any]]
Solve = Callable[[int, Tree, Measured], Iterator[dict[str, Any]]]
TABLES = "subtree long, level int, values binary"  # little-endian 64-bit integers, row-major: nodes × cells


@dataclass(frozen=True, eq=False)
class Cut:
    """A hierarchy cut below some level: the nodes of that level are the roots of the subtrees.

    `pairs` says what each kernel of the blocks measured: a level of the whole tree, from the cut downward, and one of
    the chain. Block n of a kernel holds what lies in subtree n.
    """

    tree: Tree
    weights: Weights
    level: int
    pairs: tuple[Pair, ...]

    def edges(self, pair: Pair) -> tuple[int, ...]:
        """Where the rows of each subtree start in a measurement of the whole tree, for its kernel."""
        starts = np.arange(self.tree.sizes[self.level] + 1)
        for below in self.tree.starts[self.level : pair[0]]:
            starts = below[starts]
        return tuple((starts * self.weights.chain.sizes[pair[1]]).tolist())

    @property
    def above(self) -> Tree:
        """The tree whose leaves are the roots of the subtrees."""
        return Tree(self.tree.parents[: self.level])

    def of_subtree(self, rows: Sequence[dict[str, Any]]) -> Measured:
        """The measurements of one subtree, levels counted from its root."""
        groups = self.weights.chain.sizes
        found: Measured = {}
        for row in rows:
            level, step = self.pairs[row["kernel"]]
            found[level - self.level, step] = np.frombuffer(row["values"], dtype="<i8").reshape(-1, groups[step])
        return found


def in_subtrees(
    session: SparkSession, blocks: DataFrame, cut: Cut, *, above: Measured
) -> tuple[Estimates, tuple[NDArray[Any], ...], DataFrame]:
    """Estimates and tables of the levels down to the cut, here; and the tables below it (`TABLES`), on the cluster.

    `blocks` are what `measured` gives, kept where they can be read twice; `above` are the measurements of the levels
    above the cut. Levels of the tables on the cluster are those of the whole tree.
    """
    public = session.sparkContext.broadcast(cut)

    def told_upward(number: int, tree: Tree, found: Measured) -> Iterator[dict[str, Any]]:
        root = rise(tree, public.value.weights.below(public.value.level), found).root
        for step, (values, variances) in enumerate(zip(root.values, root.variances, strict=True)):
            yield {"subtree": number, "step": step, "values": values.tobytes(), "variances": variances.tobytes()}

    up = "subtree long, step int, values binary, variances binary"
    leaves = _state(gathered(_solved(session, blocks, public, told_upward, up)).to_pylist(), cut)
    estimates = settle(risen := rise(cut.above, cut.weights, above, leaves), risen.root)
    tables = top_down(estimates)
    final = session.sparkContext.broadcast((estimates.state(cut.level), tables[-1]))

    def told_downward(number: int, tree: Tree, found: Measured) -> Iterator[dict[str, Any]]:
        state, roots = final.value
        weights = public.value.weights.below(public.value.level)
        own = solve_subtree(tree, weights, found, told=state.only(number), root=roots[number])
        for level, table in enumerate(own[1:], start=public.value.level + 1):
            yield {"subtree": number, "level": level, "values": table.astype("<i8").tobytes()}

    return estimates, tables, _solved(session, blocks, public, told_downward, TABLES)


def _solved(session: SparkSession, blocks: DataFrame, public: Any, solve: Solve, schema: str) -> DataFrame:
    """What a function says of each subtree, all of whose blocks are brought together first."""

    def kernel(batches: Batches) -> Batches:
        import pyarrow

        cut: Cut = public.value
        for number, rows in _subtrees(batches):
            tree, _ = cut.tree.subtree(cut.level, number)
            for said in solve(number, tree, cut.of_subtree(rows)):
                types = {"level": pyarrow.int32(), "step": pyarrow.int32()}
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


def _state(rows: Sequence[dict[str, Any]], cut: Cut) -> State:
    """What all subtrees told, as the leaves of the tree above."""
    nodes, steps = cut.tree.sizes[cut.level], range(cut.weights.chain.last + 1)
    parts = {(row["step"], row["subtree"]): row for row in rows}

    def whole(name: str) -> tuple[NDArray[np.float64], ...]:
        return tuple(np.stack([np.frombuffer(parts[step, node][name]) for node in range(nodes)]) for step in steps)

    return State(whole("values"), whole("variances"))
