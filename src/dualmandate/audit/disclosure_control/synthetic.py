"""People drawn for an audit, and their tables published exactly and with noise: what a program would give away.

The same is done with records that a curator names: they are opened here, inside the wall.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.effort import generator
from dualmandate.audit.equations import Equations
from dualmandate.audit.places import OnePlace
from dualmandate.audit.reconstruction.noisy import covered, expected_of
from dualmandate.audit.tables import ExactTables, NoisyTables, Truths, boxed, levels_in_words, opened
from dualmandate.mechanism import GEOMETRIC
from dualmandate.population import Domain

EPSILONS = (0.25, 1.0, 4.0, 16.0)


def synthetic_people(domain: Domain, sizes: NDArray[np.int64], draws: np.random.Generator) -> NDArray[np.int64]:
    """Records drawn for an audit: places differ, and so do the shares of levels; shape (places, cells).

    Nothing in it comes from data: each attribute's shares are drawn for everybody, then again around them for a place.
    """
    possible = domain.possible_cells()
    national = [draws.dirichlet(np.ones(size)) for size in domain.shape]
    found = np.zeros((len(sizes), domain.size), dtype=np.int64)
    for place, size in enumerate(sizes.tolist()):
        joint = np.ones(1)
        for shares in national:
            joint = np.outer(joint, draws.dirichlet(np.maximum(shares * 5.0, 1e-3))).reshape(-1)
        joint = joint * possible
        total = joint.sum()
        found[place] = draws.multinomial(size, joint / total if total > 0 else possible / possible.sum())
    return found


def published_tables(
    name: str, place: OnePlace, truths: Truths, key: bytes, *, epsilons: Sequence[float] = EPSILONS
) -> Iterator[ExactTables | NoisyTables]:
    """The tables of one population after the other: exact, then with geometric noise at several ε for all of them.

    Records of cells that no table counts are left out of account.
    """
    equations = Equations.of_workload(place.workload)
    possible = covered(equations, place.domain.possible_cells())
    tables = float(place.workload.sensitivity().value)
    coarsening = levels_in_words(place.domain)
    for reference, counts in opened(truths).items():
        truth = np.where(possible, counts, 0)
        values = equations.of(truth)
        places = tuple(f"place {number + 1}" for number in range(len(truth)))
        boxes = {reference: boxed(truth)}
        yield ExactTables(
            f"the tables of {name}", equations, values, places, coarsening, ~possible, boxes, place.domain
        )
        draws = generator(key, f"noise for {name}, {reference}")
        for epsilon in epsilons:
            law = GEOMETRIC.at(epsilon / tables)
            noisy = values + law.draw(draws, values.shape)
            scales = np.full(equations.rows, law.mean_absolute)
            yield NoisyTables(
                f"the tables of {name}",
                equations,
                noisy.astype(np.float64),
                scales,
                expected_of(equations, noisy.astype(np.float64), scales, possible),
                coarsening,
                f"geometric noise at ε = {epsilon:g} for all tables together",
                boxes,
                "what all places together are like, by the same tables" if len(truth) > 1 else "how many there are",
            )
