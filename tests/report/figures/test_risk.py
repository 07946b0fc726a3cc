"""Risk beside accuracy, as a picture: what it says, what it points at, and that words do not lie on words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dualmandate.audit.disclosure_control.comparison import AttackRates, MethodEvaluation
from dualmandate.audit.finding import Rate
from dualmandate.population import PrivacyLoss
from dualmandate.report.figures import risk
from dualmandate.report.figures.risk import LINE, Box, along, box_of_words, hits
from dualmandate.report.theme import NARROW, WIDE


def way(family: str, name: str, error: float, right: int, **more: object) -> MethodEvaluation:
    judged = AttackRates(Rate(right, 100), Rate(20, 100), Rate(0, 100))
    return MethodEvaluation(family, name, error, judged, judged, **more)  # type: ignore[arg-type]


WAYS = (
    way("exact", "exact tables", 0.0, 90),
    way("swapping", "5 % swapped", 0.1, 85),
    way("swapping", "50 % swapped", 2.0, 50),
    way("rounding", "rounded to 5", 1.0, 60),
    way("differential privacy", "ε = 8", 0.4, 70, loss=PrivacyLoss.pure(8), promised_error=0.41),
    way("differential privacy", "ε = 16", 0.0, 90, loss=PrivacyLoss.pure(16), promised_error=0.002),
    way("differential privacy", "ε = 32", 0.0, 90, loss=PrivacyLoss.pure(32), promised_error=0.0),
    way("differential privacy", "ε = 1", 4.0, 20, loss=PrivacyLoss.pure(1), promised_error=4.0),
    way("differential privacy", "the plan: ε = 4", 1.0, 40, loss=PrivacyLoss.pure(4), promised_error=1.0, planned=True),
)


def words_of(document: object) -> list[str]:
    if isinstance(document, dict):
        own = [str(document["text"])] if isinstance(document.get("text"), str) and "x" in document else []
        return [*own, *(each for value in document.values() for each in words_of(value))]
    if isinstance(document, list):
        return [each for value in document for each in words_of(value)]
    return []


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_what_the_picture_says(width: int) -> None:
    document = risk(WAYS).specification(width)
    said = " ".join(document["title"]["text"]).replace("\N{NO-BREAK SPACE}", " ")
    assert "90 % from exact tables, 40 % under the plan (ε = 4), at least 60 % from old methods" in said
    assert "have no ε" in " ".join(document["title"]["subtitle"])
    assert "100 people who are alone" in " ".join(document["title"]["subtitle"])
    assert '"safe"' not in json.dumps(document)
    words = words_of(document)
    assert "the plan: ε = 4" in words
    assert any("guesser" in each and "20 %" in each for each in words)
    assert "ε = 16" in words  # of losses at the same place the smallest is named
    assert "32" not in words
    assert ("5, 50 % swapped" if width == WIDE else "swapping") in words


def test_everybody_where_few_stand_out() -> None:
    few = tuple(replace(each, nonmodal_uniques=None) for each in WAYS)
    document = risk(few).specification()
    assert "Records that the attack gets right" in " ".join(document["title"]["text"])
    assert not [column for column in risk(few).table.columns if column.key.startswith("unique")]
    handful = AttackRates(Rate(3, 5), Rate(1, 5), Rate(0, 5))
    some = tuple(replace(each, nonmodal_uniques=handful) for each in WAYS)
    assert "Records" in " ".join(risk(some).specification()["title"]["text"])
    assert [column for column in risk(some).table.columns if column.key == "unique"]


@pytest.mark.parametrize("share", [0, 100])
def test_risks_of_0_and_1(share: int) -> None:
    judged = AttackRates(Rate(share, 100), Rate(share, 100), Rate(share, 100))
    same = tuple(replace(each, records=judged, nonmodal_uniques=judged) for each in WAYS)
    for width in (NARROW, WIDE):
        document = json.dumps(risk(same).specification(width))
        assert "NaN" not in document
        assert "Infinity" not in document


def test_the_twin_has_both_measures_and_the_frontier() -> None:
    twin = risk(WAYS).table
    assert len(twin.rows) == len(WAYS)
    assert [row["promised"] for row in twin.rows][4] == 0.41
    headings = [column.heading for column in twin.columns]
    assert headings.count("95 % interval") == 2
    assert "20 % in proportion, 0 % by the most frequent" in twin.caption
    assert [bool(row["marked"]) for row in twin.rows].index(True) == len(WAYS) - 1
    assert risk(WAYS[:1]).specification()["title"]["text"]


def test_without_a_plan_the_strongest_old_method_is_named() -> None:
    said = " ".join(risk(WAYS[:-1]).specification()["title"]["text"]).replace("\N{NO-BREAK SPACE}", " ")
    assert "at least 50 % from old methods" in said
    assert "with errors as small" not in said


def test_no_name_stands_on_the_line_of_the_guesser(units: Any) -> None:
    near = [replace(each, records=AttackRates(Rate(18, 100), Rate(20, 100), Rate(0, 100))) for each in WAYS]
    picture = risk([replace(each, nonmodal_uniques=None) for each in near])
    drawn = [(unit["mark"], row) for unit in units(picture) for row in unit["data"]["values"]]
    [dy] = {mark["dy"] for mark, row in drawn if row.get("text") == "the plan: ε = 4"}
    assert dy > 0  # below its point, which stands below the line


def test_boxes() -> None:
    box = Box(10, 10, 20, 5)
    assert box.holds((10, 15))
    assert not box.holds((31, 12))
    assert box.holds((31, 12), 1.0)
    assert box.meets(Box(29, 14, 5, 5))
    assert not box.meets(Box(30, 10, 5, 5))
    assert box.within(30, 15)
    assert not box.within(29, 15)
    assert box_of_words("four", (100.0, 50.0), (9.0, -7.0)).top == 50 - 7 - LINE
    right = box_of_words("four", (100.0, 50.0), (-9.0, 7.0), right=True)
    assert (right.left + right.width, right.top) == (91.0, 57.0)
    assert hits(box, [(12, 12), (40, 12)], [Box(0, 0, 11, 11)]) == 1001
    line = along([(0.0, 0.0), (30.0, 0.0)])
    assert max(b[0] - a[0] for a, b in zip(sorted(line), sorted(line)[1:], strict=False)) <= 6.0
