"""Error against a bound: noise grows with it, what clipping leaves out falls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualmandate.planning.clipping import RECORDS
from dualmandate.population.currency import currency_of
from dualmandate.population.units import plural
from dualmandate.population.wording import quantity, stated_amount
from dualmandate.publication.writing import slug
from dualmandate.report.figures.figure import Align, Figure, Mark, Plane, Ruler, layered, spread
from dualmandate.report.theme import LIGHT, ROOMY, Column, FigureTable, Row

if TYPE_CHECKING:
    from dualmandate.planning.clipping import BoundCurve

SMALLEST = 300.0  # The least error that is drawn is the largest divided by this.
HALF = 0.6  # Labels of bounds beyond this share of the axis stand to their left.
SERIES = (("noise", "noise", LIGHT.production), ("bias", "left out", LIGHT.preference), ("both", "both", LIGHT.ink))


def clipping(curve: BoundCurve, currency: str) -> Figure:
    """Typical errors of one number at each bound: of noise, of what is left out, and of both; costs in a currency."""
    rows: list[Row] = [
        {
            "bound": float(row.bound),
            "noise": row.noise,
            "bias": row.bias,
            "both": row.both,
            "cost": row.cost,
            "marked": row.bound == curve.bound or row is curve.recommended,
        }
        for row in curve.rows
    ]
    best, used = curve.recommended, stated_amount(curve.bound, curve.unit)
    drawn = [each for each in SERIES if best is not None or each[0] == "noise"]
    unit, log = plural(curve.table_unit), rows[0]["bound"] > 0

    def layout(width: int) -> Mark:
        roomy, height = width >= ROOMY, 320 if width >= ROOMY else 260
        found = [row[key] for row in rows for key, _, _ in drawn if row[key]]
        low, high = max(min(found), max(found) / SMALLEST) / 1.3, max(found) * 1.3
        head = 24 / height  # above all curves, for the words at the bound in use
        high *= (high / low) ** (head / (1 - head))
        first, last, room = rows[0]["bound"], rows[-1]["bound"], 0.09 if roomy else 0.2  # for the words at the ends
        edges = (first, last * (last / first) ** room if log else last + room * (last - first))
        plane = Plane(
            Ruler(f"bound, {plural(curve.unit)}", *edges, log=log),
            Ruler(f"↑ typical error, {unit}", low, high, log=True, labels=currency_of(curve.table_unit) or "number"),
        )
        marks: list[Mark] = [plane.vertical(float(curve.bound), color=LIGHT.limit, dash=(2, 4))]
        ends = []
        for key, words, color in drawn:
            if shown := [row for row in rows if row[key] is not None and row[key] >= low]:
                marks.append(plane.curve(shown, "bound", key, color=color))
                ends.append((shown[-1][key], words, color))
        edge = 10 / height  # the words stay above the axis
        inner = Ruler("", plane.up.value(edge), plane.up.value(1 - edge), log=True)
        places = spread([end for end, _, _ in ends], inner, height=round(height * (1 - 2 * edge)), gap=18)
        for place, (_, words, color) in zip(places, ends, strict=True):
            marks.append(plane.words(edges[1], place, words, color=color, align="right", shift=(-2, 0)))
        labels = [(curve.bound, high, f"in use: {used}", LIGHT.limit, 6)]
        if best is not None and best.both is not None:
            here = {"x": float(best.bound), "y": best.both}
            marks.append(plane.points([here], "x", "y", color=LIGHT.ink, name="recommended"))
            if best.bound != curve.bound:
                marks.insert(0, plane.vertical(float(best.bound), color=LIGHT.ink, dash=(2, 4), top=best.both))
                labels.append((best.bound, low, "recommended", LIGHT.ink, -10))
        for bound, place, words, color, down in labels:
            late = plane.across.share(float(bound)) > HALF
            align: Align = "right" if late else "left"
            shift = (-6 if late else 6, down)
            marks.append(plane.words(float(bound), place, words, color=color, align=align, shift=shift))
        return layered(*marks, height=height)

    title = f"At {used} the noise of '{curve.table}' is counted, and what is left out is not"
    if best is not None and best.both is not None:
        of_all = f", the {curve.at_the_end} that was compared" if curve.at_the_end else ""
        title = f"Errors cost least at a bound of {stated_amount(best.bound, curve.unit)}{of_all}: a number is then "
        title += f"typically off by {quantity(best.both, curve.table_unit)}"
    what = "on the records of one unit" if curve.name == RECORDS else f"of {curve.name}"
    return Figure(
        f"clipping-{slug(curve.name)}",
        title=title,
        subtitle=f"Typical error of a number of '{curve.table}' at each bound {what}, at the loss of the plan; "
        f"{'both axes' if log else 'errors'} logarithmic",
        sentence="The larger the bound, the more noise hides what one record adds; the smaller, the more is left out."
        if best is not None
        else "The larger the bound, the more noise hides what one record adds. What a bound leaves out is not known, "
        "because no distribution is stated.",
        table=FigureTable.of(
            rows,
            f"Typical errors of a number of '{curve.table}' by the bound {what}",
            Column("bound", f"bound, {plural(curve.unit)}", "exact"),
            Column("noise", f"noise, {unit}"),
            Column("bias", f"left out, {unit}"),
            Column("both", f"both, {unit}"),
            Column("cost", "cost of errors in all tables with this bound", currency),
        ),
        layout=layout,
    )
