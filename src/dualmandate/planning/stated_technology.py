"""A technology whose errors depend on the data, where the program states one: chosen by, and published.

Its frontier is what was simulated of it on public records, so that a plan of it rests on these beside the program. The
measurements that would be planned without it stand beside it: they were chosen by closed forms, and may be better.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.choice import Choice, Limits, choose
from dualmandate.errors import InvalidMechanism, MissingKey
from dualmandate.frontier import Frontier
from dualmandate.frontier.simulated import SimulatedCurves
from dualmandate.mechanism import simulation_keys
from dualmandate.mechanism.data_dependent import RecordsCurator
from dualmandate.mechanism.technologies import DATA_DEPENDENT, TECHNOLOGY_FORMAT
from dualmandate.planning.plan import TableConsequence
from dualmandate.planning.simulation import PUBLIC_SEED, SimulationOutcome
from dualmandate.planning.study import is_study
from dualmandate.planning.technology import TOGETHER, Technology, ordered
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.arrays import Floats
from dualmandate.population.machine import on_all_processors
from dualmandate.program.program import ProgramFile
from dualmandate.publication.costs import check_memory, memory_told
from dualmandate.publication.release_spec import ALL_TABLES, OrderedTechnology, check_technology
from dualmandate.publication.sources import SparkTable

if TYPE_CHECKING:
    from dualmandate.planning.program import Program

COVERAGE = 0.95  # of errors are within what a plan states
FAR_LOSSES = {
    "participation": "who takes part",
    "collection": "how many people are asked",
    "randomized_response": "what everybody's own noise would do",
    "horizon": "releases to come",
    "markets": "markets",
    "secret": "a secret of a group",
    "social_choice": "other ways to add people up",
}  # parts of a program that are worked out by closed forms, at losses far from the choice


def check_stated(program: ProgramFile) -> None:
    """Refuse, before anything is simulated, a technology that no release of the program could be made with."""
    file, document = program.file, program.document
    name = file.mechanism.technology
    if name is None:
        return
    with document.at("mechanism", "technology"):
        if file.simulation is None:
            raise MissingKey(
                f'technology = "{name}" without [simulation]',
                why="its errors depend on the data: they are simulated on public records, and none are named",
                instead='name public or synthetic records: [simulation] records = "…", source = "…"',
            )
        if is_study(file.mechanism.noise):
            raise InvalidMechanism(
                f"'{name}' with {file.mechanism.noise} noise",
                why="what is published is drawn exactly",
                instead='state noise = "geometric", which counts in epsilon, or "gaussian", which counts in rho',
            )
        if file.mechanism.states_strategy or file.mechanism.measured != TOGETHER:
            raise InvalidMechanism(
                f"'{name}' beside a strategy, or beside what shares a measurement",
                why="it decides itself what is measured, as it goes on",
                instead="leave strategy and measured out of [mechanism], or the technology",
            )
        if file.shares:
            raise InvalidMechanism(
                f"'{name}' with stated shares of the loss",
                why="it spends the loss on what it chooses, not table by table",
                instead="leave share out of the tables, or the technology",
            )
        if program.ratios:
            raise InvalidMechanism(
                f"'{name}' with the ratio '{program.ratios[0].name}'",
                why="how the errors of two of its numbers go together is not known, so that a ratio has no interval",
                instead="divide the published numbers, or plan measurements",
            )
        if file.superpopulation:
            raise InvalidMechanism(
                f"'{name}' with a table that estimates a superpopulation",
                why="its intervals are not of independent noise, to which those of a draw could be added",
                instead="leave estimates out, or plan measurements",
            )
        if program.bounds:
            raise InvalidMechanism(
                f"'{name}' with bounds that the plan is to choose",
                why="they are chosen by errors in closed form",
                instead="state the upper bounds of amounts, and of records of a unit",
            )
        if file.publication.engine == "spark" or isinstance(program.source, SparkTable):
            raise InvalidMechanism(
                f"'{name}' on a cluster",
                why="each of its choices looks at all the counts, which are held on one machine",
                instead='leave engine = "spark" out, and name a source that is read here; or plan measurements',
            )
    for key, words in FAR_LOSSES.items():
        if getattr(file, key) is not None:
            with document.at(key):
                raise InvalidMechanism(
                    f'[{key}] beside technology = "{name}"',
                    why=f"{words} is worked out at losses where nothing was simulated",
                    instead=f"ask for [{key}] in a program without a technology",
                )
    with document.at("mechanism", "technology"):
        order = OrderedTechnology(
            name, TECHNOLOGY_FORMAT, DATA_DEPENDENT[name](PrivacyMeasure.ZCDP), program.workload, Fraction(1)
        )
        check_technology(order, program.protection)
        check_memory(memory_told(order, program.protection, program.expected_records))


@dataclass(frozen=True, eq=False)
class StatedTechnology:
    """The technology of a program at the loss that is chosen with it, and what its tables err by there."""

    technology: Technology
    choice: Choice
    beside: tuple[Technology, Choice]  # what would be planned without it
    tables: tuple[TableConsequence, ...]


@dataclass(frozen=True, eq=False)
class StatedTechnologyBuilder:
    """From a plan of measurements, and what was simulated beside it, to one of the technology that is stated."""

    program: Program
    ordinary: Technology
    ordinary_choice: Choice
    limits: Limits
    simulation: SimulationOutcome
    progress: Callable[[str], None]

    def made(self) -> StatedTechnology:
        """The technology, the choice on its simulated frontier, and its tables at exactly the loss of a release."""
        program, name = self.program, self.simulation.used
        row = self.simulation.stated
        assert row is not None
        assert row.frontier is not None
        assert name is not None
        frontier, document = row.frontier.remembered(), program.document
        with document.at("limits" if document.value(("limits",)) else "preferences"):
            choice = choose(frontier, program.welfare, self.limits)
        technology = Technology(
            noise=self.ordinary.noise,
            strategy=name,
            measured=TOGETHER,
            measurements={},
            noise_frontier=frontier,
            frontier=frontier,
            failure_probability=self.ordinary.failure_probability,
            drawn=DATA_DEPENDENT[name](self.ordinary.noise_frontier.privacy_measure),
        )
        self.progress(f"simulating releases of '{name}' at the choice")
        off, stated, seconds = self._at(technology, technology.exact_loss(choice))
        beside = self.ordinary, self.ordinary_choice
        tables = tuple(self._tables(frontier, choice, off, stated))
        return StatedTechnology(replace(technology, seconds=seconds), choice, beside, tables)

    def _at(self, technology: Technology, loss: PrivacyLoss) -> tuple[Floats, Floats, float]:
        """Sizes of errors and stated half-widths at a loss; shapes (releases, query_count); and a release's seconds."""
        program, counts, table = self.program, self.simulation.counts, self.program.file.simulation
        assert counts is not None
        assert table is not None
        order = ordered(technology, program.workload, loss.amount)
        truth = np.asarray(program.workload.answers_from(counts), dtype=np.float64)
        took: list[float] = []

        def run(repetition: int) -> Floats:
            started = time.process_time()
            told = order.tell(RecordsCurator(counts, simulation_keys(PUBLIC_SEED, repetition)), program.protection)
            took.append(time.process_time() - started)
            widths = told.half_widths(COVERAGE)
            return np.stack([np.abs(told.values - truth), np.full(len(truth), math.nan) if widths is None else widths])

        found = np.stack(list(on_all_processors(run, table.repetitions)))
        return found[:, 0], found[:, 1], took[0]

    def _tables(self, frontier: Frontier, choice: Choice, off: Floats, stated: Floats) -> Iterator[TableConsequence]:
        program, at = self.program, choice.epsilon
        assert isinstance(frontier.curves, SimulatedCurves)
        values = {value.table: value for value in program.welfare.table_values}
        squared, bands = frontier.table_errors(at), frontier.curves.band(at)
        start = 0
        for table, band in zip(program.workload.tables, bands, strict=True):
            value, here = values[table.name], slice(start, start + table.query_count)
            start += table.query_count
            mean = squared[table.name] / table.query_count * value.grid**2
            consequence = value.squared_consequence(mean)
            errors = frontier.table_errors(at, value.measure)[table.name]
            widths = stated[:, here]
            yield TableConsequence(
                table=table.name,
                unit=value.unit,
                query_count=table.query_count,
                measured_in=ALL_TABLES,
                root_mean_squared_error=math.sqrt(mean),
                bias=program.clipping.bias(table.name),
                half_width=float(np.quantile(off[:, here], COVERAGE)) * value.grid,
                root_mean_squared_consequence=None if consequence is None else math.sqrt(consequence),
                data_loss=value.value_per_step * errors + value.least,
                band=tuple((np.sqrt(band / table.query_count) * value.grid).tolist()),
                stated_half_width=None if np.isnan(widths).any() else float(np.median(widths)) * value.grid,
            )
