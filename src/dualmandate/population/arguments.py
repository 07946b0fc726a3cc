"""What somebody hands over at a door: of the kind that was meant, or refused before anything is done with it.

A refusal names the type of what came, never its content: it may be confidential.
"""

from __future__ import annotations

from typing import Any, TypeVar

from dualmandate.errors import InvalidRequest

T = TypeVar("T")


def expected(value: object, kind: type[T] | tuple[type[Any], ...], *, what: str, instead: str) -> T | Any:
    """The value, where it is of the kind that is meant; refused otherwise. `what` is meant, in words: "a plan"."""
    if isinstance(value, kind):
        return value
    raise unexpected(value, what=what, instead=instead)


def unexpected(value: object, *, what: str, instead: str) -> InvalidRequest:
    """The refusal of a value of another kind than the one that is meant."""
    given = "nothing" if value is None else f"a value of the type {type(value).__name__}"
    return InvalidRequest(f"{given} where {what} is meant", why=f"this takes {what}", instead=instead)
