"""The versions of the ledger's database, oldest first; alembic knows which of them a database has."""
