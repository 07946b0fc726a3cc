"""An answer: its numbers with their errors and intervals, from noisy whole numbers that are public once measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dualmandate.inquiry.pricing import MeasuredQuestion, quantile_levels
from dualmandate.inquiry.query import StatisticKind
from dualmandate.population import PrivacyLoss
from dualmandate.population.arrays import Integers
from dualmandate.population.shown import one_line
from dualmandate.publication.intervals import Probability, asked_for
from dualmandate.publication.ratios import interval_of_ratio, joint_error


@dataclass(frozen=True)
class AnswerRow:
    """One number of an answer: a level or group for each attribute that is grouped by, and where the truth may lie.

    Of a quantile, levels are told by their words; then it has no standard error.
    """

    labels: tuple[str, ...]
    value: float | str
    standard_error: float | None
    lower: float | str
    upper: float | str


@dataclass(frozen=True)
class Answer:
    """What was asked, the answer, what it cost and what is left.

    Each interval holds with `probability` by itself. `spent` is what this asking cost: None where the same question had
    been answered before. `remaining` is in the account's currency.
    """

    statistic: StatisticKind
    of: str | None
    columns: tuple[str, ...]
    rows: tuple[AnswerRow, ...]
    probability: float
    loss: PrivacyLoss  # of the measurement that it is read from
    account: str
    release: str  # its name in the ledger
    spent: PrivacyLoss | None
    remaining: Fraction

    __repr__ = one_line


def rows_of(
    asked: MeasuredQuestion, measured: Mapping[str, Integers], probability: Probability
) -> tuple[AnswerRow, ...]:
    """The numbers of an answer from what was measured; every one of them public."""
    nominal, question = asked_for(probability), asked.question
    if question.statistic is StatisticKind.QUANTILE:
        axis = question.domain.axis(str(question.query.of))
        levels, picked = question.domain.attributes[axis].levels, question.picked.get(axis)
        counted = range(len(levels)) if picked is None else np.flatnonzero(picked).tolist()
        places = quantile_levels(asked, measured[asked.groups[0].name], nominal)
        value, lower, upper = (levels[counted[place]] for place in places)
        return (AnswerRow((), value, None, lower, upper),)
    labels = list(asked.groups[0].measurement.workload.labels(asked.groups[0].tables[0].name))
    if question.statistic is StatisticKind.MEAN:
        return _means(asked, measured, labels, nominal)
    errors, group = asked.errors[0], asked.groups[0]
    grid = float(group.tables[0].grid)
    values = measured[group.name] * grid
    spreads = np.sqrt(group.measurement.query_variances(group.tables[0].name, group.loss)) * grid
    [halves], _ = errors.halves(spreads, np.arange(len(values)), [1 - float(nominal)])
    return tuple(
        AnswerRow(label, float(value), float(spread), float(value - half), float(value + half))
        for label, value, spread, half in zip(labels, values, spreads, halves, strict=True)
    )


def _means(
    asked: MeasuredQuestion, measured: Mapping[str, Integers], labels: Sequence[tuple[str, ...]], nominal: Fraction
) -> tuple[AnswerRow, ...]:
    added, counted = asked.groups
    grid, kind = float(added.tables[0].grid), np.zeros(1, dtype=np.int64)
    noises = (added.table_noises, counted.table_noises)
    error = joint_error(np.array([grid]), np.ones(1), (kind, kind), noises, shared=False)
    found = []
    for label, total, count in zip(labels, measured[added.name] * grid, measured[counted.name], strict=True):
        known = interval_of_ratio(float(total), float(count), error, probability=nominal)
        value = known.estimate if count else 0.0
        spread = error.spread(value) / abs(float(count)) if count else math.inf
        found.append(AnswerRow(label, value, spread, known.lower, known.upper))
    return tuple(found)
