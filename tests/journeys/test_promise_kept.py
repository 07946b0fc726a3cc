"""What the plan promises is what the release states is what the noise does, for all that is published.

One measurement stands behind all three: the error of a table in the plan, the standard errors that its release states,
and the errors over many releases under fixed secrets, whose mean square differs from the promise by what so few draws
leave open and no more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.conftest import Tell
from tests.publication.towns import write_towns

from dualmandate import load, load_release
from dualmandate.apps.publish import publish
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.mechanism import NOISE_LAWS
from dualmandate.planning.plan import Plan
from dualmandate.planning.release_spec import release_spec_of_plan
from dualmandate.population import Confidential, Histogram, PrivacyLoss
from dualmandate.publication import measuring
from dualmandate.publication.post_processing import estimated_tables
from dualmandate.publication.release import Release
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.tabulating import Tabulated

RELEASES = 250  # simulated, each under a secret of its own
SIGMAS = 5  # A promise that is kept fails about once in two million comparisons.
PROGRAM = """\
[program]
schema = 1
name   = "town"

[population]
account          = "residents"
unit             = "person"
neighbors        = "{neighbors}"
population_size  = {{ value = 900, unit = "person", source = "made up" }}
source           = "residents.csv"
{population}
attributes.ward  = ["north", "east", "south"]
attributes.age   = {{ from = 0, to = 4 }}
attributes.hours = {{ lower = 0, upper = 40, grid = 10 }}

{invariants}
[[workload]]
name = "wards"
by   = ["ward"]
{shares[0]}
value_of_accuracy = {{ value = 50, unit = "USD per person^2", source = "made up" }}

[[workload]]
name = "ages by ward"
by   = ["ward", "age"]
{shares[1]}
value_of_accuracy = {{ value = 50, unit = "USD per person^2", source = "made up" }}

[[workload]]
name = "hours of those at work"
by   = ["age"]
sum_of = "hours"
where = {{ hours = ["20", "40"] }}
unit = "hour"
{shares[2]}
value_of_accuracy = {{ value = 0.02, unit = "USD per hour^2", source = "made up" }}

[mechanism]
noise    = "{noise}"
strategy = "{strategy}"
measured = "{measured}"
{mechanism}

[preferences]
information_utility  = "linear"
mean_disclosure_cost = {{ value = 2, unit = "USD per person per {privacy_measure}", source = "made up" }}
"""
INVARIANT = '[[invariants]]\nname = "people by ward"\nby = ["ward"]\n'
PUBLISHABLE = [name for name, law in NOISE_LAWS.items() if law.publishable]


@dataclass(frozen=True)
class Case:
    noise: str
    strategy: str
    neighbors: str = "add-or-remove"
    measured: str = "together"
    population: str = ""
    invariants: str = ""
    shares: tuple[str, str, str] = ("", "", "")
    mechanism: str = ""
    per_rho: bool = False
    words: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, [self.noise, self.strategy, self.neighbors, self.measured, self.words]))

    def write(self, folder: Path) -> Path:
        keys = {name: getattr(self, name) for name in self.__dataclass_fields__}
        text = PROGRAM.format(**keys, privacy_measure="rho" if self.per_rho else "epsilon")
        if self.neighbors == "replace-one":
            text = text.replace("\nattributes.ward", "\ndropping_is_public = true\nattributes.ward", 1)
        if self.invariants:  # the exact totals would decide this table
            text = text.replace('name = "wards"\nby   = ["ward"]', 'name = "ages"\nby   = ["age"]')
        path = folder / "program.toml"
        path.write_text(text, encoding="utf-8")
        rows = "".join(f"p{n},{('north', 'east', 'south')[n % 3]},{n % 5},{10 * (n % 5)}\n" for n in range(90))
        (folder / "residents.csv").write_text(f"person,ward,age,hours\n{rows}", encoding="utf-8")
        return path


def cases() -> Iterator[Case]:
    every = itertools.product(PUBLISHABLE, ("workload", "identity", "optimized"), ("add-or-remove", "replace-one"))
    for noise, strategy, neighbors in every:
        yield Case(noise, strategy, neighbors, per_rho=NOISE_LAWS[noise].privacy_measure == "rho")
    delta = "failure_probability = 1e-6"
    yield Case("gaussian", "workload", mechanism=delta, words="read in epsilon")
    for strategy in ("workload", "optimized"):
        yield Case("geometric", strategy, measured="apart")
        yield Case("geometric", strategy, "replace-one", invariants=INVARIANT, words="beside exact totals")
        several = 'identifier = "person"\nmost_records_per_unit = 2'
        yield Case("geometric", strategy, population=several, words="two records")
    shares = ('share = "1/2"', 'share = "1/3"', 'share = "1/6"')
    yield Case("gaussian", "workload", measured="apart", shares=shares, per_rho=True, words="stated shares")


def released(plan: Plan, folder: Path) -> Release:
    ledger = open_ledger(folder / "ledger.sqlite", make_key(folder / "key"), create=True)
    cap = PrivacyLoss(plan.charge.amount * 2, plan.charge.privacy_measure)
    ledger.open_account(Account("residents", "person", cap), by="Ann")
    ledger.approve(Approval("residents", plan.digest, plan.charge, "person", by="Ben"))
    assert plan.program.source is not None
    return load_release(publish(plan, plan.program.source, ledger, out=folder / "out", by="Eve", unchecked=True).folder)


def promised(plan: Plan) -> dict[str, float]:
    """Σ E[error²] of each table by the plan's own measurement, in the unit of the table."""
    found = {}
    for group, loss in plan.allocation.items():
        measurement = plan.technology.measurements[group]
        for name, error in measurement.table_errors(float(loss)).items():
            found[name] = error * float(measurement.workload.table(name).grid) ** 2
    return found


def simulated(order: ReleaseSpec) -> dict[str, NDArray[np.float64]]:
    """Σ error² of each table over releases of one histogram, each under a secret of its own; shape (releases,)."""
    shape = order.domain.shape
    counts = np.arange(math.prod(shape), dtype=np.int64).reshape(shape) * 7 % 5
    box = Confidential("a test", Tabulated(Histogram(order.domain, counts), int(counts.sum())))
    totals = measuring.exact_totals(order, box)
    truth = {
        table.name: group.measurement.workload.table_answers(table.name, counts) * float(table.grid)
        for group in order.groups
        for table in group.tables
    }
    errors: dict[str, list[float]] = {name: [] for name in truth}
    for number in range(RELEASES):
        secret = Confidential("a test", number.to_bytes(32, "little"))
        measured = list(measuring.measure(order, box, secret, mac="5a" * 32))
        for table in estimated_tables(order, measured, totals):
            if table.name in truth:
                wrong = table.estimates - np.asarray(truth[table.name], dtype=np.float64).reshape(-1)
                errors[table.name].append(float(np.square(wrong).sum()))
    return {name: np.array(each) for name, each in errors.items()}


def kept(sample: NDArray[np.float64], expected: float) -> bool:
    open_still = SIGMAS * float(sample.std()) / math.sqrt(len(sample))
    return abs(float(sample.mean()) - expected) <= open_still + 1e-12


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_a_plan_promises_what_its_release_states_and_its_noise_does(case: Case, tmp_path: Path, tell: Tell) -> None:
    plan = load(case.write(tmp_path)).plan()
    assert (plan.technology.noise, plan.technology.strategy) == (case.noise, case.strategy)
    promise = promised(plan)
    for table in plan.tables:  # the plan's page says the same, at the loss before it was rounded
        mean = promise[table.table] / table.query_count
        assert table.root_mean_squared_error == pytest.approx(math.sqrt(mean), rel=1e-3, abs=1e-9)
    release = released(plan, tmp_path)
    assert not release.facts["estimated_together"]
    sample = simulated(release_spec_of_plan(plan))
    for name, error in promise.items():
        stated = float(np.square(release.published(name).standard_errors).sum())
        assert stated == pytest.approx(error, rel=1e-9, abs=1e-15), name
        assert kept(sample[name], error), name
    tell("promises of plans", tried=RELEASES)


def test_tables_that_nest_are_estimated_from_all_of_them_and_never_worse_than_promised(tmp_path: Path) -> None:
    plan = load(write_towns(tmp_path)).plan()
    promise, release = promised(plan), released(plan, tmp_path)
    assert release.facts["estimated_together"]
    for group in release.groups:
        measured = release.measurements(group)
        drawn = np.array([noise.distribution().variance for noise in measured.noises])[measured.kinds]
        [name] = [table.name for table in release.measurement(group).workload.tables]
        assert float(drawn.sum()) == pytest.approx(promise[name], rel=1e-9)  # the noise is as promised
        stated = float(np.square(release.published(name).standard_errors).sum())
        assert stated < promise[name]  # and the estimates are better than each table by itself
