"""A strategy that was written down is the same strategy."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.mechanism.strategy.test_exact import CASES, PROTECTIONS, WORKLOADS

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism import ExactStrategy, optimize_strategy
from dualmandate.mechanism.strategy.integer_rows import IntegerRows
from dualmandate.mechanism.strategy.partitions import IntegerPartitions
from dualmandate.mechanism.strategy.strategy import NoiseName
from dualmandate.mechanism.strategy.strategy_file import LONGEST_LIST, strategy_digest, strategy_document, strategy_from
from dualmandate.population import Attribute, Domain, Hierarchy, Invariant, Neighbors, Protection, StructuralZero
from dualmandate.workload import Tabulation, Workload, all_range, identity, kron, marginals, prefix, stack, total

REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)


def _families() -> Workload:
    ages = Attribute.categories("age", [str(age) for age in range(8)])
    married = Attribute.categories("married", ["no", "yes"])
    zero = StructuralZero.of({"age": ("0", "1"), "married": "yes"})
    domain = Domain((ages, married), structural_zeros=(zero,))
    tables = [Tabulation("all", by=("age", "married")), Tabulation("ages", by=("age",)), Tabulation("total")]
    return Workload.from_tabulations(domain, tables)


def _places() -> Workload:
    blocks = Attribute.categories(
        "block", [f"{county}{tract}{b}" for county in "12" for tract in "123" for b in "1234"]
    )
    hierarchy = Hierarchy.by_prefix(blocks, {"county": 1, "tract": 2})
    races = Attribute.categories("race", list("wba"))
    domain = Domain((blocks, races), hierarchies=(hierarchy,))
    tables = [
        Tabulation("blocks", by=("block",)),
        Tabulation("tracts", by=("tract", "race")),
        Tabulation("counties", by=("county",)),
    ]
    return Workload.from_tabulations(domain, tables)


MORE: dict[str, tuple[Workload, Protection]] = {
    "structural zeros": (_families(), Protection()),
    "structural zeros, a record replaced": (_families(), REPLACE_ONE),
    "a hierarchy": (_places(), Protection()),
    "a hierarchy, people by county": (
        _places(),
        Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("people by county", ("county",)),)),
    ),
    "ranges": (all_range(24), Protection()),
    "products of prefixes": (kron(prefix(6), prefix(5)), Protection()),
    "weighted": (stack(marginals((4, 3, 2), 2), marginals((4, 3, 2), 0), weights=[1, Fraction(7, 3)]), Protection()),
    "many rows": (stack(prefix(72), identity(72)), Protection()),
}


@cache
def strategy_of(name: str, noise: NoiseName) -> ExactStrategy:
    workload, protection = MORE[name]
    return optimize_strategy(workload, noise, protection=protection).exact


def assert_equal(found: ExactStrategy, original: ExactStrategy) -> None:
    """The same rows, the same kinds, and queries put together as before."""
    assert strategy_digest(found) == strategy_digest(original)
    assert (found.steps, found.rows, found.values) == (original.steps, original.rows, original.values)
    np.testing.assert_array_equal(found.kinds(), original.kinds())
    workload = original.workload
    counts = (np.arange(workload.domain.size) * 7 % 5).reshape(workload.domain.shape)
    measured = original.count(counts)
    np.testing.assert_array_equal(found.count(counts), measured)
    noisy = measured + np.arange(original.rows) % 3
    np.testing.assert_allclose(found.reconstruct(noisy, counts), original.reconstruct(noisy, counts), atol=1e-9)
    for table in workload.tables:
        one, other = (each.query_rows(table.name, range(table.query_count)) for each in (found, original))
        np.testing.assert_allclose(one, other, atol=1e-9)
        variances = {step: 1.0 + place / 7 for place, step in enumerate(original.steps)}
        one, other = (each.query_variances(table.name, variances.__getitem__) for each in (found, original))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def there_and_back(exact: ExactStrategy, protection: Protection) -> ExactStrategy:
    text = json.dumps(strategy_document(exact))
    return strategy_from(json.loads(text), exact.workload, protection)


@pytest.mark.parametrize(("workload", "noise", "protection"), [case for case in CASES if case[2] != "two records"])
def test_strategies_come_back(workload: str, noise: NoiseName, protection: str) -> None:
    promised = PROTECTIONS[protection]
    exact = optimize_strategy(WORKLOADS[workload], noise, protection=promised).exact
    assert_equal(there_and_back(exact, promised), exact)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", MORE)
def test_more_strategies_come_back(name: str, noise: NoiseName) -> None:
    exact = strategy_of(name, noise)
    assert_equal(there_and_back(exact, MORE[name][1]), exact)


def test_both_kinds_of_parts_are_met() -> None:
    kinds = {
        type(part) for name in MORE for noise in ("laplace", "gaussian") for part in strategy_of(name, noise).parts
    }
    assert kinds == {IntegerPartitions, IntegerRows}
    assert max(len(strategy_of(name, "laplace").parts) for name in MORE) > 1


def test_long_arrays_are_packed() -> None:
    exact = strategy_of("many rows", "gaussian")
    [part] = strategy_document(exact)["parts"]
    numbers = part["sectors"][0]["numbers"]
    assert numbers["shape"] == [72, 72]
    assert LONGEST_LIST < 72 * 72
    assert "list" not in numbers
    assert len(json.dumps(strategy_document(exact))) < 72 * 72 * 8


def test_a_document_is_plain() -> None:
    document = strategy_document(optimize_strategy(stack(identity(40), total(40))).exact)
    assert json.loads(json.dumps(document)) == document
    assert document["schema"] == "strategy/1"
    assert document["values"] == {"identity": "1", "total": "1"}


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("protection", [Protection(), Protection(neighbors=Neighbors.REPLACE_ONE)])
@pytest.mark.parametrize(
    "workload",
    [stack(identity(12), total(12)), stack(prefix(9), identity(9)), marginals((3, 4, 2), [1, 2]), marginals((2, 3), 2)],
)
def test_values_of_tables_change_neither_what_is_measured_nor_what_is_estimated(
    workload: Workload, protection: Protection, noise: NoiseName
) -> None:
    """They lie outside the digest that is signed; a document with others says the same, or is refused."""
    made = optimize_strategy(workload, noise, protection=protection).exact
    exact = strategy_from(strategy_document(made), workload, protection)
    counts = np.arange(workload.domain.size, dtype=np.int64).reshape(workload.domain.shape) * 7 % 5
    rows = exact.count(counts)
    accepted = 0
    for worth in ("1", "1/1000000", "1000000"):
        document = strategy_document(exact)
        document["values"] = {name: worth if place else "1" for place, name in enumerate(document["values"])}
        try:
            found = strategy_from(document, workload, protection)
        except InvalidMechanism:
            continue
        accepted += 1
        assert (found.steps, found.rows, strategy_digest(found)) == (exact.steps, exact.rows, document["digest"])
        assert np.array_equal(found.count(counts), rows)
        assert found.sensitivity(protection) == exact.sensitivity(protection)
        assert np.array_equal(found.reconstruct(rows + 3, like=counts), exact.reconstruct(rows + 3, like=counts))
        for table in workload.tables:
            assert np.array_equal(found.query_variances(table.name, float), exact.query_variances(table.name, float))
    assert accepted


def test_nothing_in_a_document_is_there_for_its_words_alone() -> None:
    """Words of a document would lie outside its digest, and releases repeat it."""

    def keys(value: Any) -> set[str]:
        if isinstance(value, list):
            return set[str]().union(*map(keys, value))
        return set(value).union(*map(keys, value.values())) if isinstance(value, dict) else set()

    noises: tuple[NoiseName, ...] = ("laplace", "gaussian")
    found = keys([strategy_document(strategy_of(name, noise))["parts"] for name in MORE for noise in noises])
    assert found == {
        *("axes", "cell_by_cell", "tables", "groups", "fine", "weights", "sectors", "sector", "numbers"),
        *("shape", "list", "kind", "zlib"),
    }


def _other_weight(document: dict[str, Any]) -> None:
    document["parts"][0]["tables"][0]["weights"]["list"][0] -= 1


def _other_digest(document: dict[str, Any]) -> None:
    document["digest"] = document["digest"][::-1]


def _no_parts(document: dict[str, Any]) -> None:
    del document["parts"]


def _other_shape(document: dict[str, Any]) -> None:
    document["parts"][0]["tables"][0]["weights"]["shape"] = [3, 3]


def _bad_packing(document: dict[str, Any]) -> None:
    document["parts"][0]["tables"][0]["weights"] = {"shape": [1, 1], "zlib": "no"}


def _endless_value(document: dict[str, Any]) -> None:
    document["values"] = dict.fromkeys(document["values"], "1e99999999")  # of a hundred million digits


CHANGES = [_other_weight, _other_digest, _no_parts, _other_shape, _bad_packing, _endless_value]


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    workload = stack(identity(40), total(40))
    document = strategy_document(optimize_strategy(workload).exact)
    change(document)
    with pytest.raises(InvalidMechanism, match="not the one its digest names"):
        strategy_from(document, workload, Protection())


def test_another_workload_or_protection_is_refused() -> None:
    document = strategy_document(optimize_strategy(stack(identity(40), total(40))).exact)
    for other in (stack(identity(41), total(41)), prefix(40)):
        with pytest.raises(InvalidMechanism, match="not the one its digest names"):
            strategy_from(document, other, Protection())
    people = MORE["a hierarchy, people by county"]
    written = strategy_document(strategy_of("a hierarchy, people by county", "gaussian"))
    with pytest.raises(InvalidMechanism, match="not the one its digest names"):
        strategy_from(written, people[0], Protection())
