"""Wrong arguments of the stable names: refused in our words; what fails with right ones stays our bug."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

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
    load_release,
    marginals,
    mechanism_named,
    optimize_strategy,
    stack,
)
from dualmandate.population.arguments import checked_call

four = identity(4)
frontier = frontier_of(mechanism_named("geometric"), four)


WRONG: list[tuple[Any, tuple[object, ...], dict[str, object]]] = [
    (groups, (4, 3), {}),
    (groups, (4, [["a"]]), {}),
    (kron, (four, 3), {}),
    (stack, (four, four), {"weights": 3}),
    (marginals, ("ab", 1), {}),
    (marginals, ((2, 2), "a"), {}),
    (optimize_strategy, (four,), {"values": 3}),
    (optimize_strategy, (four,), {"nose": "laplace"}),
    (frontier_of, (mechanism_named("geometric"), four), {"protection": 3}),
    (frontier_of, (four,), {}),
    (frontier.accuracy, ("1",), {}),
    (frontier.technology, (None,), {}),
    (choose, (frontier,), {}),
    (SocialWelfare.uniform, (10, LinearCost(1)), {"table_values": 3}),
    (TableValue, ("t", "x"), {}),
    (Attribute.categories, ("sex", 3), {}),
    (Attribute.binned, ("age", 3), {}),
    (Tabulation.of, ("t",), {"by": 3}),
    (Domain, (3,), {}),
    (Domain.of_shape, ("ab",), {}),
    (Histogram, (Domain.of_shape((2,)), [1, 2]), {}),
    (load_release, (), {"folders": "x"}),
]


@pytest.mark.parametrize(("called", "args", "named"), WRONG)
def test_they_are_refused_in_our_words(called: Any, args: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(Refusal) as refused:
        called(*args, **named)
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
        counted: Any = size
        return scale * sum(cells) + float(len(counted))

    for values in ((), [1, 2], np.array([1, 2])):
        with pytest.raises(TypeError, match="has no len"):
            broken(3, values, scale=2)


def test_a_name_that_is_taken_by_its_place_may_be_a_name_among_others() -> None:
    @checked_call
    def chosen(table: str, /, *, most: int = 1, **labels: int) -> dict[str, int]:
        return {table: most, **labels}

    assert chosen("a", table=2) == {"a": 1, "table": 2}
    with pytest.raises(Refusal) as refused:
        chosen(table=2)  # type: ignore[call-arg]
    assert refused.value.instead == "it takes table (by its place), most, labels"
