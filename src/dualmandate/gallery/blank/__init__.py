"""A program to start from: small, complete, and commented key by key."""

from __future__ import annotations

from importlib.resources import files as resources


def files() -> dict[str, str]:
    """The program file alone: its levels are listed in it."""
    return {"program.toml": (resources(__package__) / "program.toml").read_text(encoding="utf-8")}
