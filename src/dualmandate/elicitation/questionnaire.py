"""Choice tasks in words: privacy as what somebody may come to believe, accuracy as its consequences, and money.

A loss is recorded as the one that the words say, and enters the utility in the form of its cost.

A questionnaire goes out on paper and on the web: the design and an answer sheet as CSV, and what a web form needs to
know. The answers that the form writes have the columns of the answer sheet, one row an alternative that was shown, so
that both are read alike.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualmandate.elicitation.design import (
    ChoiceDesign,
    DesignAttribute,
    Precision,
    coefficient_of_variation,
    efficient_design,
)
from dualmandate.errors import InvalidSurvey
from dualmandate.population import Neighbors, PrivacyLoss
from dualmandate.population.currency import DEFAULT, currency_of
from dualmandate.population.time_base import recurs
from dualmandate.population.wording import exact, money
from dualmandate.semantics.guarantee import Secret, neighbor_steps, odds_bound

Role = Literal["price", "privacy loss", "accuracy", "other"]
Measure = Literal["absolute", "squared"]
LABELS = "abcdefghij"  # Alternatives are called by these letters.
LARGEST_ODDS = 15.0  # Beyond this logarithm of odds everybody chooses the alternative that is expected to be better.
BLOCK, POSITION = "block", "position"
Form = Literal["linear", "exponential", "bounded", "posterior"]
LARGEST_ROUNDING = 0.1  # The words differ from a loss by at most this share of it.
_UNITS = (100, 1_000, 10_000, 100_000, 1_000_000)


def cost_per_parameter(form: Form, epsilon: ArrayLike, prior: float | None = None) -> NDArray[np.float64]:
    """What a loss costs one person, per dollar of the parameter of the form: κ(ε)/k, a pure number (ε for linear).

    Linear ε; exponential e^ε − 1; bounded 1 − e^{−ε}; posterior q(ε) − p, with q = p/(p + (1 − p)·e^{−ε}). A choice
    model with this regressor and a price has β/β_price = k, the mean disclosure cost in the unit of the form.
    """
    loss = np.asarray(epsilon, dtype=np.float64)
    if form == "exponential":
        return np.asarray(np.expm1(loss))
    if form == "bounded":
        return np.asarray(-np.expm1(-loss))
    if form == "posterior":
        assert prior is not None
        return np.asarray(prior / (prior + (1 - prior) * np.exp(-loss)) - prior)
    return loss


@dataclass(frozen=True)
class BeliefScale:
    """How losses are said: what somebody believed of a secret, and the most that they may come to believe.

    Files that differ in the secret lie `steps` neighbor steps apart, so that odds move by at most e^{steps·ε}.
    """

    prior: float  # strictly between 0 and 1
    secret: Secret = Secret.IN_OR_OUT
    neighbors: Neighbors = Neighbors.ADD_OR_REMOVE

    def __post_init__(self) -> None:
        if not 0 < self.prior < 1:
            raise InvalidSurvey(
                f"the belief before a release is {self.prior:g}",
                why="what is already certain cannot become more or less so",
                instead="state a prior strictly between 0 and 1",
            )
        if neighbor_steps(self.secret, self.neighbors) is None:
            raise InvalidSurvey(
                f"under {self.neighbors} neighbors nothing bounds what is believed of '{self.secret}'",
                why="the number of records is public, so nobody's presence is protected",
                instead=f'state secret = "{Secret.ATTRIBUTE}", or other neighbors',
            )

    @property
    def steps(self) -> int:
        """Neighbor steps between the two files of the secret."""
        steps = neighbor_steps(self.secret, self.neighbors)
        assert steps is not None
        return steps

    def highest(self, epsilon: float) -> float:
        """The most that a loss lets somebody believe, in [prior, 1]."""
        if epsilon == 0:
            return self.prior
        bound = odds_bound(PrivacyLoss.pure(epsilon), self.secret, neighbors=self.neighbors)
        return bound.belief(self.prior).highest

    def epsilon(self, belief: ArrayLike) -> NDArray[np.float64]:
        """The loss that lets the prior become this belief: (logit q − logit p)/steps."""
        after = np.asarray(belief, dtype=np.float64)
        odds = np.log(after) - np.log1p(-after) - math.log(self.prior) + math.log1p(-self.prior)
        return np.asarray(odds / self.steps)

    def told(self, epsilons: Sequence[float]) -> tuple[tuple[str, ...], tuple[float, ...]]:
        """Each loss in words that people understand, and the loss that the words say.

        "from 10 in 1,000 to at most 16 in 1,000" says ε = .476 where .5 was meant: answers are about the words, so the
        loss that they say is what is recorded. One count (in 100, in 1,000, …) serves all levels: the smallest that
        keeps every level within a tenth of what was meant, and apart from the others.
        """
        for unit in _UNITS:
            before = round(self.prior * unit)
            after = [round(self.highest(epsilon) * unit) for epsilon in epsilons]
            if not 0 < before < unit or max(after) >= unit or len(set(after)) < len(after):
                continue
            scale = BeliefScale(before / unit, self.secret, self.neighbors)
            said = [0.0 if n == before else float(f"{scale.epsilon(n / unit):.5g}") for n in after]
            near = all(abs(a - b) <= LARGEST_ROUNDING * b for a, b in zip(said, epsilons, strict=True))
            if near and abs(before / unit - self.prior) <= LARGEST_ROUNDING * self.prior:
                return tuple(_belief(before, n, unit) for n in after), tuple(said)
        raise InvalidSurvey(
            "the losses cannot be told apart in words",
            why=f"a belief is told as a whole number in at most {_UNITS[-1]:,}, and some levels come out the same",
            instead="choose levels that lie farther apart, or a prior nearer to 1 in 2",
        )


def _belief(before: int, after: int, unit: int) -> str:
    if after == before:
        return f"stays at {before:,} in {unit:,}"
    return f"from {before:,} in {unit:,} to at most {after:,} in {unit:,}"


@dataclass(frozen=True)
class ShownAttribute:
    """An attribute of the alternatives, as respondents read it and as their answers record it."""

    name: str
    column: str  # of the answers
    role: Role
    heading: str
    words: tuple[str, ...]  # of each level
    recorded: tuple[float, ...]  # what the answers hold for it
    regressors: tuple[float, ...]  # what enters the utility

    @property
    def direction(self) -> int:
        """−1 where everybody wants less of it; 0 where tastes differ."""
        return 0 if self.role == "other" else -1

    @property
    def designed(self) -> DesignAttribute:
        """What the design needs to know of it."""
        return DesignAttribute(self.name, self.regressors, self.direction)


@dataclass(frozen=True)
class AnswerColumns:
    """Names of the columns of the answers, one row an alternative that was shown."""

    respondent: str = "id"
    task: str = "task"
    alternative: str = "alternative"
    chosen: str = "chosen"


@dataclass(frozen=True)
class QuestionnairePlan:
    """How many tasks are shown to whom, and what is expected beforehand.

    `expected` is what people are thought to pay to avoid one unit of each attribute, in the price's unit (for a
    privacy loss: the parameter of its form). `choice_noise` is the difference, in the same money, at which the better
    alternative is chosen 73 times in 100: the scale of what else moves people. `uncertainty` is the standard deviation
    of the logarithms of both, `spread` the coefficient of variation of costs among people.
    """

    expected: dict[str, float]
    choice_noise: float
    tasks: int = 8
    alternatives: int = 2
    blocks: int = 4
    uncertainty: float = 0.5
    spread: float = 1.0
    seed: int = 1


@dataclass(frozen=True, eq=False)
class Questionnaire:
    """Tasks to show, in words, with what their answers are expected to tell."""

    title: str
    attributes: tuple[ShownAttribute, ...]
    columns: AnswerColumns
    design: ChoiceDesign
    coefficients: tuple[float, ...]  # expected, one an attribute
    spread: float = 0.0

    @property
    def price(self) -> ShownAttribute:
        """What is paid."""
        return _only(self.attributes, "price")

    @property
    def privacy(self) -> ShownAttribute:
        """What is lost."""
        return _only(self.attributes, "privacy loss")

    @property
    def tasks_each(self) -> int:
        """Tasks that one respondent answers (the most, where blocks differ)."""
        return max(int((self.design.block == block).sum()) for block in range(self.design.blocks))

    def coefficient_of_variation(self) -> float:
        """Of the cost of privacy as one respondent is expected to tell it."""
        return coefficient_of_variation(
            self.design, self.coefficients, self.privacy.name, self.price.name, spread=self.spread
        )

    def respondents(self, precision: Precision | None = None) -> int:
        """How many must answer for ε* within the precision, ±20 % where none is stated."""
        return (precision or Precision()).respondents(self.coefficient_of_variation())

    def tasks(self) -> Iterator[Task]:
        """Every task, in the order of the design."""
        for number, (levels, block) in enumerate(zip(self.design.levels, self.design.block, strict=True), start=1):
            shown = tuple(tuple(int(level) for level in alternative) for alternative in levels)
            yield Task(number, int(block) + 1, shown)


@dataclass(frozen=True)
class Task:
    """One choice: a level of every attribute for each alternative."""

    number: int  # from 1
    block: int  # from 1
    levels: tuple[tuple[int, ...], ...]  # (alternatives, attributes)


def questionnaire_of(
    title: str, attributes: Sequence[ShownAttribute], asked: QuestionnairePlan, *, columns: AnswerColumns | None = None
) -> Questionnaire:
    """The most telling tasks found for these attributes, with at most `asked.tasks` for one respondent."""
    shown = tuple(attributes)
    price = _only(shown, "price")
    _only(shown, "privacy loss")
    unknown = [each.name for each in shown if each.name not in asked.expected and each is not price]
    if unknown:
        raise InvalidSurvey(
            f"nothing is expected of the attribute '{unknown[0]}'",
            why="a design asks where answers are in doubt, and must know about where that is",
            instead=f"state what people may pay to avoid one unit of it: expected = {{ {unknown[0]} = … }}",
        )
    if not asked.choice_noise > 0 or len(LABELS) < asked.alternatives:
        raise InvalidSurvey(
            f"a choice_noise of {asked.choice_noise:g} with {asked.alternatives} alternatives",
            why=f"people do not notice every cent, and compare at most {len(LABELS)} alternatives",
            instead="state the difference in money at which about three in four choose the better alternative",
        )
    worth = [1.0 if each is price else asked.expected[each.name] for each in shown]
    coefficients = tuple(-value / asked.choice_noise for value in worth)
    reach = max(abs(b) * (max(a.regressors) - min(a.regressors)) for a, b in zip(shown, coefficients, strict=True))
    if reach > LARGEST_ODDS:
        raise InvalidSurvey(
            "between the extreme levels of an attribute everybody is expected to choose alike",
            why="choices that are certain beforehand tell nothing",
            instead="let the levels span less, expect less, or state a larger choice_noise",
        )
    design = efficient_design(
        [each.designed for each in shown],
        coefficients,
        tasks=asked.tasks,
        alternatives=asked.alternatives,
        blocks=asked.blocks,
        uncertainty=asked.uncertainty,
        seed=asked.seed,
    )
    return Questionnaire(title, shown, columns or AnswerColumns(), design, coefficients, asked.spread)


def shown_attribute(
    name: str,
    role: Role,
    levels: Sequence[float],
    *,
    unit: str = DEFAULT,
    scale: BeliefScale | None = None,
    prior: float | None = None,
    form: Form = "linear",
    measure: Measure = "absolute",
    time_base: str | None = None,
    column: str = "",
    heading: str | None = None,
) -> ShownAttribute:
    """An attribute in words: accuracy as how far off an amount typically is, a price as what the respondent pays.

    A privacy loss is told as a belief on a `scale` ("from 1 in 100 to at most 11 in 100"; answers record the ε that the
    words say, and `prior` is the scale's), without one as a number. Its cost enters the utility in its `form`; of an
    error whose `measure` is squared, the square does.
    """
    recorded = tuple(map(float, levels))
    called = {"privacy loss": "Privacy loss", "accuracy": "How far off numbers may be", "price": "What you pay"}
    if role == "privacy loss" and scale is not None:
        called[role], prior = "How sure somebody may become of a secret about you", scale.prior
        words, recorded = scale.told(levels)
    elif role == "privacy loss":
        words = tuple(f"epsilon = {level:g}" for level in levels)
    elif role == "accuracy":
        words = tuple(f"typically by {amount(level, unit)}" for level in levels)
    elif role == "price":
        over = "" if time_base is None else f" {time_base}" if recurs(time_base) else ", once"
        words = tuple("nothing" if level == 0 else f"{amount(level, unit)}{over}" for level in levels)
    else:
        words = tuple(amount(level, unit).strip() for level in levels)
    regressors = tuple(level**2 for level in recorded) if measure == "squared" else recorded
    if role == "privacy loss":
        regressors = tuple(cost_per_parameter(form, recorded, prior).tolist())
    return ShownAttribute(name, column or name, role, heading or called.get(role, name), words, recorded, regressors)


def amount(number: float, unit: str) -> str:
    """So much of something: "$2,500", "3 children" as the unit was written."""
    currency = currency_of(unit)
    return f"{exact(number)} {unit}" if currency is None else money(number, currency, short=True)


def _only(attributes: Sequence[ShownAttribute], role: Role) -> ShownAttribute:
    found = [each for each in attributes if each.role == role]
    if len(found) != 1:
        raise InvalidSurvey(
            f"{len(found)} attributes have the role '{role}'",
            why="a cost of privacy is money over privacy loss: one attribute of each",
            instead=f'give exactly one attribute role = "{role}"',
        )
    return found[0]


def answer_columns(questionnaire: Questionnaire) -> tuple[str, ...]:
    """The columns of the answers: who, which task, which alternative, where it stood, what it was like, and chosen."""
    columns = questionnaire.columns
    attributes = (attribute.column for attribute in questionnaire.attributes)
    return (columns.respondent, BLOCK, columns.task, columns.alternative, POSITION, *attributes, columns.chosen)


def answer_sheet(questionnaire: Questionnaire) -> str:
    """A CSV file to fill in: copy the rows of one block for each respondent, write who, and 1 or 0 into `chosen`."""
    rows = (
        ("", task.block, task.number, LABELS[place], place + 1, *recorded, "")
        for task in questionnaire.tasks()
        for place, recorded in enumerate(_recorded(questionnaire, task))
    )
    return _csv(answer_columns(questionnaire), rows)


def design_table(questionnaire: Questionnaire) -> str:
    """The tasks in words as a CSV file, one row an alternative: what was shown, for the record and for printing."""
    columns = questionnaire.columns
    headings = (f"{attribute.column} in words" for attribute in questionnaire.attributes)
    recorded = (attribute.column for attribute in questionnaire.attributes)
    rows = (
        (task.block, task.number, LABELS[place], *values, *_words(questionnaire, task)[place])
        for task in questionnaire.tasks()
        for place, values in enumerate(_recorded(questionnaire, task))
    )
    return _csv((BLOCK, columns.task, columns.alternative, *recorded, *headings), rows)


def form_content(questionnaire: Questionnaire) -> dict[str, object]:
    """What the web form shows and records, as JSON: numbers are texts, written just as the answer sheet writes them."""
    tasks = [
        {
            "task": str(task.number),
            "block": str(task.block),
            "alternatives": [
                {
                    "label": LABELS[place],
                    "words": list(_words(questionnaire, task)[place]),
                    "recorded": [_text(value) for value in recorded],
                }
                for place, recorded in enumerate(_recorded(questionnaire, task))
            ],
        }
        for task in questionnaire.tasks()
    ]
    return {
        "columns": list(answer_columns(questionnaire)),
        "headings": [attribute.heading for attribute in questionnaire.attributes],
        "blocks": questionnaire.design.blocks,
        "tasks": tasks,
    }


def _recorded(questionnaire: Questionnaire, task: Task) -> list[tuple[float, ...]]:
    return [
        tuple(attribute.recorded[level] for attribute, level in zip(questionnaire.attributes, levels, strict=True))
        for levels in task.levels
    ]


def _words(questionnaire: Questionnaire, task: Task) -> list[tuple[str, ...]]:
    return [
        tuple(attribute.words[level] for attribute, level in zip(questionnaire.attributes, levels, strict=True))
        for levels in task.levels
    ]


def _csv(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_text(value) if isinstance(value, float) else value for value in row] for row in rows)
    return text.getvalue()


def _text(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(value)) if value.is_integer() else repr(value)
