"""The rows of `replicate` and of `benchmark`, laid out to be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from dualmandate.population.wording import number

if TYPE_CHECKING:
    from rich.table import Table

    from dualmandate.apps.output import Progress
    from dualmandate.benchmarks import BenchmarkRow
    from dualmandate.gallery.paper import PaperRow


def paper_tables(rows: Sequence[PaperRow]) -> Iterator[Table]:
    """The paper's numbers beside what they should have been: one table a section, in the order of the rows."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    for section, members in groupby(rows, key=lambda row: row.section):
        table = Table(title=section, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, expand=True)
        table.add_column("what", ratio=5)
        for heading in ("the paper", "from its inputs", "right"):
            table.add_column(heading, ratio=2, justify="right", overflow="fold")
        for row in members:
            what = Text(f"{row.what}, {row.unit}" if row.unit else row.what)
            if row.why:
                what.append(f"\n{row.why}", style="dim")
            numbers = (told(value, 7) for value in (row.paper, row.from_its_inputs, row.corrected))
            table.add_row(what, *numbers, end_section=True)
        yield table


def benchmark_table(rows: Sequence[BenchmarkRow]) -> Table:
    """One line a case: ours, the peer's, and whether the target is met."""
    from rich import box
    from rich.table import Table

    drawn = Table(box=box.SIMPLE_HEAD)
    drawn.add_column("case", overflow="fold")
    for heading in ("ours", "target", "peer's", "ratio"):
        drawn.add_column(heading, justify="right")
    for heading in ("unit", "peer", "met"):
        drawn.add_column(heading)
    for row in rows:
        numbers = (told(value, 3) for value in (row.ours, row.target, row.peer_value, row.ratio))
        met = "–" if row.met is None else "yes" if row.met else "NO"
        drawn.add_row(row.case, *numbers, row.unit, row.peer or "none", met)
    return drawn


def told(value: float | str | None, digits: int) -> str:
    """A number with so many digits, as people write it; words as they are."""
    if value is None:
        return "–"
    return value if isinstance(value, str) else number(value, digits)


@dataclass(frozen=True)
class StageLog:
    """Passes on what a benchmark says on its way, and keeps its stages."""

    progress: Progress
    stages: list[str] = field(default_factory=list)

    def __call__(self, stage: str, /) -> None:
        self.stages.append(stage)
        self.progress(stage)

    def count(self, words: str, done: int, of: int, /) -> None:
        self.progress.count(words, done, of)

    def words(self) -> str:
        """Why there is no row: what the benchmark said on its way."""
        return "\n".join(["nothing was measured here:", *(f"  {reason}" for reason in self.stages)])
