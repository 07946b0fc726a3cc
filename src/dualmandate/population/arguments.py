"""What somebody hands over at a door: of the kind that was meant, or refused before anything is done with it.

A refusal names the type of what came, never its content: it may be confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, wraps
from inspect import Parameter, getattr_static, isfunction, signature, unwrap
from itertools import islice
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
        except Exception as error:
            refusal = None if isinstance(error, Refusal) else _misfit(function, args, kwargs)
            if refusal is None:
                raise
        raise refusal

    return called


def checked_class(made: type[T]) -> type[T]:
    """A class whose public methods are called with arguments of the kinds that are meant, and whose values hold such.

    They are looked at before a method is called, and in a value once it is made, since it may have brought what it was
    given into its own form: what is kept of another kind would fail far from who gave it.
    """
    names = dict.fromkeys(name for kind in made.__mro__ for name in vars(kind) if not name.startswith("_"))
    for name in names:
        member = getattr_static(made, name)
        if isinstance(member, classmethod | staticmethod):
            setattr(made, name, type(member)(_held(member.__func__)))
        elif isfunction(member):
            setattr(made, name, _held(member))
    made.__init__ = _held(made.__init__, made=True)  # type: ignore[method-assign]
    return made


def _held(function: Callable[Taken, T], *, made: bool = False) -> Callable[Taken, T]:
    """A checked call that holds arguments against what is meant: before, or what a value that is made keeps of them."""
    function = unwrap(function)  # one that was inherited may be checked already
    names, fitting = list(signature(function).parameters), set[tuple[str, type]]()

    def check(args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        kinds = _kinds(function)
        for name, given in (*zip(names, args, strict=False), *kwargs.items()):
            value = getattr(args[0], name, given) if made else given
            if (name, type(value)) in fitting or name not in kinds:
                continue
            if not _fits(value, kinds[name], most=int(made)):
                raise TypeError(name)
            if not isinstance(value, Collection):  # what is in a collection differs, and texts may be of a few
                fitting.add((name, type(value)))

    @wraps(function)
    def held(*args: Taken.args, **kwargs: Taken.kwargs) -> T:
        if not made:
            check(args, kwargs)
        found = function(*args, **kwargs)
        if made:
            check(args, kwargs)
        return found

    return checked_call(held)


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
    meant_kinds = _kinds(unwrap(function))
    for parameter, value in bound.arguments.items():
        if parameter not in meant_kinds:
            continue
        meant, kind = taken.parameters[parameter].annotation, meant_kinds[parameter]
        for each in value if kinds[parameter] is Parameter.VAR_POSITIONAL else (value,):
            if not _fits(each, kind):
                words = [word for word in _words_of(kind) if isinstance(word, str)]
                one_of = f"give one of {', '.join(map(repr, words))}" if words else "give what is meant there"
                instead = did_you_mean(each, words, one_of) if isinstance(each, str) else one_of
                return unexpected(each, what=f"'{parameter}' of {name}, {meant},", instead=instead)
    return None


def _words_of(kind: Any) -> tuple[Any, ...]:
    """The values that a kind lists."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(word for part in get_args(kind) if get_origin(kind) in (Union, UnionType) for word in _words_of(part))


@cache
def _kinds(function: Callable[..., Any]) -> dict[str, Any]:
    """What each parameter is meant to be, but for names among names and what has no annotation."""
    return {
        name: _kind(each.annotation, function)
        for name, each in signature(function).parameters.items()
        if isinstance(each.annotation, str) and each.kind is not Parameter.VAR_KEYWORD
    }


def _kind(meant: str, function: Callable[..., Any]) -> Any:
    """What an annotation names; anything, where it names what is imported for the checker of types alone."""
    stated = SimpleNamespace(__annotations__={"value": meant})
    try:
        return get_type_hints(stated, function.__globals__)["value"]
    except NameError:
        return Any


def _fits(value: object, kind: Any, most: int | None = None) -> bool:
    """Whether a value may be of a kind: sure where it says no. Of a collection, so many elements are looked at.

    Where none is, a text is a collection too: who takes it says better why its letters are not meant.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, each, most) for each in parts)
    if origin is Literal:
        return value in parts
    if kind is Any or kind is None:
        return kind is Any or value is None
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    plain = origin or kind
    unasked = getattr(plain, "_is_protocol", False) and not getattr(plain, "_is_runtime_protocol", False)
    if not isinstance(plain, type) or unasked:  # what a protocol asks is not asked here, where it does not say so
        return True
    if most != 0 and isinstance(value, str) and issubclass(plain, Iterable) and not issubclass(plain, str):
        return False  # its letters are meant nowhere
    if not isinstance(value, plain) and not (plain is int and isinstance(value, Integral)):
        return False
    if isinstance(value, Mapping) or not isinstance(value, Collection):
        return True
    if len(parts) != 1 and not (plain is tuple and parts[1:] == (...,)):  # not elements of one kind
        return True
    return all(_fits(each, parts[0], most) for each in islice(value, most))


def unexpected(value: object, *, what: str, instead: str) -> InvalidRequest:
    """The refusal of a value of another kind than the one that is meant."""
    given = "nothing" if value is None else f"a value of the type {type(value).__name__}"
    return InvalidRequest(f"{given} where {what} is meant", why=f"this takes {what}", instead=instead)
