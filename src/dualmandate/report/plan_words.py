"""A plan as a page of text that a board member reads in two minutes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dualmandate.planning.study import marked, study_words
from dualmandate.planning.technology import in_words, measured_words
from dualmandate.population import PrivacyMeasure, plural
from dualmandate.population.wording import counted, exact, money, number, percent, quantity
from dualmandate.semantics import sentences

if TYPE_CHECKING:
    from dualmandate.choice import Choice
    from dualmandate.planning.comparison import Comparison
    from dualmandate.planning.plan import Plan

WIDTH = 100
MOST_ROWS = 6  # of a table of many rows; the rest is in plan.json
VOWELS = frozenset("aeio")  # not u: a unit, a university
SHOWN_PRIOR, SHOWN_BELIEFS = 0.01, 2  # being in the file, and which of two records
SHOWN_MULTIPLES = {0.5: "Half of it", 2.0: "Twice it"}
NO_DIFFERENCE = 1e-9  # share of a cost
STUDIES = "Studies: for comparison only, never drawn."


def plan_words(plan: Plan) -> str:
    """The whole page."""
    program = plan.program
    description = program.file.program.description
    parts = [
        [program.name if description is None else f"{program.name}: {description}"],
        _section("A study", _wrapped([study_words(plan.technology.noise)])) if plan.study else [],
        _section("The choice", _wrapped(plan.choice.explain().splitlines())),
        _section("The tables", _tables(plan)),
        _section(f"What it means for {with_article(program.protection.unit)}", _meaning(plan)),
        _section("The price of another choice", _regrets(plan)),
        _section("What the choice rests on", _tornado(plan)),
        _section("What is measured", _wrapped(technology_words(plan))),
        _section("Other technologies", _comparisons(plan)),
        *(_section(heading, _wrapped(lines)) for _, heading, lines in optional_sections(plan)),
        _section("Notes", _wrapped(plan.notes)) if plan.notes else [],
        _section("Not to be approved" if plan.study else "To be approved", _signed(plan)),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


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
    rows = sorted(plan.tables, key=lambda table: -table.data_loss)
    lines = _columns(
        ["table", "numbers", "typical error", "95 in 100 within", "typical worth", "cost of errors"],
        [
            [
                textwrap.shorten(table.table, 34, placeholder="…"),
                f"{table.query_count:,}",
                quantity(table.root_mean_squared_error, table.unit),
                "±" + quantity(table.half_width, table.unit).removesuffix(f" {plural(table.unit)}"),
                "–" if table.root_mean_squared_consequence is None else money(table.root_mean_squared_consequence),
                money(table.data_loss),
            ]
            for table in rows[:MOST_ROWS]
        ],
    )
    return [*lines, *_more(len(rows), "tables")]


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
        cost = f"cost society {money(row.absolute)} {share} more"
        cost = cost if row.absolute >= 0 else f"be better {share}, but is not allowed"
        lines.append(f"{SHOWN_MULTIPLES[row.multiple]}, {privacy_measure} = {number(row.epsilon)}, would {cost}.")
    return _wrapped(lines)


def _tornado(plan: Plan) -> list[str]:
    rows = [row for row in plan.tornado if row.swing > 1e-9 * plan.choice.epsilon]
    lines = _columns(
        ["a tenth either way", "now", "lower", "higher"],
        [
            [
                row.name,
                f"{exact(row.value)} {row.unit}".rstrip(),
                "no optimum" if row.low.epsilon is None else number(row.low.epsilon),
                "no optimum" if row.high.epsilon is None else number(row.high.epsilon),
            ]
            for row in rows[:MOST_ROWS]
        ],
    )
    return [*lines, *_more(len(rows), "inputs")] if rows else ["nothing stated moves it: a limit decides."]


def technology_words(plan: Plan) -> tuple[str, ...]:
    """What is measured, how near to the best possible, and what that saves."""
    return (*_measured(plan), *_saving(plan))


def _measured(plan: Plan) -> list[str]:
    """What gets noise, how many numbers that are, and how near to the best possible."""
    found = plan.technology.found
    if not found:
        measured = f"Measured: {_measured_words(plan)}"
        if _at_the_limit(plan):
            return [f"{measured}. No matrix mechanism with {plan.technology.noise} noise errs less."]
        looked = plan.saving.optimized is not None and not plan.program.file.mechanism.states_strategy
        return [f"{measured}{', because no strategy was found that is worth its trouble' if looked else ''}."]
    lines = [
        ("" if len(found) == 1 else f"For '{group}': ")
        + f"{strategy.exact.rows:,} measurements. {_raised(strategy.description)}. Errors are {strategy.gap}."
        for group, strategy in found.items()
    ]
    return [*lines[:MOST_ROWS], *_more(len(lines), "groups")]


def _measured_words(plan: Plan) -> str:
    return measured_words(*plan.technology.kind[1:]).replace("the tables", "the tables themselves", 1)


def _saving(plan: Plan) -> Iterator[str]:
    """What errors cost beside plain noise on the tables, and at least."""
    saving, privacy_measure = plan.saving, plan.choice.privacy_measure
    naive, used, least = (saving.at_choice[name] for name in ("naive", "used", "least"))
    assert used is not None
    plain, alone = in_words(*saving.naive.kind), saving.naive.choice
    if saving.dollars is not None and naive is not None and not plan.uses(saving.naive):
        verb, share = ("saved", 1 - used / naive) if saving.dollars >= 0 else ("lost", used / naive - 1)
        whose = ", the paper's technology (a study)" if saving.naive.study else ""
        whose = ", what is done by hand" if len(plan.tables) > 1 else whose
        saved = f"{money(abs(saving.dollars))} of errors ({percent(share)}) are {verb}"
        yield f"{saved} against {plain}{whose}."
        if alone is not None and saving.welfare_gained is not None:
            off = f"{money(abs(saving.welfare_gained))} {'worse' if saving.welfare_gained >= 0 else 'better'} off"
            chosen = f"{privacy_measure} = {number(float(alone.loss), 6)}{_typical(alone)}"
            yield f"That would choose {chosen}, and leave society {off}."
    if least is not None and saving.limit is not None and not _at_the_limit(plan):
        times = (
            f"Errors cost at most {number(used / least, 3)} times the least possible" if least else "No bound is known"
        )
        yield f"{times}: no strategy brings them below {money(least)}; that holds for {saving.limit.bound.valid_for}."


def _typical(alone: Choice) -> str:
    """How far off plain noise would typically be at its own best loss: in dollars, or in the one unit of the tables."""
    if alone.root_mean_squared_consequence is not None:
        return f", typically off by {money(alone.root_mean_squared_consequence)}"
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
    lines = _columns(
        ["noise", "on", str(plan.choice.privacy_measure), "typical error", "society loses"],
        [
            [
                _noise(plan, row),
                measured_words(row.strategy, row.measured),
                number(choice.epsilon, 6),
                "–" if choice.root_mean_squared_error is None else number(choice.root_mean_squared_error),
                money(-choice.welfare),
            ]
            for row, choice in able
        ],
    )
    remarks = [STUDIES] if any(row.study for row in plan.comparisons) else []
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
    spent = "" if plan.study else f", spent from the account '{plan.program.file.population.account}'"
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


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
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
    uncertain, rules = plan.uncertainty, plan.social_choice
    parts: tuple[tuple[str, str, Iterable[str]], ...] = (
        ("uncertainty", "If preferences are not known exactly", () if uncertain is None else uncertain.sentences()),
        ("social-choice", "Other ways to add people up", () if rules is None else rules.explain().splitlines()),
        ("participation", "Who still takes part", _participation(plan)),
        ("existing", "Errors that were there before", _existing(plan)),
        ("offering", "Which tables earn their place", _offering(plan)),
        ("path", "Releases to come", _path(plan)),
        ("sample", "How many people to ask", _sample(plan)),
        ("randomized-response", "If nobody were trusted with the records", _local(plan)),
        ("secret", "Records that go together", _secret(plan)),
        ("markets", "The same program in a market", _markets(plan)),
    )
    return [(anchor, heading, lines) for anchor, heading, said in parts if (lines := list(said))]


def _participation(plan: Plan) -> Iterator[str]:
    part, privacy_measure = plan.extensions.participation, plan.choice.privacy_measure
    if part is None:
        return
    unit = plural(plan.program.protection.unit)
    yield (
        f"At this {privacy_measure} {percent(part.rate)} of the {unit} take part, {percent(part.rate_without_loss)} if "
        "nothing could be learned about them. Errors count the noise weighted up for them, and that the others are "
        "missing at random."
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


def _existing(plan: Plan) -> Iterator[str]:
    for row in plan.extensions.existing:
        yield (
            f"A number of '{row.table}' was typically off by {quantity(row.before, row.unit)} before noise; with noise "
            f"it is off by {quantity(row.together, row.unit)}, {percent(row.added)} more."
        )
    if plan.extensions.existing:
        yield "Where harm grows with the square of an error, what was there before does not move the choice."


def _offering(plan: Plan) -> Iterator[str]:
    offering = plan.extensions.offering
    if offering is None:
        if plan.extensions.no_offering:
            yield f"Whether tables earn their place could not be worked out: {plan.extensions.no_offering}."
        return
    for verdict in offering.verdicts:
        word = "earns its place" if verdict.published else "does not earn its place"
        yield (
            f"'{verdict.name}' {word}: it is worth {money(verdict.value)}, and publishing it costs "
            f"{money(verdict.price)} in privacy and errors."
        )
    if any(verdict.published for verdict in offering.verdicts):
        yield (
            f"Published by themselves, those that do would take {offering.privacy_measure} = "
            f"{number(offering.epsilon)} in all and leave society {money(offering.net)} better off."
        )
    else:
        yield "No table is worth its price."
    yield "This is advice: the plan above is for all tables as stated."
    if not offering.exact:
        yield f"Not every combination could be looked at; none gains more than {money(offering.bound)}."


def _path(plan: Plan) -> Iterator[str]:
    path, privacy_measure = plan.extensions.path, plan.choice.privacy_measure
    if path is None:
        return
    losses = ", ".join(f"{number(release.epsilon)} in year {release.year:g}" for release in path.releases)
    yield f"The best {privacy_measure} of each release: {losses}; {number(path.total)} in all."
    if path.cap is not None and path.price > 0:
        yield (
            f"Without the cap of {number(path.cap)} on all of them they would spend "
            f"{number(sum(release.alone for release in path.releases))}; one more unit is worth {money(path.price)}. "
            "This plan is for one release: the cap is kept only if its own largest loss is set accordingly."
        )
    if plan.program.file.horizon is not None and plan.program.file.horizon.years_of_use is not None:
        yield "Here values of accuracy count for every year of use; the choice above takes them as for one year."
    yield from _renewals(plan)


def _renewals(plan: Plan) -> Iterator[str]:
    if not plan.extensions.renewals:
        return
    best, *others = plan.extensions.renewals
    yield (
        f"A new release every {_years(best.years)} is best, each at {plan.choice.privacy_measure} = "
        f"{number(best.epsilon)} and used for {number(best.service, 3)} years' worth: all of them are worth "
        f"{money(best.worth)} today, if each costs people what one today does."
    )
    if others:
        yield f"Next best is every {_years(others[0].years)}: {money(best.worth - others[0].worth)} less."


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
        yield f"Asking everybody is best: {money(sample.collection_cost)} buys more accuracy than a sample would save."
    else:
        yield (
            f"Asking a random {percent(sample.share)} of the {plural(unit)} at {privacy_measure} = "
            f"{number(sample.epsilon)} each is best: {counted(round(sample.respondents), unit)} for "
            f"{money(sample.collection_cost)}. Society is {money(sample.gained)} better off than by asking everybody, "
            "sampling errors and the privacy of those who are asked counted."
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
    yield f"With randomized response all randomize their own answer: nobody else ever holds a true one.{times}"
    if part.epsilon is None or part.truth_probability is None or part.forgone is None:
        yield f"It would choose nothing: {part.why_not}."
    else:
        truth, worse = percent(part.truth_probability), "worse" if part.forgone >= 0 else "better"
        yield (
            f"It would choose {privacy_measure} = {number(part.epsilon)}, at which {truth} give their true answer and "
            f"the others an innocuous one, and leave society {money(abs(part.forgone))} {worse} off: that is what a "
            "curator who is trusted is worth."
        )
    yield "This is a study: people would randomize before there are records, so nothing of it is drawn here."


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
            paid = "" if row.total is None else f", {money(row.total)} paid to people"
            worse = row.forgone > NO_DIFFERENCE * -plan.choice.welfare
            cost = f"society is {money(row.forgone)} worse off" if worse else "society is as well off"
            if row.one_count:
                cost = "it buys no table of this program"
            yield f"{_raised(row.name)} ({row.why}): {privacy_measure} = {number(row.epsilon)}{paid}; {cost}."
