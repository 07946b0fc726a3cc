"""What a privacy loss means to a person: how far beliefs can move, what a test can find, and the guarantee as printed.

A secret is a pair of statements about a person that cannot both be true; what an attacker believes is a prior on the
first of them. A release with pure loss ε moves the odds between two neighboring files by at most e^{±ε}, whatever the
attacker knows about everybody else, provided that records are drawn independently (the paper's equation for semantic
privacy; [KM12] theorem 6.1). Files that lie several neighbor steps apart lose the bound of each step:

    secret                          add-or-remove     replace-one
    in the file with a, or out           1 step       not protected: the number of records is public
    in with a, or in with b              2 steps      1 step

With a failure probability δ no bound holds for every outcome. For any β > δ the odds move, up or down, by more than
(β·e^ε + δ)/(β − δ) with probability at most β: if B is the set of outcomes whose likelihood ratio exceeds e^t, then
P(B) ≤ e^ε·P′(B) + δ ≤ e^{ε−t}·P(B) + δ, so P(B) ≤ δ/(1 − e^{ε−t}); outcomes whose ratio is below e^{−t} add at most
e^{−t} times as much, and both together are β at e^t = (β·e^ε + δ)/(β − δ).

An attacker who accuses the innocent rarely also finds the guilty rarely: under (ε, δ) every test of one neighboring
file against the other obeys power ≤ e^ε·α + δ and 1 − α ≤ e^ε·(1 − power) + δ ([WZ10], [KOV15]).

Rule for printed numbers. A belief is said as a whole number in 100, the nearest one; in 1,000, 10,000, … where 100
would turn it into 0 or into certainty. A bound said so may be rounded the unsafe way, so the bound itself stands beside
it with two digits behind the point, never below the bound: "at most 11.23 in 100 likely". Losses and
factors are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from fractions import Fraction

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidPreferences
from dualmandate.population import Neighbors, PrivacyLoss, PrivacyMeasure, Protection, rational
from dualmandate.population.loss import epsilon_at
from dualmandate.population.shown import one_line

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
UNBOUNDED = "A concentrated loss bounds beliefs only up to a failure probability, and none was stated."
# A concentrated loss gives one (ε, δ) for each δ; the smallest of their bounds holds.
_FAILURE_PROBABILITIES = np.concatenate([np.logspace(-12, -2, 21), np.linspace(0.02, 0.98, 25)])


class Secret(StrEnum):
    """The two kinds of statements about a person that a release may help to tell apart."""

    IN_OR_OUT = "in or out"
    ATTRIBUTE = "one attribute or another"


@dataclass(frozen=True)
class Belief:
    """What somebody believed before a release, and the least and most they can believe after it; all in [0, 1]."""

    prior: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class OddsBound:
    """How far the odds of a secret can move: by a factor between e^{−log_factor} and e^{log_factor}.

    `log_factor` is infinite where the secret is not protected. `exception_probability` β is 0 for a pure loss; with a
    δ it is the probability with which the bound may fail, upward or downward.
    """

    log_factor: float
    exception_probability: float = 0.0

    @property
    def protected(self) -> bool:
        """Whether anything is promised about this secret."""
        return math.isfinite(self.log_factor)

    @property
    def factor(self) -> float:
        """Largest factor on the odds, e^{log_factor}; infinite where it exceeds every number."""
        return math.exp(self.log_factor) if self.log_factor < 709.0 else math.inf

    def belief(self, prior: float) -> Belief:
        """The beliefs a prior can turn into."""
        return Belief(prior, posterior(prior, -self.log_factor), posterior(prior, self.log_factor))


def posterior(prior: float, log_factor: float) -> float:
    """Belief after the odds moved by e^t: p·e^t/(1 − p + p·e^t), computed without overflow."""
    checked_probability(prior, "a prior belief")
    if prior in (0.0, 1.0):
        return prior
    log_odds = math.log(prior) - math.log1p(-prior) + log_factor
    if log_odds >= 0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    return math.exp(log_odds) / (1.0 + math.exp(log_odds))


def odds_bound(
    loss: PrivacyLoss,
    secret: Secret = Secret.IN_OR_OUT,
    *,
    neighbors: Neighbors = Neighbors.ADD_OR_REMOVE,
    records: int = 1,
    failure_probability: float | None = None,
    exception_probability: float | None = None,
) -> OddsBound:
    """How far a loss lets the odds of a secret move: e^{±ε}, e^{±2ε}, e^{±mε} for m records that change together.

    A loss in ρ is first expressed in ε at the `failure_probability`, after multiplying ρ by the square of the number of
    neighbor steps. `exception_probability` is the β of the module's text; by default √δ, which costs nothing visible.
    """
    steps = neighbor_steps(secret, neighbors)
    if steps is None:
        return OddsBound(math.inf)
    epsilon, delta = after_steps(loss, steps * records, failure_probability)
    return _with_exceptions(epsilon, delta, exception_probability)


def participation_bound(loss: PrivacyLoss, *, records: int = 1) -> OddsBound:
    """How much one's own record adds to any conclusion: the odds with it, over the odds without it, are e^{±2ε}.

    Posterior against posterior: whatever the attacker wants to know and however records depend on each other, the
    likelihood of each of two statements changes by at most e^{±ε} when one record is left out (Nissim et al. 2018).
    Pure losses only: with a δ, outcomes that are rare under one statement may be common under the other, and there the
    odds may differ by any factor.
    """
    if loss.privacy_measure is PrivacyMeasure.ZCDP or loss.failure_probability:
        raise InvalidLoss(
            f"no bound on the odds of any two statements follows from {loss}",
            why="where δ > 0, the likelihood of an unlikely statement may change by any factor",
            instead="state a pure epsilon, or say how often a conclusion is drawn: at most e^ε times as often, plus δ",
        )
    epsilon, _ = after_steps(loss, records, None)
    return OddsBound(2.0 * epsilon)


def neighbor_steps(secret: Secret, neighbors: Neighbors) -> int | None:
    """Number of neighbor steps between the two files of a secret; None where no number of steps leads there."""
    if neighbors is Neighbors.REPLACE_ONE:
        return 1 if secret is Secret.ATTRIBUTE else None
    return 1 if secret is Secret.IN_OR_OUT else 2


def after_steps(loss: PrivacyLoss, steps: int, failure_probability: float | None) -> tuple[float, float]:
    """The (ε, δ) between files `steps` neighbor steps apart: mε; with δ, δ·(e^{mε} − 1)/(e^ε − 1); in ρ, m²ρ."""
    if steps < 1:
        raise InvalidLoss(
            f"a group of {steps} records",
            why="a guarantee is stated for at least one record",
            instead="ask for one record or more",
        )
    if loss.privacy_measure is PrivacyMeasure.ZCDP:
        if failure_probability is None:
            raise InvalidLoss(
                f"no bound on beliefs follows from {loss} alone",
                why="a concentrated loss bounds beliefs only up to a failure probability δ",
                instead="state a failure probability, for example 1e-10",
            )
        return epsilon_at(float(loss.amount) * steps**2, failure_probability), failure_probability
    epsilon, delta = float(loss.amount), float(loss.failure_probability)
    if delta == 0.0:
        return steps * epsilon, 0.0
    grown = sum(math.exp(min(step * epsilon, 700.0)) for step in range(steps)) * delta
    return steps * epsilon, min(grown, 1.0)


def _with_exceptions(epsilon: float, delta: float, exception_probability: float | None) -> OddsBound:
    if delta == 0.0:
        return OddsBound(epsilon)
    exceptions = math.sqrt(delta) if exception_probability is None else exception_probability
    if exceptions <= delta:
        return OddsBound(math.inf, exceptions)
    # ln((β·e^ε + δ)/(β − δ)) without overflow.
    log_factor = epsilon + math.log(exceptions + delta * math.exp(-epsilon)) - math.log(exceptions - delta)
    return OddsBound(log_factor, exceptions)


def checked_probability(value: float, what: str) -> float:
    """The value, refused unless it lies in [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise InvalidPreferences(
            f"{what} of {value}", why="a probability lies between 0 and 1", instead="state a number from 0 to 1"
        )
    return value


def epsilon_for_relative_risk(relative_risk: float, prior: float, *, steps: int = 1) -> float:
    """The largest ε that keeps posterior ≤ r·prior: ε = ln(r(1 − p)/(1 − rp)), infinite once rp ≥ 1.

    `steps` is the number of neighbor steps of the secret (2: attribute against attribute under add-or-remove).
    Source: [KR23], solved for ε.
    """
    if not relative_risk > 1.0:
        raise InvalidPreferences(
            f"a relative risk of {relative_risk} at prior {prior}",
            why="every release that says something lets some belief rise, so no epsilon keeps it from rising at all",
            instead="state a ratio of posterior to prior above 1",
        )
    if not 0.0 < prior < 1.0:
        raise InvalidPreferences(
            f"a prior of {prior}",
            why="somebody who is certain learns nothing",
            instead="state a prior strictly between 0 and 1",
        )
    if relative_risk * prior >= 1.0:
        return math.inf
    return (math.log(relative_risk) + math.log1p(-prior) - math.log1p(-relative_risk * prior)) / steps


def largest_power(false_positive_rate: float, epsilon: float, failure_probability: float = 0.0) -> float:
    """The most that a test with false-positive rate α can detect: min(e^ε·α + δ, 1 − e^{−ε}·(1 − δ − α)), in [α, 1]."""
    alpha = checked_probability(false_positive_rate, "a false-positive rate")
    delta = checked_probability(failure_probability, "a failure probability")
    rising = math.exp(min(epsilon, 709.0)) * alpha + delta
    falling = 1.0 - math.exp(-epsilon) * (1.0 - delta - alpha)
    return min(rising, falling, 1.0)


def power_of_best_test(
    false_positive_rate: float,
    loss: PrivacyLoss,
    secret: Secret = Secret.IN_OR_OUT,
    *,
    neighbors: Neighbors = Neighbors.ADD_OR_REMOVE,
    records: int = 1,
) -> float:
    """The most that any test of a secret can detect at a false-positive rate; 1 where the secret is not protected."""
    checked_probability(false_positive_rate, "a false-positive rate")
    steps = neighbor_steps(secret, neighbors)
    if steps is None:
        return 1.0
    if loss.privacy_measure is not PrivacyMeasure.ZCDP:
        return largest_power(false_positive_rate, *after_steps(loss, steps * records, None))
    pairs = (after_steps(loss, steps * records, float(delta)) for delta in _FAILURE_PROBABILITIES)
    return min(largest_power(false_positive_rate, epsilon, delta) for epsilon, delta in pairs)


@dataclass(frozen=True)
class GroupLoss:
    """The loss of some units whose records change together; `loss` is None where nothing is guaranteed any more."""

    label: str
    units: int
    loss: PrivacyLoss | None
    words: str

    __repr__ = one_line


@dataclass(frozen=True)
class Guarantee:
    """A guarantee in words, part by part, for the plan and the dossier."""

    protected: str
    indistinguishable: str
    not_protected: tuple[str, ...]
    losses: tuple[GroupLoss, ...]
    beliefs: tuple[str, ...]
    assumption: str = ASSUMPTION

    __repr__ = one_line

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
    seen_in_the_data: Sequence[str] = (),
) -> Guarantee:
    """The guarantee of a release with this loss: for one unit, for two, and for a household of the declared size.

    A concentrated loss states beliefs only with a `failure_probability`; without one they are left out, and said so.
    What the program took from the records, by its keys (`seen_in_the_data`), is not protected.
    """
    if household_size is not None and household_size < 1:
        raise InvalidLoss(
            f"a household of {household_size}",
            why="a household has at least one member",
            instead="state household_size ≥ 1, or leave it out",
        )
    one = f"one {protection.unit}" if protection.protects_units else f"one record of a {protection.unit}"
    groups = [(one, 1), ("two, changing together", 2)]
    if household_size is not None:
        groups.append((f"a household of {household_size}, changing together", household_size))
    beliefs: tuple[str, ...] = (UNBOUNDED,)
    if loss.privacy_measure is not PrivacyMeasure.ZCDP or failure_probability is not None:
        beliefs = sentences(loss, protection, failure_probability=failure_probability)
    together = protection.records_together
    return Guarantee(
        **promise(protection),
        not_protected=(*seen_words(seen_in_the_data), *_not_protected(protection)),
        losses=tuple(_group_loss(label, units, loss, units * together, failure_probability) for label, units in groups),
        beliefs=beliefs,
    )


def seen_words(keys: Sequence[str]) -> tuple[str, ...]:
    """What is said of what a program file took from the records; nothing where it took nothing."""
    if not keys:
        return ()
    return (
        f"What the program file took from the confidential records: {', '.join(keys)}. Noise does not cover it, and "
        "it is public with the file.",
    )


def promise(protection: Protection) -> dict[str, str]:
    """Who is protected, and which files cannot be told apart: what holds whatever the loss is."""
    return {"protected": _protected(protection), "indistinguishable": _indistinguishable(protection)}


def _protected(protection: Protection) -> str:
    unit = protection.unit
    if not protection.protects_units:
        return (
            f"Every record, and not every {unit}: nothing identifies a {unit} here, and one with several records in "
            "the file is protected for each of them, not for all of them together."
        )
    if protection.most_records_per_unit == 1:
        said = protection.one_record_source
        vouched = "" if said is None else f" One record a {unit} is stated, not checked: {said}."
        return f"Every {unit}, through the one record that is or could have been in the file.{vouched}"
    return (
        f"Every {unit}, through all of its records together: at most {protection.most_records_per_unit}, "
        f"found by '{protection.identifier}'."
    )


def _indistinguishable(protection: Protection) -> str:
    relation = f"Two files where one comes from the other by this step: {protection.relation}."
    together = protection.records_changing_together
    if together is None or (together == 1 and protection.records_established):
        return relation
    several = f"up to {together} records change together" if together > 1 else "one record changes alone"
    relation += f" So that the exact totals stay, {several}, and the losses below are for that many."
    if protection.records_established:
        return (
            f"{relation} Steps of at most so many records link all files with the same exact totals; two files that "
            "are several such steps apart are told apart by no more than the losses of these steps together."
        )
    return (
        f"{relation} The guarantee is conditional on this number, which the program states: it was not established "
        "that steps of so many records link all files with the same exact totals, and two of them that differ in more "
        "records may be told apart more easily than the losses below say."
    )


def _not_protected(protection: Protection) -> tuple[str, ...]:
    unit = protection.unit
    lines = []
    if not protection.protects_units:
        lines.append(
            f"A {unit} with several records in the file, beyond each record by itself: with k of them the loss is as "
            "for k records that change together."
        )
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
    lines.append(f"What others know or publish about the {unit}, and what the program file states.")
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
        f"someone who thought it {chance(belief.prior)} likely may come to think it at most {at_most(belief.highest)} "
        "likely"
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
    if together > 1:
        open_still += f" to files that differ in at most {together} records"
    question = f"whether the {unit} is in the file" if tested is Secret.IN_OR_OUT else "which of two records it is"
    return (
        _in_or_out(loss, protection, before, failure_probability),
        f"Which of two records{open_still} a given {unit} has: {_odds(attribute)}{_beliefs(attribute, before)}.",
        _own_record(loss, protection, failure_probability),
        f"A test of {question} that accuses {chance(FALSE_POSITIVE_RATE)} of those it should not finds at most "
        f"{at_most(power)} of those it should.",
    )


def secret_bounds(
    loss: PrivacyLoss, protection: Protection, *, failure_probability: float | None = None
) -> tuple[tuple[str, OddsBound], ...]:
    """Each secret that is protected, in words, with the bound on how far the odds of it can move."""
    unit, together = protection.unit, protection.records_changing_together or 1
    asked = (
        (f"whether a given {unit} is in the file with a given record, or not in it", Secret.IN_OR_OUT, 1),
        (f"which of two records a given {unit} has", Secret.ATTRIBUTE, together),
    )
    neighbors, probability = protection.neighbors, failure_probability
    found = (
        (words, odds_bound(loss, secret, neighbors=neighbors, records=records, failure_probability=probability))
        for words, secret, records in asked
    )
    return tuple((words, bound) for words, bound in found if bound.protected)


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
    rarely = rounded_up(bound.exception_probability, 2) if bound.exception_probability else None
    exceptions = f" (except with probability at most {rarely})" if rarely else ""
    return f"the odds rise or fall by a factor of at most {rounded_up(bound.factor)}{exceptions}"


def _unit(probability: float) -> int:
    unit = 100
    while unit < _LARGEST_UNIT and 0.0 < probability < 1.0 and round(probability * unit) in (0, unit):
        unit *= 10
    return unit


def at_most(probability: float) -> str:
    """A bound on a probability in the unit that `chance` uses, with two more digits, rounded up: "11.23 in 100"."""
    unit = _unit(probability)
    exact = (Decimal(repr(float(probability))) * unit).quantize(Decimal("0.01"), rounding=ROUND_CEILING)
    return f"{f'{exact:,f}'.rstrip('0').rstrip('.')} in {unit:,}"
