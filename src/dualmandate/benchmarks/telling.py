"""How far a benchmark is: words for every stage, and where somebody listens to it, how much of a long one is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

STEP = 100  # of which one is told


@runtime_checkable
class Counts(Protocol):
    """Somebody who is told how much is done."""

    def count(self, words: str, done: int, of: int, /) -> None:
        """So many of so many."""
        ...


def counter(progress: Callable[[str], None], words: str, of: int) -> Callable[[int], None]:
    """Begin a stage, and tell how much of it is done whenever that is called; nobody may be listening."""
    progress(words)
    listener = progress if isinstance(progress, Counts) else None

    def tell(done: int) -> None:
        if listener is not None and (done % STEP == 0 or done == of):
            listener.count(words, done, of)

    return tell
