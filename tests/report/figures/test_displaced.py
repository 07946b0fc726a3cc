from __future__ import annotations

from dualmandate.report.figures import displaced

MOVED = {"Laplace": [(0.1, 1e8), (1.0, 1e7), (10.0, 1.2e6)], "geometric": [(0.1, 1e8), (1.0, 8e6), (10.0, 1_850.0)]}


def test_displaced_money_is_drawn_below_what_existing_errors_displace() -> None:
    figure = displaced(MOVED, existing=9e8, grants="grants")
    assert figure.title == "What is moved at ε = 10: by Laplace noise $1.2 million and geometric noise $1,850"
    assert [row["share"] for row in figure.table.rows][:2] == [1e8 / 9e8, 1e7 / 9e8]
    drawing = figure.svg()
    assert "by errors in the estimates: $900 million" in drawing
    assert all(name in figure.svg(width=340) for name in MOVED)
