"""People behind published tables: with noise, with names, one bit each, present or absent; and methods side by side.

The census is generated, its tables and ages are those of `audited_records`. Every rate stands beside those who guess
without tables, in the same run; more is better for the attacker.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dualmandate.audit.claims.membership import bound_trial
from dualmandate.audit.disclosure_control.comparison import MethodEvaluation, compare
from dualmandate.audit.disclosure_control.methods import Subject, record_counts, record_list, swap
from dualmandate.audit.finding import Rate
from dualmandate.audit.linkage.linking import LinkageCounts, reidentify_counts
from dualmandate.audit.options import generator
from dualmandate.audit.reconstruction.exact import reconstruct
from dualmandate.audit.reconstruction.noisy import decode, least_absolute, most_likely, whole_records
from dualmandate.audit.tables import Equations
from dualmandate.benchmarks import generated_blocks
from dualmandate.benchmarks.harness import BenchmarkRow
from dualmandate.mechanism import GEOMETRIC
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.wording import percent

KEY = b"draws of a benchmark"
EPSILONS = (0.25, 1.0, 4.0, 16.0)
ELSEWHERE, UNSEEN = 400, 0.01  # blocks that a guesser learns from; belief in what none of them has
SECRET = ("hispanic", "race")
SWAPPED, LINKED_EPSILON = 0.05, 1.0
SUMS_A_PERSON = {1_000: 4, 5_000: 2}
EPSILON_A_SUM = (0.2, 0.05)
STANDARD_ERRORS = 3.0
MOST_ABOVE_GUESS = 0.05  # of nonmodal uniques, under DP at ε = 1
SHOWN = ("exact tables", "5 % swapped", "suppressed below 3", "ε = 1", "ε = 4", "ε = 16")  # of all that are compared


@dataclass(frozen=True, eq=False)
class People:
    """Generated blocks that are attacked, and what is expected of each by somebody who knows its size and others."""

    truth: Integers = field(repr=False)
    expected: Floats = field(repr=False)

    @classmethod
    def of(cls, blocks: int) -> People:
        """The first blocks of a census; the ones after them are what is known of elsewhere."""
        everybody = generated_blocks.blocks(blocks + ELSEWHERE, seed=11)
        truth, elsewhere = everybody[:blocks], everybody[blocks:].sum(axis=0)
        shares = (1 - UNSEEN) * elsewhere / elsewhere.sum() + UNSEEN / len(elsewhere)
        return cls(truth, truth.sum(axis=1, keepdims=True) * shares)

    @cached_property
    def tables(self) -> Equations:
        """What is published of each block."""
        return Equations.of_workload(generated_blocks.tables())

    @cached_property
    def sensitivity(self) -> float:
        """How many numbers one record changes, by 1 each."""
        return float(generated_blocks.tables().sensitivity().value)

    def noisy(self, epsilon: float) -> tuple[Floats, Floats]:
        """All tables with geometric noise at one ε for all of them, and the mean size of each number's noise."""
        law = GEOMETRIC.at(epsilon / self.sensitivity)
        exact = self.tables.of(self.truth)
        noise = law.draw(generator(KEY, f"noise at {epsilon}"), exact.shape)
        return (exact + noise).astype(np.float64), np.full(self.tables.rows, law.mean_absolute)

    def most_likely(self, epsilon: float) -> Floats:
        """The most likely counts behind these, with what is expected beforehand."""
        published, scales = self.noisy(epsilon)
        return most_likely(self.tables, published, scales=scales, expected=self.expected)

    def right(self, found: Floats | Integers) -> Rate:
        """Records that are right; parts of a record add up."""
        return Rate(round(float(np.minimum(found, self.truth).sum())), int(self.truth.sum()))


def beside_guesser(case: str, right: Rate, what: str, guessed: Rate, *, promised: bool = False) -> BenchmarkRow:
    """What an attack gets right, beside a guesser who draws in proportion without tables."""
    least = guessed.value if promised else None
    return BenchmarkRow(
        case, right.value, in_words(right, what), least, "proportional guesser", guessed.value, is_floor=True
    )


def in_words(right: Rate, what: str) -> str:
    """The unit of a rate, with its interval."""
    low, high = right.interval()
    return f"share of {right.trials:,} {what} right, 95 % from {low:.3f} to {high:.3f}"


def noisy_tables(progress: Callable[[str], None], blocks: int) -> list[BenchmarkRow]:
    """Records from noisy tables: the most likely file, and the linear program without a prior."""
    people, found = People.of(blocks), list[BenchmarkRow]()
    guessed = people.right(people.expected)
    for epsilon in EPSILONS:
        case = f"{blocks} generated blocks with noise at ε = {epsilon:g}"
        progress(case)
        published, scales = people.noisy(epsilon)
        likely = people.right(people.most_likely(epsilon))
        program = people.right(np.stack([least_absolute(people.tables, own, scales=scales) for own in published]))
        found.append(beside_guesser(f"{case}, most likely file", likely, "records", guessed, promised=True))
        found.append(beside_guesser(f"{case}, linear program", program, "records", guessed))
    return found


def decoding(progress: Callable[[str], None], persons: Sequence[int]) -> list[BenchmarkRow]:
    """One secret bit a person from noisy sums over random halves, beside what least squares lets one expect."""
    found = []
    for count in persons:
        draws = generator(KEY, f"sums over {count}")
        sums = SUMS_A_PERSON.get(count, 4) * count
        groups, bits = draws.random((sums, count), dtype=np.float32) < 0.5, draws.random(count) < 0.5
        exact = (groups.astype(np.float32) @ bits.astype(np.float32)).astype(np.float64)
        for epsilon in EPSILON_A_SUM:
            case = f"one bit of each of {count:,} persons from {sums:,} sums, ε = {epsilon:g} each"
            progress(case)
            answers = exact + draws.laplace(0.0, 1 / epsilon, sums)
            started = time.process_time()
            decoded = decode(groups, answers, deviation=math.sqrt(2) / epsilon)
            seconds = time.process_time() - started
            theory = decoded.expected
            least = theory - STANDARD_ERRORS * math.sqrt(theory * (1 - theory) / count)
            right = Rate(int((decoded.bits == bits).sum()), count)
            found.append(
                BenchmarkRow(case, right.value, in_words(right, "bits"), least, "theory", theory, is_floor=True)
            )
            found.append(BenchmarkRow(case, seconds, "processor seconds"))
    return found


def membership(progress: Callable[[str], None], draws: int) -> list[BenchmarkRow]:
    """Whether a true-positive rate is ever above what ε and δ allow, and whether too little noise is caught."""
    case = f"membership, {draws:,} draws with and without the member for each mechanism"
    progress(case)
    trial = bound_trial(draws=draws)
    halved = bound_trial(draws=draws, noise_share=0.5)
    of = f"of {len(trial.comparisons)} comparisons with e^ε·FPR + δ"
    return [
        BenchmarkRow(case, float(len(trial.exceedances)), f"exceedances {of}", target=0.0),
        BenchmarkRow(case, trial.closest, "times the bound, at most, that a test certainly reached", target=1.0),
        BenchmarkRow(
            f"{case}, half of the noise", float(len(halved.exceedances)), f"exceedances {of}", target=1.0, is_floor=True
        ),
    ]


def names(progress: Callable[[str], None], blocks: int) -> list[BenchmarkRow]:
    """Race and origin put to names by block, sex and age: from exact tables, after swapping, and under DP."""
    people, found = People.of(blocks), list[BenchmarkRow]()
    case = f"{blocks:,} generated blocks, race and origin by block, sex and age"
    for release, tabulated in (("exact tables", people.truth), (f"{percent(SWAPPED)} swapped", _swapped(people.truth))):
        progress(f"{case}, {release}")
        solved = list(reconstruct(people.tables, people.tables.of(tabulated), workers=2))
        counts = np.array([each.counts for each in solved])
        for file, truth in (("tabulated", tabulated), ("confidential", people.truth)):
            agreed = Rate(int(np.minimum(counts, truth).sum()), int(truth.sum()))
            words = f"{in_words(agreed, 'records')}, against the {file} file"
            found.append(BenchmarkRow(f"{case}, {release}", agreed.value, words))
        unique = np.array([each.unique for each in solved])
        links = reidentify_counts(counts, people.truth, generated_blocks.domain(), secret=SECRET, proved=unique)
        groups = {
            "everybody": links.everybody,
            "nonmodal uniques": links.nonmodal_uniques,
            "nonmodal uniques of blocks proved unique": links.proved_uniques,
        }
        found += _linked(f"{case}, {release}", groups)
    return [*found, *_private_names(progress, people, case)]


def _private_names(progress: Callable[[str], None], people: People, case: str) -> list[BenchmarkRow]:
    words = f"{case}, ε = {LINKED_EPSILON:g}"
    progress(words)
    likely = people.most_likely(LINKED_EPSILON)
    whole = [whole_records(own, total=int(truth.sum())) for own, truth in zip(likely, people.truth, strict=True)]
    links = reidentify_counts(np.array(whole), people.truth, generated_blocks.domain(), secret=SECRET)
    found = _linked(words, {"everybody": links.everybody, "nonmodal uniques": links.nonmodal_uniques})
    last = found[-1]
    assert last.ours is not None
    assert last.peer_value is not None
    above = BenchmarkRow(
        words, last.ours - last.peer_value, "above the guesser, nonmodal uniques", target=MOST_ABOVE_GUESS
    )
    return [*found, above]


def _swapped(truth: Integers) -> Integers:
    places, records = record_list(truth)
    alike = np.zeros(truth.shape[1], dtype=np.int64)
    moved = swap(records, places, share=SWAPPED, alike=alike, draws=generator(KEY, "swap"))
    return record_counts(moved, records, truth.shape)


def _linked(case: str, groups: dict[str, LinkageCounts]) -> list[BenchmarkRow]:
    found = []
    for who, group in groups.items():
        precision, guesses = group.precision, group.guesses_on_links
        if precision is not None and guesses is not None:
            unit = f"{in_words(precision, 'links')}, {who}"
            for guesser, rate in zip(("modal guesser", "proportional guesser"), guesses, strict=True):
                found.append(BenchmarkRow(case, precision.value, unit, None, guesser, rate.value, is_floor=True))
    return found


def methods(progress: Callable[[str], None], blocks: int) -> list[BenchmarkRow]:
    """The picture of risk beside accuracy as numbers: error and records right of disclosure control and of DP."""
    people = People.of(blocks)
    case = f"{blocks} generated blocks"
    progress(f"{case}, methods side by side")
    workload = generated_blocks.tables()
    possible = np.ones(people.truth.shape[1], dtype=np.bool_)
    subject = Subject(workload, people.truth, possible, secret=workload.domain.axis(SECRET[-1]))
    compared = compare(subject, sensitivity=people.sensitivity, key=KEY)
    return [row for each in compared if each.name in SHOWN for row in _compared(f"{case}, {each.name}", each)]


def _compared(case: str, each: MethodEvaluation) -> list[BenchmarkRow]:
    judged = {"records": each.records, "nonmodal uniques": each.nonmodal_uniques}
    risks = [beside_guesser(case, own.attack, who, own.proportional) for who, own in judged.items() if own]
    return [BenchmarkRow(case, each.error, "mean absolute error of a number"), *risks]
