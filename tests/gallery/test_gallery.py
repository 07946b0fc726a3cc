"""The programs to start from: written once, never over anything, and ready to plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualmandate import gallery
from dualmandate.audit import audit
from dualmandate.audit.finding import Range
from dualmandate.errors import InvalidFile, UnknownName
from dualmandate.gallery.districts import districts
from dualmandate.planning.program import load


@pytest.mark.parametrize("name", [name for name in gallery.names() if name != "block"])
def test_every_program_can_be_planned(tmp_path: Path, name: str) -> None:
    written = gallery.write(name, tmp_path / "new" / "folder")
    assert all(path.is_file() for path in written)
    plan = load(tmp_path / "new" / "folder" / "program.toml").plan()
    assert plan.choice.epsilon > 0
    assert plan.choice.bound_by == "preferences"


def test_the_block_is_its_seven_people(tmp_path: Path) -> None:
    gallery.write("block", tmp_path)
    found = {finding.claim: finding for finding in audit(tmp_path).findings}
    lists = found["lists of persons that fit ages in a block of seven people"]
    assert isinstance(lists.success, Range)
    assert (lists.success.least, lists.success.largest, lists.partial) == (1, 1, None)
    everybody = found["persons who are in every list that fits ages in a block of seven people"]
    # The article's solution.
    assert sorted(line.split(": ")[1] for line in everybody.details) == [
        "18 male white no",
        "24 female white no",
        "30 male white yes",
        "36 female black yes",
        "66 female black yes",
        "8 female black no",
        "84 male black yes",
    ]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "districts.csv").write_text("mine")
    with pytest.raises(InvalidFile, match="already there") as caught:
        gallery.write("title_i", tmp_path)
    assert caught.value.where is not None
    assert caught.value.where.file == str(tmp_path / "districts.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["districts.csv"]


def test_names_with_hyphens_and_unknown_names() -> None:
    assert gallery.files("title-i") == gallery.files("title_i")
    with pytest.raises(UnknownName) as caught:
        gallery.files("titlei")
    assert "title_i" in caught.value.instead


def test_districts_are_thirteen_thousand_and_all_different() -> None:
    codes, states, names = zip(*districts(), strict=True)
    assert len(codes) == len(set(codes)) == len(set(names)) == 13_000
    assert len(set(states)) == 50
    assert all(code.startswith(state) and len(code) == 7 for code, state in zip(codes, states, strict=True))


def test_title_i_can_be_published_and_tells_what_the_paper_would_give(tmp_path: Path) -> None:
    gallery.write("title_i", tmp_path)
    plan = load(tmp_path / "program.toml").plan()
    assert (plan.technology.noise, plan.study) == ("geometric", False)
    assert plan.choice.epsilon == pytest.approx(2.444299, abs=5e-7)
    assert plan.choice.root_mean_squared_consequence == pytest.approx(2040.26, abs=0.005)
    alone = plan.saving.naive.choice
    assert alone is not None
    assert (alone.loss.exact(), plan.saving.naive.study) == ("6319/2500", True)
    assert alone.epsilon == pytest.approx(2.527644, abs=5e-7)
    assert alone.root_mean_squared_consequence == pytest.approx(2502.15, abs=0.005)
    assert plan.saving.welfare_gained == pytest.approx(plan.choice.welfare - alone.welfare)
    assert plan.saving.welfare_gained == pytest.approx(32.64e9, rel=1e-3)


@pytest.mark.parametrize("name", ["blank", "survey", "title_i"])
def test_every_program_to_start_from_can_be_published(name: str, tmp_path: Path) -> None:
    gallery.write(name, tmp_path)
    assert not load(tmp_path / "program.toml").plan().study


def test_a_copy_of_title_i_with_laplace_noise_gives_the_number_of_the_paper(tmp_path: Path) -> None:
    gallery.write("title_i", tmp_path)
    file = tmp_path / "program.toml"
    file.write_text(file.read_text(encoding="utf-8").replace('noise = "best"', 'noise = "laplace"'), encoding="utf-8")
    plan = load(file).plan()
    assert plan.study
    assert plan.choice.epsilon == pytest.approx(2.527644, abs=5e-7)
    assert plan.choice.loss.exact() == "6319/2500"
