"""One line of a benchmark: ours, beside a peer's where one is installed, against a target that was stated before."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measured case; smaller is better, except where the target is a floor."""

    case: str
    ours: float | None  # in `unit`; None: refused, which meets no target
    unit: str
    target: float | None = None  # in `unit`; None: nothing was promised
    peer: str | None = None  # name and version of what it is compared with; None: there is no peer, or it is not there
    peer_value: float | None = None  # in `unit`, measured in the same run
    is_floor: bool = False  # more is better, and the target is the least that is promised

    @property
    def ratio(self) -> float | None:
        """The peer's value over ours, or ours over the peer's where more is better: above 1, ours is better."""
        if self.peer_value is None or self.ours is None:
            return None
        above, below = (self.ours, self.peer_value) if self.is_floor else (self.peer_value, self.ours)
        return above / below if below else None

    @property
    def met(self) -> bool | None:
        """Whether the target is met."""
        if self.target is None:
            return None
        if self.ours is None:
            return False
        return self.ours >= self.target if self.is_floor else self.ours <= self.target
