"""What districts look like by published numbers, and are in truth: population deviation and racial composition.

Districts are a list of blocks, made after the release. How far their numbers are off is simulated with the release's
own chain (noise, estimates, whole numbers that add up) on people that anybody may see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidFile, InvalidValue, Place, did_you_mean
from dualmandate.mechanism.data_dependent import simulation_keys
from dualmandate.planning.plan import Plan
from dualmandate.planning.simulation import WholeNumbers
from dualmandate.population import Histogram
from dualmandate.program.file import read_bytes
from dualmandate.program.text_columns import LARGEST_FILE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
SEED = 2021  # of simulated releases
HEADER = ("BLOCKID", "DISTRICT")


@dataclass(frozen=True, eq=False)
class Districts:
    """Each block's district, and the names of the districts."""

    names: tuple[str, ...]
    of_block: Integers = field(repr=False)  # the place of each block's district in `names`

    @classmethod
    def of(cls, labels: Sequence[str]) -> Districts:
        """From the district of each block, in the order of the blocks."""
        names, places = np.unique(np.asarray(labels), return_inverse=True)
        return cls(tuple(names.tolist()), places.reshape(-1).astype(np.int64))

    def sums(self, blocks: NDArray[np.number]) -> Floats:
        """The numbers of blocks, added up by district; shape (blocks, …) to (districts, …)."""
        found = np.zeros((len(self.names), *blocks.shape[1:]))
        np.add.at(found, self.of_block, blocks)
        return found


def read_districts(file: Path, blocks: Sequence[str]) -> Districts:
    """A block-to-district list as states file them: BLOCKID|DISTRICT (or with commas), each block once."""
    text = read_bytes(file, largest=LARGEST_FILE, what="list of districts").decode("utf-8-sig", errors="replace")
    places = {block: place for place, block in enumerate(blocks)}
    found: dict[int, tuple[str, int]] = {}

    def odd(why: str, line: int | None = None) -> InvalidFile:
        return InvalidFile(
            f"the list of districts '{file.name}' cannot be used",
            why=why,
            instead="give each block of the state one district: BLOCKID|DISTRICT, a line each",
            where=Place(str(file), line),
        )

    for line, row in enumerate(text.splitlines(), start=1):
        values = [value.strip() for value in row.replace(",", "|").split("|")]
        if line == 1 and tuple(value.upper() for value in values) == HEADER:
            continue
        if len(values) != len(HEADER) or not all(values):
            raise odd("a line is not a block and its district", line)
        place = places.get(values[0])
        if place is None:
            raise odd(f"the block '{values[0]}' is not in the state's geographic header", line)
        if place in found:
            raise odd(f"the block '{values[0]}' stands on line {found[place][1]} too", line)
        found[place] = values[1], line
    missing = next((block for block, place in places.items() if place not in found), None)
    if missing is not None:
        raise odd(f"{len(places) - len(found):,} blocks have no district, the first of them '{missing}'")
    return Districts.of([found[place][0] for place in range(len(blocks))])


@dataclass(frozen=True)
class DistrictErrors:
    """How far published districts are off at one privacy loss, in the mean over simulated releases."""

    loss: float
    deviation: float  # of a district's population, as a share of the population a district should have
    largest_deviation: float  # that of the worst district
    composition: float  # of a district's share of minority persons of voting age, as a share
    largest_composition: float


def district_errors(
    plan: Plan,
    persons: Integers,
    districts: Districts,
    losses: Sequence[float],
    *,
    table: str,
    repetitions: int = 4,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[DistrictErrors, ...]:
    """Errors of districts at each loss, by simulated releases of a plan; `persons` must be public or invented.

    `table` is that of block × voting age × Hispanic × race; shape of `persons` (blocks, 2, 2, races). A minority person
    is whoever is not White alone and not Hispanic.
    """
    workload = plan.program.workload
    names = [each.name for each in workload.tables]
    if table not in names:
        raise InvalidValue(
            f"the plan has no table '{table}'",
            why=f"its tables are {', '.join(names)}",
            instead=did_you_mean(table, names, "name the table of blocks by voting age, origin and race"),
        )
    ends = np.cumsum([0, *(each.query_count for each in workload.tables)])
    rows = slice(int(ends[names.index(table)]), int(ends[names.index(table) + 1]))
    histogram = Histogram(plan.program.domain, persons)
    chain = WholeNumbers(plan.program, plan.technology, plan.choice.privacy_measure, patient=True)
    found = []
    for loss in losses:
        errors = []
        for repetition in range(repetitions):
            progress(f"districts at {plan.choice.privacy_measure} = {loss:g}, release {repetition + 1}")
            exact = Fraction(loss).limit_denominator(10_000)
            answers = chain.answer(histogram, workload, exact, simulation_keys(SEED, repetition)).values[rows]
            errors.append(_errors(districts, persons, answers.reshape(persons.shape)))
        found.append(DistrictErrors(float(loss), *np.mean(errors, axis=0).tolist()))
    return tuple(found)


def _errors(districts: Districts, persons: Integers, published: Floats) -> tuple[float, float, float, float]:
    true, told = districts.sums(persons), districts.sums(published)
    ideal = true.sum() / len(districts.names)
    deviation = np.abs(told.sum(axis=(1, 2, 3)) - true.sum(axis=(1, 2, 3))) / ideal
    composition = np.abs(minority_share(told) - minority_share(true))
    return float(deviation.mean()), float(deviation.max()), float(composition.mean()), float(composition.max())


def minority_share(persons: NDArray[np.number]) -> Floats:
    """Of the persons of voting age the share who are Hispanic or not White alone; shape (places,)."""
    adults = persons[:, 1].astype(np.float64)
    majority = adults[:, 0, 0]  # not Hispanic, White alone
    everybody = adults.sum(axis=(1, 2))
    return np.asarray(1 - majority / np.maximum(everybody, 1.0))
