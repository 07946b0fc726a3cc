"""Answers of a choice experiment, one row an alternative that was shown: attributes, and which one was chosen.

Estimators read them as differences: each alternative not chosen less the chosen one, in standardized attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualmandate.errors import InvalidSurvey, NoEstimate

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
CONSTANT = "constant"
SINGULAR = 1e-10  # Below this least eigenvalue of their correlations within tasks attributes repeat each other.


@dataclass(frozen=True, eq=False)
class ChoiceData:
    """Choices in long format, sorted: the rows of a task stand together, and the tasks of a respondent too.

    Tasks may offer different numbers of alternatives. Utilities are linear in `attributes`; a constant for an
    alternative is an attribute that is 1 there and 0 elsewhere (`with_constants`).
    """

    names: tuple[str, ...]  # attributes
    attributes: Floats  # (rows, attributes), each in its own unit
    chosen: NDArray[np.bool_]  # (rows,), one True a task
    task: Codes  # (rows,), 0, 0, 1, 1, … over all respondents
    respondent: Codes  # (rows,), 0, 0, 0, 0, 1, …
    alternative: Codes | None = None  # (rows,), place in `alternatives`
    alternatives: tuple[str, ...] = ()  # labels, where stated

    @classmethod
    def of_columns(
        cls,
        attributes: Mapping[str, ArrayLike],
        *,
        chosen: ArrayLike,
        task: ArrayLike,
        respondent: ArrayLike,
        alternative: ArrayLike | None = None,
        price: str | None = None,
    ) -> ChoiceData:
        """Columns of a table with one row an alternative, in any order of rows.

        Tasks may be numbered anew for each respondent. Refused: what no model can be estimated from.
        """
        table = _attribute_table(attributes)
        rows = len(table)
        people, tasks = _labels("respondent", respondent, rows), _labels("task", task, rows)
        _, person = np.unique(people, return_inverse=True)
        _, number = np.unique(tasks, return_inverse=True)
        order = np.lexsort((number, person))
        person, number = person[order].astype(np.int64), number[order].astype(np.int64)
        starts = np.ones(rows, dtype=bool)
        starts[1:] = (np.diff(person) != 0) | (np.diff(number) != 0)
        data = cls(
            names=tuple(attributes),
            attributes=np.ascontiguousarray(table[order]),
            chosen=_chosen(chosen, rows)[order],
            task=np.cumsum(starts, dtype=np.int64) - 1,
            respondent=person,
        )
        if alternative is not None:
            labels, codes = np.unique(_labels("alternative", alternative, rows)[order], return_inverse=True)
            data = replace(data, alternative=codes.astype(np.int64), alternatives=tuple(map(str, labels)))
        _check_tasks(data, tasks[order])
        _check_variation(data, price)
        return data

    @classmethod
    def of_answers(
        cls,
        attributes: Mapping[str, ArrayLike],
        *,
        yes: ArrayLike,
        respondent: ArrayLike,
        price: str | None = None,
    ) -> ChoiceData:
        """Yes-or-no answers, one row a question: an offer with these attributes and a constant, against nothing.

        P(yes) = 1/(1 + exp(−(constant + Σ β·attribute))), the binary logit.
        """
        table = _attribute_table(attributes)
        rows = len(table)
        said = _chosen(yes, rows, "yes")
        offers = {CONSTANT: np.ones(rows)} | dict(zip(attributes, table.T, strict=True))
        question = np.arange(rows)
        people = _labels("respondent", respondent, rows)
        return cls.of_columns(
            {name: np.concatenate([np.zeros(rows), column]) for name, column in offers.items()},
            chosen=np.concatenate([~said, said]),
            task=np.concatenate([question, question]),
            respondent=np.concatenate([people, people]),
            price=price,
        )

    @property
    def tasks(self) -> int:
        """How many choices were made."""
        return int(self.task[-1]) + 1

    @property
    def people(self) -> int:
        """How many respondents made them."""
        return int(self.respondent[-1]) + 1

    @property
    def task_starts(self) -> Codes:
        """(tasks + 1,): the rows of task t are those from task_starts[t] up to task_starts[t + 1]."""
        return np.searchsorted(self.task, np.arange(self.tasks + 1)).astype(np.int64)

    @property
    def task_respondent(self) -> Codes:
        """(tasks,): who made each choice."""
        return self.respondent[self.task_starts[:-1]]

    def only(self, names: tuple[str, ...]) -> ChoiceData:
        """The same choices explained by some of the attributes, in the order asked for."""
        positions = [self.names.index(name) for name in names]
        return replace(self, names=names, attributes=np.ascontiguousarray(self.attributes[:, positions]))

    def with_constants(self, reference: str | None = None) -> ChoiceData:
        """The same choices with a constant for each alternative but the reference (default: the first label)."""
        if self.alternative is None or len(self.alternatives) < 2:
            raise InvalidSurvey(
                "alternatives have no labels",
                why="a constant belongs to an alternative that is the same in every task",
                instead="name the column that says which alternative a row is",
            )
        reference = self.alternatives[0] if reference is None else reference
        if reference not in self.alternatives:
            raise InvalidSurvey(
                f"there is no alternative '{reference}'",
                why="constants are differences to an alternative that is shown",
                instead=f"choose one of {', '.join(self.alternatives)}",
            )
        others = [place for place, label in enumerate(self.alternatives) if label != reference]
        constants = (self.alternative[:, None] == np.array(others)).astype(np.float64)
        extended = replace(
            self,
            names=(*(f"{CONSTANT} of {self.alternatives[place]}" for place in others), *self.names),
            attributes=np.hstack([constants, self.attributes]),
        )
        _check_variation(extended, None)
        return extended


def _attribute_table(attributes: Mapping[str, ArrayLike]) -> Floats:
    if not attributes:
        raise InvalidSurvey(
            "no attribute is stated",
            why="a choice is explained by what the alternatives are like",
            instead="name at least one attribute",
        )
    columns = {name: _numbers(f"attribute '{name}'", column) for name, column in attributes.items()}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1 or lengths == {0}:
        raise InvalidSurvey(
            "the attributes have no rows in common"
            if lengths == {0}
            else "the attributes have different numbers of rows",
            why="one row is one alternative that was shown",
            instead="give each attribute one number a row",
        )
    return np.column_stack(list(columns.values()))


def _numbers(name: str, column: ArrayLike) -> Floats:
    raw = np.asarray(column)
    try:
        if raw.dtype.kind in "USc" or any(isinstance(each, str) for each in raw.flat if raw.dtype.kind == "O"):
            raise ValueError
        values = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidSurvey(
            f"{name} is not made of numbers",
            why="utility is linear in attributes",
            instead="code levels as numbers: 0 and 1 for without and with",
        ) from None
    if values.ndim != 1:
        raise InvalidSurvey(
            f"{name} has {values.ndim} dimensions",
            why="one row is one alternative that was shown",
            instead="give one number a row",
        )
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise InvalidSurvey(
            f"{name} is empty or infinite in row {wrong[0] + 1} and {wrong.size - 1:,} more",
            why="the likelihood of a choice needs every attribute of every alternative",
            instead="fill the gap, or leave out the whole task",
        )
    return values


def _labels(name: str, column: ArrayLike, rows: int) -> NDArray[np.generic]:
    """A column of identifiers, comparable with each other."""
    raw = np.asarray(column)
    if raw.shape != (rows,):
        raise InvalidSurvey(
            f"the column '{name}' has {raw.size:,} rows, the attributes have {rows:,}",
            why="one row is one alternative that was shown",
            instead=f"give one {name} a row",
        )
    empty = [each is None or each != each for each in raw.tolist()]
    if any(empty):
        raise InvalidSurvey(
            f"the column '{name}' is empty in row {empty.index(True) + 1} and {sum(empty) - 1:,} more",
            why="a row without it belongs to no choice",
            instead="fill the gap, or leave out the row",
        )
    return raw.astype(str) if raw.dtype.kind == "O" else raw


def _chosen(column: ArrayLike, rows: int, name: str = "chosen") -> NDArray[np.bool_]:
    values = _numbers(f"the column '{name}'", column)
    if values.shape != (rows,) or not np.isin(values, (0.0, 1.0)).all():
        raise InvalidSurvey(
            f"the column '{name}' is not one 0 or 1 a row",
            why="an alternative was chosen or it was not",
            instead="code the chosen alternative 1 and the others 0",
        )
    return np.asarray(values == 1, dtype=np.bool_)


def _check_tasks(data: ChoiceData, labels: NDArray[np.generic]) -> None:
    starts = data.task_starts

    def refuse(wrong: NDArray[np.intp], what: str, why: str, instead: str) -> None:
        if wrong.size:
            more = f" (and {wrong.size - 1:,} more)" if wrong.size > 1 else ""
            raise InvalidSurvey(f"task {labels[starts[wrong[0]]]}{more} {what}", why=why, instead=instead)

    shown = np.diff(starts)
    refuse(
        np.flatnonzero(shown < 2),
        "shows one alternative",
        "a choice among one tells nothing",
        "add the alternative that was not chosen, such as 'neither', or leave out the task",
    )
    count = np.add.reduceat(data.chosen.astype(np.int64), starts[:-1])
    refuse(
        np.flatnonzero(count == 0), "has no chosen alternative", "a task is one choice", "leave out unanswered tasks"
    )
    refuse(
        np.flatnonzero(count > 1),
        "has more than one chosen alternative",
        "a task is one choice; two tasks may also share one number",
        "give each task of a respondent its own number",
    )
    if data.alternative is not None:
        order = np.lexsort((data.alternative, data.task))
        same = (np.diff(data.task[order]) == 0) & (np.diff(data.alternative[order]) == 0)
        refuse(
            data.task[order[:-1][same]],
            "shows one alternative twice",
            "two tasks may share one number",
            "give each task of a respondent its own number",
        )


def _check_variation(data: ChoiceData, price: str | None) -> None:
    """Only differences between alternatives of a task tell anything."""
    if price is not None and price not in data.names:
        raise InvalidSurvey(
            f"the price '{price}' is not among the attributes",
            why="willingness to pay is a ratio to the coefficient of the price",
            instead=f"choose one of {', '.join(data.names)}",
        )
    first = data.attributes[data.task_starts[:-1]][data.task]
    for name, varies in zip(data.names, (data.attributes != first).any(axis=0), strict=True):
        if varies:
            continue
        values = data.attributes[:, data.names.index(name)]
        where = "never varies" if (values == values[0]).all() else "never varies within a task"
        raise InvalidSurvey(
            f"the {'price' if name == price else 'attribute'} '{name}' {where}",
            why="no choice tells how much it matters" + (", so nothing has a price" if name == price else ""),
            instead="show alternatives that differ in it, or leave it out",
        )


@dataclass(frozen=True, eq=False)
class Differences:
    """P(chosen) = 1/(1 + Σ exp(rows·β)) over the rows of a task; β over `scale` is in the attributes' own units."""

    names: tuple[str, ...]
    rows: Floats  # (alternatives not chosen, attributes), less the chosen alternative, over `scale`
    scale: Floats  # (attributes,): root mean square of the differences
    task_starts: NDArray[np.int64]  # (tasks + 1,), places in `rows`
    first_tasks: NDArray[np.int64]  # (people,), the first task of each respondent

    @classmethod
    def of(cls, data: ChoiceData) -> Differences:
        """The differences, task by task in the order of the data."""
        others = ~data.chosen
        chosen = data.attributes[data.chosen][data.task]
        rows = (data.attributes - chosen)[others]
        scale = np.sqrt(np.mean(np.square(rows), axis=0))
        return cls(
            names=data.names,
            rows=np.ascontiguousarray(rows / scale),
            scale=scale,
            task_starts=np.searchsorted(data.task[others], np.arange(data.tasks + 1)).astype(np.int64),
            first_tasks=np.searchsorted(data.task_respondent, np.arange(data.people)).astype(np.int64),
        )

    def check_rank(self) -> None:
        """Refuse attributes of which one repeats others."""
        eigenvalues, vectors = np.linalg.eigh(self.rows.T @ self.rows / len(self.rows))
        if eigenvalues[0] > SINGULAR:
            return
        involved = [name for name, part in zip(self.names, vectors[:, 0], strict=True) if abs(part) > 1e-4]
        raise NoEstimate(
            f"{', '.join(involved[:-1])} and {involved[-1]} repeat each other within tasks",
            why="a change of one can be undone by the others, so that no choice tells their coefficients apart",
            instead=f"leave out one of them, or show alternatives that vary {involved[-1]} on its own",
        )
