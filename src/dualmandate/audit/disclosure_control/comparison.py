"""Risk beside accuracy on the same records: disclosure control before differential privacy, and DP at each ε.

The attack is the same everywhere: the most likely file, by an attacker who knows how many live in each place, how the
tables were made and what people elsewhere are like. Disclosure control has no ε: each method is a point, and nothing
bounds another attack. Of everybody, a guesser gets many right, because most people are like most others. Who has
something to lose is alone with their key in their place and unlike most of it: nonmodal uniques. An attacker knows the
key of each, everything but the secret, and names that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dualmandate.audit.disclosure_control.methods import (
    EPSILONS,
    Family,
    PublicationMethod,
    Subject,
    publication_methods,
)
from dualmandate.audit.finding import Rate
from dualmandate.audit.options import Effort
from dualmandate.audit.reconstruction.noisy import (
    KnownNumbers,
    guess,
    guessers,
    modal_shares,
    most_likely_within,
    stacked,
)
from dualmandate.audit.tables import Equations
from dualmandate.errors import InvalidRequest
from dualmandate.population import Domain, PrivacyLoss, PrivacyMeasure
from dualmandate.population.arrays import Floats, Integers

UNSEEN = 0.01  # The belief in what no other place has.


@dataclass(frozen=True)
class AttackRates:
    """How often an attack is right, beside two guessers who have no tables."""

    attack: Rate
    proportional: Rate
    modal: Rate

    def document(self) -> dict[str, object]:
        low, high = self.attack.interval()
        return {
            "attack": self.attack.value,
            "low": low,
            "high": high,
            "trials": self.attack.trials,
            "proportional_guesser": self.proportional.value,
            "modal_guesser": self.modal.value,
        }


@dataclass(frozen=True)
class MethodEvaluation:
    """One method of publication: the mean absolute error of its numbers, and what an attack gets right.

    `records` counts everybody; `standing_out` those who are alone with their key in their place and unlike most of it,
    None where nobody is. A hidden number counts with the error of what the other numbers make likely.
    """

    family: Family
    name: str
    error: float
    records: AttackRates
    nonmodal_uniques: AttackRates | None
    loss: PrivacyLoss | None = None  # None: the method has none
    planned: bool = False
    promised_error: float | None = None

    @property
    def epsilon(self) -> float | None:
        """The privacy loss where it is counted in ε."""
        return float(self.loss.amount) if self.loss and self.loss.privacy_measure is PrivacyMeasure.PURE_DP else None

    def document(self) -> dict[str, object]:
        return {
            "method": self.name,
            "family": self.family,
            "loss": None if self.loss is None else float(self.loss.amount),
            "currency": None if self.loss is None else str(self.loss.privacy_measure),
            "planned": self.planned,
            "mean_absolute_error": self.error,
            "promised_mean_absolute_error": self.promised_error,
            "records_right": self.records.document(),
            "nonmodal_uniques_right": None if self.nonmodal_uniques is None else self.nonmodal_uniques.document(),
        }


def compared_words(compared: Sequence[MethodEvaluation]) -> list[str]:
    """The comparison for people, a line a method, under what guessers without tables get right."""
    if not compared:
        return []
    lines = [
        "methods of publication, on people who were drawn for the audit; an attacker who rebuilds each place by "
        "itself, and knows its size and what people elsewhere are like, gets right"
    ]
    first = compared[0]
    for who, judged in (("of nonmodal uniques", first.nonmodal_uniques), ("of all records", first.records)):
        if judged is not None:
            lines.append(f"  beside it  {who}, proportional guesser: {judged.proportional}")
            lines.append(f"  beside it  {who}, modal guesser: {judged.modal}")
    for each in compared:
        out = "" if each.nonmodal_uniques is None else f"nonmodal uniques {each.nonmodal_uniques.attack}; "
        lines.append(f"  {each.name}, mean absolute error {each.error:.3g}: {out}records {each.records.attack}")
    return [*lines, ""]


def compare(
    subject: Subject,
    *,
    sensitivity: float,
    key: bytes,
    planned: Sequence[PublicationMethod] = (),
    epsilons: Sequence[float] = EPSILONS,
    effort: Effort | None = None,
) -> tuple[MethodEvaluation, ...]:
    """Every method on the same records, of several places, then what a plan would publish.

    `sensitivity` is that of all tables together, in the records of one unit.
    """
    truth = subject.truth
    if len(truth) < 2 or not truth.sum():
        raise InvalidRequest(
            f"{len(truth)} places with {int(truth.sum()):,} records",
            why="swapping exchanges records of two places, and a guesser learns from the others",
            instead="give at least two places, and somebody in them",
        )
    work, judge = effort or Effort(), _Judge.of(subject)
    found = []
    for method in (*publication_methods(subject, sensitivity=sensitivity, key=key, epsilons=epsilons), *planned):
        work.say(f"comparing methods: {method.name}")
        found.append(judge.compared(method))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Judge:
    """What every method is judged by: the truth, what is believed without tables, and the uniques."""

    subject: Subject
    equations: Equations
    expected: Floats
    sizes: Equations  # how many live in a place
    uniques: NonmodalUniques

    @classmethod
    def of(cls, subject: Subject) -> _Judge:
        sizes = Equations.of_matrix(np.ones((1, subject.truth.shape[1]), dtype=np.int64))
        uniques = find_nonmodal_uniques(subject.workload.domain, subject.truth, subject.secret)
        return cls(subject, Equations.of_workload(subject.workload), _believed(subject), sizes, uniques)

    def compared(self, method: PublicationMethod) -> MethodEvaluation:
        found = self._attacked(method)
        exact = self.equations.of(self.subject.truth)
        read = np.where(np.isnan(method.printed), (self.equations.matrix @ found.T).T, method.printed)
        error = float(np.abs(read - exact).mean())
        files = [found, *self._recoded(method)]
        records = max((self._everybody(file) for file in files), key=lambda judged: judged.attack.value)
        named = [judged for judged in (self._standing_out(file) for file in files) if judged is not None]
        alone = max(named, key=lambda judged: judged.attack.value, default=None)
        return MethodEvaluation(
            method.family, method.name, error, records, alone, method.loss, method.planned, method.promised_error
        )

    def _attacked(self, method: PublicationMethod) -> Floats:
        """The most likely file, given the numbers and how many live in each place."""
        counting = self.equations if method.counting is None else method.counting
        repeats = method.known.least.shape[1] // counting.rows
        living = KnownNumbers.shown(self.subject.truth.sum(axis=1, keepdims=True))
        rows = stacked(*([counting] * repeats), self.sizes)
        return most_likely_within(rows, method.known.beside(living), self.expected)

    def _recoded(self, method: PublicationMethod) -> list[Floats]:
        """Where changed records were tabulated: the tabulated file, undone, and as people find themselves in it."""
        if method.recoding is None:
            return []
        known = KnownNumbers.shown(
            np.concatenate([method.printed, self.subject.truth.sum(axis=1, keepdims=True)], axis=1)
        )
        expected = method.recoding.tabulated(self.expected)
        file = most_likely_within(stacked(self.equations, self.sizes), known, expected)
        return [method.recoding.undone(file), method.recoding.looked_up(file)]

    def _everybody(self, found: Floats) -> AttackRates:
        truth = self.subject.truth
        records = int(truth.sum())
        right = Rate(min(round(float(np.minimum(found, truth).sum())), records), records)
        proportional, modal = (each.success for each in guessers(truth, self.expected))
        assert isinstance(proportional, Rate)
        assert isinstance(modal, Rate)
        return AttackRates(right, proportional, modal)

    def _standing_out(self, found: Floats) -> AttackRates | None:
        people = self.uniques
        right, drawn, modal = people.named(found, self.expected), people.drawn(self.expected), people.modal()
        return None if right is None or drawn is None or modal is None else AttackRates(right, drawn, modal)


def _believed(subject: Subject) -> Floats:
    """The guess from other places, with a little belief in whatever no other place has seen."""
    able = subject.possible / subject.possible.sum()
    equal = subject.truth.sum(axis=1, keepdims=True) * able
    return np.asarray((1 - UNSEEN) * guess(subject.truth) * subject.possible + UNSEEN * equal)


@dataclass(frozen=True, eq=False)
class NonmodalUniques:
    """Nonmodal uniques of a population: one row each.

    `secrets` are true levels of the secret attribute; `key_cells` are the cells of each one's key, one a level of the
    secret; shape (people, levels).
    """

    places: Integers = field(repr=False)
    key_cells: Integers = field(repr=False)
    secrets: Integers = field(repr=False)

    def named(self, file: Floats, believed: Floats) -> Rate | None:
        """How many an attacker names right who has this file, and otherwise believes another one.

        The most likely secret of the file, one drawn in proportion to it, or one drawn as if there were no tables:
        whichever is right most often, drawn ones as expected. None where there is no unique. Files have shape (places,
        cells).
        """
        if not len(self.places):
            return None
        chances = file[self.places[:, None], self.key_cells]
        shares = np.take_along_axis(modal_shares(chances), self.secrets[:, None], axis=1)
        likely = round(float(shares.sum()))  # of secrets that are as likely, one is named at random
        return Rate(max(likely, self._drawn(file), self._drawn(believed)), len(self.places))

    def drawn(self, file: Floats) -> Rate | None:
        """How many a guesser gets right who draws each one's secret in proportion to a file."""
        return Rate(self._drawn(file), len(self.places)) if len(self.places) else None

    def _drawn(self, file: Floats) -> int:
        chances = file[self.places[:, None], self.key_cells]
        totals = chances.sum(axis=1)
        true = np.take_along_axis(chances, self.secrets[:, None], axis=1)[:, 0]
        shares = np.divide(true, totals, out=np.zeros(len(true)), where=totals > 0)
        return round(float(shares.sum()))

    def modal(self) -> Rate | None:
        """How many are named right by the most frequent secret of their place: nobody, by what they are."""
        return Rate(0, len(self.places)) if len(self.places) else None


def secret_of(domain: Domain, stated: Sequence[str] = ()) -> int | None:
    """The attribute that an attacker is after: the first stated, else the last with a choice of levels.

    None where no other attribute makes a key.
    """
    named = [domain.axis(name) for name in stated if name in domain.names]
    if named and len(domain.shape) > 1:
        return named[0]
    able = [axis for axis, size in enumerate(domain.shape) if size > 1]
    return able[-1] if able and len(domain.shape) > 1 else None


def find_nonmodal_uniques(domain: Domain, truth: Integers, secret: int | None) -> NonmodalUniques:
    """The nonmodal uniques; `truth` has shape (places, cells). Nobody where there is no secret beside a key."""
    if secret is None:
        nobody = np.zeros(0, dtype=np.int64)
        return NonmodalUniques(nobody, nobody.reshape(0, 1), nobody)
    levels = domain.shape[secret]
    cells = np.moveaxis(np.arange(domain.size).reshape(domain.shape), secret, -1).reshape(-1, levels)
    counts = truth[:, cells]  # (places, keys, levels of the secret)
    alike = counts.sum(axis=1)  # (places, levels of the secret)
    places, keys = np.nonzero(counts.sum(axis=2) == 1)
    secrets = counts[places, keys].argmax(axis=1)
    unlike = alike[places, secrets] < alike.max(axis=1)[places]  # of several that are most frequent, each is
    return NonmodalUniques(places[unlike], cells[keys[unlike]], secrets[unlike])


def key_in_words(domain: Domain, secret: int | None, place: str) -> str | None:
    """Who is unique by what, and what is the secret; None where there is none."""
    if secret is None:
        return None
    known = [name for axis, name in enumerate(domain.names) if axis != secret]
    listed = known[0] if len(known) == 1 else f"{', '.join(known[:-1])} and {known[-1]}"
    return f"alone with their {listed} in their {place}, and unlike most of it in {domain.names[secret]}"
