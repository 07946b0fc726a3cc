"""Prints the figures of docs/explanation/title-i.md from the real data, and draws its picture into a file.

`python -m tests.gallery.title_i_figures PICTURE.png`: half a minute of one processor.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from tests.gallery.title_i_data import chain, fit

from dualmandate.choice import LinearCost, PopulationGroup, SocialWelfare, TableValue, choose
from dualmandate.frontier import Simulation, decision_frontier, frontier_of, noisy_answers, simulation_error
from dualmandate.gallery.grants import TitleI, displacement, estimation_errors, noise_errors
from dualmandate.mechanism import geometric, laplace
from dualmandate.population import Histogram
from dualmandate.report.figures import displaced
from dualmandate.workload import identity

SIZES = (2_500, 5_000, 10_000, 20_000, 65_000)  # residents
LOSSES = (0.1, 0.25, 0.5, 1.0, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0)
SIMULATED = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0)
SAME_CODES = ("4110920", "4111470")  # two districts of Oregon have other codes in the official file


def main(picture: str) -> None:
    """All figures of the page."""
    formulas, grants = chain(2019)
    law, districts = formulas.statute, formulas.districts
    readings = {
        "all": grants,
        "no floors": TitleI(districts, 2019, law).grants(),
        "no minima": chain(2019, replace(law, minimum=0.0, base_year_minimum=0.0))[1],
        "lowest equity class": chain(2019, replace(law, unstated_equity=0.05))[1],
        "highest equity class": chain(2019, replace(law, unstated_equity=0.25))[1],
    }
    for name, each in readings.items():
        print(name, fit(each.codes, each.total, SAME_CODES))
    counts = np.asarray(districts.children, dtype=np.float64)
    sizes = np.asarray(districts.residents, dtype=np.float64)
    there = displacement(formulas, counts, estimation_errors(districts, law), repetitions=100)
    print("estimates", there.displaced, there.root_mean_squared_error, there.by_size(sizes, SIZES))
    workload = identity(counts.size)
    moved: dict[str, list[tuple[float, float]]] = {}
    for name, mechanism in (("Laplace", laplace()), ("geometric", geometric())):
        moved[name] = []
        for loss in LOSSES:
            noise = noise_errors(mechanism.production(workload), loss)
            found = displacement(formulas, counts, noise, repetitions=60, seed=3)
            moved[name].append((loss, found.displaced))
            print(name, loss, found.displaced, found.root_mean_squared_error, found.by_size(sizes, SIZES))
        frontier = decision_frontier(
            formulas,
            noisy_answers(mechanism.production(workload)),
            workload,
            histogram=Histogram(workload.domain, counts.astype(np.int64)),
            simulation=Simulation(SIMULATED, 60, seed=3),
        )
        plain = frontier_of(mechanism, workload)
        for cost in (1_400, 61):
            people = (PopulationGroup("children", 46e6, LinearCost(cost)),)
            real = SocialWelfare(people, (TableValue(formulas.name, 1.0, unit="USD"),))
            paper = SocialWelfare(people, (TableValue(plain.tables[0], 2.0e7),))
            error = simulation_error(frontier, lambda each, society=real: choose(each, society).epsilon)  # type: ignore[misc]
            print(name, cost, "paper", choose(plain, paper).epsilon, "real", error.value, error.lower, error.upper)
    displaced(moved, existing=there.displaced, grants="Title I grants of 2019").save(picture)


if __name__ == "__main__":
    main(sys.argv[1])
