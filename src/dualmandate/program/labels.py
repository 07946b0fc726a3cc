"""What the program file and its code lists call levels: labels by language, checked where they are written.

A code list has the labels of its codes in a column `label`, those of another column's codes in `state_label`, and other
languages in `label_fr` and `state_label_fr`. `labels` and `labels_in` of the program file say the same, and what the
list does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dualmandate.errors import InvalidDomain, InvalidValue, Place
from dualmandate.population import Attribute, GridLevels, Grouping
from dualmandate.population.labels import ENGLISH, LANGUAGE, OWN, Labels, bin_labels, check_labels
from dualmandate.program.file import Document, KeyPath, toml_key
from dualmandate.program.schema import AttributeTable, HierarchyTable
from dualmandate.program.text_columns import TextColumns

COLUMN = "label"  # of a code list

Stated = tuple[str, ...] | Mapping[str, str]


def labels_of_attribute(
    attribute: Attribute, table: AttributeTable, codes: TextColumns | None, document: Document
) -> Labels:
    """The labels of an attribute's levels, from its code list, its keys, or its edges."""
    key: KeyPath = ("population", "attributes", attribute.name)
    found: dict[str, dict[str, str]] = {}
    own = _language(document)
    if codes is not None:
        column = next(iter(codes.columns)) if table.column is None else table.column
        named = dict(_columns(codes, (f"{column}_{COLUMN}", COLUMN), own))
        found = _of_list(codes, column, named, attribute.name)
    stated = _by_language(table.labels, table.labels_in, own, key, document)
    # Numbers stand for themselves; a missing answer may.
    lacking = None if isinstance(attribute.levels, GridLevels) else frozenset({attribute.missing or OWN})
    for language, (labels, place) in stated.items():
        with document.at(*place):
            here = _in_order(attribute.name, attribute.levels, labels, attribute.missing)
            _check_once(attribute.name, found.get(language, {}), here)
            found[language] = {**found.get(language, {}), **here}
            check_labels(attribute.name, attribute.levels, found[language], may_lack=lacking)
    for language in found.keys() - stated.keys():
        check_labels(attribute.name, attribute.levels, found[language], may_lack=lacking)
    if OWN not in found and attribute.edges is not None and own.split("-")[0] == ENGLISH:
        found[OWN] = bin_labels(attribute.levels, attribute.edges)
    return _own_first(found)


def labels_of_grouping(
    name: str, grouping: Grouping, table: HierarchyTable, codes: TextColumns | None, document: Document
) -> Labels:
    """The labels of the groups of one grouping of a hierarchy, from the attribute's code list or from its keys."""
    key: KeyPath = ("population", "hierarchies", name)
    own, found = _language(document), dict[str, dict[str, str]]()
    if codes is not None and table.columns is not None:
        named = dict(_columns(codes, (f"{grouping.name}_{COLUMN}",), own))
        found = _of_list(codes, grouping.name, named, grouping.name)
    in_other = {language: each[grouping.name] for language, each in table.labels_in.items() if grouping.name in each}
    stated = _by_language(table.labels.get(grouping.name), in_other, own, key, document, grouping.name)
    for language, (labels, place) in stated.items():
        with document.at(*place):
            here = _in_order(grouping.name, grouping.labels, labels, None)
            _check_once(grouping.name, found.get(language, {}), here)
            found[language] = {**found.get(language, {}), **here}
            check_labels(grouping.name, grouping.labels, found[language])
    return _own_first(found)


def check_groupings(name: str, groupings: tuple[Grouping, ...], table: HierarchyTable, document: Document) -> None:
    """Refuse labels of a grouping that the hierarchy does not have."""
    known = [grouping.name for grouping in groupings]
    stated: list[tuple[KeyPath, str]] = [(("labels", each), each) for each in table.labels]
    stated += [(("labels_in", language, each), each) for language, of in table.labels_in.items() for each in of]
    for key, grouping in stated:
        if grouping not in known:
            raise InvalidValue(
                f"labels are stated for '{grouping}', and the hierarchy '{name}' has no such grouping",
                why=f"it has {', '.join(known)}",
                instead="name one of its groupings",
                where=document.place(("population", "hierarchies", name, *key)),
            )


def _language(document: Document) -> str:
    return str(document.value(("program", "language")) or ENGLISH)


def _columns(codes: TextColumns, names: tuple[str, ...], own: str) -> Iterator[tuple[str, str]]:
    """The columns with labels, by language; the first name that has any column counts."""
    for name in names:
        here = [column for column in codes.columns if column == name or column.startswith(f"{name}_")]
        named = [(column.removeprefix(name).removeprefix("_"), column) for column in here]
        named = [(each, column) for each, column in named if not each or LANGUAGE.fullmatch(each)]
        if named:
            for language, column in named:
                if language == own and any(not each for each, _ in named):
                    raise InvalidValue(
                        f"'{codes.file.name}' has '{name}' and '{column}', both in the program's language",
                        why="a level has one label in a language",
                        instead="keep one of the two columns",
                        where=Place(str(codes.file), 1),
                    )
                yield OWN if language == own else language, column
            return


def _of_list(codes: TextColumns, column: str, named: Mapping[str, str], name: str) -> dict[str, dict[str, str]]:
    """The labels that a code list gives the codes of one of its columns; refused with their line."""
    found = {}
    for language, labels in named.items():
        lines, here = dict[str, int](), dict[str, str]()
        for line, code, label in zip(codes.lines, codes.column(column), codes.column(labels), strict=True):
            if code and here.setdefault(code, label) != label:
                raise InvalidDomain(
                    f"'{codes.file.name}' calls '{code}' both '{here[code]}' and '{label}'",
                    why="a level has one label in a language",
                    instead=f"write the same label in every row of '{code}'",
                    where=Place(str(codes.file), line),
                )
            lines.setdefault(code, line)
        check_labels(name, [*here], here, where=lambda level, at=lines: Place(str(codes.file), at[level]))  # type: ignore[misc]
        found[language] = here
    return found


def _by_language(
    labels: Stated | None,
    others: Mapping[str, Stated],
    own: str,
    key: KeyPath,
    document: Document,
    *inside: str,
) -> dict[str, tuple[Stated, KeyPath]]:
    """What the keys say in each language, and where."""
    found: dict[str, tuple[Stated, KeyPath]] = {}
    if labels is not None:
        found[OWN] = labels, (*key, "labels", *inside)
    for language, each in others.items():
        place = (*key, "labels_in", language, *inside)
        if language == own and OWN in found:
            raise InvalidValue(
                f"labels in the program's language, '{own}', are stated twice",
                why="a level has one label in a language",
                instead="keep labels, or labels_in",
                where=document.place(place),
            )
        found[OWN if language == own else language] = each, place
    return found


def _in_order(name: str, levels: object, labels: Stated, missing: str | None) -> dict[str, str]:
    """Labels by level; a list of them is as long as the levels, or leaves the missing one out."""
    if isinstance(labels, Mapping):
        return dict(labels)
    assert isinstance(levels, tuple | GridLevels)
    sizes = {len(levels), len(levels) - (missing is not None)}
    if len(labels) not in sizes:
        listed = "1 label is" if len(labels) == 1 else f"{len(labels)} labels are"
        raise InvalidDomain(
            f"{listed} listed for the {max(sizes)} levels of '{name}'",
            why="in a list each label belongs to the level at its place",
            instead=f'give each level a label, in their order, or write {{ {toml_key(str(levels[0]))} = "label", … }}',
        )
    return dict(zip(levels, labels, strict=False))


def _check_once(name: str, known: Mapping[str, str], labels: Mapping[str, str]) -> None:
    twice = next((level for level in labels if level in known), None)
    if twice is not None:
        raise InvalidDomain(
            f"'{twice}' of '{name}' has a label here and in its code list",
            why="a level has one label in a language",
            instead="keep one of the two",
        )


def _own_first(found: Mapping[str, dict[str, str]]) -> Labels:
    return {language: found[language] for language in sorted(found)}
