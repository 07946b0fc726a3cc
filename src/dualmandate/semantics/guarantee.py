"""The guarantee as it is printed: who is protected, from what, what is not protected at all, and what it costs.

Rule for numbers. A belief is said as a whole number in 100, the nearest one; in 1,000, 10,000, … where 100 would turn
it into 0 or into certainty. A bound said so may be rounded the unsafe way, so the bound itself stands beside it with
two more digits, rounded away from safety: "at most 11 in 100 likely (unrounded, at most 11.23)". Losses and factors are
rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from dualmandate.errors import InvalidLoss
from dualmandate.population import Neighbors, PrivacyLoss, PrivacyMeasure, Protection, rational
from dualmandate.population.loss import epsilon_at
from dualmandate.semantics.posterior import (
    Belief,
    OddsBound,
    Secret,
    after_steps,
    odds_bound,
    participation_bound,
    power_of_best_test,
)

# Beliefs that are spoken of, and how often a test may accuse the innocent.
PRIORS = (0.01, 0.1, 0.5)
FALSE_POSITIVE_RATE = 0.05
_LARGEST_UNIT = 10**9
ASSUMPTION = (
    "The noise comes from ChaCha20 under a secret key: the guarantee holds against anyone who cannot tell its output "
    "from true randomness and does not know the key. What somebody may come to think about being in the file and about "
    "two records is bounded for records that are drawn independently of each other; the other statements need no such "
    "assumption."
)


@dataclass(frozen=True)
class GroupLoss:
    """The loss of some units whose records change together; `loss` is None where nothing is guaranteed any more."""

    label: str
    units: int
    loss: PrivacyLoss | None
    words: str


@dataclass(frozen=True)
class Guarantee:
    """A guarantee in words, part by part, for the plan and the dossier."""

    protected: str
    indistinguishable: str
    not_protected: tuple[str, ...]
    losses: tuple[GroupLoss, ...]
    beliefs: tuple[str, ...]
    assumption: str = ASSUMPTION

    def words(self) -> str:
        lines = ["Who is protected", f"  {self.protected}"]
        lines += ["Which files cannot be told apart", f"  {self.indistinguishable}"]
        lines += ["What is not protected at all", *(f"  {line}" for line in self.not_protected)]
        lines += ["Privacy loss", *(f"  {group.label}: {group.words}" for group in self.losses)]
        lines += ["What that means", *(f"  {line}" for line in self.beliefs)]
        lines += ["What it assumes", f"  {self.assumption}"]
        return "\n".join(lines)

    def document(self) -> dict[str, object]:
        """The guarantee as JSON values; losses also as exact strings."""
        return {
            "protected": self.protected,
            "indistinguishable": self.indistinguishable,
            "not_protected": list(self.not_protected),
            "losses": [
                {
                    "label": group.label,
                    "units": group.units,
                    "exact": None if group.loss is None else group.loss.exact(),
                    "currency": None if group.loss is None else group.loss.privacy_measure.value,
                    "words": group.words,
                }
                for group in self.losses
            ],
            "beliefs": list(self.beliefs),
            "assumption": self.assumption,
        }


def guarantee(
    protection: Protection,
    loss: PrivacyLoss,
    household_size: int | None = None,
    *,
    failure_probability: float | None = None,
) -> Guarantee:
    """The guarantee of a release with this loss: for one unit, for two, and for a household of the declared size.

    A concentrated loss states beliefs only with a `failure_probability`; without one they are left out, and said so.
    """
    if household_size is not None and household_size < 1:
        raise InvalidLoss(
            f"a household of {household_size}",
            why="a household has at least one member",
            instead="state household_size ≥ 1, or leave it out",
        )
    groups = [(f"one {protection.unit}", 1), ("two, changing together", 2)]
    if household_size is not None:
        groups.append((f"a household of {household_size}, changing together", household_size))
    if loss.privacy_measure is PrivacyMeasure.ZCDP and failure_probability is None:
        beliefs: tuple[str, ...] = (
            "A concentrated loss bounds beliefs only up to a failure probability, and none was stated.",
        )
    else:
        beliefs = sentences(loss, protection, failure_probability=failure_probability)
    together = protection.records_together
    return Guarantee(
        protected=_protected(protection),
        indistinguishable=_indistinguishable(protection),
        not_protected=_not_protected(protection),
        losses=tuple(_group_loss(label, units, loss, units * together, failure_probability) for label, units in groups),
        beliefs=beliefs,
    )


def _protected(protection: Protection) -> str:
    if protection.most_records_per_unit == 1:
        return f"Every {protection.unit}, through the one record that is or could have been in the file."
    return (
        f"Every {protection.unit}, through all of its records together: at most {protection.most_records_per_unit}, "
        f"found by '{protection.identifier}'."
    )


def _indistinguishable(protection: Protection) -> str:
    relation = f"Two files where one comes from the other by this step: {protection.relation}."
    if protection.records_changing_together is not None:
        relation += (
            f" The exact totals let no record change alone: {protection.records_changing_together} records change "
            "together, and the losses below are for that many."
        )
    return relation


def _not_protected(protection: Protection) -> tuple[str, ...]:
    unit = protection.unit
    lines = []
    if protection.neighbors is Neighbors.REPLACE_ONE:
        lines.append(f"The number of records, and so whether a given {unit} is in the file at all: both are public.")
    for invariant in protection.invariants:
        of = f"for each {' × '.join(invariant.by)}" if invariant.by else "in all"
        where = ", ".join(f"{name} {' or '.join(levels)}" for name, levels in invariant.where)
        counted = f" with {where}" if where else ""
        lines.append(
            f"'{invariant.name}': the number of records{counted} {of} is published exactly, and with it whatever "
            f"follows about a {unit} from these numbers."
        )
    lines.append(
        f"What the statistics say about people in general, and so about a {unit} who is like them, in the file or not."
    )
    lines.append(f"What others know or publish about the {unit}, and what the program file itself states.")
    return tuple(lines)


def _group_loss(
    label: str, units: int, loss: PrivacyLoss, records: int, failure_probability: float | None
) -> GroupLoss:
    if loss.failure_probability:
        _, delta = after_steps(loss, records, None)
        if delta >= 1.0:
            return GroupLoss(label, units, None, "nothing is guaranteed: the failure probability has grown to 1")
        # The exact sum of exponentials is irrational: a float rounded up states it safely.
        exact = loss.failure_probability if records == 1 else Fraction(delta * (1 + 1e-12))
        grown = PrivacyLoss(loss.amount * records, failure_probability=exact)
        return GroupLoss(label, units, grown, f"epsilon = {rounded_up(grown.amount, 6)}, δ = {rounded_up(delta, 3)}")
    group = loss.for_records(records)
    words = f"{group.privacy_measure} = {rounded_up(group.amount, 6)}"
    if group.privacy_measure is PrivacyMeasure.ZCDP and failure_probability is not None:
        epsilon = epsilon_at(float(group.amount), failure_probability)
        words += f" (epsilon = {rounded_up(epsilon, 6)} at δ = {failure_probability:.3g})"
    return GroupLoss(label, units, group, words)


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
    exact = Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    rounded = rational.rounded_up(exact, digits)
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
