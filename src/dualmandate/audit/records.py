"""Records that an attack is judged by, counted behind the wall: what is in them is told as rates, inside alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dualmandate.audit.by_place import OnePlace
from dualmandate.audit.equations import Integers
from dualmandate.population import Attribute, Confidential, Domain, Protection
from dualmandate.publication import Rules, Source, source_file
from dualmandate.publication.tabulated import SparseHistogram
from dualmandate.publication.tabulating import tabulate
from dualmandate.publication.tabulation_sql import KEY_BYTES

LABEL = "counts that an audit is judged by"
PURPOSE = "an audit: what an attack got right"


def count_records(
    source: Source | Path, domain: Domain, *, place: Attribute | None = None, rules: Rules | None = None
) -> Confidential[Integers]:
    """Records of each cell in each place, boxed; shape (places, cells), one place where none is told apart.

    Values that the domain does not have are left out, and how many that are is not told.
    """
    file = source_file(source) if isinstance(source, Path) else source
    # the place last: structural zeros and hierarchies name attributes, not positions
    whole = (
        domain if place is None else Domain((*domain.attributes, place), domain.hierarchies, domain.structural_zeros)
    )
    flat = _counted(file, whole, rules or Rules()).reshape(domain.size, 1 if place is None else place.size).T
    return Confidential(LABEL, np.ascontiguousarray(flat).astype(np.int64))


def count_all(path: Path, domain: Domain, place: OnePlace, rules: Rules) -> Confidential[Integers]:
    """Records over a domain that holds the place among its attributes, boxed; shape (places, cells of one place)."""
    counts = _counted(source_file(path), domain, rules)
    return Confidential(LABEL, np.ascontiguousarray(place.counts(counts.reshape(-1))))


def _counted(source: Source, domain: Domain, rules: Rules) -> Integers:
    box = tabulate(source, domain, protection=Protection(), rules=rules, key=bytes(KEY_BYTES))
    histogram = box.open_for(PURPOSE).histogram
    dense = histogram.dense() if isinstance(histogram, SparseHistogram) else histogram
    return np.asarray(dense.counts, dtype=np.int64)
