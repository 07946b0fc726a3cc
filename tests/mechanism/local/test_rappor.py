"""RAPPOR: published losses, every report of a small filter, clients, and words decoded from their reports."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.local import Rappor, RapporCounts, WordCount, decode_reports, simulated_words

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
SMALL = Rappor(32, 2, 8, QUARTER, Fraction(3, 4), QUARTER)
PEOPLE = {f"w{place}": number for place, number in enumerate((4000, 3000, 1500, 1000, 500, 0, 0, 0))}


def test_the_published_losses() -> None:
    """[EPK14]: h = 2, q = ¾, p = ½. f = ½ has ε₁ = 1.0743 and ε∞ = 4·ln 3; f = ¾, collected from browsers, .5343."""
    collected = Rappor(128, 2, 8, Fraction(3, 4))
    assert float(collected.loss()) == pytest.approx(0.5343, abs=5e-5)
    once, ever = Rappor(128, 2, 8, HALF).loss(), Rappor(128, 2, 8, HALF).loss(None)
    assert float(once) == pytest.approx(1.0743, abs=5e-5)
    assert float(ever) == pytest.approx(4 * math.log(3), rel=1e-5)
    assert Rappor(128, 2, 8, HALF).ratio(None) == 81


@pytest.mark.parametrize("reports", [1, 2, 3])
@pytest.mark.parametrize(
    ("q", "p"), [(Fraction(3, 4), HALF), (Fraction(1), Fraction(1, 8)), (Fraction(1), Fraction(0))]
)
def test_the_loss_of_several_reports_is_that_of_every_row_of_reports(reports: int, q: Fraction, p: Fraction) -> None:
    """Two bits, one hash function, words that set different ones; every row of reports of both bits."""
    rappor, f = Rappor(2, 1, 1, QUARTER, q, p), QUARTER
    largest = Fraction(1)

    def chance(row: tuple[int, ...], bit: bool) -> Fraction:
        kept = 1 - f / 2 if bit else f / 2
        ones = math.prod((q if each else 1 - q for each in row), start=Fraction(1))
        zeros = math.prod((p if each else 1 - p for each in row), start=Fraction(1))
        return kept * ones + (1 - kept) * zeros

    rows = list(product((0, 1), repeat=reports))
    for first, second in product(rows, repeat=2):
        one, other = chance(first, True) * chance(second, False), chance(first, False) * chance(second, True)
        if max(one, other) > 0:
            largest = max(largest, max(one, other) / min(one, other))
    assert rappor.ratio(reports) == largest
    assert largest <= rappor.ratio(None)


def test_more_reports_of_a_word_never_exceed_its_permanent_response() -> None:
    rappor = Rappor(128, 2, 8, HALF)
    losses = [rappor.ratio(number) for number in (1, 2, 10, 100)]
    assert losses == sorted(losses)
    assert losses[-1] < rappor.ratio(None) < losses[-1] * Fraction(10_001, 10_000)
    assert Rappor(3, 2, 8, HALF).ratio(None) == 27  # of three bits two words differ in three at most, not in four
    assert Rappor(8, 2, 8, HALF, Fraction(1), Fraction(0)).ratio(1) == 81  # the permanent response itself


def test_clients_have_the_simulated_law() -> None:
    words, size = simulated_words(np.random.default_rng(1)), 30
    told = [word for word, number in PEOPLE.items() for _ in range(number)]
    found = []
    for _ in range(size):
        cohorts = SMALL.assigned(len(told), words)
        kept = SMALL.permanent_responses(told, cohorts, words)
        found.append([each.count for each in decode(SMALL.counts(SMALL.reports(kept, words), cohorts))])
    errors = np.array(
        [each.standard_error for each in decode(SMALL.simulated(PEOPLE, generator=np.random.default_rng(2)))]
    )
    assert np.all(np.abs(np.mean(found, axis=0) - list(PEOPLE.values())) < 5 * errors / math.sqrt(size))
    assert np.std(found, axis=0).mean() == pytest.approx(errors.mean(), rel=0.2)


def decode(counts: RapporCounts) -> list[WordCount]:
    return decode_reports(SMALL, counts, candidates=list(PEOPLE))


def test_a_device_keeps_its_permanent_response() -> None:
    words = simulated_words(np.random.default_rng(3))
    cohorts = SMALL.assigned(200, words)
    kept = SMALL.permanent_responses(["w0"] * 200, cohorts, words)
    often = np.mean([SMALL.reports(kept, words) for _ in range(400)], axis=0)
    assert np.array_equal(often > 0.5, kept)  # so often reported, it is known: only it protects the word now


def test_counts_are_unbiased_and_their_standard_errors_true() -> None:
    generator = np.random.default_rng(4)
    runs = [decode(SMALL.simulated(PEOPLE, generator=generator)) for _ in range(600)]
    counts = np.array([[each.count for each in run] for run in runs])
    errors = np.array([[each.standard_error for each in run] for run in runs])
    truth = np.array(list(PEOPLE.values()))
    stated = np.sqrt(np.square(errors).mean(axis=0))
    assert np.all(np.abs(counts.mean(axis=0) - truth) < 5 * stated / math.sqrt(600))
    assert counts.std(axis=0) == pytest.approx(stated, rel=0.15)
    held = [
        [low <= number <= high for (low, high), number in zip((each.interval() for each in run), truth, strict=True)]
        for run in runs
    ]
    assert np.mean(held) > 0.94


def test_false_discoveries_stay_below_the_rate() -> None:
    """Twenty words of which fifteen are held by nobody."""
    generator = np.random.default_rng(5)
    people = {f"v{place}": 600 if place < 5 else 0 for place in range(20)}
    false, true = [], 0
    for _ in range(200):
        found = decode_reports(
            SMALL, SMALL.simulated(people, generator=generator), candidates=list(people), false_discovery_rate=0.2
        )
        wrong = sum(each.detected for each in found[5:])
        right = sum(each.detected for each in found[:5])
        false.append(wrong / max(1, wrong + right))
        true += right
    assert true > 900
    assert np.mean(false) < 0.2


def test_the_published_rule_of_how_many_words_can_be_found() -> None:
    """[EPK14]: of a million people about √N/10 = 100 equally frequent words, at ε₁ = 1.07."""
    rappor, generator = Rappor(128, 2, 16, HALF), np.random.default_rng(6)

    def share(words: int) -> float:
        people = {f"s{place}": 10**6 // words for place in range(words)}
        counts = rappor.simulated(people, generator=generator)
        return float(np.mean([each.detected for each in decode_reports(rappor, counts, candidates=list(people))]))

    assert share(50) > 0.95
    assert 0.7 < share(100) < 1
    assert share(300) < 0.2


def test_words_that_are_no_candidates_widen_the_errors() -> None:
    """Half of the people hold one word that nobody thought of."""
    generator, truth, held, errors = np.random.default_rng(7), np.array([3000, 1000, 0, 0]), [], []
    for family in range(60):
        rappor = Rappor(32, 2, 8, QUARTER, Fraction(3, 4), QUARTER, str(family))
        counts = rappor.simulated({"a": 3000, "b": 1000, "unknown": 4000}, generator=generator)
        found = decode_reports(rappor, counts, candidates=["a", "b", "c", "d"])
        errors.append(found[0].standard_error)
        held += [
            abs(each.count - number) <= 1.96 * each.standard_error for each, number in zip(found, truth, strict=True)
        ]
    listed = decode_reports(rappor, counts, candidates=["a", "b", "c", "d", "unknown"])
    assert np.mean(held) > 0.9
    assert np.mean(errors) > 1.5 * listed[0].standard_error


def test_more_candidates_than_bits_are_chosen_by_some_cohorts_and_judged_by_others() -> None:
    rappor = Rappor(32, 2, 8, QUARTER, Fraction(3, 4), QUARTER)
    candidates = [f"c{place}" for place in range(400)]
    counts = rappor.simulated({"c0": 6000, "c1": 3000, "c2": 1000}, generator=np.random.default_rng(8))
    found = decode_reports(rappor, counts, candidates=candidates)
    assert [each.word for each in found if each.detected][:2] == ["c0", "c1"]
    assert sum(each.detected for each in found) <= 4
    assert found[0].count == pytest.approx(6000, abs=4 * found[0].standard_error)
    idle = next(each for each in found if each.p_value == 1)
    assert idle.interval() == (0.0, 10_000.0)  # not looked at: nothing is said of it


def test_reports_that_tell_nothing_have_the_widest_intervals() -> None:
    silent = Rappor(32, 2, 8, Fraction(9999, 10_000))
    found = decode_reports(
        silent, silent.simulated(PEOPLE, generator=np.random.default_rng(9)), candidates=list(PEOPLE)
    )
    assert not any(each.detected for each in found)
    assert all(each.interval() == (0.0, 10_000.0) for each in found)


def test_what_is_refused() -> None:
    for bits, hashes in ((1, 1), (8, 0), (8, 8)):
        with pytest.raises(InvalidMechanism, match="a Bloom filter of"):
            Rappor(bits, hashes, 8, HALF)
    with pytest.raises(InvalidMechanism, match="0 cohorts"):
        Rappor(8, 2, 0, HALF)
    for f in (Fraction(0), Fraction(1), 0.5):
        with pytest.raises(InvalidMechanism, match="f = "):
            Rappor(8, 2, 8, f)  # type: ignore[arg-type]
    with pytest.raises(InvalidMechanism, match="reports of a 1"):
        Rappor(8, 2, 8, HALF, HALF, HALF)
    with pytest.raises(InvalidMechanism, match="loss of 0 reports"):
        SMALL.loss(0)
    counts = SMALL.simulated(PEOPLE, generator=np.random.default_rng(10))
    with pytest.raises(InvalidMechanism, match="counts of shape"):
        decode_reports(Rappor(8, 2, 8, HALF), counts, candidates=["a"])
    for candidates in ([], ["a", "a"]):
        with pytest.raises(InvalidMechanism, match="candidates"):
            decode_reports(SMALL, counts, candidates=candidates)
    with pytest.raises(InvalidMechanism, match="false discovery rate"):
        decode_reports(SMALL, counts, candidates=["a"], false_discovery_rate=0)
    one = Rappor(4, 1, 1, HALF)
    alone = one.simulated(PEOPLE, generator=np.random.default_rng(11))
    with pytest.raises(InvalidMechanism, match="one cohort"):
        decode_reports(one, alone, candidates=list(PEOPLE))
