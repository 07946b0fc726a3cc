"""Version 3: entries of checks, which version 2 has no words for. The tables are the same.

Releases are named by their account and number from here on; those of before keep their names, and count.
"""

from __future__ import annotations

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Nothing of the tables changes."""
