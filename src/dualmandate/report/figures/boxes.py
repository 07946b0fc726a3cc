"""Where words find room in a picture: boxes in px, and places that hit as little as possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

STEP = 6.0  # px between samples of a line
LETTER, LINE = 6.6, 16.0  # px, about the width of a letter and the height of a line of words
Point = tuple[float, float]


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
