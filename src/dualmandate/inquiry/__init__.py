"""Typed questions within a budget: a small language, cost and accuracy before asking, answers booked like releases."""

from dualmandate.inquiry.answer import Answer, AnswerRow
from dualmandate.inquiry.inquirer import Asker, Inquirer
from dualmandate.inquiry.pricing import Price
from dualmandate.inquiry.query import Query, Question, StatisticKind, question_of

__all__ = ["Answer", "AnswerRow", "Asker", "Inquirer", "Price", "Query", "Question", "StatisticKind", "question_of"]
