"""`[questionnaire]`: what to ask before any answers exist."""

from __future__ import annotations

from pydantic import BaseModel

from dualmandate.program.schema.number import CLOSED, Count, NotNegative, Positive, Probability, Text, WholeNumber


class QuestionnaireTable(BaseModel):
    """Tasks to be shown, and what is expected of the answers beforehand."""

    model_config = CLOSED

    title: Text
    """A questionnaire has a title that respondents read."""
    expected: dict[str, Positive]
    """What people may pay to avoid one unit of each attribute but the price, in its money: answers tell most where they
    are in doubt."""
    choice_noise: Positive
    """The difference, in the price's money, at which the better alternative is chosen 73 times in 100."""
    uncertainty: NotNegative | None = None
    """How uncertain these expectations are: the standard deviation of their logarithms; 0 takes them as known, 0.5
    where not stated."""
    spread: NotNegative | None = None
    """The coefficient of variation of costs among people, 1 where not stated; it decides how many must be asked."""
    tasks: Count = 8
    """How many tasks one respondent answers."""
    alternatives: Count = 2
    """How many alternatives a task shows."""
    blocks: Count = 4
    """How many different sets of tasks there are."""
    seed: WholeNumber = 1
    """Public: the same seed gives the same design."""
    within: Positive | None = None
    """How precisely epsilon is to be known: within this share of it, 0.2 where not stated."""
    confidence: Probability | None = None
    """How surely; 0.95 where not stated."""
    elasticity: Positive | None = None
    """By how many percent epsilon falls when the cost rises by one: a third where not stated, as for a linear cost and
    errors that go with 1/epsilon^2."""
    introduction: Text | None = None
    """What respondents read before the first task: who asks, about which data, and what the tables are for."""
    about: Text = "something about you"
    """What somebody could come to believe: the secret, as respondents read it."""
    contact: Text | None = None
    """Whom respondents may ask."""
