"""The guarantee as it is printed: who is protected, from what, what is not protected at all, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dualmandate.errors import InvalidLoss
from dualmandate.population import Currency, Neighbors, PrivacyLoss, Protection
from dualmandate.population.conversion import epsilon_at
from dualmandate.semantics.posterior import after_steps
from dualmandate.semantics.wording import rounded_up, sentences

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
        """The whole guarantee as lines of text."""
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
                    "currency": None if group.loss is None else group.loss.currency.value,
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
    if loss.currency is Currency.RHO and failure_probability is None:
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
    words = f"{group.currency} = {rounded_up(group.amount, 6)}"
    if group.currency is Currency.RHO and failure_probability is not None:
        epsilon = epsilon_at(float(group.amount), failure_probability)
        words += f" (epsilon = {rounded_up(epsilon, 6)} at δ = {failure_probability:.3g})"
    return GroupLoss(label, units, group, words)
