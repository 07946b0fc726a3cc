"""A plan that was written down is read back, and refused once anything that matters was changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.random_programs import random_program

from dualmandate.errors import InvalidFile
from dualmandate.mechanism.strategy.strategy_file import strategy_digest
from dualmandate.planning.program import load
from dualmandate.planning.saved_plan import digest_of, exact_content, load_plan, stated_content, with_pages
from dualmandate.program.file import read_document
from dualmandate.report.documents.plan import plan_document


@pytest.fixture
def plan_file(title_i: Path) -> Path:
    path = title_i.parent / "plan.json"
    path.write_text(json.dumps(plan_document(load(title_i).plan())), encoding="utf-8")
    return path


def rewritten(path: Path, change: Any) -> Path:
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_round_trip(plan_file: Path, title_i: Path) -> None:
    saved, plan = load_plan(plan_file), load(title_i).plan()
    assert saved.digest == plan.digest
    assert saved.loss == plan.loss
    assert saved.account == "school children"
    assert saved.program == "title-i"


@pytest.mark.parametrize("seed", range(25))
def test_a_program_is_read_from_its_exact_content(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "program.toml"
    path.write_text(random_program(seed), encoding="utf-8")
    content = read_document(path).content
    again = stated_content(exact_content(content))
    assert again == content  # 2.0 is 2
    assert exact_content(again) == exact_content(content)


def test_the_strategy_that_was_found_is_signed(title_i: Path) -> None:
    text = title_i.read_text(encoding="utf-8").replace('noise = "laplace"', 'noise = "laplace"\nstrategy = "optimized"')
    title_i.write_text(text, encoding="utf-8")
    plan = load(title_i).plan()
    path = title_i.parent / "plan.json"
    path.write_text(json.dumps(plan_document(plan)), encoding="utf-8")
    digest = strategy_digest(plan.technology.found["all"].exact)
    assert load_plan(path).strategies == {"eligible children by district": digest}

    def set_strategy(document: Any) -> None:
        document["strategies"][0]["digest"] = "0" * 64

    text = path.read_text(encoding="utf-8")
    with pytest.raises(InvalidFile, match="was changed"):
        load_plan(rewritten(path, set_strategy))
    for key in ("group", "error_coefficient"):
        path.write_text(text.replace(f'"{key}"', f'"{key}s"'), encoding="utf-8")
        with pytest.raises(InvalidFile, match="is not a plan"):
            load_plan(path)


def set_loss(document: Any) -> None:
    document["exact"]["loss"]["amount"] = "5"


def set_shown_loss(document: Any) -> None:
    document["loss"]["exact"] = "5"


def set_account(document: Any) -> None:
    document["program"]["account"] = "nobody"


def set_digest(document: Any) -> None:
    document["digest"] = "0" * 64


def drop_exact(document: Any) -> None:
    del document["exact"]


def set_choice(document: Any) -> None:
    document["choice"]["epsilon"] += 1


def set_words(document: Any) -> None:
    document["choice"]["explanation"] = "Nobody loses anything."


def set_guarantee(document: Any) -> None:
    document["guarantee"]["losses"][0]["words"] = "epsilon = 0.1"


def drop_shown(document: Any) -> None:
    del document["shown"]


CHANGES = [set_loss, set_shown_loss, set_account, set_digest, drop_exact]


@pytest.mark.parametrize("change", [*CHANGES, set_choice, set_words, set_guarantee])
def test_changed_plans_are_refused(plan_file: Path, change: Any) -> None:
    with pytest.raises(InvalidFile, match="was changed") as caught:
        load_plan(rewritten(plan_file, change))
    assert caught.value.where is not None
    assert caught.value.where.file == str(plan_file)


ENDLESS = "1e99999999"  # as a fraction, a number of a hundred million digits


@pytest.mark.parametrize("key", ["amount", "loss", "bound", "remaining"])
def test_an_exact_number_that_is_none_is_refused_at_once(plan_file: Path, key: str) -> None:
    whole = plan_file.read_text(encoding="utf-8")
    for stated in (ENDLESS, "1/0", "0.5", 1, float("inf"), ["1"]):
        document = json.loads(whole)
        exact = document["exact"]
        if key == "amount":
            exact["loss"]["amount"] = stated
        elif key == "loss":
            exact["measurements"][0]["loss"] = stated
        elif key == "bound":
            exact["bounds"] = {"age": stated}
        else:
            document["remaining"] = stated
        plan_file.write_text(json.dumps(with_pages({**document, "digest": digest_of(exact)}, {})), encoding="utf-8")
        with pytest.raises(InvalidFile, match="is not a plan"):
            load_plan(plan_file)


@pytest.mark.parametrize("key", ["amount", "allocation", "unit", "name", "mechanism", "losses"])
def test_what_follows_from_the_exact_part_is_followed_even_under_a_new_digest(plan_file: Path, key: str) -> None:
    """Whoever changes a plan can also write the digest of what it shows anew; the approved digest holds these."""

    def change(document: Any) -> None:
        changes: dict[str, Any] = {
            "amount": lambda: document["loss"].update(amount=1.0),
            "allocation": lambda: document["loss"]["allocation"].update(all="1"),
            "unit": lambda: document["program"].update(unit="adult"),
            "name": lambda: document["program"].update(name="another"),
            "mechanism": lambda: document["mechanism"].update(noise="gaussian"),
            "losses": lambda: document["guarantee"]["losses"][0].update(exact="1/10"),
        }
        changes[key]()
        document["shown"] = with_pages(document, {})["shown"]

    with pytest.raises(InvalidFile, match="was changed"):
        load_plan(rewritten(plan_file, change))


def test_a_dossier_that_was_changed_beside_its_plan_is_refused(plan_file: Path) -> None:
    page = plan_file.parent / "dossier.html"
    page.write_bytes(b"epsilon = 7")
    plan_file.write_text(
        json.dumps(with_pages(json.loads(plan_file.read_text(encoding="utf-8")), {"dossier.html": b"epsilon = 7"}))
    )
    assert load_plan(plan_file).document["pages"]
    page.write_bytes(b"epsilon = 6")
    with pytest.raises(InvalidFile, match=r"'dossier.html' was changed"):
        load_plan(plan_file)
    page.unlink()  # a plan may travel without its dossier
    load_plan(plan_file)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "schema plan/1"),
        (b'{"schema": "plan/2"}', "schema plan/1"),
        (json.dumps({"schema": "plan/1", "exact": {}, "digest": digest_of({})}).encode(), "made by an earlier version"),
        (
            json.dumps({"schema": "plan/1", "exact": {}, "digest": digest_of({}), "shown": ""}).encode(),
            "lacks what a plan says",
        ),
    ],
)
def test_files_that_are_no_plans(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(InvalidFile) as caught:
        load_plan(path)
    assert why in caught.value.why


def test_missing_plan(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot be read"):
        load_plan(tmp_path / "plan.json")


def test_a_plan_of_an_earlier_version_is_not_called_changed(plan_file: Path) -> None:
    with pytest.raises(InvalidFile, match="is not a plan that can be followed") as refusal:
        load_plan(rewritten(plan_file, drop_shown))
    assert refusal.value.where is not None
    assert refusal.value.where.file == str(plan_file)
    assert "made by an earlier version" in refusal.value.why
    assert "plan the program again" in refusal.value.instead
