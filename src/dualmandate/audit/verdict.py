"""What an audit comes to, in a few sentences: what an attacker learns, whether the claim stands, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dualmandate.audit.finding import CLAIMED, OF_OWN_SIZE, Finding, Range, Rate, shown
from dualmandate.population.wording import percent

CLAIM_QUESTION, OTHERS = "Does the privacy claim hold?", "What else was found?"
MEMBERSHIP = "Can somebody tell who is in the data?"
QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Can records be reconstructed?", ("reconstruction", "persons from means")),
    ("Can people be found in other files?", ("re-identification",)),
    (MEMBERSHIP, ("membership",)),
    ("Can hidden or summed numbers be worked out?", ("suppressed", "bounds of", "contributors")),
    (CLAIM_QUESTION, ("checks of a privacy claim", "audit of a mechanism")),
)


def by_question(found: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    """The findings under the question that each answers, in the order of the questions."""
    groups: dict[str, list[Finding]] = {question: [] for question in (*dict(QUESTIONS), OTHERS)}
    for finding in found:
        groups[question_of(finding)].append(finding)
    return [(question, sorted(each, key=severity, reverse=True)) for question, each in groups.items() if each]


def severity(finding: Finding) -> float:
    """How much a finding weighs beside others of its question: broken claims, then what was gained, then the rest."""
    if contradicts(finding):
        return 2.0
    told = max(gain(finding) or 0.0, advantage(finding) or 0.0)
    return 1.0 + told if told > 0 else 0.0 if passed(finding) else 0.5


def passed(finding: Finding) -> bool:
    """Whether there is nothing to see: a check that held, or an attack that did no better than a guess."""
    if finding.partial is not None or finding.booked is not None or contradicts(finding):
        return False
    told = [each for each in (gain(finding), advantage(finding)) if each is not None]
    if any(told):
        return False
    none = isinstance(finding.success, Rate) and not finding.success.successes and finding.counted_in_full
    return bool(told) or contradicts(finding) is False or none


def question_of(finding: Finding) -> str:
    """Which question a finding answers, by the attack that made it."""
    return next((question for question, names in QUESTIONS if finding.attack.startswith(names)), OTHERS)


def gain(finding: Finding) -> float | None:
    """By how much an attack gets more right than the best guess without the tables; None where that is no question.

    What its sampling error explains is no gain.
    """
    beside = [each.success.value for each in finding.baselines if isinstance(each.success, Rate)]
    against_the_claim = any(each.who.startswith(CLAIMED) for each in finding.baselines)
    if not isinstance(finding.success, Rate) or not beside or against_the_claim:
        return None
    if question_of(finding) == CLAIM_QUESTION or OF_OWN_SIZE in finding.claim:
        return None  # precision, or recall, of a file that may be as small, or as large, as one likes
    best = max(beside)
    return max(finding.success.value - best, 0.0) if finding.interval()[0] > best else 0.0


def advantage(finding: Finding) -> float | None:
    """By how much a test of membership is right about members more often than it is wrong about others.

    None for other attacks; what its sampling error explains is no advantage.
    """
    wrong = false_positives(finding)
    if wrong is None:
        return None
    told_apart = finding.interval()[0] > finding.interval(wrong)[1]
    return finding.success.value - wrong.value if told_apart and isinstance(finding.success, Rate) else 0.0


def false_positives(finding: Finding) -> Rate | None:
    """How often a test of membership recognizes somebody who is not in the data."""
    if question_of(finding) != MEMBERSHIP or not isinstance(finding.success, Rate):
        return None
    rates = (each.success for each in finding.baselines if not each.who.startswith(CLAIMED))
    return next((each for each in rates if isinstance(each, Rate)), None)


def contradicts(finding: Finding) -> bool | None:
    """Whether a finding contradicts the claimed privacy loss; None where it is not held against it."""
    for each in finding.baselines:
        if each.who == CLAIMED:
            return finding.interval()[0] > finding.interval(each.success)[1]
        if each.who.startswith(CLAIMED):  # at the rate of another baseline, with a confidence that the attack states
            return "; ABOVE " in finding.claim
    return None


def verdict(found: Sequence[Finding]) -> tuple[str, ...]:
    """What an attacker learns, then whether the claim was contradicted, in sentences."""
    return (*_learned(found), *_recognized(found), *_claim(found))


def _recognized(found: Sequence[Finding]) -> Iterator[str]:
    judged = [(each, finding) for finding in found if (each := advantage(finding)) is not None]
    most, best = max(judged, key=lambda pair: pair[0], default=(0.0, None))
    wrong = None if best is None else false_positives(best)
    if best is not None and wrong is not None and isinstance(best.success, Rate) and most > 0:
        yield (
            f"Who already knows {best.attacker_knows} can tell whether somebody is in the data: members were "
            f"recognized in {percent(best.success.value)}, others in {percent(wrong.value)} of the draws."
        )
    elif judged:
        yield "No test of membership told members from others."


def _learned(found: Sequence[Finding]) -> Iterator[str]:
    judged = [(each, finding) for finding in found if (each := gain(finding)) is not None]
    telling = sorted((pair for pair in judged if pair[0] > 0), key=lambda pair: (-pair[0], -_trials(pair[1])))
    if telling:
        _, best = telling[0]
        guessed = [(each.success, each.who) for each in best.baselines if isinstance(each.success, Rate)]
        most, who = max(guessed, key=lambda each: each[0].value)
        yield (
            f"From these tables an attacker learns more than a guess would tell: {best.claim}: {shown(best.success)}, "
            f"where the best guess ({who}) comes to {shown(most)}."
        )
        if len(telling) > 1:
            yield f"In {len(telling)} of {len(judged)} findings the attack did better than guessing."
    elif judged:
        none = "it did not" if len(judged) == 1 else f"in none of {len(judged)} findings did it"
        yield (
            f"From these tables an attacker rebuilt no records better than a guess: {none} get more right than "
            "somebody who has no tables. Another attack may find more."
        )


def _trials(finding: Finding) -> int:
    """How many it was tried on: of findings that say as much, that on most people is told."""
    return finding.success.trials if isinstance(finding.success, Rate) else 0


def _claim(found: Sequence[Finding]) -> Iterator[str]:
    held = [(finding, broken) for finding in found if (broken := contradicts(finding)) is not None]
    against = [finding for finding, broken in held if broken]
    if against:
        yield f"The claimed privacy loss is CONTRADICTED by {len(against)} of {len(held)} checks: {against[0].claim}."
    elif held:
        beside = [each.success for finding, _ in held for each in finding.baselines if each.who == CLAIMED]
        losses = [f"{each.unit} = {each.largest:,.5g}" for each in beside if isinstance(each, Range)]
        checks = "the one check" if len(held) == 1 else f"any of {len(held)} checks"
        yield f"The claim{f', {losses[0]},' if losses else ''} was not contradicted by {checks}."
        yield from _power(finding for finding, _ in held)


def _power(held: Iterable[Finding]) -> Iterator[str]:
    """What would have been found, so that nothing found says something."""
    for finding in held:
        most = max((each.rows for each in finding.power), default=0)
        told = [f"{each.what} in {percent(each.share)}" for each in finding.power if each.rows == most]
        if told:
            numbers = "numbers that follow from others" if finding.label == "public" else "numbers, by the records"
            yield f"By {most:,} {numbers} such checks would find {', '.join(told)} of releases."


def advice(found: Sequence[Finding], kind: str) -> str:
    """What to do about it."""
    if any(contradicts(finding) for finding in found):
        return "Do not publish more with this mechanism: find out which part of it breaks the claim, and mend it."
    if not any((gain(finding) or 0) > 0 or (advantage(finding) or 0) > 0 for finding in found):
        return "Nothing found here calls for a change. Audit again before each further release about these people."
    if kind == "tables":
        return (
            "What is published cannot be taken back. For the next release publish fewer or coarser numbers, or add "
            "noise: `dualmandate init blank` begins a program, and `dualmandate plan` says how much."
        )
    return (
        "Whether that is too much is what the plan weighs: raise the cost of disclosure or the weight on privacy in "
        "the program and plan again, or publish fewer and coarser tables."
    )
