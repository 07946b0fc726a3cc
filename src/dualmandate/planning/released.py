"""Reading a release back: its tables, its estimates, and how wrong any of them may be, from public files alone."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from dualmandate.mechanism import ExactStrategy, Measurement
from dualmandate.planning.release_spec import measurement_of, read_strategy
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.program.program import read_program
from dualmandate.publication.nested_tables import NestWeights, nest_together
from dualmandate.publication.release import Release, read_facts
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.publication.writing import damaged
from dualmandate.workload import Workload


def load_release(folder: str | Path) -> Release:
    """A release from the folder that `publish` wrote; refused where a file of it is missing or was changed."""
    place = Path(folder)
    facts = read_facts(place)

    @cache
    def order() -> ReleaseSpec:
        try:
            found = _order(place, facts)
            stated = [[(noise["law"], noise["parameter"]) for noise in group["noises"]] for group in facts["groups"]]
        except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
            raise damaged(f"the release in '{place}'", "its release.json does not say how it was measured") from None
        meant = [[(noise.law, str(noise.parameter)) for noise in group.noises] for group in found.groups]
        if stated != meant:
            why = "its release.json states other noise than its program, strategy and loss give"
            raise damaged(f"the release in '{place}'", why)
        return found

    def measurement(group: str) -> Measurement:
        return next(each.measurement for each in order().groups if each.name == group)

    def together() -> NestWeights:
        nest = nest_together(order())
        if nest is None:
            raise damaged(f"the release in '{place}'", "its tables do not nest, though its release.json says so")
        return NestWeights(order(), nest)

    return Release(place, facts, measurement, together)


def _order(folder: Path, facts: Mapping[str, Any]) -> ReleaseSpec:
    """What was carried out, from the program and the strategies that the release carries along."""
    program = read_program(folder / facts["program_file"])

    def read(group: str, workload: Workload) -> ExactStrategy:
        path = next(each["strategy"] for each in facts["groups"] if each["name"] == group)
        return read_strategy(folder / path, workload, program.protection)

    groups = tuple(
        Group(
            each["name"],
            measurement_of(each["tables"], each["name"], facts["mechanism"], program=program, strategies=read),
            Fraction(each["loss"]),
        )
        for each in facts["groups"]
    )
    return ReleaseSpec(
        plan_digest=facts["plan_digest"],
        program=facts["program"],
        account=facts["account"],
        loss=PrivacyLoss(Fraction(facts["loss"]["exact"]), PrivacyMeasure(facts["loss"]["currency"])),
        domain=program.domain,
        protection=program.protection,
        rules=program.rules,
        groups=groups,
        units={table["name"]: table["unit"] for table in facts["tables"]},
    )
