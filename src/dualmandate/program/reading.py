"""From the text of a program file to its keys: every key checked, and the first thing that is wrong said.

A refusal names the key, its line, the rule and what to write instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from dualmandate.errors import (
    InvalidProgram,
    InvalidValue,
    InvalidWorkload,
    MissingKey,
    Place,
    UnknownKey,
    did_you_mean,
)
from dualmandate.population.arguments import named_twice
from dualmandate.program.every import with_every_table
from dualmandate.program.file import Document, KeyPath, dotted
from dualmandate.program.number import EITHER
from dualmandate.program.schema import ProgramKeys

Model = TypeVar("Model", bound=BaseModel)
# What pydantic found wrong, and the rule in our words.
_EXPECTED = {
    "bool_type": ("true or false is meant here", "write true or false, without quotes"),
    "dict_type": ("a table is meant here", "write { key = value, … }, or a [table] of its own"),
    "model_type": ("a table is meant here", "write { key = value, … }, or a [table] of its own"),
    "model_attributes_type": ("a table is meant here", "write { key = value, … }, or a [table] of its own"),
    "tuple_type": ("a list is meant here", "write [ … ]; a table that may repeat is written [[…]]"),
    "string_type": ("a text is meant here", 'write it in "quotes"'),
}
LOSSES = frozenset({"epsilon", "eps", "rho", "delta", "privacy_loss", "privacy_budget", "budget"})
MOST_TOLD = 3  # So many things that wait behind the first one are told.


def read_keys(document: Document) -> tuple[Document, ProgramKeys]:
    """The keys of a program file, each of the kind that is meant and each name used once; tables written out."""
    document, file = with_every_table(document, validated(document, ProgramKeys, "program"))
    if not file.workload:
        raise InvalidWorkload(
            "the workload is empty",
            why="a program that asks nothing publishes nothing",
            instead="write at least one [[workload]] table",
            where=document.place(("workload",)),
        )
    check_unique([table.name for table in file.workload], "tables", document, ("workload",))
    check_unique([ratio.name for ratio in file.ratios], "ratios", document, ("ratios",))
    check_unique([group.name for group in file.preferences.groups], "groups", document, ("preferences", "groups"))
    check_unique([invariant.name for invariant in file.invariants], "invariants", document, ("invariants",))
    _check_measured(file, document)
    _check_shares(file, document)
    return document, file


def validated(document: Document, root: type[Model], kind: str) -> Model:
    """What a file of some kind (`program`, `survey`, `tables`) says, read by its model; refused with its place."""
    try:
        return root.model_validate(document.content)
    except ValidationError as error:
        raise _first_refusal(error, document, _Reader(root, kind)) from None


def check_unique(names: Sequence[str], what: str, document: Document, key: KeyPath) -> None:
    """Refuse two things of one name among those listed at a key."""
    seen = set[str]()
    for position, name in enumerate(names):
        if name not in seen:
            seen.add(name)
        else:
            raise InvalidValue(
                f"two {what} are called '{name}'",
                why=f"{what} are known by their names",
                instead="give each its own name",
                where=document.place((*key, position, "name")),
            )


def _check_measured(file: ProgramKeys, document: Document) -> None:
    """Groups of tables measured apart must name every table exactly once."""
    if isinstance(file.mechanism.measured, str):
        return
    tables = [table.name for table in file.workload]
    named = [name for group in file.mechanism.measured for name in group]
    unknown = next((name for name in named if name not in tables), None)
    twice = named_twice(named)
    absent = next((name for name in tables if name not in named), None)
    if unknown is not None:
        what, instead = f"there is no table '{unknown}' to measure", did_you_mean(unknown, tables, "")
    elif twice is not None:
        what, instead = f"the table '{twice}' is measured twice", ""
    elif absent is not None:
        what, instead = f"the table '{absent}' is in no group of measured tables", ""
    else:
        return
    raise InvalidValue(
        what,
        why="each table is measured in exactly one group",
        instead=instead or f"name each of these once: {', '.join(tables)}",
        where=document.place(("mechanism", "measured")),
    )


def _check_shares(file: ProgramKeys, document: Document) -> None:
    """Stated shares are those of all tables, of the whole loss, and of tables that are not all measured together."""
    shares = file.shares
    if not shares:
        return
    first = next(position for position, table in enumerate(file.workload) if table.share is not None)
    absent = next((table.name for table in file.workload if table.share is None), None)
    if absent is not None:
        what, instead = f"the table '{absent}' has no share of the loss", "state a share for every table, or for none"
    elif sum(shares.values()) != 1:
        what, instead = f"the shares of the tables add up to {sum(shares.values())}", "let them add up to exactly 1"
    elif file.mechanism.measured == "together" and len(shares) > 1:
        what = "tables that are measured together share nothing out"
        instead = 'state measured = "apart" under [mechanism], or leave the shares away'
    else:
        return
    raise InvalidValue(
        what,
        why="shares say how one loss is divided between tables that are measured apart",
        instead=instead,
        where=document.place(("workload", first, "share")),
    )


def _first_refusal(error: ValidationError, document: Document, reader: _Reader) -> InvalidProgram:
    """The first thing wrong with a file, and what to mend after it.

    Unknown keys come first: a misspelled key is also a missing one, and the spelling is what to mend.
    """
    found = [_refusal(detail, document, reader) for detail in error.errors(include_url=False, include_input=False)]
    found.sort(key=lambda refusal: (not isinstance(refusal, UnknownKey), refusal.where.line if refusal.where else 0))
    first = found[0]
    others = [each for each in found[1:] if not _is_misspelled(first, each)]
    if others:
        told = "; ".join(f"{_in_file(each)}: {each.what}" for each in others[:MOST_TOLD])
        more = f"; and {len(others) - MOST_TOLD} more" if len(others) > MOST_TOLD else ""
        first.instead = f"{first.instead}{'' if first.instead.endswith('?') else '.'} Then mend {told}{more}"
    return first


def _in_file(refusal: InvalidProgram) -> Place:
    """Where a refusal points in the file that was named already."""
    return Place(None, refusal.where.line, refusal.where.key) if refusal.where is not None else Place()


def _is_misspelled(unknown: InvalidProgram, missing: InvalidProgram) -> bool:
    """Whether a key is missing because it was written as one that is unknown."""
    if not (isinstance(unknown, UnknownKey) and isinstance(missing, MissingKey) and missing.where is not None):
        return False
    return f"'{str(missing.where.key).rpartition('.')[2]}'" in unknown.instead


@dataclass(frozen=True)
class _Reader:
    """The model of a whole file, and what such a file is called: `program`, `survey`, `tables`."""

    root: type[BaseModel]
    kind: str


def _refusal(detail: Any, document: Document, reader: _Reader) -> InvalidProgram:
    key = _as_written(tuple(detail["loc"]), document)
    kind = detail["type"]
    context = detail.get("ctx", {})
    if kind in ("refused", "lacking"):
        key = (*key, *context["key"])
    of_key = key[-1] == "[key]"  # what is wrong is a key that the file chose, and not its value
    key = key[:-1] if of_key else key
    place = document.place(key)
    name = dotted(key[-1:]) if isinstance(key[-1], str) else dotted(key[-2:])
    if kind == "extra_forbidden":
        known = _keys_of(key[:-1], reader)
        if key[-1] in LOSSES and reader.kind == "program":
            return UnknownKey(
                f"the key '{name}' is unknown",
                why="nobody types a privacy loss: the plan derives it from what privacy and accuracy are worth",
                instead="leave it out; a cap on it is largest_epsilon or largest_rho, under [limits]",
                where=place,
            )
        return UnknownKey(
            f"the key '{name}' is unknown",
            why=f"{_table(key[:-1], reader)} has only the keys {', '.join(sorted(known))}",
            instead=did_you_mean(str(key[-1]), known, "leave it out; remarks stand behind a #", cutoff=0.5),
            where=place,
        )
    if kind == "missing":
        why, instead = _reason(key, reader), _statement(key, document)
    elif kind in ("refused", "lacking"):
        why, instead = context["why"], context["instead"]
    elif kind == "literal_error":
        why, instead = f"it is one of {context['expected']}", _nearest(document.value(key), context["expected"])
    else:
        why, instead = _EXPECTED.get(
            kind, ("it cannot be read as what is meant here", f"see `dualmandate schema {reader.kind}`")
        )
    if kind in ("missing", "lacking"):
        return MissingKey(f"{_table(key[:-1], reader)} does not state '{name}'", why=why, instead=instead, where=place)
    what = f"the key {name}" if of_key else f"{name}{_shown(document.value(key))}"
    return InvalidValue(f"{what} cannot be used", why=why, instead=instead, where=place)


def _as_written(key: KeyPath, document: Document) -> KeyPath:
    """The key path without `levels` where an attribute is a bare list of them, or `path` where a source is a text."""
    if key[:2] == ("population", "source") and isinstance(document.value(key[:2]), str):
        return key[:2]
    key = tuple(each for each in key if each not in EITHER)
    bare = key[:2] == ("population", "attributes") and isinstance(document.value(key[:3]), list)
    return (*key[:3], *key[4:]) if bare else key


def _table(key: KeyPath, reader: _Reader) -> str:
    return f"'{dotted(key)}'" if key else f"the {reader.kind} file"


def _statement(key: KeyPath, document: Document) -> str:
    """What to write where a key is missing."""
    name = dotted(key[-1:])
    if len(key) == 1:
        meant = {
            "workload": "write at least one [[workload]] table",
            "mechanism": 'write a table [mechanism], with noise = "best" where you have no other in mind',
        }
        return meant.get(name, f"write a table [{name}]")
    if name == "source":
        return 'write source = "…": a publication, a survey, or who decided it'
    return f"write {name} = {_expected_unit(key, document) if name == 'unit' else '…'}"


def _expected_unit(key: KeyPath, document: Document) -> str:
    """The unit of a number that lacks one, where the program says in what it is counted."""
    unit = document.value(("population", "unit"))
    money = document.value(("program", "currency")) or "USD"
    counted = document.value((*key[:-2], "unit")) if "workload" in key else None
    counts = counted or unit
    squared = "" if document.value((*key[:-2], "loss")) == "absolute" else "^2"
    if not isinstance(unit, str) or not isinstance(counts, str) or not unit.isalpha() or not counts.isalpha():
        return "…"
    units = {
        "population_size": unit,
        "mean_disclosure_cost": f"{money} per {unit} per epsilon",
        "value_of_accuracy": f"{money} per {counts}{squared}",
    }
    return f'"{units[str(key[-2])]}"' if key[-2] in units else "…"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f' = "{value}"' if len(value) <= 60 else f' = "{value[:60]}…"'
    if isinstance(value, bool):
        return f" = {'true' if value else 'false'}"
    if isinstance(value, Decimal) or (isinstance(value, int) and value.bit_length() < 200):
        return f" = {value}"
    return ""


def _nearest(value: object, expected: str) -> str:
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    near = difflib.get_close_matches(value, words, n=1) if isinstance(value, str) else []
    return f'did you mean "{near[0]}"?' if near else f'write one of them, as "{words[0]}"'


def _reason(key: KeyPath, reader: _Reader) -> str:
    """Why a key must be stated: the words its field carries in the schema."""
    model = _model_at(key[:-1], reader)
    for name, field in model.model_fields.items() if model else ():
        if key[-1] in (name, field.alias):
            text = (field.description or "").removesuffix(".")
            return text[:1].lower() + text[1:]
    raise AssertionError(f"no field for {key}")


def _keys_of(table: KeyPath, reader: _Reader) -> list[str]:
    model = _model_at(table, reader)
    assert model is not None  # only models refuse extra keys
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_at(table: KeyPath, reader: _Reader) -> type[BaseModel] | None:
    """The model that reads the table at a key path: fields by name, positions and free names passed over."""
    model: type[BaseModel] | None = reader.root
    for part in table:
        field = model.model_fields.get(part) if model and isinstance(part, str) else None
        if field is not None:
            model = _model_in(field.annotation) or model
    return model


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part)) is not None), None)
