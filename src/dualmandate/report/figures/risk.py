"""Risk beside accuracy: what an attack gets right under each way to publish; DP is a line, old methods are points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dualmandate.population.wording import percent, stated_loss
from dualmandate.report.figures.figure import Align, Figure, Mark, Plane, Ruler, layered
from dualmandate.report.theme import LIGHT, ROOMY, Column, FigureTable, Row

if TYPE_CHECKING:
    from dualmandate.audit.disclosure_control.comparison import AttackRates, MethodEvaluation

Point = tuple[float, float]
PRIVATE = "differential privacy"
COLORS = {
    "exact": LIGHT.ink,
    "swapping": LIGHT.preference,
    "rounding": LIGHT.good,
    "cell key": LIGHT.limit,
    "suppression": LIGHT.third,
    "micro-aggregation": LIGHT.fourth,
    "top-coding": LIGHT.quiet,
    PRIVATE: LIGHT.production,
}
LEAST_ERROR = 0.01  # of the axis: what has less is drawn there
FEWEST = 20  # people who stand out, from which on their rate is drawn
NOTE = "The old methods have no ε: each is a point with a measured risk, and another attack may find more."
LEGEND_LINE = 17  # px, from one line of the legend to the next
NARROW_HEIGHT = 480  # px
AXIS = 60  # px, for the labels of the vertical axis
COVERED = 1000  # what covering other words costs
# Of a point: where its name may stand, and whether it ends there.
SIDES: list[tuple[Point, bool]] = [((across, down), across < 0) for across in (9.0, -9.0) for down in (-7.0, 7.0)]
LEAST_SPAN = 0.25  # of the vertical axis
SAME = 12  # px, within which two points are one
AS_SMALL = 1.1  # errors up to so many times the plan's count as equally small
STEP = 6.0  # px between samples of a line
LETTER, LINE = 6.6, 16.0  # px, about the width of a letter and the height of a line of words


def risk(compared: Sequence[MethodEvaluation]) -> Figure:
    """Mean absolute error of a number against the share that the attack gets right: of people who stand out, or of all.

    Points of one old method are joined by a thin line, from its weakest to its strongest form. The table has the error,
    and what an attack gets right with intervals; guessers are the same for all.
    """
    uniques = [each.nonmodal_uniques for each in compared]
    alone = all(each is not None and each.attack.trials >= FEWEST for each in uniques)  # shown where there are enough
    y = "unique" if alone else "right"
    judged = [("right", "records", compared[0].records)] if compared else []
    if compared and compared[0].nonmodal_uniques is not None:
        judged.insert(0, ("unique", "standing out", compared[0].nonmodal_uniques))
    guessed = "; ".join(
        f"{who}: {percent(each.proportional.value)} in proportion, {percent(each.modal.value)} by the most frequent"
        for _, who, each in judged
    )
    rows = tuple(_row(each) for each in compared)

    def layout(width: int) -> Mark:
        plane = _plane(rows, y, width=width, title=_axis(alone))
        canvas = _Canvas(rows, y, plane, width)
        marks: list[Mark] = [plane.horizontal(rows[0][f"{y}_guess"], color=LIGHT.quiet, dash=(4, 4))]
        marks += [plane.curve(_ends(row, y), "x", y, color=COLORS[str(row["family"])], thick=1.0) for row in rows]
        for family, color in COLORS.items():
            own, private = _of_family(rows, family), family == PRIVATE
            marks += [
                plane.curve(own, "x", y, color=color, thick=2.5 if private else 1.0),
                plane.points(own, "x", y, color=color, name=family.replace(" ", "-"), filled=private),
            ]
        marks.append(plane.points(canvas.chosen, "x", y, color=LIGHT.production, name="plan"))
        return layered(*marks, *canvas.words(), height=canvas.height)

    return Figure(
        "risk",
        title=_finding(compared, alone=alone),
        subtitle=_subtitle(compared, alone=alone),
        sentence="Further right, published numbers are less accurate; further up, an attack gets more people right.",
        table=FigureTable.of(
            rows,
            "What an attack gets right, and errors of the published numbers, under each method. "
            f"Guessers without tables get right ({guessed}).",
            Column("name", "method", "text"),
            Column("error", "mean absolute error"),
            Column("promised", "error by the frontier"),
            *(
                column
                for name, who, _ in judged
                for column in (
                    Column(name, f"{who}: right", "percent"),
                    Column(f"{name}_interval", "95 % interval", "text"),
                )
            ),
        ),
        layout=layout,
    )


def _row(each: MethodEvaluation) -> Row:
    return {
        "family": str(each.family),
        "name": each.name,
        "marked": each.planned,
        "loss": None if each.loss is None else float(each.loss.amount),
        "error": each.error,
        "promised": each.promised_error,
        "x": max(each.error, LEAST_ERROR),
        **_rates("right", each.records),
        **_rates("unique", each.nonmodal_uniques),
    }


def _rates(name: str, judged: AttackRates | None) -> Row:
    if judged is None:
        return dict.fromkeys((name, *(f"{name}_{part}" for part in ("interval", "low", "high", "guess", "modal"))))
    low, high = judged.attack.interval()
    return {
        name: judged.attack.value,
        f"{name}_interval": f"{100 * low:.1f} to {100 * high:.1f} %",
        f"{name}_low": low,
        f"{name}_high": high,
        f"{name}_guess": judged.proportional.value,
        f"{name}_modal": judged.modal.value,
    }


def _of_family(rows: Sequence[Row], family: str) -> list[Row]:
    own = [row for row in rows if row["family"] == family and not row["marked"]]
    return sorted(own, key=lambda row: row["x"])


def _forms(rows: Sequence[Row]) -> str:
    """The names of all forms of a method in one: "rounded to 3, 5, 10"."""
    names = [str(row["name"]).split(" ") for row in rows]
    if len({len(name) for name in names}) > 1:
        return ", ".join(" ".join(name) for name in names)
    words = (list(dict.fromkeys(column)) for column in zip(*names, strict=True))
    return " ".join(", ".join(each) for each in words)


def _ends(row: Row, y: str) -> list[Row]:
    """The ends of the 95 % interval."""
    return [{"x": row["x"], y: row[f"{y}_{end}"]} for end in ("low", "high")]


def _plane(rows: Sequence[Row], y: str, *, width: int, title: str) -> Plane:
    """Errors on a logarithmic axis; risks from where any is seen, a quarter of all at least."""
    left, right = (44, 50) if width >= ROOMY else (26, 34)  # px kept free for words
    most = max(row["x"] for row in rows)
    pixel = (1.1 * most / LEAST_ERROR) ** (1 / (width - AXIS - left - right))  # what a pixel multiplies an error by
    words = f"mean absolute error{' of a published number' if width >= ROOMY else ''} (0.01: or less) →"
    across = Ruler(words, LEAST_ERROR / pixel**left, most * pixel**right, log=True)
    shown = [row[f"{y}_{part}"] for row in rows for part in ("low", "high", "guess")]
    low = max(min(shown) - LEAST_SPAN / 2, 0.0)
    high = min(max(max(shown) + LEAST_SPAN / 2, low + LEAST_SPAN), 1.04)
    step = next(each for each in (0.05, 0.1, 0.2) if high - low <= 6 * each or each == 0.2)
    places = tuple(step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1))
    if width < ROOMY:  # room for the legend above everything
        high = low + (high - low) * NARROW_HEIGHT / (NARROW_HEIGHT - LEGEND_LINE * (len(COLORS) + 1))
    return Plane(across, Ruler(title, low, high, labels="percent", places=places))


def _axis(alone: bool) -> str:
    return "↑ people who stand out, named right" if alone else "↑ records that the attack gets right"


@dataclass(frozen=True)
class Box:
    """A rectangle in px, from its upper left corner; down is positive."""

    left: float
    top: float
    width: float
    height: float

    def holds(self, point: Point, margin: float = 0.0) -> bool:
        """Whether a point lies inside, or nearer than a margin."""
        across, down = point[0] - self.left, point[1] - self.top
        return -margin <= across <= self.width + margin and -margin <= down <= self.height + margin

    def meets(self, other: Box) -> bool:
        """Whether two boxes have an area in common."""
        apart = (
            self.left + self.width <= other.left
            or other.left + other.width <= self.left
            or self.top + self.height <= other.top
            or other.top + other.height <= self.top
        )
        return not apart

    def within(self, width: float, height: float) -> bool:
        """Whether it lies inside a picture of this size."""
        return self.left >= 0 and self.top >= 0 and self.left + self.width <= width and self.top + self.height <= height


def box_of_words(text: str, at: Point, shift: Point, *, right: bool = False) -> Box:
    """About the box of a line of words at a point, moved by `shift` px; `right`: the words end there."""
    width = LETTER * len(text)
    left = at[0] + shift[0] - (width if right else 0.0)
    top = at[1] + shift[1] - (LINE if shift[1] < -4 else 0.0 if shift[1] > 4 else LINE / 2)
    return Box(left, top, width, LINE)


def along(line: Sequence[Point]) -> list[Point]:
    """Points along a line from corner to corner, as dense as words are small."""
    found: list[Point] = list(line)
    for (x, y), (x2, y2) in pairwise(line):
        steps = int(max(abs(x2 - x), abs(y2 - y)) / STEP)
        found += [(x + (x2 - x) * k / (steps + 1), y + (y2 - y) * k / (steps + 1)) for k in range(1, steps + 1)]
    return found


def hits(box: Box, points: Iterable[Point], taken: Iterable[Box]) -> int:
    """How much a box would cover: points of marks, and other words, which count most."""
    return sum(box.holds(point, 3.0) for point in points) + 1000 * sum(box.meets(other) for other in taken)


@dataclass(frozen=True, eq=False)
class _Canvas:
    """Where everything is drawn, in px, so that words find room between it."""

    rows: Sequence[Row]
    y: str
    plane: Plane
    width: int

    @property
    def roomy(self) -> bool:
        return self.width >= ROOMY

    @property
    def height(self) -> int:
        return 430 if self.roomy else NARROW_HEIGHT

    @property
    def chosen(self) -> list[Row]:
        return [row for row in self.rows if row["marked"]]

    def at(self, row: Row) -> Point:
        """Where a row is drawn, px from the upper left corner of the plane."""
        across, up = self.plane.across.share(row["x"]), self.plane.up.share(row[self.y])
        return (self.width - AXIS) * across, self.height * (1 - up)

    def marks(self) -> list[Point]:
        """Samples of every mark, the line of the guesser among them."""
        guess = self.height * (1 - self.plane.up.share(self.rows[0][f"{self.y}_guess"]))
        lines = [[(0.0, guess), (float(self.width - AXIS), guess)]]
        lines += [[self.at(row) for row in _of_family(self.rows, family)] for family in COLORS]
        bars = [[self.at(row) for row in _ends(each, self.y)] for each in self.rows]
        return [*(point for line in (*lines, *bars) for point in along(line)), *(self.at(row) for row in self.chosen)]

    def words(self) -> list[Mark]:
        """The legend, the plan's name, then as many losses as there is room for."""
        marks, taken = self.marks(), list[Box]()
        found = self._legend(marks, taken)
        for row in self.chosen:
            found += self._placed(row, str(row["name"]), marks, taken, must=True)
        seen: list[Point] = []
        for row in sorted(_of_family(self.rows, PRIVATE), key=lambda each: (each["x"], each["loss"])):
            at = self.at(row)
            if any(abs(at[0] - x) + abs(at[1] - y) < SAME for x, y in seen):
                continue  # larger losses at the same place go without saying
            text = f"ε = {row['loss']:g}" if not seen else f"{row['loss']:g}"
            named = self._placed(row, text, marks, taken, must=False)
            seen += [at] if named else []
            found += named
        return found

    def _placed(self, row: Row, text: str, marks: list[Point], taken: list[Box], *, must: bool) -> list[Mark]:
        """A name beside its point, on the side where it covers least; none where it would cover other words."""
        at = self.at(row)
        best = min(SIDES, key=lambda side: self._cost(box_of_words(text, at, side[0], right=side[1]), marks, taken))
        box = box_of_words(text, at, best[0], right=best[1])
        if not must and self._cost(box, marks, taken) >= COVERED:
            return []
        taken.append(box)
        align: Align = "right" if best[1] else "left"
        x, y = row["x"], row[self.y]
        return [self.plane.words(x, y, text, color=LIGHT.production, shift=best[0], align=align)]

    def _cost(self, box: Box, marks: list[Point], taken: list[Box]) -> int:
        outside = not box.within(self.width - AXIS + 6, self.height)
        return hits(box, marks, taken) + COVERED * outside

    def _legend(self, marks: list[Point], taken: list[Box]) -> list[Mark]:
        """Old methods by their colors, and the guesser, where nothing or little is drawn."""
        guessed = self.rows[0][f"{self.y}_guess"]
        families = [family for family in COLORS if family != PRIVATE and _of_family(self.rows, family)]
        texts = [_forms(_of_family(self.rows, family)) if self.roomy else family for family in families]
        last = f"– guesser without tables: {percent(guessed)}" if self.roomy else f"– guesser: {percent(guessed)}"
        size = 24 + LETTER * max(len(text) for text in (*texts, last)), LEGEND_LINE * (len(texts) + 1)
        box = self._free(size, marks)
        taken.append(box)
        found: list[Mark] = []
        for line, text in enumerate((*texts, last)):
            point = self._value(box.left + 9, box.top + LEGEND_LINE * (line + 0.5))
            color = COLORS[families[line]] if line < len(families) else LIGHT.quiet
            if line < len(families):
                name = f"legend-{families[line].replace(' ', '-')}"
                found.append(
                    self.plane.points([{"x": point[0], self.y: point[1]}], "x", self.y, color=color, name=name)
                )
            found.append(self.plane.words(*point, text, color=color, shift=(12 if line < len(families) else -6, 0)))
        return found

    def _free(self, size: tuple[float, float], marks: list[Point]) -> Box:
        """A place for a box of this size that covers least; the upper right before others."""
        right, low = self.width - AXIS - size[0], self.height - size[1] - 4
        places = [Box(right * a / 8, low * b / 8, *size) for b in range(9) for a in range(8, -1, -1)]
        return min(places, key=lambda box: hits(box, marks, ()))

    def _value(self, across: float, down: float) -> Point:
        return self.plane.across.value(across / (self.width - AXIS)), self.plane.up.value(1 - down / self.height)


def _subtitle(compared: Sequence[MethodEvaluation], *, alone: bool) -> str:
    first = compared[0].nonmodal_uniques
    if alone and first is not None:
        who = (
            f"Share right of the {first.attack.trials:,} people who are alone with what an attacker knows of them and "
            "unlike most of their place"
        )
    else:
        who = "Share of records right in the most likely file behind the tables"
    return f"{who}, with 95 % intervals. {NOTE}"


def _finding(compared: Sequence[MethodEvaluation], *, alone: bool) -> str:
    """What exact tables give away, then the plan, and the old method that gives least away with errors as small."""

    def right(each: MethodEvaluation) -> float:
        judged = each.nonmodal_uniques if alone else each.records
        assert judged is not None
        return judged.attack.value

    exact = next((each for each in compared if each.family == "exact"), None)
    plan = next((each for each in compared if each.planned), None)
    old = [each for each in compared if each.family not in {"exact", PRIVATE}]
    parts = [] if exact is None else [f"{percent(right(exact))} from exact tables"]
    if plan is not None and plan.loss is not None:
        parts.append(f"{percent(right(plan))} under the plan ({stated_loss(plan.loss)})")
        old = [each for each in old if each.error <= AS_SMALL * plan.error]
    if old:
        small = "" if plan is None else " with errors as small"
        parts.append(f"at least {percent(min(right(each) for each in old))} from old methods{small}")
    who = "People who stand out, named right" if alone else "Records that the attack gets right"
    return f"{who}: {', '.join(parts)}" if parts else "What an attack gets right, beside the accuracy of the tables"
