"""The wall: confidential things travel in a box that prints only its label."""

from __future__ import annotations

from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")


class Confidential(Generic[T]):
    """A box around confidential content. It prints, compares and pickles as nothing but its label.

    Only `publication`, `inquiry` and `audit` open it; a test searches the house for `open_for`. It guards against
    mistakes, not against malice: Python cannot do more.
    """

    __slots__ = ("__content", "_label")

    def __init__(self, label: str, content: T) -> None:
        self._label = label
        self.__content = content

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

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} does not leave the process")
