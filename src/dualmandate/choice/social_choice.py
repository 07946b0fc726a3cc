"""Every way to add people up: votes, the worst off first, bargains, prices and taxes; who gains and who loses.

* Votes. Where every voter is single-peaked, the median of the peaks beats every other loss by majority and nobody gains
  by misstating a peak [Bla48], [Mou80]; with phantoms (fixed ballots) these are all the anonymous strategy-proof rules.
  Elsewhere majorities may run in a circle, and the rules say so instead of voting.
* Rules that look at each person, not at the sum, need what preferences alone do not say. How well off people are at all
  (`baseline`) decides who is worst off; what happens without an agreement (`disagreement_epsilon`) decides what there
  is to gain. Neither is guessed.
* Money that goes with the choice. Lindahl prices charge each group what the last unit of loss is worth to it; they add
  up to nothing. Clarke taxes charge each group what its presence costs the others; they leave the decision with whoever
  values it, and are not returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dualmandate.choice.optimum import Limits, best_within
from dualmandate.choice.society import NEXT_TO_NOTHING, Profile, Society, endless_peak, profile
from dualmandate.choice.welfare import SocialWelfare
from dualmandate.errors import InvalidPreferences, InvalidValue, MissingKey, NoOptimum, UnknownName
from dualmandate.frontier.frontier import Frontier
from dualmandate.frontier.numerics import root
from dualmandate.mechanism.mechanism import positive_loss
from dualmandate.population.arrays import Booleans, Floats
from dualmandate.population.wording import chosen_loss, money, number

TIE = 1e-12  # A relative difference of votes, or of what two losses are worth, below this is none.
OWN_PEAK = "own peak"
WORTH = 1e-12  # A relative gain below this is none.
SAME_DEMAND = 1e-6  # Two losses that differ by less than this share are one.
LOOKED_AT = 2001  # What a group demands is compared at this many losses, where it is not concave.


def median_vote(profile: Profile) -> float:
    """The lower median of the peaks, each counted with the size of its group; within the limits."""
    _refuse_crooked(profile)
    return generalized_median([peak.epsilon for peak in profile.peaks], [peak.size for peak in profile.peaks])


def phantom_vote(profile: Profile, phantoms: Sequence[float]) -> float:
    """The median of the peaks and of phantoms: one fewer fixed ballots than voters, spread evenly over given losses.

    n voters and n − 1 phantoms, so that the rule is never dictated by phantoms alone. Phantoms at 0 (all) choose the
    lowest peak, at infinity the highest. Source: Moulin 1980 [Mou80].
    """
    _refuse_crooked(profile)
    places = [float(place) for place in phantoms]
    if not places or any(math.isnan(place) or place < 0 for place in places):
        raise InvalidValue(
            f"the phantoms {places}",
            why="a phantom is a ballot that is always cast: a privacy loss, 0, or infinite",
            instead="state at least one loss of at least 0",
        )
    sizes = [peak.size for peak in profile.peaks]
    ballots = max(math.fsum(sizes) - 1, 0.0) / len(places)
    low, high = profile.bounds.lowest or 0.0, profile.bounds.highest or math.inf
    inside = [min(max(place, low), high) for place in places]
    peaks = [peak.epsilon for peak in profile.peaks]
    return generalized_median([*peaks, *inside], [*sizes, *(ballots for _ in places)])


def generalized_median(places: Sequence[float], ballots: Sequence[float]) -> float:
    """The smallest place at or below which at least half of all ballots lie."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    half, reached = math.fsum(ballots) / 2, 0.0
    for i in order:
        reached += ballots[i]
        if reached >= half * (1 - TIE):
            return places[i]
    return places[order[-1]]


@dataclass(frozen=True, eq=False)
class Majority:
    """What majorities prefer among some losses: `votes[i, j]` people are better off at option i than at j."""

    options: tuple[float, ...]
    votes: Floats  # (options, options), people
    winner: float | None  # the loss that no majority would leave; None where there is none
    cycle: tuple[float, ...] | None  # losses each of which beats the next, and the last the first; None without one

    def beats(self, one: float, other: float) -> bool:
        """Whether more people prefer the one to the other than the reverse."""
        i, j = self.options.index(one), self.options.index(other)
        return bool(self.votes[i, j] > self.votes[j, i] * (1 + TIE))

    def explain(self) -> str:
        """The outcome in a sentence."""
        if self.winner is not None:
            return f"No majority would leave {chosen_loss(self.winner)} for any other loss considered."
        if self.cycle is None:
            return "No loss wins or ties against every other."
        steps = " over ".join(chosen_loss(place) for place in (*self.cycle, self.cycle[0]))
        return f"Majorities run in a circle: they prefer {steps}. Whoever sets the agenda chooses the loss."

    __str__ = explain


def majority(profile: Profile, options: Sequence[float] | None = None) -> Majority:
    """Every pair of losses put to the vote, each group voting with its size; indifferent ones stay at home.

    Without options: every place where some group's welfare turns or a limit stands.
    """
    if options is None:
        turns = {point.epsilon for peak in profile.peaks for point in peak.optima if point.kind != "minimum"}
        options = sorted(turns)
    if not options or any(not (math.isfinite(place) and place > 0) for place in options):
        raise InvalidValue(
            f"a vote over the losses {list(options)}",
            why="people compare releases, each with a positive, finite loss",
            instead="name at least one such loss",
        )
    places = tuple(sorted({float(place) for place in options}))
    values = np.stack([profile.value(place) for place in places])  # (options, groups)
    gaps = values[:, None, :] - values[None, :, :]
    better = gaps > TIE * np.abs(values[None, :, :])
    votes = better @ profile.society.sizes
    wins = votes > votes.T * (1 + TIE)
    unbeaten = np.flatnonzero(~wins.any(axis=0))
    winner = None if not len(unbeaten) else places[int(max(unbeaten, key=lambda i: votes[i].sum()))]
    cycle = None if winner is not None else tuple(places[i] for i in _circle(wins))
    return Majority(places, votes, winner, cycle)


def _circle(wins: Booleans) -> list[int]:
    """A shortest circle of options each of which beats the next; every option here is beaten by some other."""
    count = len(wins)
    for start in range(count):
        paths = {start: [start]}
        frontier = [start]
        while frontier:
            reached = []
            for i in frontier:
                for j in np.flatnonzero(wins[i]).tolist():
                    if j == start:
                        return paths[i]
                    if j not in paths:
                        paths[j] = [*paths[i], j]
                        reached.append(j)
            frontier = reached
    return []


def _refuse_crooked(profile: Profile) -> None:
    crooked = [peak.name for peak in profile.peaks if not peak.single_peaked]
    if crooked:
        raise InvalidPreferences(
            f"'{crooked[0]}' is not single-peaked: its members like losses less first and then more again",
            why="a median of peaks is then neither safe from strategy nor what majorities want",
            instead="use `majority` over stated options, or the utilitarian rule",
        )


def rawlsian(profile: Profile, baseline: Mapping[str, float] | float | str | None = None) -> float:
    """The loss at which the worst-off member is as well off as possible: max min_g (a_g + v_g).

    `baseline` is a_g in USD a member, by group or one for all; or "own peak", and then the largest loss against one's
    own best choice is made as small as possible. Source: Rawls 1971 [Raw71].
    """
    levels = _levels(profile, baseline)

    def worst(costs: Floats) -> Floats:
        largest: Floats = np.max(costs - levels, axis=1)
        return largest

    return profile.land.lowest_worst(worst)


def _levels(profile: Profile, baseline: Mapping[str, float] | float | str | None) -> Floats:
    if baseline == OWN_PEAK:
        if any(math.isinf(peak.epsilon) or peak.epsilon == 0 for peak in profile.peaks):
            raise NoOptimum(
                "somebody wants ever more privacy loss, or none",
                why="a loss against one's own best choice needs that there is one",
                instead="state a legal cap on the loss, or a baseline in money",
            )
        return np.array([-profile.value(peak.epsilon)[i] for i, peak in enumerate(profile.peaks)])
    return _stated_levels(profile.society, baseline)


def _stated_levels(society: Society, baseline: Mapping[str, float] | float | str | None) -> Floats:
    """How well off a member of each group is without the release, USD."""
    names = society.names
    if baseline is None:
        raise MissingKey(
            "the Rawlsian rule has no baseline",
            why="who is worst off depends on how well off people are without this release",
            instead=f'state baseline: money a member, by group or one for all, or "{OWN_PEAK}"',
        )
    if isinstance(baseline, str):
        raise MissingKey(
            f"the baseline '{baseline}' is not known",
            why="a baseline says how well off people are without this release",
            instead=f'state money a member, by group or one for all, or "{OWN_PEAK}"',
        )
    stated = baseline if isinstance(baseline, Mapping) else dict.fromkeys(names, float(baseline))
    missing = [name for name in names if name not in stated]
    if missing or not all(math.isfinite(stated[name]) for name in names):
        raise MissingKey(
            f"the baseline of '{(missing or names)[0]}' is missing, or no finite number",
            why="the worst off are found by comparing everybody",
            instead=f"state it for each of {', '.join(names)}",
        )
    return np.array([float(stated[name]) for name in names])


@dataclass(frozen=True)
class Bargain:
    """The loss that a fair bargain would end at, and what a member of each group gains by it, USD."""

    epsilon: float
    disagreement_epsilon: float
    gains: Mapping[str, float]
    common_gain: bool  # whether everybody gains; without that nothing is agreed on


def nash_bargain(profile: Profile, disagreement_epsilon: float | None = None) -> Bargain:
    """The loss that maximizes the product of everybody's gains against no agreement: Σ_g N_g·ln(v_g(ε) − v_g(ε₀)).

    Where nobody can gain without somebody losing, there is no common gain and ε₀ stays. Source: Nash 1950 [Nas50].
    """
    disagreement_epsilon = _stated_disagreement(disagreement_epsilon)
    profile.land.inside(disagreement_epsilon, f"a disagreement_epsilon of {disagreement_epsilon}")
    grid, sizes = profile.land.grid, profile.society.sizes
    before = profile.land.costs(np.array([disagreement_epsilon]))[0]

    def product(costs: Floats) -> Floats:
        gains = before - costs
        good = np.all(gains > WORTH * before, axis=1)
        logs = np.log(np.where(good[:, None], gains, 1.0)) @ sizes
        return np.where(good, -logs, np.inf)

    heights = product(np.exp(grid.logs))
    near = _beside(profile, disagreement_epsilon, product)
    if not np.any(np.isfinite(heights)) and near is None:
        return _bargain(profile, disagreement_epsilon, disagreement_epsilon)
    start = math.log(near) if not np.any(np.isfinite(heights)) and near else float(grid.points[np.argmin(heights)])
    place = int(np.searchsorted(grid.points, start))
    ends = grid.points[max(place - 1, 0)], grid.points[min(place + 1, len(grid.points) - 1)]

    at_first = profile.value(disagreement_epsilon)

    def rise(log_loss: float) -> float:
        """Slope of the product's logarithm; towards where everybody gains, where somebody does not."""
        loss = math.exp(log_loss)
        gains = profile.value(loss) - at_first
        if np.any(gains <= WORTH * before):
            return start - log_loss
        slopes = [citizens.welfare.slope(profile.frontier, loss) for citizens in profile.society.citizens]
        return math.fsum(slope / gain for slope, gain in zip(slopes, gains.tolist(), strict=True))

    return _bargain(profile, math.exp(root(rise, float(ends[0]), float(ends[1]))), disagreement_epsilon)


def _stated_disagreement(disagreement_epsilon: float | None) -> float:
    if disagreement_epsilon is None:
        raise MissingKey(
            "the Nash product has no disagreement_epsilon",
            why="a gain is a gain against something",
            instead="state the loss that would stand without an agreement: the last release's, or the law's",
        )
    return disagreement_epsilon


def _beside(profile: Profile, at: float, product: Callable[[Floats], Floats]) -> float | None:
    """A loss close to one at which everybody gains, where the common gains lie between two points of the grid."""
    for step in (1e-3, -1e-3, 1e-5, -1e-5):
        place = at * math.exp(step)
        if np.isfinite(product(profile.land.costs(np.array([place])))[0]):
            return place
    return None


def _bargain(profile: Profile, epsilon: float, disagreement_epsilon: float) -> Bargain:
    gains = profile.gains(epsilon, disagreement_epsilon)
    return Bargain(epsilon, disagreement_epsilon, gains, epsilon != disagreement_epsilon)


@dataclass(frozen=True)
class LindahlPrice:
    """What a group pays (receives, where below 0) for each unit of loss, and what it then asks for."""

    name: str
    charge: float  # τ_g, USD a member per unit of loss
    payment: float  # τ_g·ε, USD a member
    group_payment: float  # USD, all members
    demand: float  # the loss that a member facing the charge likes best


@dataclass(frozen=True)
class Lindahl:
    """Charges at which every group asks for the utilitarian loss."""

    epsilon: float
    prices: tuple[LindahlPrice, ...]
    surplus: float  # USD per unit of loss that charges leave over: 0, or what a binding limit is worth at the margin
    supported: bool  # whether every group demands exactly this loss; not so where some are not concave
    currency: str

    def explain(self) -> str:
        """The charges in sentences."""
        lines = []
        for price in self.prices:
            verb = "pays" if price.charge >= 0 else "receives"
            lines.append(
                f"{price.name}: each member {verb} {money(abs(price.charge), self.currency)} per unit of loss."
            )
        balance = "The charges add up to nothing."
        if self.surplus != 0:
            left = money(self.surplus, self.currency)
            balance = f"The charges leave {left} per unit of loss: what the limit costs at the margin."
        asked = "everybody then asks for" if self.supported else "not everybody then asks for"
        return "\n".join([*lines, f"{balance} With them {asked} {chosen_loss(self.epsilon)}."])

    __str__ = explain


def lindahl(profile: Profile) -> Lindahl:
    """Individual prices of privacy loss at the utilitarian choice: τ_g = −D'_g/N_g − η_g·κ'_g, USD a member.

    Inside the limits Σ N_g·τ_g = −W' = 0. Source: Samuelson 1954 [Sam54], Lindahl 1919.
    """
    society, frontier = profile.society, profile.frontier
    best, _ = best_within(frontier, society.like, profile.bounds)
    epsilon = best.epsilon
    charges = [c.welfare.slope(frontier, epsilon) / c.size for c in society.citizens]
    interior = best.bound_by == "preferences"
    if interior:  # a root finder leaves a trace of W'; it is spread over everybody
        charges = [charge - math.fsum(np.array(charges) * society.sizes) / society.sizes.sum() for charge in charges]
        costs = [c.welfare.marginal_privacy_cost(epsilon) / c.size for c in society.citizens]
        charges = [0.0 if abs(own) <= WORTH * cost else own for own, cost in zip(charges, costs, strict=True)]
    prices = tuple(
        LindahlPrice(c.name, charge, charge * epsilon, charge * epsilon * c.size, _demand(profile, i, charge, epsilon))
        for i, (c, charge) in enumerate(zip(society.citizens, charges, strict=True))
    )
    surplus = 0.0 if interior else math.fsum(np.array(charges) * society.sizes)
    supported = all(math.isclose(price.demand, epsilon, rel_tol=SAME_DEMAND) for price in prices)
    return Lindahl(epsilon, prices, surplus, supported, society.like.currency)


def _demand(profile: Profile, group: int, charge: float, chosen: float) -> float:
    """The loss at which cost and charge of a member together are least; the chosen one where none is clearly better."""
    land = profile.land
    low, high = land.grid.points[[0, -1]].tolist()
    losses = np.exp(np.linspace(low, high, LOOKED_AT))
    costs = land.costs(losses)[:, group] + charge * losses
    at_choice = float(land.costs(np.array([chosen]))[0, group]) + charge * chosen
    best = int(np.argmin(costs))
    clearly = costs[best] < at_choice - SAME_DEMAND**2 * abs(at_choice)
    return float(losses[best]) if clearly else chosen


@dataclass(frozen=True)
class ClarkeTax:
    """What a group's presence costs the others: their best without it, less what they have with it."""

    name: str
    epsilon_without: float  # what the others would choose; 0 or infinite where they want none, or ever more
    tax: float  # USD, the whole group; ≥ 0
    currency: str

    def __str__(self) -> str:
        without = f"without it {chosen_loss(self.epsilon_without)} would be chosen"
        return f"Clarke tax of {self.name}: {without}; it pays {money(self.tax, self.currency)}."


def clarke_taxes(profile: Profile) -> tuple[ClarkeTax, ...]:
    """Pivot taxes of every group at the utilitarian choice; telling the truth is then best for each.

    max_ε Σ_{j≠g} W_j(ε) − Σ_{j≠g} W_j(ε̂). They are not returned: returning them would change what people report.
    Source: Clarke 1971 [Cla71].
    """
    society, frontier, currency = profile.society, profile.frontier, profile.society.like.currency
    best, _ = best_within(frontier, society.like, profile.bounds)
    taxes = []
    for name in society.names:
        others = society.without(name)
        if others is None:
            taxes.append(ClarkeTax(name, best.epsilon, 0.0, currency))
            continue
        try:
            alone, _ = best_within(frontier, others, profile.bounds)
            wanted, reached = alone.epsilon, alone.welfare
        except NoOptimum:
            wanted = endless_peak(frontier, others)
            most = -others.most_privacy_cost - others.least_data_loss
            reached = most if math.isinf(wanted) else others.at(frontier, NEXT_TO_NOTHING)
        taxes.append(ClarkeTax(name, wanted, max(reached - others.at(frontier, best.epsilon), 0.0), currency))
    return tuple(taxes)


@dataclass(frozen=True)
class SocialChoiceTerms:
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
        found = next((row for row in self.rows if row.rule == rule), None)
        if found is None:
            raise UnknownName(
                f"no row for the rule '{rule}'",
                why=f"there are {', '.join(row.rule for row in self.rows)}",
                instead="name one of these",
            )
        return found

    def explain(self) -> str:
        """What a board should know of it: peaks, rules with who gains and who loses, votes, prices and taxes."""
        privacy_measure, currency = self.profile.frontier.privacy_measure, self.profile.society.like.currency
        lines = [self.profile.explain()]
        for row in self.rows:
            rule = row.rule[:1].upper() + row.rule[1:]
            if row.epsilon is None:
                lines.append(f"{rule}: no answer; {row.words}.")
                continue
            gains = ", ".join(
                f"one of {name} {'gains' if gain > 0 else 'loses'} {money(abs(gain), currency)}"
                for name, gain in row.gains.items()
                if gain != 0
            )
            against = f" Against {number(self.against)}, {gains}." if gains else ""
            lines.append(f"{rule}: {privacy_measure} = {number(row.epsilon)}, where {row.words}.{against}")
        return "\n".join([*lines, self.majority.explain(), self.lindahl.explain(), *map(str, self.clarke)])

    __str__ = explain


@dataclass(frozen=True)
class SocialChoiceRule:
    """A way to add people up: where its choice lies, in words, and how it is found."""

    name: str
    words: str
    choose: Callable[[Profile, Majority, SocialChoiceTerms], float]
    able: Callable[[Society, SocialChoiceTerms], bool] | None = None  # whether its terms are stated; None: needs none
    needs: Callable[[Society, SocialChoiceTerms], object] | None = None  # refuses terms by which it cannot choose


def _sum_largest(people: Profile, welfare: SocialWelfare) -> float:
    return best_within(people.frontier, welfare, people.bounds)[0].epsilon


def _stated_phantoms(terms: SocialChoiceTerms) -> tuple[float, ...]:
    if not terms.phantoms:
        raise MissingKey(
            "phantom voting has no phantoms",
            why="fixed ballots decide how far the choice leans to less loss or to more",
            instead="state phantoms: one or more losses",
        )
    return terms.phantoms


def _majority_winner(_people: Profile, votes: Majority, _terms: SocialChoiceTerms) -> float:
    if votes.winner is None:
        raise InvalidPreferences(votes.explain().rstrip("."), why="no loss wins", instead="use another rule")
    return votes.winner


RULES = {
    rule.name: rule
    for rule in (
        SocialChoiceRule(
            "utilitarian",
            "the sum of all gains and losses is largest",
            lambda people, _votes, _terms: _sum_largest(people, people.society.like),
        ),
        SocialChoiceRule(
            "weighted",
            "the sum is largest, each group counted with its weight",
            lambda people, _votes, _terms: _sum_largest(people, people.society.weighted()),
            lambda society, _terms: any(citizens.weight != 1 for citizens in society.citizens),
        ),
        SocialChoiceRule(
            "median",
            "half of the people want no more, half no less; nobody gains by misstating a wish",
            lambda people, _votes, _terms: median_vote(people),
        ),
        SocialChoiceRule(
            "phantoms",
            "the median of what people want and of fixed ballots lies; nobody gains by misstating a wish",
            lambda people, _votes, terms: phantom_vote(people, _stated_phantoms(terms)),
            lambda _society, terms: bool(terms.phantoms),
            lambda _society, terms: _stated_phantoms(terms),
        ),
        SocialChoiceRule("majority", "no majority would leave it for another loss", _majority_winner),
        SocialChoiceRule(
            "rawlsian",
            "whoever is worst off is as well off as possible",
            lambda people, _votes, terms: rawlsian(people, terms.baseline),
            lambda _society, terms: terms.baseline is not None,
            lambda society, terms: _stated_levels(society, terms.baseline),
        ),
        SocialChoiceRule(
            "rawlsian against own peak",
            "whoever gives up most gives up as little as possible",
            lambda people, _votes, _terms: rawlsian(people, OWN_PEAK),
        ),
        SocialChoiceRule(
            "nash",
            "the product of everybody's gains against no agreement is largest",
            lambda people, _votes, terms: nash_bargain(people, terms.disagreement_epsilon).epsilon,
            lambda _society, terms: terms.disagreement_epsilon is not None,
            lambda _society, terms: _stated_disagreement(terms.disagreement_epsilon),
        ),
    )
}


def social_choices(
    frontier: Frontier,
    society: Society,
    limits: Limits | None = None,
    *,
    rules: Sequence[str] | None = None,
    terms: SocialChoiceTerms | None = None,
) -> SocialChoices:
    """What every rule chooses, side by side.

    Without `rules`, all for which the terms say what they need. A rule that is asked for by name and lacks its terms
    is refused; one that has no answer on this society (a median of people who are not single-peaked, a circle of
    majorities) has a row that says so.
    """
    terms = terms or SocialChoiceTerms()
    asked = rules_asked_for(society, terms, rules)
    people = profile(frontier, society, limits)
    best, _ = best_within(frontier, society.like, people.bounds)
    places = any(point.kind != "minimum" for peak in people.peaks for point in peak.optima)
    votes = majority(people, terms.options or (None if places else (best.epsilon,)))
    found = {rule: _answer(RULES[rule], people, votes, terms) for rule in asked}
    against = positive_loss(terms.status_quo) if terms.status_quo is not None else best.epsilon
    rows = []
    for rule, (epsilon, words) in found.items():
        stands = epsilon is not None and 0 < epsilon < math.inf
        worth = society.like.at(frontier, epsilon) if stands and epsilon is not None else None
        gains = people.gains(epsilon, against) if stands and epsilon is not None else {}
        rows.append(SocialChoiceRow(rule, epsilon, worth, gains, words))
    return SocialChoices(people, tuple(rows), against, votes, lindahl(people), clarke_taxes(people))


def rules_asked_for(society: Society, terms: SocialChoiceTerms, rules: Sequence[str] | None = None) -> tuple[str, ...]:
    """The rules that are named, or all whose terms are stated; refused where one cannot choose by what is stated."""
    able = [rule.name for rule in RULES.values() if rule.able is None or rule.able(society, terms)]
    asked = tuple(able if rules is None else rules)
    unknown = [rule for rule in asked if rule not in RULES]
    if unknown:
        raise UnknownName(
            f"the rule '{unknown[0]}' is not known", why=f"the rules are {', '.join(RULES)}", instead="name one of them"
        )
    for rule in asked:
        needs = RULES[rule].needs
        if needs is not None:
            needs(society, terms)
    return asked


def _answer(
    rule: SocialChoiceRule, people: Profile, votes: Majority, terms: SocialChoiceTerms
) -> tuple[float | None, str]:
    """The loss that a rule chooses and why; or None and why it chooses none."""
    try:
        epsilon = rule.choose(people, votes, terms)
    except (InvalidPreferences, NoOptimum) as refusal:
        if rule.name == "utilitarian":
            raise
        return None, f"{refusal.what[:1].lower()}{refusal.what[1:]}"
    if rule.name == "nash" and epsilon == terms.disagreement_epsilon:
        return epsilon, "no common gain: from the disagreement loss nobody can gain without somebody losing"
    return epsilon, rule.words
