"""Derive how much privacy loss a statistical agency should accept, and show why."""
