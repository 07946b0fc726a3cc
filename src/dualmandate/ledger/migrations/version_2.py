"""Version 2: entries that version 1 has no words for, of second places and of signatures. The tables are the same.

An older dualmandate would take such an entry for a forgery, and advise to restore an older copy.
"""

from __future__ import annotations

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Nothing of the tables changes."""
