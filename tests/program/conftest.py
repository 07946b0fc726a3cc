"""A Title I program in a folder of its own, and copies of it with something changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dualmandate import gallery

Change = Callable[..., Path]


@pytest.fixture(scope="session")
def title_i_files() -> dict[str, str]:
    return gallery.files("title_i")


@pytest.fixture
def title_i(tmp_path: Path, title_i_files: dict[str, str]) -> Path:
    """The program file of a fresh Title I folder."""
    for name, text in title_i_files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / "program.toml"


@pytest.fixture
def changed(title_i: Path) -> Change:
    """Replace pieces of the program's text (each must be there) and give back its path."""

    def change(*pieces: tuple[str, str]) -> Path:
        text = title_i.read_text(encoding="utf-8")
        for old, new in pieces:
            assert old in text, old
            text = text.replace(old, new, 1)
        title_i.write_text(text, encoding="utf-8")
        return title_i

    return change
