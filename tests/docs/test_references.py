"""Every source that the code cites stands on the page of references."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEY = re.compile(r"\[([A-Z][A-Za-z]*\d{2})\]")


def test_every_cited_key_resolves() -> None:
    page = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| ([A-Z][A-Za-z]*\d{2}) \|", page, re.MULTILINE))
    cited = {
        key: path.name for path in (ROOT / "src").rglob("*.py") for key in KEY.findall(path.read_text(encoding="utf-8"))
    }
    assert len(cited) > 10
    assert set(cited) <= known, {key: where for key, where in cited.items() if key not in known}
