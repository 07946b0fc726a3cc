"""Seven people and what was published of them, exactly: the block with which an article made reconstruction known.

Counts, medians and means are those of Garfinkel, Abowd and Martindale (ACM Queue 2018); (D) is what they left out.
"""

from __future__ import annotations

from importlib.resources import files as resources


def files() -> dict[str, str]:
    """What the tables are, and the tables; no program: nothing is published from it."""
    return {name: (resources(__package__) / name).read_text(encoding="utf-8") for name in ("tables.toml", "block.csv")}
