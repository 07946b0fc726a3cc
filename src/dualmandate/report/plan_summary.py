"""A plan on one screen: the choice, the errors, what they cost and who pays, the strongest warnings, the next command.

At most 25 lines of 80 columns. Everything else that a plan says stands in `plan_words` and in the dossier.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from dualmandate.planning.plan import unfinished, warnings_on
from dualmandate.population.wording import counted, money, quantity, stated_amount
from dualmandate.report.plan_words import bound_words, columns, costs_of_errors, left_out, margin

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan

LINES, WIDTH = 25, 80
MOST_TABLES, LEAST_TABLES = 6, 2
MOST_WARNINGS, WARNING_LINES = 3, 3
SHORTEST_NAME, LONGEST_NAME = 12, 40  # letters of a table: where its numbers are long, and in a sentence


@dataclass(frozen=True)
class ScreenLine:
    """A line of words, and what it is: a terminal may color it."""

    text: str
    kind: str = "plain"  # or heading, choice, warning


def plan_summary(plan: Plan, after: Sequence[str] = ()) -> list[ScreenLine]:
    """The screen. `after` are its last lines: what was written, and what to type next, which are never cut."""
    program = plan.program
    description = program.file.program.description
    title = program.name if description is None else f"{program.name}: {description}"
    first, *sure = _choice(plan)
    head = [
        ScreenLine(_short(title, WIDTH), "heading"),
        ScreenLine(""),
        *(ScreenLine(line, "choice") for line in _lines(first, 2)),
    ]
    paid = [*_counted(plan), *_costs(plan)]
    costs = [ScreenLine(line) for sentence in paid for line in _lines(sentence, 2)] + [ScreenLine("")]
    last = [ScreenLine(line) for line in ("", *after)] if after else []
    others = len(head) + 1 + len(costs) + len(last) + LEAST_TABLES + 2 + MOST_WARNINGS
    said = next((each for each in (3, 2) if others + sum(len(_lines(line, each)) for line in sure) <= LINES), 2)
    head += [ScreenLine(line) for sentence in sure for line in _lines(sentence, said)] + [ScreenLine("")]
    room = LINES - len(head) - len(costs) - len(last)
    told = _told(plan, room - min(len(plan.tables) + 1, LEAST_TABLES + 2)) or [ScreenLine("No warning.")]
    heads, *tables = _tables(plan, room - len(told) - 1)
    return [*head, ScreenLine(heads, "heading"), *map(ScreenLine, tables), *costs, *told, *last]


def _told(plan: Plan, most: int) -> list[ScreenLine]:
    """The first warnings in so many lines, one at least: the first ones in full."""
    warnings = [*islice(_warnings(plan), min(MOST_WARNINGS, max(1, most)))]
    lines: list[str] = []
    for later, warning in zip(reversed(range(len(warnings))), warnings, strict=True):
        lines += _lines(warning, max(1, min(WARNING_LINES, most - len(lines) - later)), "! ", cut=" … (see --full)")
    return [ScreenLine(line, "warning") for line in lines]


def _choice(plan: Plan) -> Iterator[str]:
    """The choice, and how sure it is: by its interval, and beside what else is stated or could be read."""
    interval, *ranges = plan.robustness.how_sure()
    yield plan.choice.explain().splitlines()[0]
    yield interval
    if ranges:
        yield " ".join(ranges)


def _tables(plan: Plan, most: int) -> list[str]:
    """The tables whose errors cost most, under a heading, in so many lines below it."""
    costs = costs_of_errors(plan)
    ranked = sorted(plan.tables, key=lambda table: -costs[table.table])
    shown = ranked[: min(most if len(ranked) <= most else most - 1, MOST_TABLES)]
    clipped = any(table.bias for table in shown)  # then a margin of the noise alone would say too little
    heads = ["table", "numbers", "typical error", "left out" if clipped else "95 % margin", "cost of errors"]
    rows = [
        [
            table.table,
            f"{table.query_count:,}",
            "exact" if table.exact else quantity(table.root_mean_squared_error, table.unit),
            left_out(table) if clipped else margin(table),
            money(costs[table.table], plan.choice.currency),
        ]
        for table in shown
    ]
    others = sum(max(map(len, column)) + 2 for column in [*zip(heads, *rows, strict=True)][1:])
    name = max(SHORTEST_NAME, WIDTH - others)
    lines = columns(heads, [[_short(row[0], name), *row[1:]] for row in rows])
    if len(ranked) > len(shown):
        rest = money(sum(costs[table.table] for table in ranked[len(shown) :]), plan.choice.currency)
        lines.append(f"… and {len(ranked) - len(shown):,} more in the dossier, whose errors cost {rest}")
    return [_short(line, WIDTH) for line in lines]


def _counted(plan: Plan) -> Iterator[str]:
    """What is counted in the costliest table of which amounts or records are clipped."""
    costs, clipped = costs_of_errors(plan), plan.program.clipped
    ranked = sorted((table.table for table in plan.tables if table.table in clipped), key=lambda name: -costs[name])
    for name in ranked[:1]:
        yield f"Counted in '{_short(name, LONGEST_NAME)}': {clipped[name]}."


def _costs(plan: Plan) -> Iterator[str]:
    """What privacy loss and errors cost, and who pays."""
    choice = plan.choice
    borne = []
    for group in choice.groups:
        members = counted(round(group.size * group.taking_part), choice.protected_unit)
        named = f" ({group.name})" if len(choice.groups) > 1 else ""
        borne.append(f"{members}{named} bear {money(group.cost_per_member, choice.currency)} each")
    yield f"Privacy loss costs {money(choice.privacy_cost, choice.currency)}: {', '.join(borne)}."
    yield f"Errors cost {money(choice.data_loss, choice.currency)}, borne by those whom the tables serve."


def _warnings(plan: Plan) -> Iterator[str]:
    """What cannot be approved as it is, then what clipping leaves out, then whatever moves no number that is read."""
    found = [*warnings_on(plan)]
    first = sum(1 for _ in unfinished(plan))
    yield from found[:first]
    for curve in plan.extensions.clipping:
        here, best = next(row for row in curve.rows if row.bound == curve.bound), curve.recommended
        counted_up = bound_words(plan, curve)
        if here.both is None:
            yield f"{counted_up}: an unknown part of '{curve.table}' is left out, and not counted here."
        elif best is not None and best is not here:
            better, less = stated_amount(best.bound, curve.unit), money(here.cost - best.cost, plan.choice.currency)
            yield f"{counted_up}: with {better} errors would cost {less} less."
    yield from found[first:]


def _short(text: str, width: int) -> str:
    """The beginning of a line, where it is too long for one."""
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def _lines(sentence: str, most: int, mark: str = "", cut: str = " …") -> list[str]:
    indent = " " * len(mark)
    return textwrap.wrap(
        sentence, WIDTH, max_lines=most, placeholder=cut, initial_indent=mark, subsequent_indent=indent
    )
