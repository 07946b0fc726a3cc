"""Records that anybody may see, to simulate releases on: counted as protected ones are, scaled, and open."""

from __future__ import annotations

import numpy as np

from dualmandate.errors import InvalidWorkload
from dualmandate.population import Counts, Domain, Protection, Records
from dualmandate.population.arrays import Integers
from dualmandate.population.wording import counted
from dualmandate.publication.rules import Rules
from dualmandate.publication.sources import Source
from dualmandate.publication.tabulating import KEY_BYTES, SparseHistogram, tabulate

LARGEST_CELLS = 2**22  # From more cells on marginals are counted from records.
LARGEST_NUMBERS = 2**27  # of levels of records that are held


def public_histogram(source: Source, domain: Domain, *, protection: Protection, rules: Rules) -> SparseHistogram:
    """The cells of public records and how many each has, by the rules of a program; what does not fit is left out."""
    held = tabulate(source, domain, protection=protection, rules=rules, key=bytes(KEY_BYTES), sparse=True)
    found = held.open_for("simulating on public records").histogram
    assert isinstance(found, SparseHistogram)
    return found


def scaled(found: SparseHistogram, total: int) -> SparseHistogram:
    """The same shares of cells in so many records, by largest remainders; whole numbers of at least 0."""
    if total == found.total:
        return found
    exact = found.counts * (total / found.total)
    counts = np.floor(exact).astype(np.int64)
    missing = total - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    kept = counts > 0
    return SparseHistogram(found.domain, found.cells[kept], counts[kept])


def as_counts(found: SparseHistogram) -> Counts:
    """A histogram of domains that are small enough, else records."""
    domain = found.domain
    if domain.size <= LARGEST_CELLS:
        return found.dense()
    if found.total * len(domain.shape) > LARGEST_NUMBERS:
        raise InvalidWorkload(
            f"a simulation on {counted(found.total, 'record')} of {counted(len(domain.shape), 'attribute')}",
            why=f"at most {LARGEST_NUMBERS:,} levels of records are held",
            instead="plan for a smaller population, or leave [simulation] out",
        )
    return Records(domain, np.repeat(_levels(domain, found.cells), found.counts, axis=0))


def _levels(domain: Domain, cells: Integers) -> Integers:
    return np.stack(np.unravel_index(cells, domain.shape), axis=1).astype(np.int32)
