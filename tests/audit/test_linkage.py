"""Linkage and baselines on a file small enough to count by hand; independent statistics against ranks."""

from __future__ import annotations

import numpy as np
import pyarrow
import pytest

from dualmandate.audit.linkage import Keys, Linked, reidentify
from dualmandate.audit.statistics_count import count_statistics
from dualmandate.errors import InvalidTables
from dualmandate.workload import all_range, identity, kron, marginals, stack, total

KEYS = Keys("block", (("sex", "age"), ("sex", "bin")), ("race",))

# Block 1: four people, three of race w; block 2: two people of race b.
PEOPLE = [
    ("ann", 1, "f", 30, 3, "w"),
    ("bob", 1, "m", 41, 4, "w"),
    ("cem", 1, "m", 42, 4, "w"),
    ("dia", 1, "f", 77, 7, "b"),
    ("eva", 2, "f", 20, 2, "b"),
    ("fay", 2, "f", 21, 2, "b"),
]
COLUMNS = ("person", "block", "sex", "age", "bin", "race")
TRUTH = pyarrow.table({name: [each[i] for each in PEOPLE] for i, name in enumerate(COLUMNS)})


def test_links_and_baselines_by_hand() -> None:
    # Bob's age is one year off outside: he is linked by his bin, after Cem was linked exactly. Fay is not outside.
    outside = TRUTH.slice(0, 5).drop_columns(["race"])
    ages = pyarrow.array([30, 40, 42, 77, 20])
    outside = outside.set_column(outside.column_names.index("age"), "age", ages)
    reconstructed = TRUTH.drop_columns(["person"])
    found = reidentify(reconstructed, outside, TRUTH, KEYS)
    attack, modal, proportional = found.everybody
    assert (attack.names, attack.putative, attack.confirmed) == (5, 5, 5)
    assert (modal.putative, modal.confirmed) == (5, 4)  # everybody in block 1 is called w, everybody in block 2 b
    assert proportional.confirmed == round(3 * 3 / 4 + 1 / 4 + 1)
    unique = found.nonmodal_uniques
    assert [(each.names, each.confirmed) for each in unique] == [(1, 1), (1, 0), (1, 0)]  # Dia
    assert "sex × age, then sex × bin" in found.attacker_knows
    assert attack.precision is not None
    assert attack.precision.value == 1.0
    assert Linked("attack", 3, 0, 0).precision is None


def test_a_wrong_reconstruction_is_not_confirmed() -> None:
    reconstructed = TRUTH.drop_columns(["person"])
    races = pyarrow.array(["w"] * 6)
    reconstructed = reconstructed.set_column(reconstructed.column_names.index("race"), "race", races)
    attack = reidentify(reconstructed, TRUTH.drop_columns(["race"]), TRUTH, KEYS).everybody[0]
    assert (attack.putative, attack.confirmed) == (6, 3)


def test_each_record_is_linked_once() -> None:
    one = TRUTH.slice(0, 1).drop_columns(["person"])
    twice = pyarrow.concat_tables([TRUTH.slice(0, 1), TRUTH.slice(0, 1)]).drop_columns(["race"])
    assert reidentify(one, twice, TRUTH, KEYS).everybody[0].putative == 1


def test_files_without_the_columns() -> None:
    with pytest.raises(InvalidTables, match="lack race"):
        reidentify(TRUTH.drop_columns(["race"]), TRUTH, TRUTH, KEYS)


@pytest.mark.parametrize(
    "workload",
    [
        marginals((2, 3, 4), [1, 2]),
        marginals((2, 3, 4), 3),
        stack(kron(identity(3), total(4)), kron(total(3), total(4))),
        stack(all_range(6), identity(6)),
        kron(all_range(3), identity(2)),
    ],
)
def test_independent_statistics_are_the_rank(workload: object) -> None:
    from dualmandate.workload import Workload

    assert isinstance(workload, Workload)
    found = count_statistics(workload, 10.0)
    assert found.exact
    assert found.independent == np.linalg.matrix_rank(workload.dense())
    assert found.published == workload.query_count
    assert found.per_person == found.independent / 10


def test_many_statistics_a_person_warn() -> None:
    found = count_statistics(marginals((100, 50), 2), 309.0)
    assert found.warns
    assert "16.2 for each of 309 persons" in str(found)
    assert not count_statistics(total(5), 309.0).warns
    assert not count_statistics(kron(all_range(3000), identity(3)), 10.0).exact
