"""Links where files disagree a little: Fellegi and Sunter's weights, estimated by splink on the two files themselves.

A name and a record of the same place are compared attribute by attribute: equal, next to each other, in the same
coarser group, different, or not known. How often each happens for two different people (u) is counted on pairs at
random; how often for one person (m) comes from expectation maximization. A pair speaks for one person where the
product of m/u is above 1; the best pairs are linked first, each record and each name once. Source: [FS69].
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numba
import numpy as np

from dualmandate.audit.linkage.linking import Linker, Stages
from dualmandate.errors import InvalidRequest, NoEstimate, TooLarge
from dualmandate.population import Domain

MOST_PAIRS = 50_000_000  # At most this many pairs of a name and a record of one place are compared.
TRAINING_PAIRS = 2_000_000
SEED = 1  # Draws the pairs that weights are estimated on, where there are more.


def check_installed() -> None:
    """Refuse where splink is not installed."""
    if find_spec("splink") is None:
        raise InvalidRequest(
            "names cannot be linked by splink here",
            why="the package splink is not installed",
            instead="install dualmandate[linkage], or leave --link splink out: equal keys need no package",
        )


def probabilistic(domain: Domain) -> Linker:
    """A way to link that fills `links` by splink; attributes are those of the first stage."""
    check_installed()

    def link(connection: Any, stages: Stages) -> None:
        pairs, expected = _pairs(connection)
        if not pairs:
            return
        prior = min(max(expected / pairs, 1e-9), 0.999)
        with _quietly():
            try:
                found = _scored(connection, compared_by(domain, stages), prior)
            except Exception:  # what it says may repeat values
                found = None
        if found is None:
            raise NoEstimate(
                "no weights were found for links by splink",
                why="expectation maximization did not end with probabilities on these two files",
                instead="leave --link splink out: equal keys need no weights",
            )
        _assign(connection, found)

    return link


def _pairs(connection: Any) -> tuple[int, int]:
    """How many pairs of a name and a record share a place, and how many of them can be one person at most."""
    (found,) = connection.execute(
        """WITH r AS (SELECT place, count(*) AS records FROM recon GROUP BY place),
                n AS (SELECT place, count(*) AS names FROM names GROUP BY place)
        SELECT coalesce(sum(records * names), 0)::HUGEINT, coalesce(sum(least(records, names)), 0)::HUGEINT
        FROM r JOIN n USING (place)"""
    ).fetchall()
    pairs, expected = int(found[0]), int(found[1])
    if pairs > MOST_PAIRS:
        raise TooLarge(
            f"{pairs:,} pairs of a name and a record of the same place",
            why=f"splink compares at most {MOST_PAIRS:,} of them here",
            instead="name smaller places, or leave --link splink out",
        )
    return pairs, expected


def compared_by(domain: Domain, stages: Stages) -> list[Any]:
    """How each attribute is compared; columns are named as in the connection."""
    import splink.comparison_level_library as levels
    import splink.comparison_library as library

    found = []
    for name in stages.stages[0]:
        column = f"k{stages.columns.index(name)}"
        steps: list[Any] = [levels.NullLevel(column), levels.ExactMatchLevel(column)]
        attribute = domain.attribute(name)
        if attribute.ordered:
            numbers = attribute.size - (attribute.missing is not None)  # a missing answer is next to nothing
            near = f"abs({column}_l - {column}_r) = 1 AND greatest({column}_l, {column}_r) < {numbers}"
            steps.append(levels.CustomLevel(near, f"{column} next to each other"))
        for coarser in stages.coarser.values():
            if coarser.attribute == name:
                group = f"k{stages.columns.index(coarser.name)}"
                steps.append(levels.CustomLevel(f"{group}_l = {group}_r", f"{column} in one group"))
        found.append(library.CustomComparison([*steps, levels.ElseLevel()], output_column_name=column))
    return found


def _scored(connection: Any, comparisons: list[Any], prior: float) -> str:
    """The pairs that speak for one person, as a table of the connection."""
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    settings = SettingsCreator(
        link_type="link_only",
        unique_id_column_name="row",
        blocking_rules_to_generate_predictions=[block_on("place")],
        comparisons=comparisons,
        probability_two_random_records_match=prior,
    )
    engine = DuckDBAPI(connection)
    columns = [row[0] for row in connection.execute("DESCRIBE recon").fetchall()]
    shared = ", ".join(column for column in columns if column not in ("secret", "proved"))
    for name in ("names", "recon"):
        connection.execute(f"CREATE TEMP VIEW compared_{name} AS SELECT {shared} FROM {name}")
    # sides are told apart by the alphabet: names are on the left
    sides = [engine.register(f"compared_{name}", dataset_display_name=name) for name in ("names", "recon")]
    model = Linker(sides, settings, log_level=None)
    model.training.estimate_u_using_random_sampling(max_pairs=TRAINING_PAIRS, seed=SEED)
    model.training.estimate_parameters_using_expectation_maximisation(block_on("place"), max_pairs=TRAINING_PAIRS)
    threshold = float(np.log2(prior / (1 - prior)))
    return str(model.inference.predict(threshold_match_weight=threshold).physical_name)


def _assign(connection: Any, scored: str) -> None:
    """The best pairs first, each name and each record once; equal ones in the order of the digests of names."""
    import pyarrow

    ordered = connection.execute(
        f"""SELECT names.row AS name, scored.row_r AS record FROM {scored} AS scored JOIN names ON names.row = row_l
        ORDER BY round(match_weight, 6) DESC, names.lot, names.row, scored.row_r"""
    ).fetchnumpy()
    names, records = (np.ascontiguousarray(ordered[side], dtype=np.int64) for side in ("name", "record"))
    if not len(names):
        return
    kept = best_pairs(names, records, int(names.max()) + 1, int(records.max()) + 1)
    connection.register("assigned", pyarrow.table({"record": records[kept], "name": names[kept]}))
    connection.execute("INSERT INTO links SELECT record, name FROM assigned")


@numba.njit(cache=True)
def best_pairs(names: Any, records: Any, most_names: int, most_records: int) -> Any:
    """Which pairs are kept, from the best to the worst: each name and each record once."""
    named, used = np.zeros(most_names, dtype=np.bool_), np.zeros(most_records, dtype=np.bool_)
    kept = np.zeros(len(names), dtype=np.bool_)
    for pair in range(len(names)):
        if not named[names[pair]] and not used[records[pair]]:
            kept[pair] = named[names[pair]] = used[records[pair]] = True
    return kept


@contextmanager
def _quietly() -> Iterator[None]:
    """Without what splink tells of its steps: it would go among our own words."""
    logger = logging.getLogger("splink")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
