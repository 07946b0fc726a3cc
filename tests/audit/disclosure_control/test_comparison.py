"""Risk beside accuracy: the same records under every method, judged alike."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dualmandate.audit.disclosure_control import comparison
from dualmandate.audit.disclosure_control.comparison import (
    AttackRates,
    MethodEvaluation,
    compare,
    compared_words,
    secret_of,
)
from dualmandate.audit.disclosure_control.methods import PublicationMethod, Subject, publication_methods
from dualmandate.audit.reconstruction.noisy import KnownNumbers
from dualmandate.benchmarks.generated_blocks import blocks, tables
from dualmandate.errors import InvalidRequest
from dualmandate.population import Attribute, Domain, PrivacyLoss
from dualmandate.workload import Tabulation, Workload

WORKLOAD = tables()
EVERYTHING = np.ones(WORKLOAD.domain.size, dtype=np.bool_)
EPSILONS = (0.1, 4.0, 64.0)


def subject(places: int) -> Subject:
    return Subject(WORKLOAD, blocks(places, seed=5), EVERYTHING, secret_of(WORKLOAD.domain))


@cache
def compared() -> tuple[MethodEvaluation, ...]:
    return compare(subject(12), sensitivity=8.0, key=b"k", epsilons=EPSILONS)


def right(each: MethodEvaluation) -> float:
    assert each.nonmodal_uniques is not None
    return each.nonmodal_uniques.attack.value


def test_privacy_falls_to_the_guess_and_old_methods_are_points() -> None:
    found = compared()
    private = [each for each in found if each.loss is not None]
    assert [each.epsilon for each in private] == list(EPSILONS)
    assert all((each.family == "differential privacy") == (each.epsilon is not None) for each in found)
    assert private[0].records.attack.value < private[1].records.attack.value < private[2].records.attack.value
    assert (
        abs(private[0].records.attack.value - private[0].records.proportional.value) < 0.05
    )  # nothing but noise leaves the guess
    assert private[0].error > private[1].error > private[2].error
    exact = next(each for each in found if each.family == "exact")
    assert exact.error == 0.0
    swapped = [each for each in found if each.family == "swapping"]
    assert exact.records.attack.value >= swapped[0].records.attack.value > swapped[-1].records.attack.value


def test_people_who_stand_out_separate_attack_from_guess() -> None:
    exact, private = compared()[0], [each for each in compared() if each.loss is not None]
    assert exact.nonmodal_uniques is not None
    assert exact.nonmodal_uniques.modal.value == 0.0
    assert right(exact) > 0.8  # research: .905 from exact tables, .204 for a proportional guesser
    assert exact.nonmodal_uniques.proportional.value < 0.3
    assert right(private[0]) == pytest.approx(exact.nonmodal_uniques.proportional.value, abs=0.05)
    for each in compared():  # whoever attacks can guess instead
        assert right(each) >= exact.nonmodal_uniques.proportional.value


def test_suppressed_numbers_count_with_what_others_make_likely() -> None:
    hidden = [each for each in compared() if each.family == "suppression"]
    assert 0 < hidden[0].error < hidden[1].error < 1
    assert hidden[0].records.attack.value > hidden[1].records.attack.value


def test_a_hidden_number_is_no_error_where_others_tell_it() -> None:
    exact = subject(12).truth @ WORKLOAD.dense().T
    for method in publication_methods(subject(12), sensitivity=8.0, key=b"k", epsilons=()):
        if method.family == "suppression":
            (found,) = (each for each in compared() if each.name == method.name)
            read_as_one = np.abs(np.where(np.isnan(method.printed), 1.0, method.printed) - exact).mean()
            assert found.error < 0.8 * read_as_one


def test_how_many_live_in_a_place_is_known() -> None:
    domain = Domain((Attribute.categories("eligible", ["no", "yes"]),))
    eligible = Workload.from_tabulations(domain, [Tabulation("eligible", where=(("eligible", ("yes",)),))])
    people = np.array([[30, 10], [5, 25], [8, 0]])
    found = compare(Subject(eligible, people, np.ones(2, dtype=np.bool_)), sensitivity=1.0, key=b"k", epsilons=())
    assert found[0].records.attack.value == 1.0  # whoever is not counted is the rest
    assert found[0].records.attack.interval()[1] == 1.0
    assert found[0].records.proportional.value < 0.8
    assert found[0].nonmodal_uniques is None  # nothing but the secret is recorded


def test_whoever_knows_how_ages_were_averaged_finds_more(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain((Attribute.numbers("age", 0, 11), Attribute.categories("race", ["A", "B", "C"])))
    tables = Workload.from_tabulations(domain, [Tabulation("age by race", ("age", "race"))])
    people = np.random.default_rng(7).poisson(0.5, (30, domain.size))
    averaged = Subject(tables, people, np.ones(domain.size, dtype=np.bool_), 1)

    def rates() -> list[tuple[float, float]]:
        found = compare(averaged, sensitivity=1.0, key=b"k", epsilons=())
        return [(right(each), each.records.attack.value) for each in found if each.family == "micro-aggregation"]

    informed = rates()
    monkeypatch.setattr(comparison._Judge, "_recoded", lambda *_: [])
    plain = rates()
    assert all(one >= other for pair in zip(informed, plain, strict=True) for one, other in zip(*pair, strict=True))
    assert sum(one for one, _ in informed) > sum(one for one, _ in plain)


def test_the_same_key_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    small = subject(4)
    first = compare(small, sensitivity=8.0, key=b"k", epsilons=(1.0,))
    np.random.seed(1)  # noqa: NPY002 - nothing may depend on it
    assert compare(small, sensitivity=8.0, key=b"k", epsilons=(1.0,)) == first
    assert compare(small, sensitivity=8.0, key=b"other", epsilons=(1.0,)) != first


def test_a_plan_is_one_more_way() -> None:
    small = subject(3)
    numbers = small.truth @ WORKLOAD.dense().T
    loss = PrivacyLoss.concentrated("0.5")
    plan = PublicationMethod(
        "differential privacy", "the plan", numbers, KnownNumbers.shown(numbers), loss=loss, planned=True
    )
    found = compare(small, sensitivity=8.0, key=b"k", epsilons=(), planned=(plan,))
    assert found[-1].planned
    assert found[-1].epsilon is None  # counted in ρ
    assert found[-1].records == found[0].records  # it published exact tables
    document = found[-1].document()
    assert (document["loss"], document["currency"], document["planned"]) == (0.5, "rho", True)


def test_a_document_has_both_measures() -> None:
    document = compared()[0].document()
    assert document["loss"] is None
    for name in ("records_right", "nonmodal_uniques_right"):
        judged = document[name]
        assert isinstance(judged, dict)
        assert judged["low"] <= judged["attack"] <= judged["high"]
        assert {"proportional_guesser", "modal_guesser", "trials"} <= set(judged)
    without = replace(compared()[0], nonmodal_uniques=None)
    assert without.document()["nonmodal_uniques_right"] is None


def test_risks_of_0_and_1_have_one_sided_intervals() -> None:
    from dualmandate.audit.finding import Rate

    none, every = (AttackRates(Rate(n, 9), Rate(0, 9), Rate(0, 9)).document() for n in (0, 9))
    assert none["low"] == 0.0 < none["high"] < 1  # type: ignore[operator]
    assert every["high"] == 1.0 > every["low"] > 0  # type: ignore[operator]


def test_words_have_baselines_and_intervals() -> None:
    lines = compared_words(compared())
    assert sum("guesser" in line for line in lines) == 4
    assert all("95 % interval" in line for line in lines[1:-1])
    assert len(lines) == len(compared()) + 6
    assert compared_words(()) == []


def test_one_place_has_nobody_to_swap_with() -> None:
    with pytest.raises(InvalidRequest, match="1 places"):
        compare(subject(1), sensitivity=8.0, key=b"k")
    nobody = Subject(WORKLOAD, np.zeros((2, WORKLOAD.domain.size), dtype=np.int64), EVERYTHING)
    with pytest.raises(InvalidRequest, match="0 records"):
        compare(nobody, sensitivity=8.0, key=b"k")
