"""Which number each number of a ratio is divided by."""

from __future__ import annotations

import pytest

from dualmandate.errors import InvalidWorkload
from dualmandate.population import Attribute, Domain, Grouping, Hierarchy
from dualmandate.workload import Ratio, Tabulation, Workload

DOMAIN = Domain(
    (
        Attribute.categories("county", ["A1", "B1", "A2", "B2"]),
        Attribute.categories("sex", ["f", "m"]),
        Attribute.numbers("income", 0, 2),
    ),
    (Hierarchy("county", (Grouping.of("state", ["A", "B", "A", "B"]),)),),
)
STATE = {"A1": "A", "A2": "A", "B1": "B", "B2": "B"}


def ratio(numerator: Tabulation, denominator: Tabulation) -> Ratio:
    return Ratio("ratio", numerator.table(DOMAIN), denominator.table(DOMAIN))


def divided(asked: Ratio) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The labels of each number, and of the one that it is divided by."""
    workload = Workload(DOMAIN, (asked.numerator, asked.denominator))
    above, below = (list(workload.labels(table.name)) for table in workload.tables)
    return [(label, below[place]) for label, place in zip(above, asked.denominators, strict=True)]


def test_a_mean_divides_by_the_count_of_the_same_place_and_a_share_by_its_total() -> None:
    counts = Tabulation("counts", by=("county", "sex"))
    mean = ratio(Tabulation("income", by=("sex", "county"), sum_of="income"), counts)
    assert all(set(label) == set(of) for label, of in divided(mean))
    share = ratio(counts, Tabulation("states", by=("state",)))
    assert all(of == (STATE[label[0]],) for label, of in divided(share))
    assert ratio(counts, Tabulation("all")).denominators.tolist() == [0] * 8
    women = ratio(Tabulation("women", by=("county",), where=(("sex", ("f",)),)), Tabulation("counties", by=("county",)))
    assert women.denominators.tolist() == [0, 1, 2, 3]
    one = ratio(Tabulation("counties", by=("county",)), Tabulation("f", by=("sex",), where=(("sex", ("f",)),)))
    assert one.denominators.tolist() == [0] * 4


def test_some_levels_only_are_found_among_all() -> None:
    some = Tabulation("some", by=("county",), where=(("county", ("B2", "A2")),))
    assert divided(ratio(some, Tabulation("counties", by=("county",)))) == [(("A2",), ("A2",)), (("B2",), ("B2",))]


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [
        (Tabulation("states", by=("state",)), Tabulation("counties", by=("county",))),
        (Tabulation("all"), Tabulation("sexes", by=("sex",))),
        (Tabulation("counties", by=("county",)), Tabulation("one", by=("county",), where=(("county", ("A1",)),))),
    ],
)
def test_a_finer_denominator_is_refused_with_the_table_to_add(numerator: Tabulation, denominator: Tabulation) -> None:
    with pytest.raises(InvalidWorkload, match="do not belong to") as refusal:
        ratio(numerator, denominator)
    by = ", ".join(f'"{name}"' for name in numerator.by)
    assert f"with by = [{by}]" in refusal.value.instead


def test_a_table_over_itself_is_refused() -> None:
    with pytest.raises(InvalidWorkload, match="by itself"):
        ratio(Tabulation("all"), Tabulation("all"))
