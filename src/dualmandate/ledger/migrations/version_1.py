"""Version 1: the entries, and one row that says how far they go."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """Make the tables of version 1. Amounts are exact fractions, as the text of their two whole numbers."""
    op.create_table(
        "ledger_entry",
        sql.Column("sequence", sql.BigInteger().with_variant(sql.Integer(), "sqlite"), primary_key=True),
        sql.Column("kind", sql.Text(), nullable=False),
        sql.Column("recorded_at", sql.Text(), nullable=False),
        sql.Column("recorded_by", sql.Text(), nullable=False),
        sql.Column("account", sql.Text()),
        sql.Column("release", sql.Text()),
        sql.Column("numerator", sql.Text()),
        sql.Column("denominator", sql.Text()),
        sql.Column("details", sql.Text(), nullable=False),
        sql.Column("digest", sql.Text(), nullable=False),
    )
    op.create_table(
        "ledger_head",
        sql.Column("ledger", sql.Text(), primary_key=True),
        sql.Column("sequence", sql.BigInteger(), nullable=False),
        sql.Column("digest", sql.Text(), nullable=False),
    )
