"""`dualmandate plan`, in process: what it prints, what it writes, and what it refuses without writing anything."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from dualmandate import gallery
from dualmandate.report.documents.schemas import schema

if TYPE_CHECKING:
    from tests.apps.conftest import Command, Outcome

TITLE_I = gallery.files("title_i")
TOML = TITLE_I["program.toml"]


@pytest.fixture(autouse=True)
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "title_i"
    gallery.write("title_i", folder)
    return folder / "program.toml"


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and path.stat().st_size < 10**7 else None
        for path in folder.rglob("*")
    }


def changed(program: Path, old: str, new: str) -> int:
    """Replace a part of the program; the line on which the new text begins."""
    text = program.read_text(encoding="utf-8")
    assert text.count(old) == 1, old
    program.write_text(text.replace(old, new), encoding="utf-8")
    return text[: text.index(old)].count("\n") + 1


def is_refused(command: Command, tmp_path: Path, *words: object) -> Outcome:
    """Exit 2, one message of four parts, one JSON document, no traceback, and not a byte written."""
    before = contents(tmp_path)
    outcome = command("plan", *words, "--json")
    assert outcome.status == 2, outcome.err
    document = outcome.document
    jsonschema.validate(document, schema("refusal"))
    assert all(document[part] for part in ("code", "what", "why", "instead"))
    assert "Traceback" not in outcome.err
    assert outcome.err.startswith(document["what"])
    assert "\x1b" not in outcome.err
    assert contents(tmp_path) == before
    return outcome


def test_the_plan_of_title_i(command: Command, program: Path) -> None:
    outcome = command("plan", program, "--json")
    assert outcome.status == 0, outcome.err
    document = outcome.document
    jsonschema.validate(document, schema("plan"))
    choice, paper = document["choice"], document["saving"]["naive"]
    assert (document["study"], document["why_study"]) == (False, None)
    assert choice["epsilon"] == pytest.approx(2.444299, abs=1e-6)
    assert choice["root_mean_squared_consequence"] == pytest.approx(2040.26, abs=0.01)
    assert choice["willingness_to_accept"] == pytest.approx(3220, rel=1e-6)
    assert (paper["noise"], paper["strategy"], paper["study"]) == ("laplace", "workload", True)
    assert paper["epsilon"] == pytest.approx(2.527644, abs=1e-6)
    assert paper["root_mean_squared_consequence"] == pytest.approx(2502.15, abs=0.01)
    assert document["saving"]["welfare_gained"] == pytest.approx(choice["welfare"] - paper["welfare"])
    assert {row["noise"] for row in document["technologies"] if row["study"]} == {"laplace", "staircase"}


def test_the_plan_of_title_i_with_the_technology_of_the_paper(command: Command, program: Path) -> None:
    changed(program, 'noise = "best"', 'noise = "laplace"')
    outcome = command("plan", program, "--json")
    assert outcome.status == 0, outcome.err
    document = outcome.document
    jsonschema.validate(document, schema("plan"))
    choice = document["choice"]
    assert document["study"] is True
    assert 'state noise = "geometric" or "best"' in document["why_study"]
    assert document["notes"][0] == document["why_study"]
    assert choice["epsilon"] == pytest.approx(2.527644, abs=1e-6)
    assert choice["root_mean_squared_error"] == pytest.approx(0.559499, abs=1e-6)
    assert choice["root_mean_squared_consequence"] == pytest.approx(2502.15, abs=0.01)
    assert choice["marginal_rate_of_transformation"] == pytest.approx(3220, rel=1e-6)
    assert choice["willingness_to_accept"] == pytest.approx(3220, rel=1e-6)
    assert choice["bound_by"] == "preferences"
    assert "6319/2500" in outcome.out
    assert {"choice", "frontier", "tables"} <= set(document)
    assert outcome.err.strip()


def test_words_alone_without_json(command: Command, program: Path) -> None:
    outcome = command("plan", program)
    assert outcome.status == 0
    assert outcome.err == ""
    assert "2.4442" in outcome.out


def test_one_screen_and_in_full_all_of_it(command: Command) -> None:
    short, full = (command("plan", "title_i/program.toml", *words).out.splitlines() for words in ([], ["--full"]))
    assert len(short) <= 25
    assert max(map(len, short)) <= 80
    assert short[-2:] == ["next:", "  dualmandate plan title_i/program.toml --out title_i/report"]
    assert len(full) > 60
    assert "To be approved" in full
    assert full[-2:] == short[-2:]


def test_a_folder_stands_for_the_program_in_it(command: Command, program: Path) -> None:
    assert command("plan", program.parent, "--json").out == command("plan", program, "--json").out


def test_out_writes_the_plan_beside_the_dossier(
    command: Command, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_quickly(plan: object, directory: Path) -> list[Path]:
        (directory / "dossier.html").write_text("page", encoding="utf-8")
        return [directory / "dossier.html"]

    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", write_quickly)  # the real one: tests/journeys
    written = tmp_path / "a" / "report"
    outcome = command("plan", program, "--out", written, "--json")
    assert outcome.status == 0, outcome.err
    cost = outcome.document.pop("publishing")  # of this machine: printed, and not saved
    assert min(cost.values()) > 0
    assert json.loads((written / "plan.json").read_text(encoding="utf-8")) == outcome.document
    assert outcome.document["pages"] == {"dossier.html": hashlib.sha256(b"page").hexdigest()}
    assert sorted(path.name for path in written.iterdir()) == ["dossier.html", "plan.json"]
    assert list((tmp_path / "a").iterdir()) == [written]
    *_, wrote, page, following, typed, end = outcome.err.split("\n")
    assert (wrote, page) == (f"written: {written / 'plan.json'}", f"to open: {written / 'dossier.html'}")
    assert (following, end) == ("next:", "")
    words = "dualmandate ledger open 'school children' --unit child --cap 3"
    assert typed == f"  {words} --ledger title_i/.dualmandate/ledger.sqlite"
    opened = command(*shlex.split(typed)[1:])
    assert opened.status == 0, opened.err
    named = "--ledger title_i/.dualmandate/ledger.sqlite"
    approve = command("plan", program, "--out", written, *named.split()).out
    assert approve.splitlines()[-1] == f"  dualmandate approve a/report/plan.json {named}"


def test_out_comes_from_the_settings_of_the_program_s_project(
    command: Command, program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", lambda plan, directory: ())
    (program.parent / "dualmandate.toml").write_text('out = "from-file"\n', encoding="utf-8")
    assert command("plan", program).status == 0
    assert (program.parent / "from-file" / "plan.json").is_file()
    monkeypatch.setenv("DUALMANDATE_OUT", "from-variable")
    assert command("plan", program).status == 0
    assert (tmp_path / "from-variable" / "plan.json").is_file()
    assert command("plan", program, "--out", "from-flag").status == 0
    assert (tmp_path / "from-flag" / "plan.json").is_file()


def test_a_bug_while_writing_leaves_nothing(
    command: Command, program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(plan: object, directory: Path) -> None:
        (directory / "half").write_text("x", encoding="utf-8")
        raise RuntimeError

    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", fail)
    before = contents(tmp_path)
    outcome = command("plan", program, "--out", "report", "--json")
    assert (outcome.status, outcome.out) == (1, "")
    assert "this is our bug" in outcome.err
    assert contents(tmp_path) == before


@dataclass(frozen=True)
class Case:
    old: str
    new: str
    code: str
    key: str


CASES = {
    "unknown key": Case('name        = "title-i"', 'nmae = "title-i"', "unknown key", "program.nmae"),
    "missing unit": Case(
        'value = 46e6, unit = "child",', "value = 46e6,", "missing key", "population.population_size.unit"
    ),
    "missing source": Case(
        ', source = "implicit in the paper"', "", "missing key", "preferences.price_of_squared_misallocation.source"
    ),
    "attribute not in the domain": Case('by          = ["district"]', 'by = ["county"]', "", "workload[0].by"),
    "level not in the domain": Case('= { eligible = "yes" }', '= { eligible = "si" }', "", "workload[0].where"),
    "negative cost": Case("value = 1400", "value = -1400", "", "preferences.mean_disclosure_cost"),
    "epsilon of 0": Case("largest_epsilon = 10", "largest_epsilon = 0", "invalid value", "limits.largest_epsilon"),
    "NaN": Case("value = 1400", "value = nan", "invalid value", "preferences.mean_disclosure_cost.value"),
    "infinity": Case("value = 2.0e7", "value = inf", "invalid value", "workload[0].consequence.value"),
    "no such noise": Case('noise = "best"', 'noise = "laplase"', "invalid value", "mechanism.noise"),
    "no such code list": Case('"districts.csv"', '"counties.csv"', "", "population.attributes.district"),
    "cost in the wrong unit": Case(
        "USD per child per epsilon", "USD per child", "incompatible units", "preferences.mean_disclosure_cost"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_bad_program_is_refused_with_its_place(command: Command, program: Path, tmp_path: Path, case: Case) -> None:
    line = changed(program, case.old, case.new)
    document = is_refused(command, tmp_path, program, "--out", "report").document
    assert document["where"]["file"] == str(program)
    assert document["where"]["line"] == line
    assert document["where"]["key"].startswith(case.key)
    assert document["code"] == (case.code or document["code"])


def test_squared_dollars_without_a_price_are_refused(command: Command, program: Path, tmp_path: Path) -> None:
    price = next(line for line in TOML.splitlines() if line.startswith("price_of_squared_misallocation"))
    changed(program, price + "\n", "")
    document = is_refused(command, tmp_path, program, "--out", "report").document
    assert "price_of_squared_misallocation" in document["what"] + document["why"] + document["instead"]


@pytest.mark.parametrize("workload", ["", "workload = []\n"])
def test_an_empty_workload_is_refused(command: Command, program: Path, tmp_path: Path, workload: str) -> None:
    text = program.read_text(encoding="utf-8")
    before, _, rest = text.partition("[[workload]]")
    _, mechanism, after = rest.partition("[mechanism]")
    program.write_text(workload + before + mechanism + after, encoding="utf-8")
    assert is_refused(command, tmp_path, program, "--out", "report").document["where"]["key"] == "workload"


def test_a_dense_request_over_a_trillion_cells_is_refused(command: Command, program: Path, tmp_path: Path) -> None:
    digits = "\n".join(f"attributes.a{position} = {{ from = 0, to = 9 }}" for position in range(12))
    changed(program, 'attributes.eligible = ["no", "yes"]', f'attributes.eligible = ["no", "yes"]\n{digits}')
    by = ", ".join(f'"a{position}"' for position in range(12))
    changed(program, 'by          = ["district"]', f"by = [{by}]")
    document = is_refused(command, tmp_path, program, "--out", "report").document
    assert document["code"] == "too large"


@pytest.mark.parametrize(
    "text",
    [b"this is not TOML", b"", b"\x89PNG\r\n\x1a\n\x00\xff", b"[program\nschema = 1", b"[a]\n" * 2],
    ids=["prose", "empty", "binary", "unclosed", "twice"],
)
def test_a_file_that_is_no_program_is_refused(command: Command, program: Path, tmp_path: Path, text: bytes) -> None:
    program.write_bytes(text)
    assert is_refused(command, tmp_path, program, "--out", "report").document["where"]["file"] == str(program)


def test_a_file_of_100_megabytes_is_refused_without_reading_it(command: Command, program: Path, tmp_path: Path) -> None:
    with program.open("wb") as file:
        file.truncate(100_000_000)
    assert "100,000,000" in is_refused(command, tmp_path, program, "--out", "report").document["what"]


def test_places_without_a_program_are_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    holds_none = is_refused(command, tmp_path, "empty", "--out", "report").document
    assert holds_none["code"] == "invalid file"
    assert "holds no program.toml" in holds_none["what"]
    assert is_refused(command, tmp_path, "nowhere.toml", "--out", "report").document["code"] == "invalid file"


def test_an_out_that_is_a_file_is_refused_before_planning(command: Command, program: Path, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("mine", encoding="utf-8")
    assert is_refused(command, tmp_path, program, "--out", "report").document["code"] == "cannot write"
    assert is_refused(command, tmp_path, program, "--out", "report/below").document["code"] == "cannot write"


@contextmanager
def an_ordinary_user() -> Iterator[Path]:
    """A folder anyone may read, and rights that root does not have: root may read and write everything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)


def test_a_file_that_may_not_be_read_is_refused(command: Command, program: Path) -> None:
    command("plan", program)  # what is imported lazily stands in folders an ordinary user may not read
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        hidden = Path(name, "program.toml")
        hidden.write_text(TOML, encoding="utf-8")
        hidden.chmod(0o000)
        with an_ordinary_user():
            outcome = command("plan", hidden, "--json")
    assert outcome.status == 2
    assert outcome.document["code"] == "invalid file"


def test_a_folder_that_may_not_be_written_is_refused(command: Command, program: Path) -> None:
    command("plan", program)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in TITLE_I.items():
            (folder / file).write_text(text, encoding="utf-8")
        folder.chmod(0o555)
        with an_ordinary_user():
            outcome = command("plan", folder, "--out", folder / "report", "--json")
        assert sorted(path.name for path in folder.iterdir()) == sorted(TITLE_I)
        folder.chmod(0o755)
    assert outcome.status == 2
    assert outcome.document["code"] == "cannot write"
