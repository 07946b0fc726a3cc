from __future__ import annotations

from dualmandate.report.figures import CurveWords, curves

WORDS = CurveWords("Errors fall", "both axes logarithmic", "Errors by loss.", "mean error", loss="ρ", labels="percent")


def test_curves_have_their_names_beside_their_ends_and_zeros_in_the_table_alone() -> None:
    found = {"one": [(0.1, 0.2), (1.0, 0.02), (10.0, 0.002)], "other": [(0.1, 0.1), (1.0, 0.02), (10.0, 0.0)]}
    figure = curves("errors", found, WORDS)
    assert [row["value"] for row in figure.table.rows] == [0.2, 0.02, 0.002, 0.1, 0.02, 0.0]
    assert figure.table.columns[1].heading == "ρ"
    for drawing in (figure.svg(), figure.svg(width=340)):
        assert all(words in drawing for words in ("one", "other", "privacy loss ρ", "mean error"))
        assert "0.2 %" in drawing or "0.3 %" in drawing or "1 %" in drawing
