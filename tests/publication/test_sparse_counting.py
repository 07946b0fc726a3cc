"""Large domains: counted from cells with records alone, to the same bytes, and published one table at a time."""

from __future__ import annotations

import weakref
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.measured import direct

from dualmandate.errors import TooLarge
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.mechanism import TableRows
from dualmandate.population import (
    Attribute,
    Confidential,
    Domain,
    Grouping,
    Hierarchy,
    Histogram,
    Invariant,
    Neighbors,
    PrivacyLoss,
    PrivacyMeasure,
    Protection,
)
from dualmandate.publication import CsvFile, Rules, SparseHistogram, Tabulated, measuring, post_processing
from dualmandate.publication import release_spec as ordering
from dualmandate.publication.measuring import exact_totals, fingerprint, measure
from dualmandate.publication.nested_tables import nest_together
from dualmandate.publication.publish import PublicationRequest, publish
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.publication.tabulating import add_counts, countable
from dualmandate.workload import Tabulation, Workload, prefix

COUNTY = Grouping.of("county", ["c", "c", "a", None, "b"])
PLACES = Attribute("place", ("1", "2", "3", "4", "5"))
WAGE = Attribute.numbers("wage", 0, 30, grid=10)
DOMAIN = Domain((PLACES, Attribute("sex", ("f", "m")), WAGE), (Hierarchy("place", (COUNTY,)),))
TABLES = (
    Tabulation.of("all"),
    Tabulation.of("places", ("place",)),
    Tabulation.of("counties by sex", ("sex", "county")),
    Tabulation.of("women by wage", ("wage",), where={"sex": "f"}),
    Tabulation.of("wages by county", ("county",), sum_of="wage"),
    Tabulation.of("half", ("place",), weights={"sex": {"f": "0.5", "m": "-1"}}),
    Tabulation.of("cells", ("place", "sex", "wage")),
)
REPLACED = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("by sex", ("sex",)),))
SECRET = Confidential("secret", bytes(range(32)))


def boxed(counts: np.ndarray[Any, np.dtype[np.int64]], domain: Domain = DOMAIN) -> list[Confidential[Tabulated]]:
    """The same counts, dense and sparse."""
    flat = counts.reshape(-1)
    cells = np.flatnonzero(flat).astype(np.int64)
    both = Histogram(domain, counts), SparseHistogram(domain, cells, flat[cells])
    return [Confidential("test", Tabulated(each, int(counts.sum()))) for each in both]


def release_spec_of(protection: Protection = REPLACED, tables: tuple[Tabulation, ...] = TABLES) -> ReleaseSpec:
    """Two groups; rows of the first have two kinds of noise, because one of its tables has another weight."""
    workloads = [Workload.from_tabulations(DOMAIN, part) for part in (tables[:6], tables[6:]) if part]
    groups = tuple(
        Group(f"group {place}", direct(workload, protection, PrivacyMeasure.ZCDP), Fraction(1, 2))
        for place, workload in enumerate(workloads)
    )
    units = {table.name: "person" for table in tables}
    rules = Rules(dropping_is_public=True)
    return ReleaseSpec("5e" * 32, "p", "people", PrivacyLoss.concentrated(1), DOMAIN, protection, rules, groups, units)


@pytest.fixture
def counts() -> np.ndarray[Any, np.dtype[np.int64]]:
    generator = np.random.default_rng(5)
    return generator.poisson(0.7, DOMAIN.shape).astype(np.int64)


def test_tables_of_occupied_cells_are_those_of_all(counts: np.ndarray[Any, np.dtype[np.int64]]) -> None:
    rows = TableRows(Workload.from_tabulations(DOMAIN, TABLES))
    assert countable(rows.counted)
    histogram = boxed(counts)[1].open_for("a test").histogram
    assert isinstance(histogram, SparseHistogram)
    found = np.full(rows.size, 3, dtype=np.int64)
    add_counts(rows.counted, histogram, found)
    assert np.array_equal(found - 3, rows.count(counts))


def test_a_level_in_several_rows_is_not_counted_so() -> None:
    assert not countable(prefix(4).tables)


@pytest.mark.parametrize("block", [7, 2**18])
def test_measurements_are_the_same_bytes_from_sparse_counts(
    counts: np.ndarray[Any, np.dtype[np.int64]], monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    order = release_spec_of()
    dense, sparse = boxed(counts)
    mac = fingerprint(order, dense, SECRET)
    whole = list(measure(order, dense, SECRET, mac=mac))
    assert {len(each.noises) for each in whole} == {1, 2}
    assert fingerprint(order, sparse, SECRET) == mac
    monkeypatch.setattr(measuring, "BLOCK", block)
    totals = exact_totals(order, dense)
    for sparse_from in (0, 2**24):  # counted from occupied cells, or written out first
        monkeypatch.setattr(ordering, "SPARSE_FROM", sparse_from)
        assert order.sparse is (sparse_from == 0)
        for one, other in zip(whole, measure(order, sparse, SECRET, mac=mac), strict=True):
            assert one.values.tobytes() == other.values.tobytes()
            assert one.kinds.tobytes() == other.kinds.tobytes()
        again = exact_totals(order, sparse)
        assert totals is not None
        assert again is not None
        assert totals.tolist() == again.tolist()


def large(size: int) -> Domain:
    """More cells than are ever written out, in places that lie in counties."""
    places = Attribute("place", tuple(map(str, range(size))))
    county = Grouping.of("county", [str(place % 7) for place in range(size)])
    return Domain((places, Attribute("wage", tuple(map(str, range(2**15))))), (Hierarchy("place", (county,)),))


def over(domain: Domain, *tables: Tabulation, every_cell: bool = False) -> ReleaseSpec:
    made = direct(Workload.from_tabulations(domain, tables), Protection(), PrivacyMeasure.ZCDP, every_cell)
    units = {table.name: "person" for table in tables}
    group = Group("all", made, Fraction(1))
    return replace(release_spec_of(Protection()), domain=domain, groups=(group,), units=units)


def test_a_domain_that_is_never_written_out_may_be_large() -> None:
    domain = large(2**14)
    asked = Tabulation.of("places", ("place",)), Tabulation.of("wages by county", ("county", "wage"))
    order = over(domain, *asked)
    order.check()
    assert order.sparse
    found = over(domain, Tabulation.of("places", ("place",)), Tabulation.of("counties", ("county",)))
    found.check()
    nest = nest_together(found)
    assert nest is not None
    assert nest.is_complete


@pytest.mark.parametrize("every_cell", [False, True])
def test_more_numbers_than_can_be_held_are_refused(every_cell: bool) -> None:
    table = Tabulation.of("cells", ("place", "wage")) if not every_cell else Tabulation.of("places", ("place",))
    with pytest.raises(TooLarge):
        over(large(2**14), table, every_cell=every_cell).check()


def test_one_table_is_held_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = TABLES[0], TABLES[1], Tabulation.of("places by sex", ("place", "sex")), TABLES[6]
    order = release_spec_of(Protection(), tables)
    monkeypatch.setattr(ordering, "SPARSE_FROM", 0)
    monkeypatch.setattr(post_processing, "NUMBERS_AT_ONCE", 10)  # fewer than a table has
    ledger = open_ledger(tmp_path / "ledger.sqlite", make_key(tmp_path / "key"), create=True)
    ledger.open_account(Account("people", "person", order.loss), by="Ann")
    ledger.approve(Approval("people", order.plan_digest, order.loss, "person", by="Ben"))
    source = tmp_path / "people.csv"
    source.write_text("place,sex,wage\n" + "1,f,10\n" * 5 + "3,m,20\n" * 9)
    made: Any = post_processing.published_place
    held: list[weakref.ref[Any]] = []

    def published(*given: Any, **named: Any) -> Any:
        assert [each() for each in held] == [None] * len(held)
        table = made(*given, **named)
        held.append(weakref.ref(table))
        return table

    monkeypatch.setattr(post_processing, "published_place", published)
    publish(
        order,
        CsvFile(source),
        ledger,
        out=tmp_path / "out",
        request=PublicationRequest("Ann", "people.csv", unchecked=True),
    )
    assert len(held) == len(tables)
