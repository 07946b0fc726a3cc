"""Benchmarks, laid out to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dualmandate.population.wording import number

if TYPE_CHECKING:
    from rich.table import Table

    from dualmandate.apps.output import Progress
    from dualmandate.benchmarks import BenchmarkRow


@dataclass(frozen=True)
class StageLog:
    """Passes on what a benchmark says on its way, and keeps its stages."""

    progress: Progress
    stages: list[str] = field(default_factory=list)

    def __call__(self, stage: str, /) -> None:
        """What is measured now."""
        self.stages.append(stage)
        self.progress(stage)

    def count(self, words: str, done: int, of: int, /) -> None:
        """How much of it is done."""
        self.progress.count(words, done, of)


def document(name: str | None, rows: Sequence[BenchmarkRow]) -> dict[str, object]:
    """The rows as the JSON document `benchmark/1`; `name` is None where all were run."""
    from dualmandate.benchmarks import INPUTS
    from dualmandate.report.documents.commands import BenchmarkDocument

    return BenchmarkDocument.made_of(name=name, inputs=INPUTS, rows=rows).as_json()


def table(rows: Sequence[BenchmarkRow]) -> Table:
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
        numbers = (_number(value) for value in (row.ours, row.target, row.peer_value, row.ratio))
        met = "–" if row.met is None else "yes" if row.met else "NO"
        drawn.add_row(row.case, *numbers, row.unit, row.peer or "none", met)
    return drawn


def nothing(said: Sequence[str]) -> str:
    """Why there is no row: what the benchmark said on its way."""
    return "\n".join(["nothing was measured here:", *(f"  {reason}" for reason in said)])


def _number(value: float | None) -> str:
    return "–" if value is None else number(value, 3)
