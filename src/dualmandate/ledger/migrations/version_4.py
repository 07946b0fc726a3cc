"""Version 4: entries of requests for more and of their decisions, unknown to version 3. The tables are the same.

A decision raises a limit: an older dualmandate would refuse what was granted.
"""

from __future__ import annotations

revision = "4"
down_revision = "3"


def upgrade() -> None:
    """Nothing of the tables changes."""
