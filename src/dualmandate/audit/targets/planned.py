"""What a plan would publish of people drawn for an audit: its own rows, its own noise, its own estimates.

The noise comes from the audit's key, never from a release's secret, and nothing is spent.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.disclosure_control.publication_methods import PublicationMethod
from dualmandate.audit.effort import generator
from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.places import OnePlace
from dualmandate.audit.reconstruction.noisy import KnownNumbers
from dualmandate.errors import Refusal, TooLarge
from dualmandate.planning.plan import Plan
from dualmandate.planning.release_spec import release_spec_of_plan
from dualmandate.population.wording import stated_loss
from dualmandate.publication.release_spec import ReleaseSpec, known_histogram

Floats = NDArray[np.float64]
Numbers = dict[str, tuple[Floats, Floats]]  # by table: what is printed and its mean absolute error, a row a place
LARGEST_MEASURED = 2**20  # cells, or measured rows, of which a whole release is tried out
MEAN_SIZE = math.sqrt(2 / math.pi)  # mean absolute error of a normal one, in standard errors


def planned_method(plan: Plan, place: OnePlace, people: Integers, key: bytes) -> tuple[PublicationMethod, str]:
    """What the plan publishes of these people, and in words how that was found out.

    `people` are those of the first places, shape (places, cells of one); nobody lives in the others.
    """
    draws = generator(key, f"the plan of {plan.program.name}")
    try:
        numbers, how = _released(plan, place, people, draws), "measured, estimated and drawn as it would be released"
    except Refusal as refusal:
        numbers = _with_noise(plan, place, people, draws)
        how = f"noise of the planned size on every number, as a whole release was not tried out: {refusal.what}"
    printed = np.concatenate([numbers[table.name][0] for table in place.tables], axis=1)
    scales = np.concatenate([numbers[table.name][1] for table in place.tables], axis=1)
    known = KnownNumbers.shown(printed, scales)
    name = f"the plan: {stated_loss(plan.loss)}"
    method = PublicationMethod(
        "differential privacy",
        name,
        printed,
        known,
        loss=plan.loss,
        planned=True,
        promised_error=promised_error(plan, place),
    )
    return method, f"{name}, {how}"


def promised_error(plan: Plan, place: OnePlace) -> float | None:
    """The mean absolute error of a number of these tables by the plan's frontier, before anything is drawn."""
    errors, counts = _promised(plan), plan.technology.measured.query_counts
    names = [table.name for table in place.tables]
    return sum(errors[name] * counts[name] for name in names) / sum(counts[name] for name in names) if errors else None


def _promised(plan: Plan) -> dict[str, float]:
    """By table, the mean absolute error of a number; nothing where the frontier does not state it."""
    measured = plan.technology.measured
    try:
        losses = measured.table_errors(float(plan.loss.amount), "absolute")
    except Refusal:
        return {}
    return {name: loss / measured.query_counts[name] for name, loss in losses.items()}


def _released(plan: Plan, place: OnePlace, people: Integers, draws: np.random.Generator) -> Numbers:
    domain = plan.program.domain
    if domain.size > LARGEST_MEASURED:
        raise TooLarge(f"{domain.size:,} cells", why="all of them are counted", instead="plan for fewer")
    order = release_spec_of_plan(plan)
    rows = sum(group.rows.size for group in order.groups)
    if rows > LARGEST_MEASURED:
        raise TooLarge(f"{rows:,} rows are measured", why="all of them are drawn", instead="plan for fewer")
    counts = _everywhere(place, people, domain.shape)
    public = None
    if order.public is not None:
        public = known_histogram(order, np.asarray(order.public.answers(counts), dtype=np.int64))
    return _measured(order, place, counts, public, draws=draws, places=len(people))


def _measured(
    order: ReleaseSpec,
    place: OnePlace,
    counts: Integers,
    public: Floats | None,
    *,
    draws: np.random.Generator,
    places: int,
) -> Numbers:
    found: Numbers = {}
    for group in order.groups:
        kinds, values = group.rows.kinds(), group.rows.count(counts).astype(np.int64)
        for kind, noise in enumerate(group.noises):
            own = np.flatnonzero(kinds == kind)
            values[own] += noise.distribution().draw(draws, own.shape).astype(np.int64)
        answers, start = group.rows.answers(values, public), 0
        for table in group.tables:
            here = answers[start : start + table.query_count]
            start += table.query_count
            if table in place.tables:
                errors = np.sqrt(group.measurement.query_variances(table.name, group.loss)) * MEAN_SIZE
                spread = np.broadcast_to(errors, here.shape)
                both = (place.by_place(table, each)[:places].astype(np.float64) for each in (here, spread))
                found[table.name] = next(both), next(both)
    return found


def _everywhere(place: OnePlace, people: Integers, shape: tuple[int, ...]) -> Integers:
    """Counts of the whole domain: these people in the first places."""
    if place.axis is None:
        return people.reshape(shape)
    whole = np.zeros((len(place.places), people.shape[1]), dtype=np.int64)
    whole[: len(people)] = people
    return np.moveaxis(whole.reshape(len(whole), *place.domain.shape), 0, place.axis)


def _with_noise(plan: Plan, place: OnePlace, people: Integers, draws: np.random.Generator) -> Numbers:
    """Noise of the plan's law on each table's exact numbers, as large as its frontier says.

    Numbers that a strategy puts together from many rows have errors that are nearly normal.
    """
    found: Numbers = {}
    promised = _promised(plan)
    for group, spent in plan.allocation.items():
        measurement = plan.technology.measurements[group]
        for table in place.tables:
            if table.name not in {each.name for each in measurement.workload.tables}:
                continue
            exact = Equations.of_workload(place.workload.only((table.name,))).of(people)
            variance = float(np.mean(measurement.query_variances(table.name, float(spent))))
            if measurement.rows.strategy is None:
                law = measurement.law.at(measurement.unit_loss(float(spent)))
                size = math.sqrt(variance / law.variance)
                noise, error = law.draw(draws, exact.shape) * size, law.mean_absolute * size
            else:
                error = promised.get(table.name, math.sqrt(variance) * MEAN_SIZE)
                noise = draws.normal(0.0, error / MEAN_SIZE, exact.shape)
            found[table.name] = exact + noise, np.full(exact.shape, error)
    return found
