"""A plan as a page or two of text that a board member reads in a few minutes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dualmandate.mechanism.technologies import TABLES, WHOLE_NUMBERS
from dualmandate.planning.clipping import RECORDS
from dualmandate.planning.study import marked, study_words
from dualmandate.planning.technology import in_words, measured_words
from dualmandate.population import PrivacyMeasure, plural
from dualmandate.population.time_base import recurs
from dualmandate.population.wording import (
    chosen_loss,
    counted,
    exact,
    money,
    number,
    percent,
    quantity,
    stated_amount,
)
from dualmandate.program.program import SHARE
from dualmandate.semantics import sentences

if TYPE_CHECKING:
    from dualmandate.choice import Choice
    from dualmandate.choice.statics import TornadoEnd
    from dualmandate.mechanism import Strategy
    from dualmandate.planning.clipping import BoundCurve
    from dualmandate.planning.comparison import Comparison
    from dualmandate.planning.measures import MeasuredLoss
    from dualmandate.planning.plan import Plan, TableConsequence
    from dualmandate.planning.robustness import Reading
    from dualmandate.planning.simulation import SimulatedTechnology, SimulationOutcome

WIDTH = 100
MOST_ROWS = 6  # of a table of many rows; the rest is in plan.json
MOST_NAMED = 4  # tables in a sentence
VOWELS = frozenset("aeio")  # not u: a unit, a university
SHOWN_PRIOR, SHOWN_BELIEFS = 0.01, 2  # being in the file, and which of two records
SHOWN_MULTIPLES = {0.5: "Half of it", 2.0: "Twice it"}
NO_DIFFERENCE = 1e-9  # share of a cost
TIMES_TOLD = 1e6  # where by hand next to nothing is lost, a loss so many times larger has no share
TWICE = 2.0  # from here on a multiple is easier to read than a share
TELLING = 10.0  # A lower bound that is a smaller part of what errors cost says nothing to a reader.
NOISY_DENOMINATOR = 0.1  # From this share of a denominator on, its error is too large to be linearized.
STUDIES = "Studies: for comparison only, never drawn."


def plan_words(plan: Plan) -> str:
    """The whole page."""
    program = plan.program
    description = program.file.program.description
    parts = [
        [program.name if description is None else f"{program.name}: {description}"],
        _section("A study", _wrapped([study_words(plan.technology.noise)])) if plan.study else [],
        _section("The choice", _wrapped(choice_words(plan))),
        _section("The tables", _tables(plan)),
        _section(f"What it means for {with_article(program.protection.unit)}", _meaning(plan)),
        _section("The price of another choice", _regrets(plan)),
        _section("What the choice rests on", _rests_on(plan)),
        _section("Other readings", _readings(plan)) if plan.robustness.readings else [],
        _section("What is measured", _wrapped(technology_words(plan))),
        _section("Other technologies", _comparisons(plan)),
        *(_section(heading, _wrapped(lines)) for _, heading, lines in optional_sections(plan)),
        _section("Notes", _wrapped(plan.notes)) if plan.notes else [],
        _section("Not to be approved" if plan.study else "To be approved", _signed(plan)),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def choice_words(plan: Plan) -> list[str]:
    """The choice in sentences, and right after the first how sure it is."""
    first, *rest = plan.choice.explain().splitlines()
    return [first, *plan.robustness.sentences(), *rest]


def _money(plan: Plan, amount: float) -> str:
    return money(amount, plan.choice.currency)


def with_article(word: str) -> str:
    """One of them, whichever: "a child", "an establishment"."""
    return f"{'an' if word[:1].casefold() in VOWELS else 'a'} {word}"


def _section(heading: str, lines: Iterable[str]) -> list[str]:
    return [heading, *(f"  {line}" for line in lines)]


def _wrapped(paragraphs: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += textwrap.wrap(paragraph, WIDTH - 4, initial_indent="- ", subsequent_indent="  ")
    return lines


def _tables(plan: Plan) -> list[str]:
    costs = costs_of_errors(plan)
    rows = sorted(plan.tables, key=lambda table: -costs[table.table])
    clipped = any(table.bias for table in rows)
    lines = columns(
        [
            "table",
            "numbers",
            "typical error",
            *clipped * ["left out"],
            "95 % margin",
            "typical worth",
            "cost of errors",
        ],
        [
            [
                textwrap.shorten(table.table, 34, placeholder="…"),
                f"{table.query_count:,}",
                "exact" if table.exact else quantity(table.root_mean_squared_error, table.unit),
                *clipped * [left_out(table)],
                margin(table),
                "–"
                if table.root_mean_squared_consequence is None
                else _money(plan, table.root_mean_squared_consequence),
                _money(plan, costs[table.table]),
            ]
            for table in rows[:MOST_ROWS]
        ],
    )
    return [*lines, *_more(len(rows), "tables"), *_wrapped(clipped_sentences(plan))]


def costs_of_errors(plan: Plan) -> dict[str, float]:
    """By table, in money, at the chosen loss: the parts of the sum that the choice states."""
    chosen = {table.table: table.data_loss for table in plan.choice.tables}
    return {table.table: chosen.get(table.table) or table.data_loss for table in plan.tables}


def margin(table: TableConsequence) -> str:
    """The margin of error at 95 %, without the unit that stands beside it."""
    if table.exact:
        return "–"
    return "±" + quantity(table.half_width, table.unit).removesuffix(f" {plural(table.unit)}")


def left_out(table: TableConsequence) -> str:
    """What clipping leaves out of one number, root mean squared."""
    return "not counted" if table.bias is None else quantity(table.bias, table.unit)


def bound_words(plan: Plan, curve: BoundCurve) -> str:
    """What is counted with the bound in use, as the beginning of a sentence."""
    bound = stated_amount(curve.bound, curve.unit)
    if curve.name == RECORDS:
        return f"At most {bound} of each {plan.program.units.singular} {'is' if curve.bound == 1 else 'are'} counted"
    return f"{_raised(curve.name)} is counted up to {bound}"


def clipped_sentences(plan: Plan) -> list[str]:
    """What is counted in tables of which amounts or records are clipped; those that count alike together."""
    tables: dict[str, list[str]] = {}
    for name, words in plan.program.clipped.items():
        tables.setdefault(words, []).append(f"'{name}'")
    return [
        f"Counted in {', '.join(names[:MOST_NAMED])}{', …' if len(names) > MOST_NAMED else ''}: {words}. Errors and "
        "intervals are about that."
        for words, names in tables.items()
    ]


def _meaning(plan: Plan) -> list[str]:
    promise = plan.guarantee
    losses = "; ".join(f"{group.label}: {group.words}" for group in promise.losses)
    return _wrapped(
        [
            f"Protected: {_lowered(promise.protected)} Cannot be told apart: {_lowered(promise.indistinguishable)}",
            f"Privacy loss: {losses}.",
            *_beliefs(plan),
            *(f"Not protected: {_lowered(line)}" for line in promise.not_protected),
            promise.assumption,
        ]
    )


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _raised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _beliefs(plan: Plan) -> tuple[str, ...]:
    """What somebody may come to think, for one prior belief instead of three; the rest stands in the dossier."""
    probability = plan.program.file.mechanism.failure_probability
    if plan.loss.privacy_measure is PrivacyMeasure.ZCDP and probability is None:
        return plan.guarantee.beliefs
    return sentences(
        plan.loss,
        plan.program.protection,
        priors=(SHOWN_PRIOR,),
        failure_probability=None if probability is None else float(probability),
    )[:SHOWN_BELIEFS]


def _regrets(plan: Plan) -> list[str]:
    privacy_measure = plan.choice.privacy_measure
    rows = [row for row in plan.regrets if row.multiple in SHOWN_MULTIPLES]
    lines = []
    for row in rows:
        share = f"({percent(abs(row.relative))})"
        cost = f"cost society {_money(plan, row.absolute)} {share} more"
        cost = cost if row.absolute >= 0 else f"be better {share}, but is not allowed"
        lines.append(f"{SHOWN_MULTIPLES[row.multiple]}, {privacy_measure} = {number(row.epsilon)}, would {cost}.")
    return _wrapped(lines)


def _rests_on(plan: Plan) -> list[str]:
    """By how much each number moves the choice, and where what is stated of it would put the choice."""
    known = plan.robustness
    ends = {row.name: (row.low, row.high) for row in known.tornado}
    rows = [row for row in known.elasticities if abs(row.elasticity) > NO_DIFFERENCE]
    lines = columns(
        ["1 % more of", "now", f"moves {plan.choice.privacy_measure} by", "over what is stated"],
        [
            [
                row.name,
                f"{exact(row.value)} {row.unit}".rstrip(),
                f"{number(row.elasticity, 2)} %",
                " to ".join(_end(end) for end in ends[row.name]) if row.name in ends else "–",
            ]
            for row in rows[:MOST_ROWS]
        ],
    )
    return [*lines, *_more(len(rows), "inputs")] if rows else ["nothing stated moves it: a limit decides."]


def _end(end: TornadoEnd) -> str:
    return "no optimum" if end.epsilon is None else chosen_loss(end.epsilon)


def _readings(plan: Plan) -> list[str]:
    """What would be chosen if the program were read otherwise."""
    return columns(
        ["read otherwise", str(plan.choice.privacy_measure)],
        [[textwrap.shorten(row.reading, 72, placeholder="…"), _read(row)] for row in plan.robustness.readings],
    )


def _read(row: Reading) -> str:
    if row.choice is None:
        return "no optimum"
    loss, by = chosen_loss(float(row.choice.loss)), row.choice.bound_by
    return loss if by == "preferences" else f"{by}: {loss}"


def technology_words(plan: Plan) -> tuple[str, ...]:
    """What is measured, how near to the best possible, and what that saves."""
    return (*measurement_words(plan), *saving_words(plan))


def measurement_words(plan: Plan) -> list[str]:
    """What gets noise, how many numbers that are, and how near to the best possible."""
    found = plan.technology.found
    if plan.technology.drawn is not None:
        return _drawn_words(plan)
    if not found:
        measured = f"Measured: {_measured_words(plan)}"
        if _at_the_limit(plan):
            assert plan.saving.limit is not None
            better = plan.saving.beaten_by
            but = "" if better is None else f"; {in_words(*better.kind)} does"
            return [f"{measured}. {plan.saving.limit.bound.valid_for.replace('every', 'No', 1)} errs less{but}."]
        looked = plan.saving.optimized is not None and not plan.program.file.mechanism.states_strategy
        why = "no strategy was found that is worth its trouble"
        if plan.technology.strategy != TABLES:
            why = "so little noise on whole numbers is mostly 0, and no strategy was found that gains as much"
        return [f"{measured}{f', because {why}' if looked else ''}."]
    lines = [
        ("" if len(found) == 1 else f"For '{group}': ")
        + f"{strategy.exact.rows:,} measurements. {_raised(strategy.description)}.{_gap(strategy)}"
        for group, strategy in found.items()
    ]
    return [*lines[:MOST_ROWS], *_more(len(lines), "groups")]


def _drawn_words(plan: Plan) -> list[str]:
    """What a technology does whose errors depend on the data, and how sure the choice is that rests on simulation."""
    part = plan.extensions.simulation
    assert part is not None
    row, privacy_measure = part.stated, plan.choice.privacy_measure
    lines = [
        f"Measured: {_measured_words(plan)}, as the technology chooses draw by draw. Its errors depend on the data: "
        f"those above are simulated on {counted(part.records, 'record')} ({part.source})."
    ]
    if row is not None and row.epsilon is not None:
        low, high = (number(each) for each in (row.epsilon.lower, row.epsilon.upper))
        lines.append(f"As far as simulation goes, {privacy_measure} lies between {low} and {high} (95 %).")
    bands = [table for table in plan.tables if table.band is not None]
    for table in bands[:MOST_ROWS]:
        assert table.band is not None
        low, high = (quantity(each, table.unit) for each in table.band)
        stated = ""
        if table.stated_half_width is not None:
            stated = f"; its 95 % intervals would state ±{quantity(table.stated_half_width, table.unit)}"
        lines.append(f"'{table.table}': typical error {low} to {high} as far as simulation is off{stated}.")
    return [*lines, *_more(len(bands), "tables")]


def _gap(strategy: Strategy) -> str:
    """How near to the best possible, where the bound says something."""
    telling = strategy.error_coefficient <= TELLING * strategy.lower_bound
    return f" Errors are {strategy.gap}." if telling else ""


def _measured_words(plan: Plan) -> str:
    return measured_words(*plan.technology.kind[1:]).replace("the tables", "the tables themselves", 1)


def saving_words(plan: Plan) -> Iterator[str]:
    """What errors cost beside plain noise on the tables, and at least."""
    saving, privacy_measure = plan.saving, plan.choice.privacy_measure
    naive, used, least = (saving.at_choice[name] for name in ("naive", "used", "least"))
    assert used is not None
    plain, alone = in_words(*saving.naive.kind), saving.naive.choice
    if saving.saved is not None and naive is not None and not plan.uses(saving.naive):
        verb = "saved" if saving.saved >= 0 else "lost"
        share = f" ({percent(abs(1 - used / naive))})" if naive * TIMES_TOLD > used else ""
        whose = ", the paper's technology (a study)" if saving.naive.study else ""
        whose = ", what is done by hand" if len(plan.tables) > 1 else whose
        saved = f"{_money(plan, abs(saving.saved))} of errors{share} are {verb}"
        unfit = alone is not None and alone.bound_by == "fitness for use" and alone.epsilon > plan.choice.epsilon
        but = f", which at this {privacy_measure} does not leave every table fit for use" if unfit else ""
        yield f"{saved} against {plain}{whose}{but}."
        if alone is not None and saving.welfare_gained is not None:
            chosen = f"{privacy_measure} = {chosen_loss(float(alone.loss))}{_typical(alone)}"
            yield f"That would choose {chosen}, and leave society {_left(plan, saving.naive, saving.welfare_gained)}."
        if saving.by_value is not None and saving.by_value.choice is not None:
            loss, gained = float(saving.by_value.choice.loss), saving.welfare_gained_by_value or 0.0
            chosen = f"In shares by value, by hand too, it would choose {privacy_measure} = {chosen_loss(loss)}"
            yield f"{chosen}, and leave society {_left(plan, saving.by_value, gained)}."
    if least and saving.limit is not None and not _at_the_limit(plan):
        times = f"Errors cost at most {_above(used / least)} the least possible"
        valid = saving.limit.bound.valid_for
        yield f"{times}: no strategy brings them below {_money(plan, least)}; that holds for {valid}."
        if saving.least_lost is not None:
            times = _above(-plan.choice.welfare / saving.least_lost)
            yield (
                f"Privacy and errors together cost society at most {times} the least possible, "
                f"{_money(plan, saving.least_lost)}, whatever is measured and at whatever {privacy_measure}."
            )


def _left(plan: Plan, rival: Comparison, gained: float) -> str:
    """How much worse off society would be with a rival; better off perhaps with one that nobody can publish."""
    if abs(gained) <= NO_DIFFERENCE * -plan.choice.welfare:
        return "as well off"
    if gained > 0:
        return f"{_money(plan, gained)} worse off"
    drawn = f", but {rival.noise.capitalize()} noise is a study: it is not drawn exactly" if rival.study else ""
    return f"{_money(plan, -gained)} better off{drawn}"


def _above(times: float) -> str:
    """How far above a bound something is: a share more, or a multiple where that is easier to read."""
    return f"{percent(times - 1)} more than" if times < TWICE else f"{number(times, 3)} times"


def _typical(alone: Choice) -> str:
    """How far off plain noise would typically be at its own best loss: in money, or in the one unit of the tables."""
    if alone.root_mean_squared_consequence is not None:
        return f", typically off by {money(alone.root_mean_squared_consequence, alone.currency)}"
    if alone.root_mean_squared_error is not None:
        return f", typically off by {quantity(alone.root_mean_squared_error, alone.tables[0].unit)}"
    return ""


def _at_the_limit(plan: Plan) -> bool:
    """Whether errors cost no more than they must, whatever is measured."""
    used, least = plan.saving.at_choice["used"], plan.saving.at_choice["least"]
    return used is not None and least is not None and used <= least * (1 + NO_DIFFERENCE)


def _comparisons(plan: Plan) -> list[str]:
    """What others would choose; whatever else can be measured with the same noise only where it makes a difference."""
    able = [(row, row.choice) for row in plan.comparisons if row.choice is not None and _is_told(plan, row, row.choice)]
    lines = columns(
        ["noise", "on", str(plan.choice.privacy_measure), "typical error", "society loses"],
        [
            [
                _noise(plan, row),
                measured_words(row.strategy, row.measured),
                chosen_loss(float(choice.loss)),
                "–" if choice.root_mean_squared_error is None else number(choice.root_mean_squared_error),
                _money(plan, -choice.welfare),
            ]
            for row, choice in able
        ],
    )
    remarks = [STUDIES] if any(row.study for row, _ in able) else []
    for row in plan.comparisons:
        if row.choice is None:
            names_itself = row.why.startswith(f"{row.noise} noise ")
            said = _raised(row.why) if names_itself else f"{marked(in_words(*row.kind), row.noise)}: {row.why}"
            remarks.append(f"{said}.")
    return [*lines, *_wrapped(remarks)]


def _noise(plan: Plan, row: Comparison) -> str:
    remarks = [word for word, holds in (("study", row.study), ("chosen", plan.uses(row))) if holds]
    return f"{row.noise} ({', '.join(remarks)})" if remarks else row.noise


def _is_told(plan: Plan, row: Comparison, choice: Choice) -> bool:
    differs = abs(choice.welfare / plan.choice.welfare - 1) > NO_DIFFERENCE
    return plan.uses(row) or row.noise != plan.technology.noise or differs


def _signed(plan: Plan) -> list[str]:
    shares = plan.allocation.items() if len(plan.allocation) > 1 else ()
    split = [f"{group}: {number(float(share), 8)}" for group, share in shares]
    which = "" if plan.account_identifier is None else f" ({plan.account_identifier})"
    spent = "" if plan.study else f", spent from the account '{plan.program.file.population.account}'{which}"
    return [
        f"loss    {plan.loss.privacy_measure} = {plan.loss.exact()}{spent}",
        *(f"        of it {line}" for line in split[:MOST_ROWS]),
        *(f"        {line}" for line in _more(len(split), "groups")),
        f"noise   {plan.technology.noise}, on {_measured_words(plan)}",
        f"digest  {plan.digest}",
    ]


def _more(count: int, what: str) -> list[str]:
    rest = count - MOST_ROWS
    return [f"… and {rest:,} more {what.removesuffix('s') if rest == 1 else what}, in plan.json"] if rest > 0 else []


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows under heads: the first column left, the others right."""
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [heads, *rows]
    ]


def optional_sections(plan: Plan) -> list[tuple[str, str, list[str]]]:
    """Anchor, heading and sentences of each part that the program asks for, or that its numbers call for.

    A picture that belongs to a part has a name that begins with its anchor.
    """
    uncertain, rules, total = plan.uncertainty, plan.social_choice, plan.public_total
    parts: tuple[tuple[str, str, Iterable[str]], ...] = (
        ("public-total", "Beside a public total", () if total is None else total.sentences()),
        ("uncertainty", "If preferences are not known exactly", () if uncertain is None else uncertain.sentences()),
        ("social-choice", "Other ways to add people up", () if rules is None else rules.explain().splitlines()),
        ("ratios", "Means, shares and ratios", _ratios(plan)),
        ("participation", "Who still takes part", _participation(plan)),
        ("losses", "How errors count", _losses(plan)),
        ("wealth", "Whose wealth hangs on the tables", _wealth(plan)),
        ("existing", "Errors that were there before", _existing(plan)),
        ("clipping", "What clipping leaves out", _clipping(plan)),
        ("offering", "Which tables earn their place", _offering(plan)),
        ("path", "Releases to come", _path(plan)),
        ("sample", "How many people to ask", _sample(plan)),
        ("randomized-response", "If nobody were trusted with the records", _local(plan)),
        ("simulation", "Which technology when", _simulation(plan)),
        ("secret", "Records that go together", _secret(plan)),
        ("markets", "The same program in a market", _markets(plan)),
    )
    return [(anchor, heading, lines) for anchor, heading, said in parts if (lines := list(said))]


def _ratios(plan: Plan) -> Iterator[str]:
    for row in plan.ratios[:MOST_ROWS]:
        off, within, around = (
            number(value) if row.unit == SHARE else quantity(value, row.unit)
            for value in (row.root_mean_squared_error, row.half_width, row.typical_value)
        )
        cost = f"; its errors cost {_money(plan, row.data_loss)}" if row.data_loss else ""
        yield (
            f"'{row.ratio}', {counted(row.query_count, 'number')} of '{row.numerator}' over '{row.denominator}': "
            f"typically off by {off}, 95 in 100 within ±{within} (linearized around {around}){cost}."
        )
        if row.ratio in plan.program.clipped:
            yield f"What clipping leaves out of the two tables of '{row.ratio}' is not counted in that."
        if row.denominator_error > NOISY_DENOMINATOR:
            yield (
                f"The denominator of '{row.ratio}' is typically off by {percent(row.denominator_error)} of itself: its "
                "ratios are off by more than this, and the intervals of some may be unbounded."
            )
    yield from _more(len(plan.ratios), "ratios")
    if plan.ratios:
        yield (
            "Ratios are made of the tables above, so that they cost no privacy loss. A release states the interval of "
            "each by the exact noise; it is wider than here where a denominator is small."
        )


def _participation(plan: Plan) -> Iterator[str]:
    part, privacy_measure = plan.extensions.participation, plan.choice.privacy_measure
    if part is None:
        return
    unit = plural(plan.program.protection.unit)
    yield (
        f"At this {privacy_measure} {percent(part.rate)} of the {unit} take part, {percent(part.rate_without_loss)} if "
        "nothing could be learned about them. They alone lose privacy. Errors count the noise weighted up for them, "
        "and that the others are missing at random."
    )
    times = number(1 / part.rate)
    yield f"A release counts those who take part: to stand for all {unit}, multiply its numbers by {times}."
    if part.truthful < 1:
        yield (
            f"Of those, {percent(1 - part.truthful)} report falsely ({percent(1 - part.truthful_without_loss)} if "
            "nothing could be learned about them): errors count how far that moves the numbers, squared, because "
            "nobody can take it out again."
        )
    if part.peak is not None:
        yield (
            f"Accuracy peaks at {privacy_measure} = {number(part.peak)}: beyond it so many stay away"
            f"{' or report falsely' if part.truthful < 1 else ''} that tables become less accurate. Whatever lies "
            "beyond is worse for privacy and for accuracy, and is never chosen. "
            "Where this plan speaks of larger losses, errors are counted as at the peak; they would be larger."
        )
    if part.assumed_totals:
        named = ", ".join(f"'{name}'" for name in part.assumed_totals[:3])
        yield f"The total of {named} is not stated: all {unit} are taken to be counted there, to be on the safe side."


def _losses(plan: Plan) -> Iterator[str]:
    clipped = {table.table for table in plan.tables if table.bias != 0}
    for row in plan.extensions.losses:
        noise_alone = ["That is of noise alone: what clipping leaves out is not in it."] if row.table in clipped else []
        yield " ".join([*_loss_words(row, plan), *noise_alone])


def _loss_words(row: MeasuredLoss, plan: Plan) -> Iterator[str]:
    """What the errors of one table amount to, in the way that they count."""
    share, measure = row.amount / row.query_count, plan.choice.privacy_measure
    if row.loss == "relative":
        yield f"A number of '{row.table}' is typically off by {percent(math.sqrt(share))} of what is expected there."
        yield f"One that is off by all of it costs {_money(plan, row.value)}, and by a tenth of it a hundredth of that."
    elif row.threshold is not None:
        yield (
            f"Of {row.query_count:,} numbers of '{row.table}', {number(row.amount, 3)} are expected to be off by more "
            f"than {quantity(row.threshold, row.table_unit)} ({percent(share)} of them); each costs "
            f"{_money(plan, row.value)}."
        )
    elif row.miss_probability is not None and row.promised is not None:
        sure, worst = percent(1 - row.miss_probability), quantity(row.promised, row.table_unit)
        yield f"With probability {sure} no number of '{row.table}' is off by more than {worst}."
        priced = f"at {_money(plan, row.value)} per {row.table_unit}"
        if row.falls_at is None or row.falls_to is None:
            yield f"Priced is this worst error, {priced}."
        else:
            saved = _money(plan, row.value * (row.promised - row.falls_to))
            paid = plan.welfare.privacy_cost(row.falls_at) - plan.choice.privacy_cost
            yield (
                f"Priced is a worst error of {number(row.amount)}, {priced}: it is the same, without the jumps of "
                f"whole-number noise. The next jump is at {measure} = {chosen_loss(row.falls_at)}: from there on none "
                f"is off by more than {quantity(row.falls_to, row.table_unit)}, which is worth {saved} and costs "
                f"{_money(plan, paid)} of privacy."
            )
        people = float(plan.program.file.population.population_size.value)
        for name, promise in row.multiplicative_weights:
            bound = quantity(promise, row.table_unit)
            bound = bound if promise < people else f"nothing, because its bound is above all {number(people, 6)}"
            yield f"For any data, {name} promises {bound} at this {measure}."
    elif row.given_out is not None and row.band is not None:
        yield f"By its public numbers '{row.table}' gives out {_money(plan, row.given_out)}."
        squared = row.unit.endswith("^2")
        amount, low, high = (
            f"{number(each)} squared {plan.choice.currency}" if squared else _money(plan, each)
            for each in (row.amount, *row.band)
        )
        off = f"With noise the squares of what grants are off by add up to {amount}"
        if not squared:
            off = f"With noise the grants are off by {amount} in all"
        yield f"{off}, too much and too little alike: simulated, with a 95 % band from {low} to {high}."
        if row.simulated_to is not None and plan.choice.epsilon > row.simulated_to:
            yield (
                f"Beyond {measure} = {number(row.simulated_to)} they were too rare to be simulated, and are taken to "
                "fall as the table's own errors do."
            )


def _wealth(plan: Plan) -> Iterator[str]:
    units = {table.table: table.unit for table in plan.tables}
    for row in plan.extensions.wealth:
        group, unit = row.group, units[row.table]
        yield (
            f"{group.name}: {number(group.people, 6)} people stand to gain or lose {_money(plan, group.exposure)} per "
            f"{unit} in {'each' if group.to_all else 'one'} number of '{row.table}', with an absolute risk aversion of "
            f"{number(group.risk_aversion)} per {plan.choice.currency}. To be rid of its errors is worth "
            f"{_money(plan, row.value)} per squared {unit} to them."
        )
        if row.taylor is not None:
            yield f"That holds for small risks ({group.name}, one person, '{row.table}'): {row.taylor}."


def _existing(plan: Plan) -> Iterator[str]:
    for row in plan.extensions.existing:
        before, together = quantity(row.before, row.unit), quantity(row.together, row.unit)
        if row.sampling:
            yield (
                f"'{row.table}' estimates what a like population would show on average. By sampling alone a number is "
                f"typically off by {before}, with noise by {together}, {percent(row.added)} more; what 95 in 100 are "
                f"within counts both. Of what its errors cost, {_money(plan, row.cost)} is sampling, whatever "
                f"{plan.choice.privacy_measure} is. Intervals of a release hold the expected number, not the number "
                "counted."
            )
            continue
        yield (
            f"A number of '{row.table}' was typically off by {before} before noise; with noise it is off by "
            f"{together}, {percent(row.added)} more."
        )
    squared = {value.table for value in plan.welfare.table_values if value.measure == "squared"}
    if any(row.table in squared for row in plan.extensions.existing):
        yield "Where harm grows with the square of an error, what was there before does not move the choice."
    for row in plan.extensions.existing:
        if row.table not in squared:
            yield f"What errors of '{row.table}' cost is of noise alone: what was there before is not counted in it."


def _clipping(plan: Plan) -> Iterator[str]:
    """What each bound leaves out, beside the noise that it takes, and which one would do better."""
    for curve in plan.extensions.clipping:
        counts, unit = bound_words(plan, curve), curve.table_unit
        here = next(row for row in curve.rows if row.bound == curve.bound)
        number_of, best = f"a number of '{curve.table}'", curve.recommended
        if here.both is None or here.bias is None:
            key = "records_per_unit" if curve.name == RECORDS else f"attributes.{curve.name}.distribution"
            how = f"State {key}, from a public source, to have it counted."
            how = how if curve.source is None else "It cannot be told from what is stated."
            yield (
                f"{counts}. What that leaves out is not counted here: errors of {number_of} are those of "
                f"noise alone, {quantity(here.noise, unit)}. {how}"
            )
        else:
            yield (
                f"{counts}: {number_of} is then typically off by {quantity(here.both, unit)}, by "
                f"{quantity(here.noise, unit)} of noise and by {quantity(here.bias, unit)} that is left out "
                f"(by {curve.source})."
            )
            if curve.uncounted:
                named = " and ".join(f"'{name}'" for name in curve.uncounted)
                yield (
                    f"What is left out has no part in what errors of {named} cost: these are counted in a way in which "
                    "it cannot be held against noise, and no bound is recommended."
                )
        if best is not None and best.both is not None and best is not here:
            better = stated_amount(best.bound, curve.unit)
            less = _money(plan, here.cost - best.cost)
            key = f"most_records_per_unit = {best.bound}" if curve.name == RECORDS else 'upper = "best"'
            yield (
                f"At this loss errors would cost {less} less with {better}: {number_of} would then be off by "
                f"{quantity(best.both, unit)}. It is recommended: {key}."
            )
        elif best is not None:
            end, further = curve.at_the_end, {"largest": "larger", "smallest": "smaller"}
            beyond = f"; it is the {end} of them, and a {further[end]} one may cost less still" if end else ""
            chose = "The plan chose this bound: at" if curve.chosen else "At"
            yield f"{chose} this loss no other that was compared costs less{beyond}."
        if best is not None and curve.assumed:
            yield f"Records are taken to spread evenly over {', '.join(curve.assumed)}, because nothing else is stated."


def _offering(plan: Plan) -> Iterator[str]:
    offering = plan.extensions.offering
    if offering is None:
        if plan.extensions.no_offering:
            yield f"Whether tables earn their place could not be worked out: {plan.extensions.no_offering}."
        return
    for verdict in offering.verdicts:
        word = "earns its place" if verdict.published else "does not earn its place"
        yield (
            f"'{verdict.name}' {word}: it is worth {_money(plan, verdict.value)}, and publishing it costs "
            f"{_money(plan, verdict.price)} in privacy and errors."
        )
    if any(verdict.published for verdict in offering.verdicts):
        yield (
            f"Published by themselves, those that do would take {offering.privacy_measure} = "
            f"{number(offering.epsilon)} in all and leave society {_money(plan, offering.net)} better off."
        )
    elif len(offering.verdicts) > 1:
        yield "None of them is worth its price."
    yield "This is advice: the plan above is for all tables as stated."
    if not offering.exact:
        yield f"Not every combination could be looked at; none gains more than {_money(plan, offering.bound)}."


def _path(plan: Plan) -> Iterator[str]:
    path, privacy_measure = plan.extensions.path, plan.choice.privacy_measure
    if path is None:
        return
    losses = ", ".join(f"{number(release.epsilon)} in year {release.year:g}" for release in path.releases)
    yield f"The best {privacy_measure} of each release: {losses}; {number(path.total)} in all."
    if path.cap is not None and path.price > 0:
        yield (
            f"Without the cap of {number(path.cap)} on all of them they would spend "
            f"{number(sum(release.alone for release in path.releases))}; one more unit is worth "
            f"{_money(plan, path.price)}. "
            "This plan is for one release: the cap is kept only if its own largest loss is set accordingly."
        )
    if plan.program.file.horizon is not None and plan.program.file.horizon.years_of_use is not None:
        harm = (
            ", and privacy loss for every year until records are opened"
            if recurs(plan.program.timing.time_base)
            else ""
        )
        yield f"Here values of accuracy count for every year of use{harm}; the choice above counts one year."
    yield from _renewals(plan)


def _renewals(plan: Plan) -> Iterator[str]:
    if not plan.extensions.renewals:
        return
    best, *others = plan.extensions.renewals
    if best.worth <= 0:
        yield (
            f"No new release pays: even the best, one every {_years(best.years)}, costs more in privacy and errors "
            f"than the yearly_value of the tables, by {_money(plan, -best.worth)} {_counted_in(plan)}."
        )
        return
    yield (
        f"A new release every {_years(best.years)} is best, each at {plan.choice.privacy_measure} = "
        f"{number(best.epsilon)} and worth {_years_of(best.service)} of use: all of them are worth "
        f"{_money(plan, best.worth)} {_counted_in(plan)}, if each costs people what one today does."
    )
    if others:
        yield f"Next best is every {_years(others[0].years)}: {_money(plan, best.worth - others[0].worth)} less."


def _counted_in(plan: Plan) -> str:
    """What all releases for ever add up to is finite today where the future counts less, else only a year."""
    horizon = plan.program.file.horizon
    return "a year" if horizon is not None and horizon.discount_factor == 1 else "today"


def _years_of(service: float) -> str:
    written = number(service, 3)
    return f"{written} year{'' if written == '1' else 's'}"


def _years(years: int) -> str:
    return "year" if years == 1 else f"{years} years"


def _sample(plan: Plan) -> Iterator[str]:
    sample, unit, privacy_measure = plan.extensions.sample, plan.program.protection.unit, plan.choice.privacy_measure
    if sample is None:
        return
    if not sample.tables:
        yield "No table is worth asking anybody for."
        return
    if sample.share == 1:
        cost = _money(plan, sample.collection_cost)
        yield f"Asking everybody is best: {cost} buys more accuracy than a sample would save."
    else:
        yield (
            f"Asking a random {percent(sample.share)} of the {plural(unit)} at {privacy_measure} = "
            f"{number(sample.epsilon)} each is best: {counted(round(sample.respondents), unit)} for "
            f"{_money(plan, sample.collection_cost)}. Society is {_money(plan, sample.gained)} better off than by "
            "asking everybody, sampling errors and the privacy of those who are asked counted."
        )
    left_out = [table.table for table in plan.tables if table.table not in sample.tables]
    if left_out:
        yield f"Not worth collecting for: {', '.join(repr(name) for name in left_out)}."
    if sample.share < 1 and sample.amplified is not None:
        yield (
            f"If nobody could know who was asked, each of all {plural(unit)} would lose at most {privacy_measure} = "
            f"{number(sample.amplified)}. This is not counted on: who is asked knows it."
        )
    yield "This is advice: the plan above is for the records of everybody."


def _local(plan: Plan) -> Iterator[str]:
    part, privacy_measure = plan.extensions.local, plan.choice.privacy_measure
    if part is None:
        return
    times = (
        "" if part.times is None else f" At this {privacy_measure} its errors cost {number(part.times)} times as much."
    )
    yield f"With {part.technology} all randomize their own answer: nobody else ever holds a true one.{times}"
    if part.epsilon is None or part.forgone is None:
        yield f"It would choose nothing: {part.why_not}."
    else:
        worse, how = "worse" if part.forgone >= 0 else "better", "nobody says anything"
        if part.truth_probability is not None:
            how = f"{percent(part.truth_probability)} give their true answer and the others an innocuous one"
        elif part.other_bit_probability is not None:
            how = (
                "each reports a bit for every cell, 1 for the own one in 50 % of cases and for each other one in "
                f"{percent(part.other_bit_probability)}"
            )
        yield (
            f"It would choose {privacy_measure} = {number(part.epsilon)}, at which {how}, and leave society "
            f"{_money(plan, abs(part.forgone))} {worse} off: that is what a curator who is trusted is worth."
        )
        if part.other is not None:
            yield f"With {part.other} society would be still worse off."
    yield "This is a study: people would randomize before there are records, so nothing of it is drawn here."


def _simulation(plan: Plan) -> Iterator[str]:
    part, privacy_measure = plan.extensions.simulation, plan.choice.privacy_measure
    if part is None:
        return
    scaled = "" if part.population == part.records else f", scaled to {part.population:,}"
    yield (
        f"Simulated on {counted(part.records, 'public record')}{scaled} ({part.source}): {part.repetitions:,} releases "
        f"of each technology at each loss. Errors count by the {' and the '.join(part.measures)} measure of this "
        "program; no technology is best for every workload, every data set and every way to count errors."
    )
    if part.used is not None:
        yield (
            f"Errors are compared with those of noise on measurements, and what each would choose with the plan that "
            f"would be made without '{part.used}'."
        )
    for row in part.technologies:
        yield from _simulated(plan, part, row)
    studied = [row for row in part.technologies if row.technology != WHOLE_NUMBERS]
    tables = "the plan's tables" if part.used is None else "measurements"
    surely = [(loss, found.technology) for at, loss in enumerate(part.losses) if (found := part.best(at)) is not None]
    for name in dict.fromkeys(name for _, name in surely):
        at = ", ".join(number(loss) for loss, each in surely if each == name)
        yield f"At {privacy_measure} = {at} '{name}' surely errs at less cost than {tables}, and at the least."
    if studied and not surely:
        yield f"At none of these losses does another technology surely err at less cost than {tables}."
    if studied:
        yield (
            "Nothing of this was drawn from protected records. technology in [mechanism] names one of them, and then "
            "it is planned, approved and published."
        )


def _simulated(plan: Plan, part: SimulationOutcome, row: SimulatedTechnology) -> Iterator[str]:
    if row.why_not is not None:
        yield f"'{row.technology}' is not simulated: {row.why_not}."
        return
    times = ", ".join(
        f"{number(error.value)} ({number(error.lower)} to {number(error.upper)}) at {number(loss)}"
        for loss, error in zip(part.losses, row.errors, strict=True)
    )
    noise = "the plan's noise" if part.used is None else "noise on measurements"
    what = "The plan's own tables, in whole numbers" if row.technology == WHOLE_NUMBERS else f"'{row.technology}'"
    yield f"{what}: errors cost so many times those of {noise} (95 % bands): {times}."
    if row.bias is not None:
        yield (
            f"At the choice {percent(row.bias)} of its squared error is bias, the same in every release; the rest is "
            "noise, and varies."
        )
    if row.epsilon is None or row.gained is None:
        yield f"It would choose no {plan.choice.privacy_measure} alone."
        return
    alone = "If errors counted as they are then, the plan" if row.technology == WHOLE_NUMBERS else "Alone it"
    end = ", the end of what was simulated" if row.at_end else ""
    better = "better" if row.gained.value >= 0 else "worse"
    low, high = sorted((abs(row.gained.lower), abs(row.gained.upper)))
    sure = row.gained.lower * row.gained.upper > 0
    ends = f"{number(row.epsilon.lower)} to {number(row.epsilon.upper)}"
    spread = f" ({ends} with a confidence of {percent(row.epsilon.confidence)})" if row.epsilon.standard_error else ""
    band = f" ({_money(plan, low)} to {_money(plan, high)})" if sure else ", give or take what simulation is off by"
    rival = "the plan" if part.used is None else "measurements"
    yield (
        f"{alone} would choose {plan.choice.privacy_measure} = {number(row.epsilon.value)}{spread}{end}, and leave "
        f"society {_money(plan, abs(row.gained.value))} {better} off than {rival}{band}."
    )


def _secret(plan: Plan) -> Iterator[str]:
    part, privacy_measure = plan.extensions.secret, plan.choice.privacy_measure
    if part is None:
        return
    yield (
        f"Whether one of {with_article(part.group)} of {part.members} is counted, by one who knows how often its "
        f"members go together: the odds move by at most e^{number(part.loss)} at {privacy_measure} = "
        f"{number(plan.choice.epsilon)}. However they go together, it is e^{number(part.group_loss)} at most."
    )
    yield (
        f"The Wasserstein mechanism would hide {part.wasserstein} of {part.members} records to protect this secret; "
        "the first bound is exact, and never worse."
    )
    if part.chosen is not None:
        yield (
            f"If the cost of privacy were that of this secret, a loss of {number(part.chosen.loss)} for it would be "
            f"chosen: {privacy_measure} = {number(part.chosen.epsilon)} for one record. This is advice."
        )


def _markets(plan: Plan) -> Iterator[str]:
    privacy_measure = plan.choice.privacy_measure
    for row in plan.extensions.markets:
        if row.epsilon is None:
            yield f"{_raised(row.name)}: no choice, because {row.why}."
        elif row.forgone is not None:
            paid = "" if row.total is None else f", {_money(plan, row.total)} paid to people"
            worse = row.forgone > NO_DIFFERENCE * -plan.choice.welfare
            cost = f"society is {_money(plan, row.forgone)} worse off" if worse else "society is as well off"
            if row.one_count:
                cost = "it buys no table of this program"
            yield f"{_raised(row.name)} ({row.why}): {privacy_measure} = {chosen_loss(row.epsilon)}{paid}; {cost}."
