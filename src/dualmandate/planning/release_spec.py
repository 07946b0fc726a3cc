"""From a plan to its order: exactly what was signed, read from the plan and from the program that it was made of.

And from a release back to what was carried out: its tables, its estimates, and how wrong any of them may be, from
public files alone.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from dualmandate.errors import InvalidMechanism, InvalidRelease, InvalidValue, NotApproved, Place, TooLarge
from dualmandate.ledger.chain import RELEASE_FILE
from dualmandate.mechanism import ExactStrategy, MatrixRows, Measurement, StrategyRows, TableRows
from dualmandate.mechanism.data_dependent import Draw
from dualmandate.mechanism.strategy.strategy_file import strategy_digest, strategy_document, strategy_from
from dualmandate.mechanism.technologies import CELLS, DATA_DEPENDENT, OPTIMIZED, TECHNOLOGY_FORMAT, drawn_law
from dualmandate.planning.saved_plan import LARGEST_PLAN, SavedPlan, exact_content, planned_again, read_json
from dualmandate.population import PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arguments import checked_call, expected
from dualmandate.population.arrays import Floats
from dualmandate.population.machine import size_words
from dualmandate.program.file import Document
from dualmandate.program.program import ProgramFile, read_program
from dualmandate.publication.measuring import by_table
from dualmandate.publication.nested_tables import NestWeights, nest_together
from dualmandate.publication.release import Release, read_facts
from dualmandate.publication.release_spec import (
    ALL_TABLES,
    Group,
    OrderedTechnology,
    Page,
    ReleaseSpec,
    check_names,
    exact_names,
)
from dualmandate.publication.rules import check_rules
from dualmandate.publication.transcripts import told_of
from dualmandate.publication.writing import PublishedTable, damaged, file_names
from dualmandate.semantics import guarantee
from dualmandate.workload import Ratio, Workload

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan
    from dualmandate.publication.post_processing import ConsistentNest

STRATEGIES = "strategies"
LARGEST_STRATEGY = 2**28  # bytes
SAME = 1e-9  # Errors of one strategy differ by less on different machines.

Strategies = Callable[[str, Workload], ExactStrategy]


def strategy_files(plan: Plan) -> dict[str, bytes]:
    """What is measured for each group with an optimized strategy, by the path of its file beside plan.json."""
    found = plan.technology.found
    paths = _paths(tuple(plan.allocation)) if found else {}
    return {path: _written(strategy_document(found[group].exact)) for group, path in paths.items() if group in found}


def check_saved(files: Mapping[str, bytes | str]) -> None:
    """Refuse to save a plan that is so large that it would not be read back."""
    for path, content in files.items():
        most = LARGEST_STRATEGY if path.startswith(f"{STRATEGIES}/") else LARGEST_PLAN
        if len(content) > most:
            raise TooLarge(
                f"'{path}' would have {size_words(len(content))}",
                why=f"at most {size_words(most)} of it are read back",
                instead='ask for fewer tables, or measure the tables themselves (strategy = "workload")',
            )


def _paths(groups: tuple[str, ...]) -> dict[str, str]:
    """Where the strategy of each group lies, from the folder of its plan or release."""
    return {group: f"{STRATEGIES}/{name}.json" for group, name in file_names(groups).items()}


def release_spec_of(plan: SavedPlan, program: ProgramFile, folder: Path, page: Page | None = None) -> ReleaseSpec:
    """What a saved plan orders; refused where the program beside it is not the one that was planned.

    `folder` is where the plan lies, with its strategies; `page` is how the release is shown to people.
    """
    _check_program(plan, program)
    measurements = plan.document["exact"]["measurements"]
    paths = _paths(tuple(_group_name(each, measurements) for each in measurements))

    def read(group: str, workload: Workload) -> ExactStrategy:
        return read_strategy(folder / paths[group], workload, program.protection)

    order = _order(plan, program, read, page)
    if plan.document["guarantee"] != order.facts["guarantee"]:
        raise NotApproved(
            "the plan states another guarantee than its program and its loss give",
            why="whoever approved it may have read what is not published",
            instead="plan the program again, and have that plan approved",
            where=Place(key="guarantee"),
        )
    return order


def release_spec_of_plan(plan: Plan, page: Page | None = None) -> ReleaseSpec:
    """What a plan that was just made orders, bit by bit what the saved one does: strategies are written and read."""
    found, protection = plan.technology.found, plan.program.protection

    def read(group: str, workload: Workload) -> ExactStrategy:
        return strategy_from(strategy_document(found[group].exact), workload, protection)

    return _order(saved(plan), plan.program, read, page)


def saved(plan: Plan) -> SavedPlan:
    """What is signed of a plan that was just made, as it would be read back."""
    account = {"account_identifier": plan.account_identifier}
    return SavedPlan({"digest": plan.digest, "exact": plan.exact, "program": account})


def _order(plan: SavedPlan, program: ProgramFile, strategies: Strategies, page: Page | None) -> ReleaseSpec:
    with program.document.at("mechanism", "noise"):
        plan.check_publishable()
    exact = plan.document["exact"]
    groups, files = [], {}
    technology = _technology(plan, program)
    paths = _paths(tuple(_group_name(each, exact["measurements"]) for each in exact["measurements"]))
    for each in exact["measurements"] if technology is None else ():
        name = _group_name(each, exact["measurements"])
        made = measurement_of(each["tables"], name, exact["mechanism"], program=program, strategies=strategies)
        groups.append(Group(name, made, Fraction(each["loss"])))
        if made.rows.strategy is not None:
            _check_strategy(made, each, name, plan)
            files[paths[name]] = _written(strategy_document(made.rows.strategy))
    return ReleaseSpec(
        plan_digest=plan.digest,
        program=program.name,
        account=plan.account,
        loss=plan.loss,
        domain=program.domain,
        protection=program.protection,
        rules=program.rules,
        groups=tuple(groups),
        units={**program.table_units, **program.ratio_units},
        facts=_facts(plan, program),
        files={**files, **program_files(program)},
        page=page,
        formats=program.file.publication.formats,
        agency=program.file.publication.agency,
        # Records are what a model of them is for.
        synthetic_records=program.file.publication.synthetic_records
        or (technology is not None and technology.mechanism.models_records),
        engine=program.file.publication.engine,
        ratios=program.ratios,
        clipped=program.clipped,
        superpopulation=program.file.superpopulation,
        account_identifier=plan.account_identifier,
        records=program.expected_records,
        technology=technology,
    )


def _technology(plan: SavedPlan, program: ProgramFile) -> OrderedTechnology | None:
    """The technology that a plan orders in place of measurements; refused where this version draws it otherwise."""
    exact = plan.document["exact"]
    name = exact["mechanism"]["strategy"]
    if name not in DATA_DEPENDENT:
        return None
    [stated] = exact["measurements"]
    made = technology_named(name, exact["mechanism"]["noise"], program.workload, Fraction(stated["loss"]))
    if dict(stated["technology"]) != made.document():
        raise NotApproved(
            f"the plan orders '{name}' as another version of it draws",
            why="exactly the approved plan is published, draw by draw",
            instead="plan the program again, and have that plan approved; or publish it with the version that made it",
        )
    return made


def technology_named(name: str, noise: str, workload: Workload, loss: Fraction) -> OrderedTechnology:
    """A technology by its word in a program file, for a loss counted as the noise counts it."""
    mechanism = DATA_DEPENDENT[name](drawn_law(noise).privacy_measure)
    return OrderedTechnology(name, TECHNOLOGY_FORMAT, mechanism, workload, loss)


def check_program(program: ProgramFile) -> None:
    """Refuse, when a program is planned, what no machine could publish of it: a plan that is approved is a promise."""
    document, protection = program.document, program.protection
    with document.at("population"):
        check_rules(program.rules, program.domain, protection, checking=False)
    with document.at(*_named_twice(program)):
        check_names([*(name for name, _ in _named(program)), *exact_names(protection)])
    if program.source is not None and (document.text is not None or document.path.is_file()):
        program_files(program)  # the name of the confidential file can be taken out of what a release carries


def check_noise(program: ProgramFile, measurements: Mapping[str, Measurement], shares: Mapping[str, Fraction]) -> None:
    """The same of noise that is too broad to be drawn exactly, at what each group of tables spends."""
    with program.document.at("mechanism"):
        for group, measurement in measurements.items():
            for noise in measurement.noises(shares[group]):
                noise.sampler()


def _named(program: ProgramFile) -> list[tuple[str, tuple[str | int, ...]]]:
    """What is published with noise, by its name, and where that stands."""
    tables = [(table.name, ("workload", n, "name")) for n, table in enumerate(program.file.workload)]
    return [*tables, *((ratio.name, ("ratios", n, "name")) for n, ratio in enumerate(program.ratios))]


def _named_twice(program: ProgramFile) -> tuple[str | int, ...]:
    """Where a table has the name of an exact total."""
    exact = exact_names(program.protection)
    return next((key for name, key in _named(program) if name in exact), ("invariants",))


def program_files(program: ProgramFile) -> dict[str, bytes]:
    """The program file, first, and its code lists, by their paths in a release: all that reading it back needs."""
    files = [program.document.path, *(codes.file for codes in program.code_lists.values())]
    paths = [Path(os.path.abspath(file)) for file in files]  # noqa: PTH100 - links stay as they are written
    top = os.path.commonpath([path.parent for path in paths])
    own = program.document.text  # of one that stands in no file
    texts = [path.read_bytes() if own is None or n else own for n, path in enumerate(paths)]
    texts[0] = without_source_name(program.document, texts[0])
    return {f"program/{path.relative_to(top).as_posix()}": text for path, text in zip(paths, texts, strict=True)}


HIDDEN, SOURCE = "confidential", ("population", "source")


def without_source_name(document: Document, content: bytes) -> bytes:
    """The program file without the name of the confidential file, which is not public: "confidential.csv" in its place.

    So is a database that the program itself names, as a file of SQLite. Nothing else is changed, and this is looked at;
    a name that is written so that it cannot be found is refused.
    """
    text = content.decode("utf-8-sig")
    meant = tomllib.loads(text, parse_float=Decimal)
    source = meant["population"].get("source")
    stated = next((key for key in ("path", "url") if isinstance(source, dict) and key in source), None)
    name = source[stated] if stated is not None else source if isinstance(source, str) else None
    if name is None:
        return content
    hidden = f"{name.partition('://')[0]}:///{HIDDEN}" if stated == "url" else HIDDEN + PurePath(name).suffix
    key = (*SOURCE, stated) if stated is not None and (*SOURCE, stated) in document.lines else SOURCE
    meant["population"]["source"] = {**source, stated: hidden} if stated is not None else hidden
    lines = text.split("\n")
    # A dictionary has no lines: what it stands for as text is looked through.
    for place in [document.lines[key] - 1] if key in document.lines else range(len(lines)):
        tried = lines[place].replace(f'"{name}"', f'"{hidden}"').replace(f"'{name}'", f"'{hidden}'")
        said = "\n".join((*lines[:place], tried, *lines[place + 1 :]))
        if tried != lines[place] and tomllib.loads(said, parse_float=Decimal) == meant:
            return said.encode()
    raise InvalidValue(
        "the name of the confidential file cannot be taken out of the program that a release carries",
        why="everything in a release is public, and that name is not",
        instead='write source = "file.csv" on one line, without escapes',
        where=document.place(key),
    )


def measurement_of(
    tables: Sequence[str], group: str, mechanism: Mapping[str, str], *, program: ProgramFile, strategies: Strategies
) -> Measurement:
    """How a group of tables is measured, from what a plan or a release says of it."""
    workload, law = program.workload.only(tuple(tables)), drawn_law(mechanism["noise"])
    if mechanism["strategy"] == OPTIMIZED:
        return Measurement(StrategyRows(strategies(group, workload)), law, program.protection)
    rows = MatrixRows.every_cell(workload) if mechanism["strategy"] == CELLS else TableRows(workload)
    return Measurement(rows, law, program.protection)


def _check_strategy(made: Measurement, measurement: Mapping[str, Any], group: str, plan: SavedPlan) -> None:
    """Its rows by their digest; the values of the tables, which decide nothing, by the error that the plan states."""
    strategy = made.rows.strategy
    assert strategy is not None
    stated = [each["error_coefficient"] for each in plan.document.get("strategies", ()) if each["group"] == group]
    if any(not math.isclose(each, strategy.error_coefficient(made.protection), rel_tol=SAME) for each in stated):
        raise InvalidMechanism(
            f"the strategy of '{group}' is written for other values of the tables than the plan",
            why="it was changed after it was written, or it is of another plan",
            instead="take the strategy and the plan from the same folder",
        )
    if strategy_digest(strategy) != measurement["strategy"]["digest"]:
        raise NotApproved(
            f"the strategy of '{group}' is not the one that the plan names",
            why="exactly the approved plan is published, row by row",
            instead="plan the program again, and have that plan approved",
        )


def _facts(plan: SavedPlan, program: ProgramFile) -> dict[str, object]:
    document, mechanism = plan.document, program.file.mechanism
    probability = mechanism.failure_probability
    promise = guarantee(
        program.protection,
        plan.loss,
        program.file.population.household_size,
        failure_probability=None if probability is None else float(probability),
        seen_in_the_data=program.file.population.seen_in_the_data,
    )
    seen = list(program.file.population.seen_in_the_data)
    stated = program.file.program
    return {
        **{key: words for key, words in (("title", stated.title), ("agency", stated.agency)) if words},
        "description": program.file.program.description,
        "language": stated.language,
        "mechanism": document["exact"]["mechanism"],
        "guarantee": promise.document(),
        "invariants": [invariant.name for invariant in program.protection.invariants],
        "failure_probability": None if probability is None else str(probability),
        "program_file": next(iter(program_files(program))),
        **({"bounds": {name: str(bound) for name, bound in program.bounds.items()}} if program.bounds else {}),
        **({"seen_in_the_data": seen} if seen else {}),
    }


def _check_program(plan: SavedPlan, program: ProgramFile) -> None:
    signed = plan.document["exact"]
    attributes = [[attribute.name, str(attribute.size)] for attribute in program.domain.attributes]
    lists = {name: codes.digest for name, codes in program.code_lists.items()}
    found = exact_content(program.document.content), attributes, lists, dict(program.bounds)
    if found != (signed["program"], signed["attributes"], signed["code_lists"], plan.bounds):
        raise NotApproved(
            "the program, or a code list of it, was changed after the plan was made",
            why="exactly the approved plan is published, and it was made of another program",
            instead="restore the program, or plan it again and have that plan approved",
            where=Place(file=str(program.document.path)),
        )


def _group_name(measurement: Mapping[str, Any], measurements: list[Any]) -> str:
    return ALL_TABLES if len(measurements) == 1 else " + ".join(measurement["tables"])


def read_strategy(path: Path, workload: Workload, protection: Protection) -> ExactStrategy:
    """A strategy from its file beside a plan or in a release."""
    instead = planned_again(path.parent.parent / "plan.json", None)  # a release has no program above it
    document = read_json(path, "strategy", largest=LARGEST_STRATEGY, instead=instead)
    return strategy_from(document, workload, protection)


def _written(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")


@checked_call
def load_release(folder: str | Path) -> Release:
    """A release from the folder that `publish` wrote; refused where a file of it is missing or was changed.

    Files of more than 4 MB are compared with their digests when they are first read; `release.check()` compares all.
    """
    place = Path(
        expected(folder, (str, Path), what="the folder of a release", instead='name it: load_release("r000003")')
    )
    place = place.parent if place.name == RELEASE_FILE else place
    if not (place / RELEASE_FILE).exists():
        below = sorted(each.parent for each in place.glob(f"*/{RELEASE_FILE}"))
        raise InvalidRelease(
            f"there is no release in '{place}'",
            why=f"a release is a folder with a {RELEASE_FILE}",
            instead=f"name it: {', '.join(repr(str(each)) for each in below[:3])}"
            if below
            else "name the folder that `publish` wrote",
            where=Place(file=str(place)),
        )
    facts = read_facts(place)

    @cache
    def order() -> ReleaseSpec:
        try:
            found = _carried_out(place, facts)
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

    @cache
    def together() -> NestWeights:
        nest = nest_together(order())
        if nest is None:
            raise damaged(f"the release in '{place}'", "its tables do not nest, though its release.json says so")
        return NestWeights(order(), nest)

    def ratio(name: str) -> Ratio:
        found = next((each for each in order().ratios if each.name == name), None)
        if found is None:
            raise damaged(f"the release in '{place}'", f"its program does not ask for the ratio '{name}'")
        return found

    @cache
    def estimates() -> ConsistentNest:
        # Here, because its kernels cost more to import than the rest.
        from dualmandate.publication.post_processing import consistent_nest

        found, measured = order(), [release.measurements(group["name"]) for group in facts["groups"]]
        exact = [release.published(table.name).values for table in found.public_tables]
        totals = np.concatenate([each for each in exact if each is not None]) if exact else None
        return consistent_nest(found, together().nest, measured=measured, totals=totals, whole=False)

    def estimated(name: str) -> PublishedTable:
        return estimates().table(name)

    def again(transcript: tuple[Draw, ...]) -> Floats:
        told, technology = told_of(order(), transcript), order().technology
        assert technology is not None
        parts = by_table(technology.workload.tables, told.values)
        each = zip(technology.workload.tables, parts, strict=True)
        return np.concatenate([float(table.grid) * own for table, own in each])

    release = Release(place, facts, measurement, together, ratio, lambda: order().superpopulation, estimated, again)
    return release


def carried_program(folder: Path, facts: Mapping[str, Any]) -> ProgramFile:
    """The program that a release carries along, with the bounds that its plan chose."""
    try:
        bounds, file = (
            {name: Fraction(bound) for name, bound in facts.get("bounds", {}).items()},
            facts.get("program_file"),
        )
    except (AttributeError, TypeError, ValueError, ZeroDivisionError):
        raise damaged(f"the release in '{folder}'", "its release.json does not say which bounds were chosen") from None
    if not isinstance(file, str):
        raise damaged(f"the release in '{folder}'", "its release.json does not say which program was carried out")
    return read_program(folder / file, bounds)


def _carried_out(folder: Path, facts: Mapping[str, Any]) -> ReleaseSpec:
    """What was carried out, from the program and the strategies that the release carries along."""
    program = carried_program(folder, facts)

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
    technology = None
    if "technology" in facts:
        own, noise = facts["technology"], facts["mechanism"]["noise"]
        technology = technology_named(own["name"], noise, program.workload, Fraction(own["loss"]))
        if any(str(own[key]) != value for key, value in technology.document().items()):
            raise damaged(f"the release in '{folder}'", "its technology was drawn by another version than this one")
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
        ratios=program.ratios,
        superpopulation=program.file.superpopulation,
        technology=technology,
    )
