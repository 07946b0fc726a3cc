"""An order measured on a cluster: byte for byte what one machine measures under the same secret."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualmandate.population import Confidential
from dualmandate.population.arrays import Integers
from dualmandate.publication.measurements import NoisyRows
from dualmandate.publication.measuring import counted_rows, noise_key
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.publication.spark.noise_blocks import Kernel, measured_here
from dualmandate.publication.spark.session import quiet, running_session
from dualmandate.publication.tabulated import Tabulated


def measure_on_cluster(
    order: ReleaseSpec, tabulated: Confidential[Tabulated], secret: Confidential[bytes], *, mac: str
) -> Iterator[NoisyRows]:
    """Every group of tables with its noise, drawn by the workers of the running session.

    Exact counts and keys travel to the workers over a channel that is refused unless it is encrypted.
    """
    for group in order.groups:
        kinds = group.rows.kinds().astype(np.int64, copy=False)
        kernels = [
            Kernel(int(np.count_nonzero(kinds == kind)), law.sampler(), noise_key(order, group, kind, secret, mac=mac))
            for kind, law in enumerate(group.noises)
        ]
        counts = counted_rows(order, group, tabulated)
        yield NoisyRows(group.name, group.noises, kinds, _measured(group, kinds, counts, kernels))


def _measured(group: Group, kinds: Integers, counts: Integers, kernels: list[Kernel]) -> Integers:
    import pyarrow as pa

    numbers = np.empty(len(kinds), dtype=np.int64)  # of each row among its kind
    for kind in range(len(group.noises)):
        rows = np.flatnonzero(kinds == kind)
        numbers[rows] = np.arange(len(rows))
    occupied = np.flatnonzero(counts)
    session = running_session()
    with quiet():
        table = pa.table({"kernel": kinds[occupied], "row": numbers[occupied], "records": counts[occupied]})
        frame = session.createDataFrame(table)
    values = np.empty(len(kinds), dtype=np.int64)
    for kind, drawn in enumerate(measured_here(session, frame, kernels)):
        values[kinds == kind] = drawn
    return values
