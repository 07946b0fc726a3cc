"""What an audit comes to: the verdict follows from the findings, and never says more than they do."""

from __future__ import annotations

from typing import Any

import pytest

from dualmandate.audit.finding import CLAIMED, OF_OWN_SIZE, Baseline, DetectionPower, Finding, Range, Rate
from dualmandate.audit.verdict import OTHERS, advantage, advice, by_question, contradicts, gain, passed, verdict


def finding(
    success: Rate | Range, *beside: Baseline, attack: str = "reconstruction from noisy tables", **more: Any
) -> Finding:
    stated: dict[str, Any] = {"claim": "records right", "attacker_knows": "the tables", "coarsening": "as declared"}
    return Finding(attack=attack, success=success, baselines=beside, reference="published", **stated | more)


def guess(right: int, of: int = 1000, who: str = "modal guesser") -> Baseline:
    return Baseline(who, Rate(right, of))


CLAIM = Baseline(CLAIMED, Range(0.0, 2.4442, "epsilon"))


def test_more_than_a_guess_is_what_is_learned() -> None:
    found = [finding(Rate(900, 1000), guess(100)), finding(Rate(500, 1000), guess(499))]
    [said, count] = verdict([*found, finding(Rate(700, 1000), guess(100))])
    assert said.startswith("From these tables an attacker learns more than a guess would tell: records right: 90 %")
    assert "the best guess (modal guesser) comes to 10 %" in said
    assert count == "In 2 of 3 findings the attack did better than guessing."
    assert "plan again" in advice(found, "release")
    assert "cannot be taken back" in advice(found, "tables")


@pytest.mark.parametrize("right", [499, 500, 501, 520])
def test_what_a_guess_would_tell_too_or_chance_is_nothing_learned(right: int) -> None:
    found = [finding(Rate(right, 1000), guess(10, who="proportional guesser"), guess(500))]
    assert gain(found[0]) == 0
    [said] = verdict(found)
    assert "rebuilt no records better than a guess" in said
    assert "Another attack may find more" in said
    assert "Nothing found here" in advice(found, "release")


def test_a_member_who_is_recognized_is_something_learned() -> None:
    claimed = Baseline(f"{CLAIMED} at that rate", Range(0.0, 1.0, "of the draws"))
    knows = {"attack": "membership", "attacker_knows": "everybody else's values"}
    told = finding(Rate(909, 1000), guess(101, who="false-positive rate"), claimed, **knows)
    chance = finding(Rate(105, 1000), guess(101, who="false-positive rate"), claimed, **knows)
    assert (advantage(told), advantage(chance), advantage(finding(Rate(9, 10), guess(1)))) == (0.909 - 0.101, 0, None)
    rebuilt = finding(Rate(500, 1000), guess(500))
    nothing, recognized, stands = verdict([rebuilt, chance, told])
    assert "rebuilt no records better than a guess" in nothing
    assert recognized == (
        "Who already knows everybody else's values can tell whether somebody is in the data: members were recognized "
        "in 90.9 %, others in 10.1 % of the draws."
    )
    assert "not contradicted" in stands
    assert "plan weighs" in advice([rebuilt, told], "release")
    assert verdict([rebuilt, chance])[1] == "No test of membership told members from others."
    assert "Nothing found here" in advice([rebuilt, chance], "release")


def test_a_claim_stands_or_is_contradicted() -> None:
    checks = "checks of a privacy claim"
    kept = finding(Range(2.4442, 2.4442, "epsilon"), CLAIM, attack=checks)
    broken = finding(Range(2.6, 2.6, "epsilon"), CLAIM, attack=checks)
    counted = finding(Rate(1, 5), Baseline(CLAIMED, Rate(0, 5)), attack=checks, counted_in_full=True)
    assert [contradicts(each) for each in (kept, broken, counted)] == [False, True, True]
    [said] = verdict([kept])
    assert said.startswith("The claim, epsilon = 2.4442, was not contradicted by the one check")
    for wrong in (broken, counted):
        [said] = verdict([kept, wrong])
        assert said.startswith("The claimed privacy loss is CONTRADICTED by 1 of 2 checks")
        assert "mend it" in advice([kept, wrong], "release")


def test_findings_are_ranked_and_what_held_is_told_apart() -> None:
    """The broken claim first, then what was learned by how much; what held, or is no more than a guess, last."""
    checks = "checks of a privacy claim"
    kept = finding(Range(2.4, 2.4, "epsilon"), CLAIM, attack=checks)
    broken = finding(Range(2.6, 2.6, "epsilon"), CLAIM, attack=checks)
    none = finding(Rate(0, 27), guess(0, 27, "noise on whole numbers"), attack=checks, counted_in_full=True)
    size = finding(Range(0.02, 0.02, "a person"), guess(1), attack=checks)
    [(_, ranked)] = by_question([kept, size, broken, none])
    assert ranked == [broken, size, kept, none]
    assert [passed(each) for each in ranked] == [False, False, True, True]
    little, much, nothing = (finding(Rate(right, 1000), guess(100)) for right in (200, 900, 100))
    own = finding(Rate(990, 1000), guess(100), claim=f"recall: records, {OF_OWN_SIZE}")
    [(_, ranked)] = by_question([nothing, little, own, much])
    assert ranked == [much, little, own, nothing]
    assert [passed(each) for each in ranked] == [False, False, False, True]
    assert gain(own) is None  # a file that is large enough holds everybody
    claimed = Baseline(f"{CLAIMED} at that rate", Range(0.0, 1.0, "of the draws"))
    told = finding(Rate(909, 1000), guess(101, who="false-positive rate"), claimed, attack="membership")
    assert not passed(told)  # within the claim, and yet something that is learned


def test_a_verdict_says_what_would_have_been_found() -> None:
    power = tuple(DetectionPower("half of the noise", rows, share) for rows, share in ((16, 0.05), (80, 0.999)))
    held = finding(
        Rate(0, 12),
        Baseline(CLAIMED, Rate(0, 12)),
        attack="checks of a privacy claim",
        counted_in_full=True,
        power=power,
    )
    assert verdict([held])[-1] == (
        "By 80 numbers that follow from others such checks would find half of the noise in 99.9 % of releases."
    )


def test_findings_stand_under_the_question_that_they_answer() -> None:
    attacks = [
        "membership",
        "reconstruction from exact tables",
        "checks of a privacy claim",
        "something new",
        "membership",
    ]
    groups = by_question([finding(Rate(1, 100), guess(1), attack=attack) for attack in attacks])
    assert [(question, len(each)) for question, each in groups] == [
        ("Can records be reconstructed?", 1),
        ("Can somebody tell who is in the data?", 2),
        ("Does the privacy claim hold?", 1),
        (OTHERS, 1),
    ]


def test_shares_are_in_per_cent_and_few_trials_are_counted() -> None:
    assert str(Range(1.0, 1.0, "of the records")) == "100 % of the records"
    assert str(Range(0.25, 1.0, "of the records")) == "25 % to 100 % of the records"
    assert str(Range(1.0, 3.0, "a place")) == "1 to 3 a place"
    assert str(Rate(3, 5)) == "3 of 5 (too few to be told as a rate)"
    assert str(Rate(12, 20)).startswith("60 % (12 of 20; 95 % interval")
    one = finding(Rate(1, 7), guess(0, 7), counted_in_full=True)
    assert one.written(one.success) == "1 of 7 (all of them counted)"
