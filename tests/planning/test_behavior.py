"""Behavior, collection and other definitions of privacy from a program file: keys, numbers, words, JSON, refusals."""

from __future__ import annotations

import math
import re
from pathlib import Path

import jsonschema
import pytest

from dualmandate.choice import choose
from dualmandate.errors import IncompatibleUnits, InvalidMechanism, InvalidValue, MissingKey, Refusal
from dualmandate.frontier import GroupSecret, frontier_of
from dualmandate.mechanism import RandomizedResponse, UnaryEncoding
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.population.wording import money
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema
from dualmandate.report.dossier import write_dossier
from dualmandate.report.plan_words import plan_words

PROGRAM = """
[program]
schema = 1
name = "one question"

[population]
account = "residents"
unit = "person"
neighbors = "replace-one"
dropping_is_public = true
population_size = { value = 100000, unit = "people", source = "register" }
attributes.answer = ["no", "yes"]

[[workload]]
name = "people who say yes"
where = { answer = "yes" }
value_of_accuracy = { value = 0.1, unit = "USD per person^2", source = "assumed" }
total = { value = 20000, unit = "people", source = "an earlier survey" }

[mechanism]
noise = "geometric"

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 0.05, unit = "USD per person per epsilon", source = "assumed" }
"""
LOCAL = '\n[randomized_response]\nsource = "a question that people do not like"\n'
ASKED = '\n[collection]\ncost_per_respondent = { value = 0.5, unit = "USD per person", source = "assumed" }\n'
SECRET = '\n[secret]\ngroup = "household"\nshares_counted = [0.1, 0.15, 0.5, 0.15, 0.1]\nsource = "assumed"\n'
USED = """
[horizon]
discount_factor = 0.95
releases = [0, 4]
years_of_use = 4
depreciation = 0.2
yearly_value = { value = 20000, unit = "USD", source = "assumed" }
source = "assumed"
"""
TRUTH = """
[markets]
largest_user_share = 0.2
stake = { value = 0.001, unit = "USD per person", source = "a fine of 10 USD, found out once in 10,000" }
source = "assumed"
"""
PARTICIPATION = '\n[participation]\nrate_without_loss = 0.9\ndecline_per_epsilon = 0\nsource = "assumed"\n'
WORTH = 'value_of_publishing = { value = 90000, unit = "USD", source = "assumed" }\n'


def planned(folder: Path, *tables: str, pieces: tuple[tuple[str, str], ...] = ()) -> Plan:
    text = PROGRAM
    for old, new in pieces:
        assert old in text
        text = text.replace(old, new)
    (folder / "program.toml").write_text(text + "".join(tables), encoding="utf-8")
    return load(folder / "program.toml").plan()


def words_of(plan: Plan) -> str:
    jsonschema.validate(plan_document(plan), schema("plan"))
    return " ".join(plan_words(plan).split())


def test_randomized_response_beside_a_trusted_curator(tmp_path: Path) -> None:
    """One question: errors N/2 times the curator's at every ε, and the best ε the same for any number of people."""
    plan = planned(tmp_path, LOCAL)
    part = plan.extensions.local
    assert part is not None
    assert part.times == pytest.approx(100_000 / 2)
    assert part.epsilon is not None
    assert part.truth_probability == pytest.approx(math.tanh(part.epsilon / 2))
    half = part.epsilon / 2  # N·b·cosh/(4·sinh³) = N·k
    assert 0.1 * math.cosh(half) / (4 * math.sinh(half) ** 3) == pytest.approx(0.05, rel=1e-6)
    assert part.welfare is not None
    assert plan.choice.welfare - part.welfare == part.forgone
    words = words_of(plan)
    assert "errors cost 50,000 times as much" in words
    assert "nothing of it is drawn here" in words
    stated = LOCAL + "innocuous_share = 0.3\nsensitive_share = 0.2\n"
    other = planned(tmp_path, stated).extensions.local
    assert other is not None
    assert other.times is not None
    assert other.times > 50_000  # at the same ε equal innocuous shares are best


@pytest.mark.parametrize(("levels", "better"), [(3, "randomized response"), (120, "unary encoding")])
def test_the_better_local_technology_is_chosen(levels: int, better: str, tmp_path: Path) -> None:
    """Many levels are reported as bits: the default is at least as good as either alone, and names the other."""
    asked = ('attributes.answer = ["no", "yes"]', f"attributes.answer = {[f'L{n}' for n in range(levels)]}")
    by_level = ('where = { answer = "yes" }\n', 'by = ["answer"]\n')
    dear = ("mean_disclosure_cost = { value = 0.05", "mean_disclosure_cost = { value = 5")
    plan = planned(tmp_path, LOCAL, pieces=(asked, by_level, dear))
    part, welfare = plan.extensions.local, plan.program.welfare
    assert part is not None
    assert (part.technology, part.other) == (better, ({"randomized response", "unary encoding"} - {better}).pop())
    assert part.welfare is not None
    for each in (RandomizedResponse.categories(100_000, levels), UnaryEncoding(100_000, levels)):
        frontier = frontier_of(each, plan.program.workload, protection=plan.program.protection)
        assert choose(frontier, welfare, plan.limits).welfare <= part.welfare * (1 - 1e-9)
    words = words_of(plan)
    assert f"With {better} all randomize their own answer" in words
    assert f"With {part.other} society would be still worse off." in words
    assert ("each reports a bit for every cell" in words) is (better == "unary encoding")


def test_randomized_response_that_cannot_be_fit_for_use_says_so(tmp_path: Path) -> None:
    floor = ("[mechanism]\n", "fitness_for_use = { largest_root_mean_squared_error = 2 }\n[mechanism]\n")
    plan = planned(tmp_path, LOCAL, "\n[limits]\nlargest_epsilon = 3\n", pieces=(floor,))
    part = plan.extensions.local
    assert part is not None
    assert part.epsilon is None
    assert "It would choose nothing: " in words_of(plan)


def test_how_many_people_to_ask(tmp_path: Path) -> None:
    laplace = planned(tmp_path, ASKED, pieces=(('"geometric"', '"laplace"'),))
    sample = laplace.extensions.sample
    assert sample is not None
    assert sample.share == pytest.approx(math.sqrt(0.1 * 20_000 / (0.5 * 100_000)), rel=1e-6)
    assert sample.respondents == pytest.approx(20_000, rel=1e-6)
    assert sample.epsilon * sample.share == pytest.approx(laplace.choice.epsilon, rel=1e-6)
    assert sample.collection_cost == pytest.approx(10_000, rel=1e-6)
    assert sample.gained == pytest.approx(50_000 - 10_000 - 0.1 * 20_000 * (1 / 0.2 - 1), rel=1e-6)
    assert sample.amplified == pytest.approx(math.log1p(sample.share * math.expm1(sample.epsilon)))
    words = words_of(laplace)
    assert "Asking a random 20 % of the people" in words
    assert "who is asked knows it" in words
    dear = planned(tmp_path, ASKED.replace("0.5", "0.001")).extensions.sample
    assert dear is not None
    assert dear.share == 1
    assert "Asking everybody is best" in words_of(planned(tmp_path, ASKED.replace("0.5", "0.001")))


def test_sample_tables_and_loss_together(tmp_path: Path) -> None:
    """A table is collected for where it is worth what asking, privacy and errors cost at the best sample."""
    worth = (("[mechanism]\n", f"{WORTH}[mechanism]\n"), ('"geometric"', '"laplace"'))
    sample = planned(tmp_path, ASKED, pieces=worth).extensions.sample
    stated = planned(tmp_path, ASKED, pieces=worth[1:]).extensions.sample
    assert sample is not None
    assert stated is not None
    assert sample.tables == ("people who say yes",)
    assert sample.share == pytest.approx(stated.share, rel=1e-5)
    assert sample.net == pytest.approx(stated.net + 90_000)
    poor = tuple((old, new.replace("90000", "100")) for old, new in worth)
    plan = planned(tmp_path, ASKED, pieces=poor)
    assert plan.extensions.sample is not None
    assert plan.extensions.sample.tables == ()
    assert "No table is worth asking anybody for" in words_of(plan)


def test_a_sample_of_those_who_take_part(tmp_path: Path) -> None:
    sample = planned(tmp_path, ASKED, PARTICIPATION, pieces=(('"geometric"', '"laplace"'),)).extensions.sample
    assert sample is not None
    # s·r takes the place of s in the errors: c·s + b·S/(r·s) is least where s = √(b·S/(c·N·r)).
    assert sample.share == pytest.approx(math.sqrt(0.1 * 20_000 / (0.5 * 100_000 * 0.9)), rel=1e-6)


def test_tables_that_are_used_for_years(tmp_path: Path) -> None:
    plan = planned(tmp_path, USED, pieces=(('"geometric"', '"laplace"'),))
    path = plan.extensions.path
    assert path is not None
    assert path.releases[0].epsilon == pytest.approx(plan.choice.epsilon * 2.776576 ** (1 / 3), rel=1e-6)
    best = plan.extensions.renewals[0]
    assert best.years == 1
    assert len(plan.extensions.renewals) == 4
    words = words_of(plan)
    assert "A new release every year is best" in words
    assert "count for every year of use; the choice above counts one year" in words


def test_releases_that_cost_more_than_their_tables_are_worth(tmp_path: Path) -> None:
    plan = planned(tmp_path, USED.replace("value = 20000", "value = 1"))
    worth = plan.extensions.renewals[0].worth
    assert worth < 0
    words = words_of(plan)
    assert "No new release pays: even the best, one every" in words
    assert f"than the yearly_value of the tables, by {money(-worth, 'USD')} today." in words
    assert "is best, each at" not in words
    undiscounted = USED.replace("0.95", "1\ndisclosure_after_years = 20").replace("value = 20000", "value = 1")
    words = words_of(planned(tmp_path, undiscounted))
    assert re.search(r"the yearly_value of the tables, by USD [\d,.]+ a year\.", words)


def test_truthful_reports_in_the_markets(tmp_path: Path) -> None:
    plan = planned(tmp_path, TRUTH)
    row = next(row for row in plan.extensions.markets if row.name == "planner, truthful reports")
    assert row.epsilon == pytest.approx(0.001 / 0.05, rel=1e-4)
    assert "Planner, truthful reports (with USD 0.001 at stake" in words_of(plan)


def test_what_the_loss_means_for_a_household(tmp_path: Path) -> None:
    plan = planned(tmp_path, SECRET)
    part = plan.extensions.secret
    assert part is not None
    secret = GroupSecret((0.1, 0.15, 0.5, 0.15, 0.1))
    assert part.loss == pytest.approx(secret.loss(plan.choice.epsilon))
    assert part.group_loss == pytest.approx(4 * plan.choice.epsilon)
    assert part.wasserstein == 2
    assert part.chosen is not None
    # The secret loses faster than one record, so that less is chosen for a record.
    assert part.chosen.epsilon < plan.choice.epsilon < part.chosen.loss
    assert [point.loss / part.loss for point in part.points] == pytest.approx([0.25, 0.5, 1, 2, 4])
    assert "one of a household of 4 is counted" in words_of(plan)
    adding = planned(tmp_path, SECRET, pieces=(('"replace-one"', '"add-or-remove"'),)).extensions.secret
    assert adding is not None
    assert adding.group_loss == pytest.approx(8 * plan.choice.epsilon)  # another answer is two steps


def test_the_dossier_has_every_part(tmp_path: Path) -> None:
    plan = planned(tmp_path, LOCAL, ASKED, SECRET, USED, TRUTH)
    write_dossier(plan, tmp_path / "out")
    page = (tmp_path / "out" / "dossier.html").read_text(encoding="utf-8")
    for anchor in ("sample", "randomized-response", "secret", "path", "markets"):
        assert f'<h2 id="{anchor}">' in page
    assert "a question that people do not like" in page
    assert set(plan_document(plan)) >= {"sample", "randomized_response", "secret", "renewals"}


GAUSSIAN = ('noise = "geometric"', 'noise = "gaussian"\nfailure_probability = 1e-6')


@pytest.mark.parametrize(
    ("table", "pieces", "kind", "key"),
    [
        (LOCAL, (('"replace-one"', '"add-or-remove"'),), InvalidMechanism, "randomized_response"),
        (LOCAL + PARTICIPATION, (), InvalidMechanism, "randomized_response"),
        (LOCAL + "innocuous_share = 1\n", (), InvalidValue, "innocuous_share"),
        (LOCAL + "innocuous_share = 0.3\n", (('["no", "yes"]', '["no", "?", "yes"]'),), InvalidMechanism, "randomized"),
        (LOCAL.replace("source", "why"), (), Refusal, "randomized_response"),
        (ASKED.replace("0.5", "-0.5"), (), Refusal, "collection"),
        (ASKED.replace("USD per person", "USD"), (), IncompatibleUnits, "cost_per_respondent"),
        ("\n[collection]\n", (), MissingKey, "cost_per_respondent"),
        (SECRET.replace("0.15, 0.1]", "0.15, 0.2]"), (), Refusal, "secret"),
        (SECRET.replace("0.1, 0.15", "-0.1, 0.35"), (), InvalidValue, "shares_counted"),
        (SECRET, (GAUSSIAN,), InvalidMechanism, "secret"),
        (USED.replace("years_of_use = 4\n", ""), (), MissingKey, "years_of_use"),
        (USED.replace("0.2", "1"), (), InvalidValue, "horizon"),
        (USED.replace("years_of_use = 4", "years_of_use = 0.5"), (), Refusal, "horizon"),
        (USED.replace('"USD"', '"people"'), (), IncompatibleUnits, "yearly_value"),
        (TRUTH.replace("0.001", "0"), (), InvalidValue, "stake"),
    ],
)
def test_bad_input_is_refused_where_it_stands(
    tmp_path: Path, table: str, pieces: tuple[tuple[str, str], ...], kind: type[Refusal], key: str
) -> None:
    with pytest.raises(Refusal) as found:
        planned(tmp_path, table, pieces=pieces)
    assert isinstance(found.value, kind)
    assert found.value.where is not None
    assert key in (found.value.where.key or "")
    assert found.value.where.line is not None


YEARLY = (('"assumed" }', '"assumed", time_base = "per year" }'),)
USED_YEARLY = USED.replace(*YEARLY[0])


def test_a_yearly_cost_comes_again_until_records_are_opened(tmp_path: Path) -> None:
    def first(used: str, *pieces: tuple[str, str]) -> float:
        found = planned(tmp_path, used, pieces=pieces).extensions.path
        assert found is not None
        return found.releases[0].epsilon

    # κ a year for (1 − β^H)/(1 − β) = 20 years is 20 κ for a release.
    assert first(USED_YEARLY, *YEARLY) == pytest.approx(first(USED, ("0.05, unit", "1.0, unit")), rel=1e-9)


def test_no_year_is_counted_twice(tmp_path: Path) -> None:
    twice = USED_YEARLY + '\n[preferences.horizon]\nyears = 30\ndiscount_rate = 0.03\nsource = "assumed"\n'
    with pytest.raises(InvalidValue, match="years of use") as found:
        planned(tmp_path, twice, pieces=YEARLY)
    assert getattr(found.value.where, "key", None) == "horizon.years_of_use"
    once = ('"assumed" }', '"assumed", time_base = "once" }')
    with pytest.raises(IncompatibleUnits, match="lost once, beside years of use"):
        planned(tmp_path, USED.replace(*once), pieces=(once,))


@pytest.mark.parametrize(
    ("table", "key"),
    [
        (USED.replace('"assumed" }', '"assumed", standard_error = 10 }'), "horizon.yearly_value.standard_error"),
        (ASKED.replace('"assumed" }', '"assumed", least = 0.1, largest = 1 }'), "collection.cost_per_respondent.least"),
    ],
)
def test_an_error_that_nothing_carries_into_the_choice_is_refused(tmp_path: Path, table: str, key: str) -> None:
    with pytest.raises(InvalidValue, match="states how uncertain it is") as found:
        planned(tmp_path, table)
    assert getattr(found.value.where, "key", None) == key


def test_numbers_of_participation_are_taken_as_exact(tmp_path: Path) -> None:
    responding = '\n[participation]\nrate_without_loss = 0.9\ndecline_per_epsilon = 0.01\nsource = "assumed"\n'
    exact = planned(tmp_path, responding).robustness.exact
    assert {"total of people who say yes", "rate_without_loss", "decline_per_epsilon"} <= set(exact)
