"""One line of a benchmark: ours, beside a peer's where one is installed, against a target that was stated before."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measured case; smaller is better."""

    case: str
    ours: float  # in `unit`
    unit: str
    target: float | None = None  # in `unit`; None: nothing was promised
    peer: str | None = None  # name and version of the package it is compared with; None: there is no peer
    peer_value: float | None = None  # in `unit`, measured in the same run

    @property
    def ratio(self) -> float | None:
        """The peer's value over ours: above 1, ours is better."""
        return None if self.peer_value is None or self.ours == 0 else self.peer_value / self.ours

    @property
    def met(self) -> bool | None:
        """Whether the target is met."""
        return None if self.target is None else self.ours <= self.target

    def document(self) -> dict[str, object]:
        """The row as JSON."""
        return {
            "case": self.case,
            "ours": self.ours,
            "unit": self.unit,
            "peer": self.peer,
            "peer_value": self.peer_value,
            "ratio": self.ratio,
            "target": self.target,
            "met": self.met,
        }
