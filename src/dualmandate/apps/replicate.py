"""The paper's numbers beside what they should have been, laid out to be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from dualmandate.population.wording import number

if TYPE_CHECKING:
    from rich.table import Table

    from dualmandate.gallery.paper import PaperRow


def document(rows: Sequence[PaperRow]) -> dict[str, object]:
    """The rows as the JSON document `replicate/1`."""
    from dualmandate.report.documents.commands import ReplicateDocument

    return ReplicateDocument.made_of(rows=rows).as_json()


def tables(rows: Sequence[PaperRow]) -> Iterator[Table]:
    """One table a section, in the order of the rows."""
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
            numbers = (_number(value) for value in (row.paper, row.from_its_inputs, row.corrected))
            table.add_row(what, *numbers, end_section=True)
        yield table


def _number(value: float | str | None) -> str:
    """A number with seven digits, as people write it; words as they are."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return number(value, 7)
