"""Technologies whose errors depend on the data, simulated beside a plan on records that anybody may see."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from dualmandate import load
from dualmandate.errors import InvalidMechanism, InvalidProgram, Refusal
from dualmandate.mechanism import Answers, DataDependentMechanism, Keys
from dualmandate.mechanism.mechanism import EVERY_PERSON
from dualmandate.mechanism.noise import LaplaceSampler
from dualmandate.mechanism.technologies import DATA_DEPENDENT, WHOLE_NUMBERS
from dualmandate.planning.plan import Plan
from dualmandate.planning.simulation import SimulationOutcome
from dualmandate.population import Counts, Domain, PrivacyMeasure, Protection
from dualmandate.population.wording import number
from dualmandate.publication.public_records import scaled
from dualmandate.publication.tabulating import SparseHistogram
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema
from dualmandate.report.plan_words import plan_words
from dualmandate.workload import Workload

PROGRAM = """
[program]
schema = 1
name = "ages"

[population]
account = "people"
unit = "person"
neighbors = "add-or-remove"
population_size = { value = 3840, unit = "person", source = "assumed" }
source = "people.csv"
attributes.age = { lower = 0, upper = 63, grid = 1 }

[[workload]]
name = "by age"
by = ["age"]
value_of_accuracy = { value = 0.1, unit = "USD per person^2", source = "assumed" }

[mechanism]
noise = "geometric"

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 0.05, unit = "USD per person per epsilon", source = "assumed" }

[simulation]
records = "public.csv"
source = "drawn for this test"
repetitions = 12
"""


@dataclass(frozen=True)
class Flat:
    """The number of records with noise, shared evenly among cells: right where nothing differs."""

    privacy_measure: PrivacyMeasure
    name = "flat"

    def answer(
        self,
        counts: Counts,
        workload: Workload,
        loss: Fraction,
        keys: Keys,
        *,
        protection: Protection = EVERY_PERSON,
        probability: float = 0.9,
    ) -> Answers:
        del protection, probability
        total = counts.total + int(LaplaceSampler(1 / loss).draw(keys("total"), range(1))[0])
        even = np.full(workload.domain.shape, total / workload.domain.size)
        return Answers(workload.answers(even))


class Refusing(Flat):
    name = "refusing"

    def answer(self, *_: object, **__: object) -> Answers:
        raise InvalidMechanism("a test", why="it refuses", instead="another")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two technologies of this test alone; those of the registry have theirs."""
    known: dict[str, type[DataDependentMechanism]] = {"flat": Flat, "refusing": Refusing}
    for name in list(DATA_DEPENDENT):
        monkeypatch.delitem(DATA_DEPENDENT, name)
    for name, made in known.items():
        monkeypatch.setitem(DATA_DEPENDENT, name, made)


def written(folder: Path, ages: list[int], *edits: tuple[str, str]) -> Path:
    text = PROGRAM
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "program.toml").write_text(text, encoding="utf-8")
    (folder / "public.csv").write_text("age\n" + "".join(f"{age}\n" for age in ages), encoding="utf-8")
    return folder / "program.toml"


def planned(folder: Path, ages: list[int], *edits: tuple[str, str]) -> tuple[Plan, SimulationOutcome]:
    plan = load(written(folder, ages, *edits)).plan()
    part = plan.extensions.simulation
    assert part is not None
    jsonschema.validate(plan_document(plan), schema("plan"))
    return plan, part


EVEN = [age for age in range(64) for _ in range(20)]
ONE_AGE = [17] * 1280


def test_a_technology_wins_on_data_that_suit_it_and_loses_on_others(tmp_path: Path) -> None:
    for ages, wins in ((EVEN, True), (ONE_AGE, False)):
        plan, part = planned(tmp_path, ages)
        flat = next(row for row in part.technologies if row.technology == "flat")
        for at, loss in enumerate(part.losses):
            best = part.best(at)
            assert (best is not None and best.technology == "flat") is wins, loss
            bias = 0.0 if wins else 3840**2 * (1 - 1 / 64)
            noise = 2 * np.exp(-loss) / (1 - np.exp(-loss)) ** 2 / 64  # V/64², for each of 64 cells
            truth = 0.1 * (bias + noise) / plan.welfare.data_loss(plan.technology.frontier, loss)
            assert flat.errors[at].lower <= truth <= flat.errors[at].upper or flat.errors[at].value == pytest.approx(
                truth, rel=0.02
            )
        assert flat.bias is not None
        assert flat.bias < 0.3 if wins else flat.bias > 0.99
        words = " ".join(plan_words(plan).split())
        assert ("surely errs at less cost than the plan's tables, and at the least" in words) is wins
        assert ("'flat' cost" in " ".join(plan.notes)) is wins
        assert "no technology is best for every workload, every data set and every way to count errors" in words


def test_the_plans_own_tables_in_whole_numbers_err_less_on_sparse_data(tmp_path: Path) -> None:
    """Counts cannot be negative: where most are 0, half of the noise goes."""
    _, part = planned(tmp_path, ONE_AGE)
    assert part.whole is not None
    assert part.whole.errors[part.chosen].value < 0.7
    plan, part = planned(tmp_path, EVEN)
    assert part.whole is not None
    assert part.whole.errors[part.chosen].lower < 1.02
    assert part.whole.errors[part.chosen].value > 0.8
    found = part.whole.epsilon  # what simulation is off by goes along with the chosen loss
    assert found is not None
    assert 0.5 * found.value < found.lower < found.value < found.upper < 2 * found.value
    ends = f"{number(found.lower)} to {number(found.upper)} with a confidence of 95 %"
    assert f"would choose epsilon = {number(found.value)} ({ends})" in " ".join(plan_words(plan).split())
    [row] = [each for each in plan_document(plan)["simulation"]["technologies"] if each["technology"] == WHOLE_NUMBERS]
    assert (row["epsilon"]["lower"], row["epsilon"]["upper"]) == (found.lower, found.upper)


def test_one_that_does_not_apply_says_why(tmp_path: Path) -> None:
    plan, part = planned(tmp_path, EVEN)
    refusing = next(row for row in part.technologies if row.technology == "refusing")
    assert refusing.why_not == "a test: it refuses"
    assert "'refusing' is not simulated: a test: it refuses." in " ".join(plan_words(plan).split())


def test_only_what_is_named_is_simulated_and_records_are_scaled(tmp_path: Path) -> None:
    named = ("repetitions = 12", 'repetitions = 2\ntechnologies = ["flat"]')
    plan, part = planned(tmp_path, EVEN, named)
    assert [row.technology for row in part.technologies] == ["flat"]
    assert (part.records, part.population) == (1280, 3840)
    assert "1,280 public records, scaled to 3,840" in " ".join(plan_words(plan).split())


def test_nothing_of_it_moves_the_plan(tmp_path: Path) -> None:
    plan, _ = planned(tmp_path, EVEN)
    (tmp_path / "program.toml").write_text(PROGRAM.partition("[simulation]")[0], encoding="utf-8")
    assert load(tmp_path / "program.toml").plan().choice == plan.choice


def test_largest_remainders_keep_the_total() -> None:
    found = SparseHistogram(Domain.of_shape((9,)), np.arange(4), np.array([1, 1, 5, 3]))
    for total in (1, 7, 10, 999):
        made = scaled(found, total)
        assert made.total == total
        assert np.all(made.counts >= 1)
        whole = dict(zip(made.cells.tolist(), made.counts.tolist(), strict=True))
        shares = {0: 1, 1: 1, 2: 5, 3: 3}
        assert all(abs(whole.get(cell, 0) - share * total / 10) < 1 for cell, share in shares.items())


@pytest.mark.parametrize(
    ("edit", "kind", "words"),
    [
        (('"public.csv"', '"nowhere.csv"'), Refusal, "nowhere.csv"),
        (('"public.csv"', '"people.csv"'), InvalidMechanism, "protected records themselves"),
        (("repetitions = 12", "repetitions = 1"), InvalidProgram, "releases differ"),
        (("repetitions = 12", 'technologies = ["flatt"]'), InvalidProgram, "technologies"),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    edit: tuple[str, str], kind: type[Refusal], words: str, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("age\n1\n", encoding="utf-8")
    with pytest.raises(kind) as refused:
        load(written(tmp_path, EVEN, edit)).plan()
    assert words in str(refused.value)
    assert refused.value.where is not None
    assert refused.value.where.line is not None


def test_public_records_of_which_none_fits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"no record of 'public\.csv' fits"):
        load(written(tmp_path, [])).plan()
    assert WHOLE_NUMBERS not in DATA_DEPENDENT
