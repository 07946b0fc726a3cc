"""A server of the tests' own, as for the ledger."""

from __future__ import annotations

from tests.ledger.conftest import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
