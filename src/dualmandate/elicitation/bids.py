"""What yes-or-no answers to bids say about what each person would pay: between which two amounts it lies.

Answers are confidential: a refusal names a row and a column, and repeats no value of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualmandate.errors import InvalidSurvey

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
CONSTANT = "constant"


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
        found = {name: _numbers(name, column, self.people) for name, column in columns.items()}
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


def _numbers(name: str, column: ArrayLike, rows: int | None = None) -> Floats:
    try:
        raw = np.asarray(column)
        if raw.dtype.kind in "USc":
            raise ValueError
        values = raw.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidSurvey(
            f"'{name}' is not made of numbers", why="answers are counted", instead="code it as numbers"
        ) from None
    if values.ndim != 1 or not values.size or (rows is not None and len(values) != rows):
        raise InvalidSurvey(
            f"'{name}' has {values.size} rows, not {'some' if rows is None else rows}",
            why="one row is one person",
            instead="give one number a row",
        )
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise InvalidSurvey(
            f"row {int(wrong[0]) + 1} of '{name}' is empty or not finite",
            why="an answer that is missing says nothing",
            instead="leave the row out",
        )
    return values


def _amounts(name: str, column: ArrayLike, rows: int | None = None) -> Floats:
    values = _numbers(name, column, rows)
    wrong = np.flatnonzero(values <= 0)
    if wrong.size:
        raise InvalidSurvey(
            f"row {int(wrong[0]) + 1} of '{name}' asks for nothing, or for less",
            why="a bid is an amount of money to be paid",
            instead="state bids above 0; who would pay nothing at all is asked with pays_anything",
        )
    return values


def _flags(name: str, column: ArrayLike, rows: int) -> Flags:
    values = _numbers(name, column, rows)
    wrong = np.flatnonzero((values != 0) & (values != 1))
    if wrong.size:
        raise InvalidSurvey(
            f"row {int(wrong[0]) + 1} of '{name}' is neither 0 nor 1",
            why="the answer is no or yes",
            instead="code it as 0 and 1",
        )
    flags: Flags = values == 1
    return flags
