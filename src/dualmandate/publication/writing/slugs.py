"""File names from the names of tables: plain letters, the same on every machine, no two alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

LONGEST = 80  # letters of a name
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))}


def slug(name: str) -> str:
    """A name in lower-case letters, digits and hyphens; never empty, and never one that a system keeps for itself."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").lower()
    found = re.sub("[^a-z0-9]+", "-", plain).strip("-")[:LONGEST].rstrip("-")
    return f"table-{found}".rstrip("-") if not found or found in RESERVED else found


def file_names(names: Iterable[str]) -> dict[str, str]:
    """A different slug for each name, in their order: the second of two that look alike ends in `-2`."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        first = chosen = slug(name)
        number = 1
        while chosen in taken:
            number += 1
            chosen = f"{first}-{number}"
        taken.add(chosen)
        found[name] = chosen
    return found
