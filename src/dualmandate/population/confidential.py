"""The wall: confidential things travel in a box that prints only its label."""

from __future__ import annotations

from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")


class Confidential(Generic[T]):
    """A box around confidential content. It prints as nothing but its label, and is neither copied nor pickled.

    Only `publication`, `inquiry` and `audit` open it; a test searches the house for `open_for`. It guards against
    mistakes, not against malice: Python cannot do more.
    """

    __slots__ = ("__content", "_label")
    __content: T
    _label: str

    def __init__(self, label: str, content: T) -> None:
        if not isinstance(label, str):
            # The two may have been exchanged, so neither is printed.
            raise TypeError("the label of a confidential box is a word, and comes first")
        object.__setattr__(self, "_label", label)
        object.__setattr__(self, "_Confidential__content", content)

    @property
    def label(self) -> str:
        """What the box says on the outside: public."""
        return self._label

    def open_for(self, purpose: str) -> T:
        """The content, for a stated purpose. Call it inside the wall only."""
        if not purpose:
            raise AssertionError("a confidential box is opened for a stated purpose")
        return self.__content

    def __repr__(self) -> str:
        return f"Confidential({self._label!r})"

    def __format__(self, specification: str) -> str:
        return format(repr(self), specification)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} does not change")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} does not leave the process")

    def __getstate__(self) -> NoReturn:
        # From Python 3.11 on, object.__getstate__ would hand out every slot.
        raise TypeError(f"{self!r} does not leave the process")
