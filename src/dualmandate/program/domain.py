"""From `[population]` to what can be recorded and who is protected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from dualmandate.errors import InvalidDomain, InvalidValue, TooLarge
from dualmandate.population import (
    Attribute,
    Domain,
    Grouping,
    Hierarchy,
    Invariant,
    Neighbors,
    Protection,
    StructuralZero,
)
from dualmandate.population.protection import steps
from dualmandate.program.file import Document
from dualmandate.program.labels import check_groupings, labels_of_attribute, labels_of_grouping
from dualmandate.program.pl_files import ENDING, read_header
from dualmandate.program.schema import (
    BEST,
    AttributeTable,
    HierarchyTable,
    InvariantTable,
    ProgramKeys,
    SourceTable,
    WorkloadTable,
)
from dualmandate.program.text_columns import TextColumns, read_text_columns

MOST_LEVELS = 2 * 10**7  # of one attribute
NO_BOUNDS: Mapping[str, Fraction] = MappingProxyType({})


class Described(Protocol):
    """What a `[population]` says of the values that can be recorded, in a program file or beside published tables."""

    @property
    def attributes(self) -> Mapping[str, AttributeTable]:
        """What each attribute may record."""

    @property
    def hierarchies(self) -> Mapping[str, HierarchyTable]:
        """How levels roll up."""

    @property
    def structural_zeros(self) -> Sequence[Mapping[str, tuple[str, ...]]]:
        """Combinations of levels that cannot occur."""

    @property
    def source(self) -> SourceTable | None:
        """Where the records lie."""


def code_lists(population: Described, document: Document) -> dict[str, TextColumns]:
    """The code list of each attribute that has one, read beside the program file; each file is read once."""
    lists: dict[str, TextColumns] = {}
    for name, table in population.attributes.items():
        if table.codes is not None:
            file = document.path.parent / table.codes
            known = next((read for read in lists.values() if read.file == file), None)
            with document.at("population", "attributes", name, "codes"):
                check_not_data(file, population, document)
                lists[name] = known or _code_list(file)
    return lists


def _code_list(file: Path) -> TextColumns:
    """A CSV file, or the blocks of a geographic header of redistricting data."""
    return read_header(file, "code list") if file.suffix == ENDING else read_text_columns(file, "code list")


def check_not_data(file: Path, population: Described, document: Document) -> None:
    """Refuse to read the confidential file as a list of codes: what is in it would then decide the domain."""
    path = None if population.source is None else population.source.path
    if path is not None and file.resolve() == (document.path.parent / path).resolve():
        raise InvalidValue(
            f"'{file.name}' is the confidential file of this program",
            why="levels come from the program, never from the data",
            instead="list the codes that can occur in a file of their own",
        )


def domain_of(
    population: Described,
    lists: Mapping[str, TextColumns],
    document: Document,
    bounds: Mapping[str, Fraction] = NO_BOUNDS,
) -> Domain:
    """The attributes in the order of the file, their hierarchies and their structural zeros (χ).

    `bounds` are the upper bounds of attributes that leave theirs to the plan.
    """
    attributes = {}
    for name, table in population.attributes.items():
        with document.at("population", "attributes", name):
            made = _attribute(name, table, lists.get(name), bounds.get(name))
            attributes[name] = replace(made, level_labels=labels_of_attribute(made, table, lists.get(name), document))
            if attributes[name].size > MOST_LEVELS:
                raise TooLarge(
                    f"'{name}' has {attributes[name].size:.3g} levels",
                    why=f"an attribute has at most {MOST_LEVELS:,}: filters and sums hold a number for each",
                    instead="choose a coarser grid, or bins",
                )
    with document.at("population", "attributes"):
        plain = Domain(tuple(attributes.values()))
    hierarchies = []
    for name, hierarchy in population.hierarchies.items():
        with document.at("population", "hierarchies", name, "attribute"):
            attribute = plain.attribute(hierarchy.attribute)
        with document.at("population", "hierarchies", name):
            codes = lists.get(attribute.name)
            if hierarchy.columns is None:
                found = _hierarchy(name, hierarchy, attribute)
            else:
                column = population.attributes[attribute.name].column
                found = _by_columns(hierarchy.columns, attribute, codes, column)
            check_groupings(name, found.groupings, hierarchy, document)
            labeled = (
                replace(each, level_labels=labels_of_grouping(name, each, hierarchy, codes, document))
                for each in found.groupings
            )
            hierarchies.append(Hierarchy(found.attribute, tuple(labeled)))
    with document.at("population", "hierarchies"):
        grouped = Domain(plain.attributes, tuple(hierarchies))
    zeros = tuple(StructuralZero.of(levels) for levels in population.structural_zeros)
    for position, zero in enumerate(zeros):
        with document.at("population", "structural_zeros", position):
            grouped.zero_masks(zero)
    return Domain(grouped.attributes, grouped.hierarchies, zeros)


def check_selection(table: WorkloadTable | InvariantTable, domain: Domain, document: Document, *key: str | int) -> None:
    """Refuse what a table is broken down by, and levels that it selects, where the domain has none of that name."""
    by = table.names if isinstance(table, WorkloadTable) else table.by
    for number, name in enumerate(by):
        with document.at(*key, "by", number):
            domain.resolve(name)
    for name, levels in table.where.items():
        with document.at(*key, "where", name):
            domain.mask(name, levels)


def protection_of(file: ProgramKeys, domain: Domain, document: Document) -> Protection:
    """Whose records, how many of them, which files are neighbors, and what is published exactly."""
    population, stated = file.population, file.population.one_record_per_unit
    invariants = []
    for position, table in enumerate(file.invariants):
        check_selection(table, domain, document, "invariants", position)
        invariants.append(Invariant(table.name, table.by, tuple(table.where.items())))
    with document.at(*(("invariants",) if invariants else ("population", "most_records_per_unit"))):
        protection = Protection(
            unit=population.unit,
            neighbors=Neighbors(population.neighbors),
            most_records_per_unit=population.most_records_per_unit,
            identifier=population.identifier,
            invariants=tuple(invariants),
            records_changing_together=population.records_changing_together,
            one_record_source=None if stated is None else stated.source,
        )
        established = steps(domain, protection).established
    return replace(protection, records_established=established)


def _attribute(name: str, table: AttributeTable, codes: TextColumns | None, bound: Fraction | None) -> Attribute:
    make = Attribute.ordered_levels if table.ordered else Attribute.categories
    if codes is not None:
        return make(name, codes.codes(table.column), missing=table.missing)
    if table.levels is not None:
        return make(name, table.levels, missing=table.missing)
    edges = table.edges if table.logarithmic_bins is None else table.logarithmic_bins.edges
    if edges is not None:
        return Attribute.binned(name, edges, missing=table.missing)
    if table.grid is not None:
        assert table.lower is not None
        assert table.upper is not None
        upper = bound if table.upper == BEST else table.upper
        if upper is None:
            raise InvalidDomain(
                f"the upper bound of '{name}' is chosen by a plan, and none is at hand",
                why='with upper = "best" what can be recorded follows from a plan',
                instead="name the plan, or state the bound that it found",
            )
        return Attribute.numbers(name, table.lower, upper, table.grid, missing=table.missing)
    assert table.from_ is not None
    assert table.to is not None
    return Attribute.numbers(name, table.from_, table.to, missing=table.missing)


def _by_columns(
    columns: Sequence[str], attribute: Attribute, lists: TextColumns | None, codes: str | None
) -> Hierarchy:
    if lists is None:
        raise InvalidDomain(
            f"'{attribute.name}' has no code list to read columns from",
            why="columns stand in the CSV file of the attribute's codes",
            instead=f'declare {attribute.name} = {{ codes = "file.csv" }}, or use prefixes or groups',
        )
    groupings = []
    for column in columns:
        group_of = dict(zip(lists.codes(codes), lists.column(column), strict=True))
        groupings.append(Grouping.of(column, [group_of.get(level) or None for level in attribute.levels]))
    return Hierarchy(attribute.name, tuple(groupings))


def _hierarchy(name: str, table: HierarchyTable, attribute: Attribute) -> Hierarchy:
    if table.prefixes is not None:
        return Hierarchy.by_prefix(attribute, table.prefixes)
    assert table.groups is not None
    group_of: dict[int, str] = {}
    for group, levels in table.groups.items():
        for level in levels:
            position = attribute.position(level)
            if position in group_of:
                raise InvalidDomain(
                    f"'{level}' belongs to '{group_of[position]}' and to '{group}'",
                    why="groups of one grouping do not overlap",
                    instead="put groupings that overlap into separate hierarchies",
                )
            group_of[position] = group
    return Hierarchy(
        attribute.name, (Grouping.of(name, [group_of.get(position) for position in range(attribute.size)]),)
    )
