"""What somebody hands over at a door: of the kind that was meant, or refused before anything is done with it.

A refusal names the type of what came, never its content: it may be confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from types import SimpleNamespace, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from dualmandate.errors import InvalidRequest, Refusal, did_you_mean

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
    """A function that refuses, in our words, a call with arguments that it does not take, or of a kind not meant.

    Arguments are looked at where something failed, so that a call costs nothing more; what failed with arguments of the
    kinds that are meant is no refusal, but our bug.
    """

    @wraps(function)
    def called(*args: Taken.args, **kwargs: Taken.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            refusal = None if isinstance(error, Refusal) else _misfit(function, args, kwargs)
            if refusal is None:
                raise
        raise refusal

    return called


def checked_class(made: type[T]) -> type[T]:
    """A class that is made in checked calls."""
    made.__init__ = checked_call(made.__init__)  # type: ignore[method-assign]
    return made


def _misfit(function: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]) -> InvalidRequest | None:
    """The refusal of a call whose arguments the function does not take, or one of them not of its kind."""
    taken = signature(function)
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    kinds = {name: each.kind for name, each in taken.parameters.items() if name not in ("self", "cls")}
    placed = [name for name, kind in kinds.items() if kind is Parameter.POSITIONAL_ONLY]
    others = placed if Parameter.VAR_KEYWORD in kinds.values() else []  # there they are names like any other
    try:
        bound = taken.bind(*args, **{name: value for name, value in kwargs.items() if name not in others})
    except TypeError as error:
        unknown = next((name for name in kwargs if name not in kinds), "")
        takes = f"it takes {', '.join(f'{name} (by its place)' if name in placed else name for name in kinds)}"
        return InvalidRequest(
            f"a call of {name} with arguments that it does not take",
            why=f"{error}",
            instead=did_you_mean(unknown, list(kinds), takes),
        )
    for parameter, value in bound.arguments.items():
        meant = taken.parameters[parameter].annotation
        if parameter not in kinds or not isinstance(meant, str) or kinds[parameter] is Parameter.VAR_KEYWORD:
            continue
        kind = _kind(meant, function)
        for each in value if kinds[parameter] is Parameter.VAR_POSITIONAL else (value,):
            if not _fits(each, kind):
                return unexpected(each, what=f"'{parameter}' of {name}, {meant},", instead="give what is meant there")
    return None


def _kind(meant: str, function: Callable[..., Any]) -> Any:
    """What an annotation names; anything, where it names what is imported for the checker of types alone."""
    stated = SimpleNamespace(__annotations__={"value": meant})
    try:
        return get_type_hints(stated, function.__globals__)["value"]
    except NameError:
        return Any


def _fits(value: object, kind: Any) -> bool:
    """Whether a value may be of a kind: sure where it says no."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in parts)
    if origin is Literal:
        return value in parts
    if kind is None:
        return value is None
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    plain = origin or kind
    if not isinstance(plain, type) or getattr(plain, "_is_protocol", False):  # what a protocol asks is not asked here
        return True
    if isinstance(value, str) and issubclass(plain, Iterable) and plain is not str:
        return False  # its letters are meant nowhere
    if not isinstance(value, plain) and not (plain is int and isinstance(value, Integral)):
        return False
    if isinstance(value, Mapping) or not isinstance(value, Collection) or not parts:
        return True
    return all(_fits(each, parts[0]) for each in value) if plain is not tuple or parts[-1] is ... else True


def unexpected(value: object, *, what: str, instead: str) -> InvalidRequest:
    """The refusal of a value of another kind than the one that is meant."""
    given = "nothing" if value is None else f"a value of the type {type(value).__name__}"
    return InvalidRequest(f"{given} where {what} is meant", why=f"this takes {what}", instead=instead)
