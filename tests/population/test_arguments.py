"""Wrong arguments of the stable names: refused in our words; what fails with right ones stays our bug."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

import dualmandate
from dualmandate import (
    Attribute,
    Domain,
    Histogram,
    LinearCost,
    Refusal,
    SocialWelfare,
    TableValue,
    Tabulation,
    choose,
    frontier_of,
    groups,
    identity,
    kron,
    marginals,
    mechanism_named,
    optimize_strategy,
    stack,
)
from dualmandate.population.arguments import checked_call

four = identity(4)
frontier = frontier_of(mechanism_named("geometric"), four)


@pytest.mark.parametrize(
    "call",
    [
        lambda: groups(4, 3),
        lambda: groups(4, [["a"]]),
        lambda: kron(four, 3),
        lambda: stack(four, four, weights=3),
        lambda: marginals("ab", 1),
        lambda: marginals((2, 2), "a"),
        lambda: optimize_strategy(four, values=3),
        lambda: optimize_strategy(four, nose="laplace"),
        lambda: frontier_of(mechanism_named("geometric"), four, protection=3),
        lambda: frontier_of(four),
        lambda: frontier.accuracy("1"),
        lambda: frontier.technology(None),
        lambda: choose(frontier),
        lambda: SocialWelfare.uniform(10, LinearCost(1), table_values=3),
        lambda: TableValue("t", "x"),
        lambda: Attribute.categories("sex", 3),
        lambda: Attribute.binned("age", 3),
        lambda: Tabulation.of("t", by=3),
        lambda: Domain(3),
        lambda: Domain.of_shape("ab"),
        lambda: Histogram(Domain.of_shape((2,)), [1, 2]),
        lambda: dualmandate.load_release(folders="x"),
    ],
)  # fmt: skip
def test_they_are_refused_in_our_words(call: Callable[[], object]) -> None:
    with pytest.raises(Refusal) as refused:
        call()
    assert "argument" in refused.value.what or " is meant" in refused.value.what
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_what_is_meant_is_said_and_never_what_came() -> None:
    with pytest.raises(Refusal) as refused:
        groups(4, "CANARY")  # type: ignore[arg-type]
    assert refused.value.what == (
        "a value of the type str where 'lists_of_cells' of groups, Iterable[Sequence[int]], is meant"
    )
    assert "CANARY" not in str(refused.value)


def test_our_own_mistakes_stay_mistakes() -> None:
    @checked_call
    def broken(size: int, cells: Iterable[int] = (), /, *, scale: float = 1.0) -> float:
        return scale * sum(cells) + len(size)  # type: ignore[arg-type]

    for values in ((), [1, 2], np.array([1, 2])):
        with pytest.raises(TypeError, match="has no len"):
            broken(3, values, scale=2)


def test_a_name_that_is_taken_by_its_place_may_be_a_name_among_others() -> None:
    @checked_call
    def chosen(table: str, /, *, most: int = 1, **labels: int) -> dict[str, int]:
        return {table: most, **labels}

    assert chosen("a", table=2) == {"a": 1, "table": 2}
    with pytest.raises(Refusal) as refused:
        chosen(table=2)
    assert refused.value.instead == "it takes table (by its place), most, labels"
