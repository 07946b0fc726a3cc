"""Parents that do not exist, always the same, who choose by a cost of privacy loss that is known.

Their answers are made from 1,400 USD per child per epsilon, and a price of squared misallocation of 1 USD per USD^2, so
that whoever runs the survey can see whether these are found again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from importlib.resources import as_file, files

import numpy as np

from dualmandate.elicitation.questionnaire import Questionnaire, answer_columns, answer_sheet

MEAN_DISCLOSURE_COST = 1_400.0  # USD per child per epsilon, the paper's
WORTH_OF_SQUARED_ERROR = 13_000 / 46e6  # USD per child per squared USD: over all children and districts, 1 USD per USD²
CHOICE_NOISE = 1_000.0  # USD: the scale of what else moves people
PARENTS = 400
SEED = 2019  # The seed is public: nobody is in this file.


def questionnaire() -> Questionnaire:
    """What the parents are asked: the questionnaire of the survey file."""
    from dualmandate.survey.questionnaire import survey_questionnaire
    from dualmandate.survey.survey_file import load_survey

    with as_file(files(__package__) / "survey" / "survey.toml") as file:
        return survey_questionnaire(load_survey(file)).questionnaire


def answers(parents: int = PARENTS, *, seed: int = SEED) -> str:
    """The answers as a CSV file: each parent answers one block and chooses what costs least, up to chance.

    The cost of an alternative is price + k·ε + w·error² + noise, USD; the noise is Gumbel, as in a conditional logit.
    """
    asked = questionnaire()
    rows = list(csv.DictReader(io.StringIO(answer_sheet(asked))))
    text = io.StringIO()
    writer = csv.DictWriter(text, answer_columns(asked), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_answered(asked, rows, parents, np.random.Generator(np.random.PCG64(seed))))
    return text.getvalue()


def _answered(
    asked: Questionnaire, rows: list[dict[str, str]], parents: int, generator: np.random.Generator
) -> Iterator[dict[str, str]]:
    columns, alternatives = asked.columns, asked.design.levels.shape[1]
    for parent in range(parents):
        shown = [row for row in rows if int(row["block"]) == parent % asked.design.blocks + 1]
        costs = np.array([_cost(row) for row in shown]).reshape(-1, alternatives)
        noise = CHOICE_NOISE * generator.gumbel(size=costs.shape)
        best = (costs - noise).argmin(axis=1)
        for place, row in enumerate(shown):
            task, alternative = divmod(place, alternatives)
            yield {**row, columns.respondent: f"p{parent + 1:03d}", columns.chosen: str(int(best[task] == alternative))}


def _cost(row: dict[str, str]) -> float:
    error = float(row["grant_error"])
    return float(row["price"]) + MEAN_DISCLOSURE_COST * float(row["epsilon"]) + WORTH_OF_SQUARED_ERROR * error**2
