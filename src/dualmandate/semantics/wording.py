"""Beliefs and losses in plain English, with numbers.

Rule for numbers. A belief is said as a whole number in 100, the nearest one; in 1,000, 10,000, … where 100 would turn
it into 0 or into certainty. A bound said so may be rounded the unsafe way, so the bound itself stands beside it with
two more digits, rounded away from safety: "at most 11 in 100 likely (unrounded, at most 11.23)". Losses and factors are
rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from dualmandate.population import Neighbors, PrivacyLoss, Protection
from dualmandate.semantics.posterior import Belief, OddsBound, Secret, after_steps, odds_bound, participation_bound
from dualmandate.semantics.power import power_of_best_test

PRIORS = (0.01, 0.1, 0.5)
FALSE_POSITIVE_RATE = 0.05
_LARGEST_UNIT = 10**9


def chance(probability: float) -> str:
    """A probability as a whole number in 100 (or in 1,000, …), the nearest one: .112298 is "11 in 100"."""
    unit = _unit(probability)
    return f"{round(probability * unit):,} in {unit:,}"


def belief_sentence(belief: Belief) -> str:
    """What a prior may become, as a clause: "someone who thought it 1 in 100 likely may come to think it at most …"."""
    return (
        f"someone who thought it {chance(belief.prior)} likely may come to think it at most {chance(belief.highest)} "
        f"likely (unrounded, at most {_highest(belief.highest)})"
    )


def rounded_up(value: float | Fraction, digits: int = 4) -> str:
    """A loss or a factor with that many significant digits, never smaller than it is."""
    if isinstance(value, float) and not math.isfinite(value):
        return "infinite"
    upward = Context(prec=digits, rounding=ROUND_CEILING)
    exact = Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    rounded = upward.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return f"{rounded:,f}" if -6 < rounded.adjusted() < 9 else f"{rounded:e}"


def sentences(
    loss: PrivacyLoss,
    protection: Protection,
    *,
    priors: Iterable[float] = PRIORS,
    failure_probability: float | None = None,
) -> tuple[str, ...]:
    """What a loss means to one protected unit: beliefs about being in the file, about attributes, and what tests find.

    A concentrated loss needs the failure probability that its bounds on beliefs are stated at.
    """
    unit, neighbors, before = protection.unit, protection.neighbors, tuple(priors)
    together = protection.records_changing_together or 1
    attribute = odds_bound(
        loss, Secret.ATTRIBUTE, neighbors=neighbors, records=together, failure_probability=failure_probability
    )
    tested = Secret.IN_OR_OUT if neighbors is Neighbors.ADD_OR_REMOVE else Secret.ATTRIBUTE
    power = power_of_best_test(FALSE_POSITIVE_RATE, loss, tested, neighbors=neighbors, records=together)
    open_still = " that the exact totals leave open" if protection.invariants else ""
    question = f"whether the {unit} is in the file" if tested is Secret.IN_OR_OUT else "which of two records it is"
    return (
        _in_or_out(loss, protection, before, failure_probability),
        f"Which of two records{open_still} a given {unit} has: {_odds(attribute)}{_beliefs(attribute, before)}.",
        _own_record(loss, protection, failure_probability),
        f"A test of {question} that accuses {chance(FALSE_POSITIVE_RATE)} of those it should not finds at most "
        f"{chance(power)} of those it should (unrounded, at most {_highest(power)}).",
    )


def _in_or_out(
    loss: PrivacyLoss, protection: Protection, priors: tuple[float, ...], failure_probability: float | None
) -> str:
    unit = protection.unit
    if protection.neighbors is Neighbors.REPLACE_ONE:
        return (
            f"Whether a given {unit} is in the file at all is not protected: the number of records is public, and only "
            f"another record in the {unit}'s place, never its absence, is kept indistinguishable."
        )
    bound = odds_bound(loss, Secret.IN_OR_OUT, failure_probability=failure_probability)
    return (
        f"Whether a given {unit} is in the file with a given record, or not in it: "
        f"{_odds(bound)}{_beliefs(bound, priors)}."
    )


def _own_record(loss: PrivacyLoss, protection: Protection, failure_probability: float | None) -> str:
    unit, together = protection.unit, protection.records_changing_together or 1
    changed = "left out" if protection.neighbors is Neighbors.ADD_OR_REMOVE else "another one"
    said = f"Anything else that somebody concludes about the {unit}: had the {unit}'s own record been {changed},"
    epsilon, delta = after_steps(loss, together, failure_probability)
    if delta == 0.0:
        own = participation_bound(loss, records=together)
        return f"{said} the odds would differ by a factor of at most {rounded_up(own.factor)}."
    more = rounded_up(OddsBound(epsilon).factor)
    return (
        f"{said} the chance of concluding it would differ by a factor of at most {more} and by {rounded_up(delta, 2)}."
    )


def _beliefs(bound: OddsBound, priors: tuple[float, ...]) -> str:
    return "".join(f"; {belief_sentence(bound.belief(prior))}" for prior in priors) if bound.protected else ""


def _odds(bound: OddsBound) -> str:
    if not bound.protected:
        return "nothing is promised"
    return f"the odds rise or fall by a factor of at most {rounded_up(bound.factor)}{_exceptions(bound)}"


def _exceptions(bound: OddsBound) -> str:
    if bound.exception_probability == 0.0:
        return ""
    return f" (except with probability at most {rounded_up(bound.exception_probability, 2)})"


def _unit(probability: float) -> int:
    unit = 100
    while unit < _LARGEST_UNIT and 0.0 < probability < 1.0 and round(probability * unit) in (0, unit):
        unit *= 10
    return unit


def _highest(probability: float) -> str:
    """The probability in the unit that `chance` uses, with two more digits, rounded up."""
    exact = Decimal(repr(float(probability))) * _unit(probability)
    return f"{exact.quantize(Decimal('0.01'), rounding=ROUND_CEILING):,f}"
