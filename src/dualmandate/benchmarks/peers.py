"""Packages of others on the same queries: a script that needs nothing of ours, so that any Python can run it.

    python peers.py NAME FILE

FILE is an .npz archive of square matrices R, one an attribute; the queries are the product of them, up to a rotation.
Prints the package's name with its version, the error (ΔA)²‖RA⁺‖²_F of the strategy it gives, and the processor seconds
of its search, or null where the package is not installed.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BRANCHES = (4, 8, 16, 32)  # children of a node; beside them a root with all cells, and the tree of least error is taken


def jax_privacy(root: Floats) -> tuple[float, float]:
    """Gaussian noise: the strategy that its dense optimizer finds; error and processor seconds."""
    jax, dense = import_module("jax"), import_module("jax_privacy.matrix_factorization.dense")
    jax.config.update("jax_enable_x64", True)
    queries = jax.numpy.asarray(root)
    started = time.process_time()
    strategy = np.asarray(dense.optimize(len(root), A=queries))
    seconds = time.process_time() - started
    largest = float(np.square(strategy).sum(axis=0).max())
    return largest * float(np.square(np.linalg.solve(strategy.T, root.T)).sum()), seconds


def opendp(root: Floats) -> tuple[float, None]:
    """Laplace noise: the counts of a tree made consistent, at the best number of branches; it searches nothing."""
    prelude = import_module("opendp.prelude")
    prelude.enable_features("contrib")
    return min(_tree_error(prelude, root, branches) for branches in (*BRANCHES, len(root))), None


def _tree_error(prelude: Any, root: Floats, branches: int) -> float:
    """Both maps are linear, so that unit vectors tell them; with L1 norms a record is in one node of each layer."""
    size, whole = len(root), prelude.vector_domain(prelude.atom_domain(T=int))
    tree = prelude.t.make_b_ary_tree(whole, prelude.l1_distance(T=int), leaf_count=size, branching_factor=branches)
    leaves = prelude.t.make_consistent_b_ary_tree(branching_factor=branches, TIA=int, TOA=float)
    counts = np.array([tree(each) for each in np.eye(size, dtype=np.int64).tolist()]).T
    estimates = np.array([leaves(each) for each in np.eye(len(counts), dtype=np.int64).tolist()]).T[:size]
    return float(np.abs(counts).sum(axis=0).max()) ** 2 * float(np.square(root @ estimates).sum())


PEERS: dict[str, Callable[[Floats], tuple[float, float | None]]] = {"jax-privacy": jax_privacy, "opendp": opendp}


def found(name: str, roots: list[Floats]) -> dict[str, object] | None:
    """What a package gives on a product of queries: errors multiply, and seconds add up."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
    each = [PEERS[name](root) for root in roots]
    seconds = [spent for _, spent in each if spent is not None]
    return {
        "peer": f"{name} {version}",
        "error": math.prod(error for error, _ in each),
        "seconds": sum(seconds) if seconds else None,
    }


def main(name: str, file: str) -> None:
    """Run one package here, and print what it found as JSON."""
    with np.load(file) as archive:
        roots = [archive[key] for key in archive.files]
    print(json.dumps(found(name, roots)))


if __name__ == "__main__":
    main(*sys.argv[1:])
