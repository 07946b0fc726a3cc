"""One statement of the paper beside what follows from its own inputs and what is right."""

from __future__ import annotations

from dataclasses import dataclass

Value = float | str | None


@dataclass(frozen=True)
class PaperRow:
    """What the paper says, what its own inputs give, what is right, and why they differ.

    `paper` is a number or wording as printed; `from_its_inputs` is computed from the paper's stated inputs and
    formulas; `corrected` is computed with the mistake mended, and equals `from_its_inputs` where nothing is wrong but
    rounding. None: the paper gives no such number, or there is nothing to compute.
    """

    id: str
    section: str
    what: str
    unit: str
    paper: Value
    from_its_inputs: Value
    corrected: Value
    why: str


@dataclass(frozen=True)
class Computed:
    """The numbers of one statement. `paper` evaluates a formula that the paper prints without a number."""

    from_its_inputs: float
    corrected: float
    paper: float | None = None

    @classmethod
    def same(cls, value: float, *, paper: float | None = None) -> Computed:
        """A number about which the paper's inputs are right."""
        return cls(value, value, paper)
