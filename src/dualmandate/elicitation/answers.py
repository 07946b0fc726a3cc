"""Answers of people as they are read: choices among alternatives, and yes or no to bids.

In a choice experiment one row is an alternative that was shown: attributes, and which one was chosen. Estimators read
these as differences: each alternative not chosen less the chosen one, in standardized attributes. A yes or no to a bid
says between which two amounts lies what a person would pay.

Answers are confidential: a refusal names a row and a column, and repeats no value of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualmandate.errors import InvalidSurvey, NoEstimate

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]
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
            chosen=_flags("chosen", chosen, rows)[order],
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
        said = _flags("yes", yes, rows)
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
    columns: list[Floats] = []
    for name, column in attributes.items():
        columns.append(_numbers(f"attribute '{name}'", column, len(columns[0]) if columns else None))
    return np.column_stack(columns)


def _numbers(name: str, column: ArrayLike, rows: int | None = None) -> Floats:
    """A column with one finite number a row."""
    raw = np.asarray(column)
    try:
        if raw.dtype.kind in "USc" or any(isinstance(each, str) for each in raw.flat if raw.dtype.kind == "O"):
            raise ValueError
        values = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidSurvey(
            f"{name} is not made of numbers",
            why="answers are counted, and utility is linear in attributes",
            instead="code it as numbers: 0 and 1 for no and yes, or for without and with",
        ) from None
    if values.ndim != 1 or not values.size or (rows is not None and len(values) != rows):
        size = f"{values.size:,} rows" if values.ndim == 1 else f"{values.ndim} dimensions"
        raise InvalidSurvey(
            f"{name} has {size}, not {'one with some rows' if rows is None else f'{rows:,} rows'}",
            why="all columns are of the same rows: one is a person's answer, or an alternative that was shown",
            instead="give one number a row",
        )
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise InvalidSurvey(
            f"{name} is empty or infinite in row {wrong[0] + 1} and {wrong.size - 1:,} more",
            why="an answer that is missing says nothing, and a choice needs every attribute of every alternative",
            instead="fill the gap, or leave out the row, and with it the whole task",
        )
    return values


def _flags(name: str, column: ArrayLike, rows: int) -> Flags:
    values = _numbers(f"the column '{name}'", column, rows)
    wrong = np.flatnonzero((values != 0) & (values != 1))
    if wrong.size:
        raise InvalidSurvey(
            f"the column '{name}' is neither 0 nor 1 in row {wrong[0] + 1}",
            why="the answer is no or yes; an alternative was chosen or it was not",
            instead="code it as 0 and 1",
        )
    return np.asarray(values == 1)


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


@dataclass(frozen=True, eq=False)
class BidAnswers:
    """Amounts between which each person's willingness to pay lies, in the bids' unit: lower < amount ≤ upper.

    With `spike` people were also asked whether they would pay anything at all: who would not has lower = −∞ and
    upper = 0, a willingness of zero; everybody else has lower ≥ 0.
    """

    lower: Floats  # (people,), −∞ where nothing bounds it
    upper: Floats  # (people,), +∞ where nothing bounds it
    bids: Floats  # amounts that were asked, sorted, each once
    spike: bool = False
    names: tuple[str, ...] = (CONSTANT,)
    covariates: Floats | None = None  # (people, names), the first column all 1; None where there is only a constant
    cluster: NDArray[np.int64] | None = None  # (people,), who may hang together; None: nobody

    @classmethod
    def single_bounded(cls, bid: ArrayLike, yes: ArrayLike, *, pays_anything: ArrayLike | None = None) -> BidAnswers:
        """One question a person: would you pay `bid`? `pays_anything` says who would pay something (the spike)."""
        asked = _amounts("bid", bid)
        said = _flags("yes", yes, len(asked))
        lower, upper = np.where(said, asked, -np.inf), np.where(said, np.inf, asked)
        return cls._checked(lower, upper, asked, pays_anything)

    @classmethod
    def double_bounded(
        cls,
        bid: ArrayLike,
        yes: ArrayLike,
        follow_up: ArrayLike,
        follow_up_yes: ArrayLike,
        *,
        pays_anything: ArrayLike | None = None,
    ) -> BidAnswers:
        """Two questions a person: after a yes to `bid` a higher `follow_up` is asked, after a no a lower one."""
        first = _amounts("bid", bid)
        second = _amounts("follow_up", follow_up, len(first))
        said, said_again = _flags("yes", yes, len(first)), _flags("follow_up_yes", follow_up_yes, len(first))
        wrong = np.flatnonzero(np.where(said, second <= first, second >= first))
        if wrong.size:
            raise InvalidSurvey(
                f"row {int(wrong[0]) + 1}: the second bid does not ask for more after a yes, or for less after a no",
                why="a second bid says something new only above a yes and below a no",
                instead="give follow_up as the bid that was asked second, in the same unit",
            )
        lower = np.where(said, np.where(said_again, second, first), np.where(said_again, second, -np.inf))
        upper = np.where(said, np.where(said_again, np.inf, second), np.where(said_again, first, second))
        return cls._checked(lower, upper, np.concatenate([first, second]), pays_anything)

    @classmethod
    def _checked(cls, lower: Floats, upper: Floats, asked: Floats, pays_anything: ArrayLike | None) -> BidAnswers:
        bids = np.unique(asked)
        if len(bids) < 2:
            raise InvalidSurvey(
                "everybody was asked the same bid",
                why="how answers change with the bid cannot be seen",
                instead="offer at least two bids, to different people",
            )
        if not np.isfinite(lower).any() or not np.isfinite(upper).any():
            raise InvalidSurvey(  # whether yes or no is not repeated: it would tell what each person said
                "everybody gave the same answer to every bid",
                why="willingness to pay then has an end on one side only",
                instead="offer lower and higher bids as well",
            )
        if pays_anything is None:
            return cls(lower, upper, bids)
        pays = _flags("pays_anything", pays_anything, len(lower))
        wrong = np.flatnonzero(~pays & (lower > -np.inf))
        if wrong.size:
            raise InvalidSurvey(
                f"row {int(wrong[0]) + 1}: somebody who would pay nothing at all said yes to a bid",
                why="the two answers contradict each other",
                instead="correct the row, or leave it out",
            )
        lower = np.where(pays, np.maximum(lower, 0.0), -np.inf)
        return cls(lower, np.where(pays, upper, 0.0), bids, spike=True)

    @property
    def people(self) -> int:
        """How many people answered."""
        return len(self.lower)

    @property
    def design(self) -> Floats:
        """(people, names): the constant and the covariates."""
        return np.ones((self.people, 1)) if self.covariates is None else self.covariates

    def with_covariates(self, columns: Mapping[str, ArrayLike]) -> BidAnswers:
        """The same answers, willingness to pay shifted by what is known about each person."""
        found = {name: _numbers(f"the covariate '{name}'", column, self.people) for name, column in columns.items()}
        for name, column in found.items():
            if name == CONSTANT or np.ptp(column) == 0:
                raise InvalidSurvey(
                    f"the covariate '{name}' is the same for everybody",
                    why="it cannot be told from the constant",
                    instead="leave it out",
                )
        table = np.column_stack([np.ones(self.people), *found.values()])
        if np.linalg.matrix_rank(table) < table.shape[1]:
            raise InvalidSurvey(
                "one covariate follows from the others",
                why="their effects cannot be told apart",
                instead="leave one of them out",
            )
        return replace(self, names=(CONSTANT, *found), covariates=table)

    def clustered(self, cluster: ArrayLike) -> BidAnswers:
        """The same answers, with people whose answers may hang together (a village, an interviewer)."""
        labels = np.asarray(cluster)
        if labels.shape != (self.people,):
            raise InvalidSurvey(
                f"clusters for {labels.size} of {self.people} people",
                why="everybody belongs to one cluster",
                instead="give one label a row",
            )
        return replace(self, cluster=np.unique(labels, return_inverse=True)[1].astype(np.int64))


def _amounts(name: str, column: ArrayLike, rows: int | None = None) -> Floats:
    values = _numbers(f"the column '{name}'", column, rows)
    wrong = np.flatnonzero(values <= 0)
    if wrong.size:
        raise InvalidSurvey(
            f"the column '{name}' asks for nothing, or for less, in row {wrong[0] + 1}",
            why="a bid is an amount of money to be paid",
            instead="state bids above 0; who would pay nothing at all is asked with pays_anything",
        )
    return values
