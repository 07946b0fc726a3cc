"""One statement of the paper beside what follows from its own inputs and what is right."""

from __future__ import annotations

from dataclasses import dataclass

Value = float | str | None


@dataclass(frozen=True)
class Row:
    """What the paper says, what its own inputs give, what is right, and why they differ.

    `paper` is a number or wording as printed; `from_its_inputs` is computed here from the paper's stated inputs and
    formulas; `corrected` is computed with the mistake mended, and equals `from_its_inputs` where nothing is wrong but
    rounding. None: the paper gives no such number, or there is nothing to compute.
    """

    id: str
    section: str
    what: str
    paper: Value
    from_its_inputs: Value
    corrected: Value
    why: str
    unit: str = ""

    def document(self) -> dict[str, object]:
        """The row as JSON."""
        return {
            "id": self.id,
            "section": self.section,
            "what": self.what,
            "unit": self.unit,
            "paper": self.paper,
            "from_its_inputs": self.from_its_inputs,
            "corrected": self.corrected,
            "why": self.why,
        }


CONFIRMED = "confirmed"
