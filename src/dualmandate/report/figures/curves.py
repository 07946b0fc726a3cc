"""Curves by privacy loss: what several ways to publish, or several things that are published, come to at each loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dualmandate.report.figures.figure import LINE_HEIGHT, Figure, Mark, Plane, Ruler, layered, spread
from dualmandate.report.theme import ROOMY, SERIES, Column, FigureTable, Row

HEIGHT = {True: 340, False: 280}  # px, on a wide page or not


@dataclass(frozen=True)
class CurveWords:
    """What is said around the curves."""

    title: str
    subtitle: str
    sentence: str
    heading: str  # of the numbers, with their unit
    loss: str = "ε"  # or ρ
    labels: str = "number"  # how numbers are written: number, percent, or the code of a currency


def curves(name: str, found: Mapping[str, Sequence[tuple[float, float]]], words: CurveWords) -> Figure:
    """Of each named curve its losses and positive values at them, both axes logarithmic; at most six curves.

    A value of 0 has no place on such an axis: it stands in the table alone.
    """
    rows: list[Row] = [
        {"curve": each, "loss": loss, "value": value} for each, points in found.items() for loss, value in points
    ]
    shown = {each: [(loss, value) for loss, value in points if value > 0] for each, points in found.items()}
    losses = [loss for points in shown.values() for loss, _ in points]
    values = [value for points in shown.values() for _, value in points]

    def layout(width: int) -> Mark:
        roomy = width >= ROOMY
        height = HEIGHT[roomy]
        across = Ruler(
            f"privacy loss {words.loss}",
            min(losses),
            max(losses) * (max(losses) / min(losses)) ** (0.5 if roomy else 0.9),
            log=True,
            places=tuple(sorted({*losses})) if len(set(losses)) <= 8 else None,
        )
        up = Ruler(f"↑ {words.heading}", min(values) / 1.5, max(values) * 1.5, log=True, labels=words.labels)
        plane = Plane(across, up)
        marks: list[Mark] = []
        ends = {each: points[-1] for each, points in shown.items() if points}
        places = spread([value for _, value in ends.values()], up, height=height, gap=LINE_HEIGHT)
        colors = dict(zip(found, SERIES, strict=False))
        for (each, (loss, _)), place in zip(ends.items(), places, strict=True):
            own = [row for row in rows if row["curve"] == each and row["value"]]
            marks.append(plane.curve(own, "loss", "value", color=colors[each]))
            marks.append(plane.words(loss, place, each, color=colors[each], shift=(6, 0)))
        return layered(*marks, height=height)

    return Figure(
        name,
        title=words.title,
        subtitle=words.subtitle,
        sentence=words.sentence,
        table=FigureTable.of(
            rows,
            words.heading,
            Column("curve", "of", "text"),
            Column("loss", words.loss, "exact"),
            Column("value", words.heading, words.labels),
        ),
        layout=layout,
    )
