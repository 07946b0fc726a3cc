"""Power curves: the picture and its table say how often each fault would be found."""

from __future__ import annotations

from dualmandate.audit.finding import DetectionPower
from dualmandate.report.figures import power
from dualmandate.report.figures.figure import Mark
from dualmandate.report.theme import NARROW, WIDE

CHECKED = tuple(
    DetectionPower(what, rows, share)
    for what, shares in (("0.8 of the noise", (0.0, 0.05, 0.74)), ("half of the noise", (0.05, 0.998, 1.0)))
    for rows, share in zip((16, 64, 256), shares, strict=True)
)


def test_each_fault_is_a_curve_with_its_name() -> None:
    figure = power(CHECKED)
    assert figure.title == (
        "With 256 numbers that follow from others, checks would find 74 % of releases with 0.8 of the noise and 100 % "
        "of releases with half of the noise"
    )
    assert [row["rows"] for row in figure.table.rows] == [16, 64, 256]
    for width in (WIDE, NARROW):
        drawing = figure.inline_svg(width, "power")
        assert "0.8 of the noise" in drawing
        lines = [layer for layer in figure.layout(width)["layer"] if _kind(layer) == "line"]
        drawn = [[row[layer["encoding"]["y"]["field"]] for row in layer["data"]["values"]] for layer in lines]
        assert drawn == [[0.0, 0.05, 0.74], [0.05, 0.998, 1.0]]


def _kind(layer: Mark) -> str | None:
    kind = layer.get("mark", {}).get("type")
    return None if kind is None else str(kind)
