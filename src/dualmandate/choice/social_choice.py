"""Every way to add people up, side by side: what each rule chooses, and who gains and who loses by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dualmandate.choice.charges import ClarkeTax, Lindahl, clarke_taxes, lindahl
from dualmandate.choice.fairness import OWN_PEAK, nash_bargain, rawlsian
from dualmandate.choice.limits import Limits
from dualmandate.choice.optimum import best_within
from dualmandate.choice.society import Profile, Society, profile
from dualmandate.choice.voting import Majority, majority, median_vote, phantom_vote
from dualmandate.errors import InvalidLoss, InvalidPreferences, MissingKey, NoOptimum, Refusal, UnknownName
from dualmandate.frontier.frontier import Frontier
from dualmandate.population.wording import number

RULES = (
    "utilitarian",
    "weighted",
    "median",
    "phantoms",
    "majority",
    "rawlsian",
    "rawlsian against own peak",
    "nash",
)
WORDS = {
    "utilitarian": "the sum of all gains and losses is largest",
    "weighted": "the sum is largest, each group counted with its weight",
    "median": "half of the people want no more, half no less; nobody gains by misstating a wish",
    "phantoms": "the median of what people want and of fixed ballots lies; nobody gains by misstating a wish",
    "majority": "no majority would leave it for another loss",
    "rawlsian": "whoever is worst off is as well off as possible",
    "rawlsian against own peak": "whoever gives up most gives up as little as possible",
    "nash": "the product of everybody's gains against no agreement is largest",
}


@dataclass(frozen=True)
class Terms:
    """What the rules need beside preferences; a rule is refused without what it needs."""

    baseline: Mapping[str, float] | float | None = None  # a_g, USD a member: the Rawlsian rule on levels
    disagreement_epsilon: float | None = None  # the loss that stands without agreement: the Nash product
    phantoms: tuple[float, ...] = ()  # fixed ballots
    options: tuple[float, ...] = ()  # losses put to the vote by pairs; without them every group's own best ones
    status_quo: float | None = None  # what gains are counted against; without it, the utilitarian loss


@dataclass(frozen=True)
class SocialChoiceRow:
    """What one rule chooses, and who gains by it."""

    rule: str
    epsilon: float | None  # None where the rule gives no answer; `words` then say why
    welfare: float | None  # W, USD
    gains: Mapping[str, float]  # by group, USD a member, against the status quo or the utilitarian loss
    words: str


@dataclass(frozen=True, eq=False)
class SocialChoices:
    """All rules on one society: the table, the profile of peaks, votes, prices and taxes."""

    profile: Profile
    rows: tuple[SocialChoiceRow, ...]
    against: float  # the loss that gains are counted against
    majority: Majority
    lindahl: Lindahl
    clarke: tuple[ClarkeTax, ...]

    def row(self, rule: str) -> SocialChoiceRow:
        """One rule's row."""
        found = next((row for row in self.rows if row.rule == rule), None)
        if found is None:
            raise UnknownName(
                f"no row for the rule '{rule}'",
                why=f"there are {', '.join(row.rule for row in self.rows)}",
                instead="name one of these",
            )
        return found

    def explain(self) -> str:
        """The rules in sentences, with who gains and who loses."""
        lines = [self.profile.explain()]
        for row in self.rows:
            if row.epsilon is None:
                lines.append(f"{row.rule}: no answer; {row.words}.")
                continue
            line = f"{row.rule}: {number(row.epsilon, 6)}, where {row.words}."
            winners = [name for name, gain in row.gains.items() if gain > 0]
            losers = [name for name, gain in row.gains.items() if gain < 0]
            if winners or losers:
                line += f" Against {number(self.against, 6)}{_who(winners, 'gain')}{_who(losers, 'lose')}."
            lines.append(line)
        return "\n".join([*lines, self.majority.explain(), self.lindahl.explain(), *map(str, self.clarke)])

    def __str__(self) -> str:
        return self.explain()


def social_choices(
    frontier: Frontier,
    society: Society,
    limits: Limits | None = None,
    *,
    rules: Sequence[str] | None = None,
    terms: Terms | None = None,
) -> SocialChoices:
    """What every rule chooses, side by side.

    Without `rules`, all for which the terms say what they need. A rule that is asked for by name and lacks its terms
    is refused; one that has no answer on this society (a median of people who are not single-peaked, a circle of
    majorities) has a row that says so.
    """
    terms = terms or Terms()
    asked = tuple(rules) if rules is not None else _possible(society, terms)
    unknown = [rule for rule in asked if rule not in RULES]
    if unknown:
        raise UnknownName(
            f"the rule '{unknown[0]}' is not known", why=f"the rules are {', '.join(RULES)}", instead="name one of them"
        )
    people = profile(frontier, society, limits)
    best, _ = best_within(frontier, society.like, people.bounds)
    places = any(point.kind != "minimum" for peak in people.peaks for point in peak.optima)
    votes = majority(people, terms.options or (None if places else (best.epsilon,)))
    found = {rule: _answer(rule, people, votes, terms) for rule in asked}
    against = _positive(terms.status_quo) if terms.status_quo is not None else best.epsilon
    rows = []
    for rule, (epsilon, words) in found.items():
        stands = epsilon is not None and 0 < epsilon < math.inf
        rows.append(
            SocialChoiceRow(
                rule,
                epsilon,
                society.like.at(frontier, epsilon) if stands and epsilon is not None else None,
                people.gains(epsilon, against) if stands and epsilon is not None else {},
                words,
            )
        )
    return SocialChoices(people, tuple(rows), against, votes, lindahl(people), clarke_taxes(people))


def _possible(society: Society, terms: Terms) -> tuple[str, ...]:
    """The rules that need nothing, and those whose terms are stated."""
    needs: dict[str, bool] = {
        "weighted": any(citizens.weight != 1 for citizens in society.citizens),
        "phantoms": bool(terms.phantoms),
        "rawlsian": terms.baseline is not None,
        "nash": terms.disagreement_epsilon is not None,
    }
    return tuple(rule for rule in RULES if needs.get(rule, True))


def _answer(rule: str, people: Profile, votes: Majority, terms: Terms) -> tuple[float | None, str]:
    """The loss that a rule chooses and why; or None and why it chooses none."""
    society, frontier = people.society, people.frontier

    def nash() -> float:
        return nash_bargain(people, terms.disagreement_epsilon).epsilon

    def winner() -> float:
        if votes.winner is None:
            raise InvalidPreferences(votes.explain().rstrip("."), why="no loss wins", instead="use another rule")
        return votes.winner

    def phantoms() -> float:
        if not terms.phantoms:
            raise MissingKey(
                "phantom voting has no phantoms",
                why="fixed ballots decide how far the choice leans to less loss or to more",
                instead="state phantoms: one or more losses",
            )
        return phantom_vote(people, terms.phantoms)

    rules: dict[str, Callable[[], float]] = {
        "utilitarian": lambda: best_within(frontier, society.like, people.bounds)[0].epsilon,
        "weighted": lambda: best_within(frontier, society.weighted(), people.bounds)[0].epsilon,
        "median": lambda: median_vote(people),
        "phantoms": phantoms,
        "majority": winner,
        "rawlsian": lambda: rawlsian(people, terms.baseline),
        "rawlsian against own peak": lambda: rawlsian(people, OWN_PEAK),
        "nash": nash,
    }
    try:
        epsilon = rules[rule]()
    except (InvalidPreferences, NoOptimum) as refusal:
        if rule == "utilitarian":
            raise
        return None, _said(refusal)
    words = WORDS[rule]
    if rule == "nash" and epsilon == terms.disagreement_epsilon:
        words = "no common gain: from the disagreement loss nobody can gain without somebody losing"
    return epsilon, words


def _said(refusal: Refusal) -> str:
    return f"{refusal.what[:1].lower()}{refusal.what[1:]}"


def _positive(loss: float) -> float:
    if not (math.isfinite(loss) and loss > 0):
        raise InvalidLoss(
            f"a status quo of {loss}", why="a release has a positive, finite loss", instead="state a positive loss"
        )
    return loss


def _who(names: list[str], verb: str) -> str:
    if not names:
        return ""
    return f" {', '.join(names)} {verb}{'s' if len(names) == 1 else ''}"
