"""What somebody hands over at a door: of the kind that was meant, or refused before anything is done with it.

A refusal names the type of what came, never its content: it may be confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from dualmandate.errors import InvalidRequest, did_you_mean

T = TypeVar("T")
Taken = ParamSpec("Taken")


def named_twice(names: Iterable[str]) -> str | None:
    """The first name that stands among some names a second time."""
    seen = set[str]()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def expected(value: object, kind: type[T] | tuple[type[Any], ...], *, what: str, instead: str) -> T | Any:
    """The value, where it is of the kind that is meant; refused otherwise. `what` is meant, in words: "a plan"."""
    if isinstance(value, kind):
        return value
    raise unexpected(value, what=what, instead=instead)


def checked_call(function: Callable[Taken, T]) -> Callable[Taken, T]:
    """A function that refuses, in our words, a call with arguments that it does not take, before it does anything."""

    @wraps(function)
    def called(*args: Taken.args, **kwargs: Taken.kwargs) -> T:
        taken = signature(function)
        try:
            taken.bind(*args, **kwargs)
        except TypeError as error:
            names = [name for name in taken.parameters if name != "self"]
            unknown = next((name for name in kwargs if name not in names), "")
            raise InvalidRequest(
                f"a call of {function.__name__} with arguments that it does not take",
                why=f"{error}",
                instead=did_you_mean(unknown, names, f"it takes {', '.join(names)}"),
            ) from None
        return function(*args, **kwargs)

    return called


def unexpected(value: object, *, what: str, instead: str) -> InvalidRequest:
    """The refusal of a value of another kind than the one that is meant."""
    given = "nothing" if value is None else f"a value of the type {type(value).__name__}"
    return InvalidRequest(f"{given} where {what} is meant", why=f"this takes {what}", instead=instead)
