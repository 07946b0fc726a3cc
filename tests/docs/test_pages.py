"""Every page of the docs is executed and every link in it resolved, so that the docs cannot drift from the house.

A page is a story: its blocks run in order in one empty folder. `toml file=NAME` and `csv file=NAME` blocks are written
to that file, `python` blocks share one namespace, and each `$ dualmandate …` line of a `console` block is run, in the
folder `in=NAME`; the other lines of a console block must occur in what it printed, where `…` stands for anything.
Blocks with `needs=postgres` run against a server, the one that `dualmandate.toml` names as `db.example`.
"""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
IMAGE = re.compile(r"!\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its options and its text."""

    language: str
    options: dict[str, str]
    body: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        words = match["info"].split()
        options = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        found.append(Block(words[0] if words else "", options, match["body"], text[: match.start()].count("\n") + 1))
    return found


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command)
    executable = Path(sys.executable).with_name("dualmandate")
    return subprocess.run(
        [str(executable), *words[1:]], cwd=folder, capture_output=True, text=True, timeout=900, check=False
    )


def runnable(page: Path) -> bool:
    return any(block.language in {"python", "console", "toml", "csv"} for block in blocks(page))


def needs_postgres(page: Path) -> bool:
    return any(block.options.get("needs") == "postgres" for block in blocks(page))


def check_console(block: Block, folder: Path, where: str) -> None:
    printed, status = "", 0
    for line in block.body.splitlines():
        if line.startswith("$ cd "):
            raise AssertionError(f"{where}: console blocks stay in one folder")
        if line.startswith("$ dualmandate"):
            assert status == int(block.options.get("exit", "0")) or not printed, f"{where}: {printed}"
            result = run(line[2:], folder)
            printed, status = result.stdout + result.stderr, result.returncode
        elif line.strip() and not line.startswith("$"):
            pattern = r".*?".join(re.escape(part.strip()) for part in line.strip().split("…"))
            squeezed = re.sub(r"\s+", " ", printed)
            assert re.search(re.sub(r"(\\ )+", r"\\s+", pattern), squeezed), (
                f"{where}: not printed: {line!r}\n{printed}"
            )
    assert status == int(block.options.get("exit", "0")), f"{where}: exit {status}\n{printed}"


def run_blocks(page: Path, folder: Path, before: Callable[[Block], None] = lambda block: None) -> None:
    namespace: dict[str, object] = {"__name__": "docs"}
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}, line {block.line}"
        before(block)
        if "file" in block.options:
            target = folder / block.options["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.body, encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.body, where, "exec"), namespace)
        elif block.language == "console":
            check_console(block, folder / block.options.get("in", "."), where)


ALONE = [p for p in PAGES if runnable(p) and not needs_postgres(p)]


@pytest.mark.parametrize("page", ALONE, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(page, tmp_path)


@pytest.mark.postgres
@pytest.mark.parametrize("page", [p for p in PAGES if needs_postgres(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_with_a_server_run(page: Path, tmp_path: Path, postgres_url: str) -> None:
    """The words of the page name a server that is nowhere; what it copies by hand is copied here."""

    def before(block: Block) -> None:
        for file in tmp_path.glob("*/dualmandate.toml"):
            file.write_text(file.read_text().replace("postgresql://ledger@db.example/dualmandate", postgres_url))
        state = tmp_path / "board" / ".dualmandate"
        if block.options.get("in") == "board" and not state.exists():
            state.mkdir(mode=0o700)
            for name in ("key", "ledger.anchor"):
                shutil.copy2(tmp_path / "engineers" / ".dualmandate" / name, state)

    run_blocks(page, tmp_path, before)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for match in [*LINK.finditer(text), *IMAGE.finditer(text)]:
        target = match["target"]
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        resolved = (page.parent / path).resolve() if path else page
        assert resolved.exists(), f"{page.relative_to(ROOT)}: {target}"
        if anchor and resolved.suffix == ".md":
            headings = re.findall(r"^#+\s+(.+)$", resolved.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{page.relative_to(ROOT)}: no heading for #{anchor}; there are {sorted(slugs)}"


PAPER_IN_CODE = ROOT / "docs" / "explanation" / "the-paper-in-code.md"


def code_links() -> list[tuple[str, str]]:
    text = PAPER_IN_CODE.read_text(encoding="utf-8")
    return [
        (match["text"].strip("`"), match["target"]) for match in LINK.finditer(text) if match["target"].endswith(".py")
    ]


@pytest.mark.parametrize(("name", "target"), code_links())
def test_paper_names_are_defined_where_the_page_says(name: str, target: str) -> None:
    source = (PAPER_IN_CODE.parent / target).resolve()
    module = importlib.import_module(".".join(source.relative_to(ROOT / "src").with_suffix("").parts))
    found: object = module
    for part in name.split("."):
        assert hasattr(found, part) or part in getattr(found, "__dataclass_fields__", {}), f"{target}: no {name}"
        found = getattr(found, part, None)
    first = name.split(".")[0]
    owner = getattr(getattr(module, first), "__module__", module.__name__)
    assert owner == module.__name__, f"{name} is defined in {owner}, not in {target}"


def test_the_paper_page_covers_every_section() -> None:
    headings = re.findall(r"^## (.+)$", PAPER_IN_CODE.read_text(encoding="utf-8"), re.MULTILINE)
    sections = {heading.split(".")[0] for heading in headings}
    assert {"I", "II", "III", "IV", "V", "VI", "VII", "Appendix"} <= sections
    assert len(code_links()) >= 60


def test_the_glossary_names_modules_that_exist() -> None:
    page = ROOT / "docs" / "explanation" / "glossary.md"
    rows = [line.strip("|").split("|") for line in page.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    terms = [row for row in rows if set(row[0].strip()) != {"-"} and row[0].strip() != "here"]
    assert all(len(row) == 4 and all(cell.strip() for cell in row) for row in terms)
    assert len({row[0] for row in terms}) == len(terms) > 40
    for row in terms:
        [named] = re.findall(r"`(dualmandate[\w.]*)`", row[3])
        place = ROOT / "src" / Path(*named.split("."))
        assert place.with_suffix(".py").is_file() or (place / "__init__.py").is_file(), named
