"""Whether a plan that was made on one machine can be approved on another, and a changed one nowhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.apps.test_signatures import PROGRAM

from dualmandate.apps.following import first_other_words
from dualmandate.planning.saved_plan import with_pages

if TYPE_CHECKING:
    from tests.apps.conftest import Command

DIGEST = "b92ef26f42abc40b993a78ecfaf79e8108fbcf6882862b8a1a4640bdf6a2cd4b"
PAGE = f"""<h1>town: 1.4852 of 90,000 people</h1>
<svg aria-label="At ε = 1.4852" viewBox="0 0 680 456">
<path d="M0,0h618.25v380h-618.25Z" transform="translate(4,1.2e-14)"/>
<line x1="46.178824909645854" opacity="0.5"/></svg>
<script>const grid = [0.123456789012345, 46000000, 1e-07];</script><code>{DIGEST}</code>
"""


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("46.178824909645854", "46.178824909645861"),
        ("0.123456789012345", "0.123456789012352"),
        ("618.25v", "618.251v"),  # rounded to a thousandth, the other way
        ("1.2e-14", "0"),
        ("1e-07", "1.00000000000002e-07"),
    ],
)
def test_floats_of_another_machine_are_the_same_page(here: str, there: str) -> None:
    assert PAGE.count(here) == 1
    assert first_other_words(PAGE.replace(here, there), PAGE) is None
    assert first_other_words(PAGE, PAGE.replace(here, there)) is None


@pytest.mark.parametrize(
    ("here", "there", "why"),
    [
        ("town: 1.4852", "town: 1.4853", "it says 1.4853 where the program gives 1.4852"),
        ("ε = 1.4852", "ε = 1.4851", "it says 1.4851 where the program gives 1.4852"),  # the label of a drawing
        ("90,000", "90,001", "it says 90,001 where the program gives 90,000"),
        ("46000000", "46000001", "it says 46000001 where the program gives 46000000"),
        ("0.123456789012345", "0.123466789012345", "it says 0.123466789012345"),
        ('"0.5"', '"0.6"', "it says 0.6 where the program gives 0.5"),  # what a drawing hides
        ("v380", "v381", "its words are other ones than the program gives: '1h-618.25Z"),
        ("618.25v", "618.35v", "its words are other ones"),
        ('x1="', 'y1="', "its words are other ones"),
        ("town:", "city:", "its words are other ones than the program gives: 'city: 1.4852"),
        ("1.4852 of", "-1.4852 of", "its words are other ones than the program gives: '-1.4852 of"),
        ("<h1>", "<h1>less than ", "its words are other ones"),
        ("</code>", "</code> 7", "its words are other ones"),
        (DIGEST, DIGEST.replace("92", "93"), "its words are other ones"),
        ("</svg>", "</svg><p>The board need not read on: 1.4852</p>", "its words are other ones"),
        ("</code>\n", "</code>\n1", "longer or shorter"),
    ],
)
def test_a_changed_number_or_word_is_named(here: str, there: str, why: str) -> None:
    assert here in PAGE
    found = first_other_words(PAGE.replace(here, there, 1), PAGE)
    assert found is not None
    assert why in found


def _elsewhere(text: str) -> str:
    """As another machine would have written it: long floats with other last digits."""
    return re.sub(r"\d+\.\d{9,}", lambda found: repr(float(found[0]) * (1 + 1e-12)), text)


def test_a_plan_of_another_machine_is_approved_and_a_changed_page_or_picture_is_not(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    (tmp_path / "program.toml").write_text(PROGRAM, encoding="utf-8")
    assert command("ledger", "open", "residents", "--unit", "person", "--cap", "30", "--by", "Ann").status == 0
    assert command("plan", "program.toml", "--out", "report").status == 0
    names = ["dossier.html", "figures/tangency.svg"]
    pages = {name: (tmp_path / "report" / name).read_text(encoding="utf-8") for name in names}
    plan = json.loads((tmp_path / "report" / "plan.json").read_text(encoding="utf-8"))
    own = {name: digest for name, digest in plan.pop("pages").items() if name not in names}

    def written(texts: dict[str, str]) -> None:
        for name, text in texts.items():
            (tmp_path / "report" / name).write_text(text, encoding="utf-8")
        said = with_pages(plan, {name: text.encode() for name, text in texts.items()})
        document = with_pages({**said, "pages": {**own, **said["pages"]}}, {})
        (tmp_path / "report" / "plan.json").write_text(json.dumps(document), encoding="utf-8")

    for name, text in pages.items():
        for forged in (text.replace("1.4852", "0.4852", 1), text.replace("costs exactly", "costs hardly more than")):
            assert forged != text
            written({**pages, name: forged})
            refusal = command("approve", "report/plan.json", "--by", "Ben", "--json")
            assert refusal.status == 2
            assert f"'{Path(name).name}' does not say what its digest stands for" in refusal.document["what"]
    moved = {name: _elsewhere(text) for name, text in pages.items()}
    assert all(moved[name] != pages[name] for name in names)
    written(moved)
    outcome = command("approve", "report/plan.json", "--by", "Ben")
    assert outcome.status == 0, outcome.err
