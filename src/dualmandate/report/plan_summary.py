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
from dualmandate.report.plan_words import columns, costs_of_errors, margin

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan

LINES, WIDTH = 25, 80
MOST_TABLES, LEAST_TABLES = 6, 2
MOST_WARNINGS, WARNING_LINES = 3, 3
SHORTEST_NAME = 12  # letters of a table, where its numbers are long


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
    head += [ScreenLine(line) for sentence in sure for line in _lines(sentence, 2)] + [ScreenLine("")]
    costs = [ScreenLine(line) for sentence in _costs(plan) for line in _lines(sentence, 2)] + [ScreenLine("")]
    last = [ScreenLine(line) for line in ("", *after)] if after else []
    room = LINES - len(head) - len(costs) - len(last)
    warnings = [*islice(_warnings(plan), MOST_WARNINGS)]
    most = min(room - min(len(plan.tables) + 1, LEAST_TABLES + 2), len(warnings) * WARNING_LINES)
    told = [
        ScreenLine(line, "warning")
        for warning in warnings
        for line in _lines(warning, max(1, most // len(warnings)), "! ")
    ]
    told = told or [ScreenLine("No warning.")]
    heads, *tables = _tables(plan, room - len(told) - 1)
    return [*head, ScreenLine(heads, "heading"), *map(ScreenLine, tables), *costs, *told, *last]


def _choice(plan: Plan) -> Iterator[str]:
    """The choice, and how sure it is: by its interval, and over what is stated of one number at a time."""
    known = plan.robustness
    yield plan.choice.explain().splitlines()[0]
    yield from islice(known.sentences(), 2 if known.judged else 1)


def _tables(plan: Plan, most: int) -> list[str]:
    """The tables whose errors cost most, under a heading, in so many lines below it."""
    costs = costs_of_errors(plan)
    ranked = sorted(plan.tables, key=lambda table: -costs[table.table])
    shown = ranked[: min(most if len(ranked) <= most else most - 1, MOST_TABLES)]
    heads = ["table", "numbers", "typical error", "95 % margin", "cost of errors"]
    rows = [
        [
            table.table,
            f"{table.query_count:,}",
            "exact" if table.exact else quantity(table.root_mean_squared_error, table.unit),
            margin(table),
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
        bound = stated_amount(curve.bound, curve.unit)
        if here.both is None:
            yield f"Clipping {curve.name} at {bound} leaves out an unknown part of '{curve.table}': not counted here."
        elif best is not None and best is not here:
            better, less = stated_amount(best.bound, curve.unit), money(here.cost - best.cost, plan.choice.currency)
            yield f"{curve.name} is clipped at {bound}: at {better} errors would cost {less} less."
    yield from found[first:]


def _short(text: str, width: int) -> str:
    """The beginning of a line, where it is too long for one."""
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def _lines(sentence: str, most: int, mark: str = "") -> list[str]:
    indent = " " * len(mark)
    return textwrap.wrap(
        sentence, WIDTH, max_lines=most, placeholder=" …", initial_indent=mark, subsequent_indent=indent
    )
