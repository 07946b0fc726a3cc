"""The versions of the ledger's database, one module each, never changed once it is released."""
