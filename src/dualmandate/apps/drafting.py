"""`dualmandate init NAME --from FILE`: a program drafted from the curator's own data, on their side of the wall.

Whatever it takes from the records is marked in the program, under seen_in_the_data; what it cannot know it asks for at
a terminal, and assumes where nobody answers. Its output is internal: it depends on the records.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.apps.folder import check_writable, write_files, written_whole
from dualmandate.apps.init import PROGRAM_SCHEMA, ProgramFolder, check_free, ignoring, project_files, schema_files
from dualmandate.apps.output import Output, Progress, write
from dualmandate.apps.plan import PROGRAM_FILE
from dualmandate.errors import InvalidRequest, Place, Refusal, did_you_mean
from dualmandate.population.units import plural
from dualmandate.program.file import dotted, toml_key, toml_text

if TYPE_CHECKING:
    from dualmandate.publication import Source
    from dualmandate.publication.drafting import ColumnDraft, SourceDraft

NOTES = "seen-in-the-data.txt"
INTERNAL = "INTERNAL: this says something of the records. It stays with the curator: no log, no mail, no copy."
MOST_INLINE = 50  # So many levels stand in the program; more in a code list beside it.
LARGEST_DOMAIN = 10**7  # cells, held one by one where a release measures them; columns beyond are left out
LARGEST_TABLE, LARGEST_CROSSED, FIRST_TABLES = 200, 2_000, 3
ASSUMED = "assumed: replace by"
NO_ROOM = "no room beside the others"
FINE = "many codes with few records each, which noise would hide, or which name units"
LEFT_OUT = "dropping_is_public = true  # of records without an identifier: whether one has it is not protected"
HEAD = (
    "# The head of its dossier, where you state them; the date in quotes, as 2026-11-19:",
    *(f'# {key:<7} = "…"' for key in ("title", "agency", "author", "version", "date")),
)
MOST_TOLD = 5  # So many columns without room are told one by one.


@dataclass(frozen=True)
class DraftAnswers:
    """What a curator says of a file that it does not say itself, by the keys of a program file."""

    unit: str | None = None
    account: str | None = None
    identifier: str | None = None  # "none" where no column names the unit
    by: tuple[str, ...] = ()  # a table each, its attributes separated by commas


@dataclass(frozen=True)
class SourceFlags:
    """Where the records lie: a file, or a table of the database at a URL or in a variable that holds one."""

    place: str
    table: str | None = None


@dataclass(frozen=True)
class DraftedProgram:
    """A program that was just drafted, and what was seen. Internal."""

    folder: ProgramFolder
    marked: tuple[str, ...]
    columns: Mapping[str, str] = field(repr=False)  # what became of each
    left_out: Mapping[str, str] = field(repr=False)
    unreadable: bool = field(repr=False)  # whether there are values that cannot be read

    def words(self) -> str:
        seen = "1 key was" if len(self.marked) == 1 else f"{len(self.marked)} keys were"
        lines = [INTERNAL, "", f"drafted '{self.folder.name}': {seen} seen in the data"]
        lines += [f"  {told}" for told in self._columns()]
        if self.unreadable:
            lines.append("! Some values cannot be read, and count as missing: save the file as UTF-8 and draft again.")
        lines += [
            f"{NOTES} tells more, and git ignores it. Before anybody approves a plan, replace each key that is listed",
            "in seen_in_the_data by a public source, and take it off that list; replace each assumed number, too.",
            "",
        ]
        return "\n".join([*lines, self.folder.words()])

    def _columns(self) -> list[str]:
        """What became of each column; of many that have no room, how many they are."""
        crowded = [name for name, what in self.columns.items() if NO_ROOM in what]
        if len(crowded) <= MOST_TOLD:
            return [f"{name}: {what}" for name, what in self.columns.items()]
        lines = [f"{name}: {what}" for name, what in self.columns.items() if name not in crowded[1:]]
        return [*lines, f"and {len(crowded) - 1} more columns, left out for want of room as {crowded[0]} is"]

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.commands import DraftDocument

        folder, names = self.folder, list(self.left_out)
        said = DraftDocument.made_of(
            folder,
            directory=str(folder.directory),
            project=str(folder.project),
            seen_in_the_data=self.marked,
            left_out=names,
        )
        return said.as_json()


def draft(
    name: str, directory: Path, flags: SourceFlags, *, answers: DraftAnswers, asking: bool, output: Output
) -> DraftedProgram:
    """Look at a source, ask, and write a program folder; nothing that stands there is overwritten."""
    check_writable(directory)
    check_free(directory, (PROGRAM_FILE, NOTES, PROGRAM_SCHEMA))
    with output.progress("looking at the records") as stage:
        from dualmandate.publication.drafting import draft_for_curator, look

        source, stated = _source(flags, directory)

        def read(share: float) -> None:
            stage.count("percent of two readings", round(100 * share), 100)

        seen = draft_for_curator(look(source, progress=read))
    if directory.name in {each.name for each in seen.columns} and directory != Path(name) and not directory.exists():
        raise InvalidRequest(
            f"'{directory}' would be the folder, and is a column of the records",
            why="the second word is the folder to write",
            instead=f"a table by several columns is written with commas: --by …,{shlex.quote(directory.name)}",
        )
    writing = _Draft(Path(name).name, seen, stated, _ask if asking else _assume)
    text, lists = writing.program(answers)
    project, files = project_files(directory)
    files |= {PROGRAM_FILE: text, NOTES: f"{INTERNAL}\n\n{seen.words()}\n"} | lists | schema_files({PROGRAM_FILE: text})
    check_free(directory, files)
    ignored = [NOTES, *([os.path.relpath(flags.place, directory)] if _inside(flags, directory) else [])]
    with written_whole(directory, private=True) as folder, output.progress("reading the program") as stage:
        write_files(files, folder)
        _check(folder, stage)
        write_files({".gitignore": ignoring(directory, ignored)}, folder)
    written = ProgramFolder(name, directory, tuple(sorted((*files, ".gitignore"))), project)
    columns = {_comment(each.name): writing.left_out.get(each.name, each.what()) for each in seen.columns}
    return DraftedProgram(written, tuple(writing.marked), columns, writing.left_out, bool(seen.unreadable))


def _check(folder: Path, progress: Progress) -> None:
    """Refuse a program that could not be planned: an answer is to blame, as what was seen always can."""
    from dualmandate.planning.program import load

    progress("reading the program")
    try:
        load(folder / PROGRAM_FILE)
    except Refusal as refusal:
        refused = refusal
    else:
        return
    refused.where = Place(file=f"the draft of {PROGRAM_FILE}", key=refused.where.key if refused.where else None)
    raise refused


def _inside(flags: SourceFlags, directory: Path) -> bool:
    return flags.table is None and Path(flags.place).absolute().is_relative_to(directory.absolute())


def _source(flags: SourceFlags, directory: Path) -> tuple[Source, str]:
    """The source as it is read here, and as a program file states it."""
    from dualmandate.publication.drafting import file_to_draft
    from dualmandate.publication.sources import CsvFile, DatabaseTable

    if flags.table is not None:
        if Path(flags.place).is_file():
            raise InvalidRequest(
                f"a table '{flags.table}' of the file '{Path(flags.place).name}'",
                why="--table names a table of a database",
                instead=f"leave --table out; the URL of a file of SQLite is sqlite:///{flags.place}",
            )
        if "://" not in flags.place:
            stated = f"{{ url_variable = {toml_text(flags.place)}, table = {toml_text(flags.table)} }}"
            return DatabaseTable(flags.table, url_variable=flags.place), stated
        if re.search(r"://[^/]*[@:][^/]*|://[^/]+|[?&](?:user|password|host)", flags.place, re.IGNORECASE):
            raise InvalidRequest(
                "the URL of a database with a user, a password or a host",
                why="the program names its source, and everything in a program file is public",
                instead="put the URL into an environment variable and name that: --from VARIABLE --table NAME",
            )
        stated = f"{{ url = {toml_text(flags.place)}, table = {toml_text(flags.table)} }}"
        return DatabaseTable(flags.table, url=flags.place), stated
    if "://" in flags.place:
        raise InvalidRequest(
            "a database without a table",
            why="a database has many tables",
            instead="name one: --table NAME, or --table SCHEMA.NAME",
        )
    path = Path(flags.place)
    source = file_to_draft(path)
    found = toml_text(os.path.relpath(path.absolute(), directory.absolute()))
    if isinstance(source, CsvFile) and source.delimiter != ",":
        return source, f"{{ path = {found}, delimiter = {toml_text(source.delimiter)} }}"
    return source, found


Ask = Callable[[str, str], str]


def _assume(_: str, default: str) -> str:
    return default


def _ask(question: str, default: str) -> str:
    """What is typed at the terminal; the default where the line is empty. Who ends the input ends the command."""
    write(f"{question} [{default}] ", sys.stderr)
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line.strip() or default


def named(name: str | None, directory: Path | None) -> tuple[str, Path]:
    """What the program is called, and the folder to write."""
    if name is None or not Path(name).name.strip("."):
        raise InvalidRequest(
            "the program to draft has no name",
            why="a plan and its dossier are filed under the program's name",
            instead="name it: dualmandate init NAME --from FILE",
        )
    return name, Path(name) if directory is None else directory


def at_a_terminal(output: Output) -> bool:
    """Whether somebody is there to be asked."""
    return not output.json and sys.stdin.isatty() and sys.stderr.isatty()


class _Draft:
    """A program as it is being written: what was seen, what is asked, and the marks."""

    def __init__(self, name: str, seen: SourceDraft, source: str, ask: Ask) -> None:
        self.name, self.seen, self.source, self.ask = name, seen, source, ask
        self.marked: list[str] = []
        self.left_out = {each.name: each.why_not for each in seen.columns if each.form is None}

    def program(self, answers: DraftAnswers) -> tuple[str, dict[str, str]]:
        """The text of the program, and its code lists by file name."""
        proposed = [each for each in self.seen.columns if each.form is not None]
        self._check_answers(answers, proposed)
        unit = answers.unit or self.ask("Who is protected: person, household, establishment, …?", "person")
        account = answers.account or self.ask("Whose privacy is spent: the name of their account?", plural(unit))
        identifier = self._identifier(answers, unit)
        proposed = [each for each in proposed if each.name != identifier]
        neighbors = self._chosen("Neighbors: add-or-remove, or replace-one?", ("add-or-remove", "replace-one"))
        size = self._number(f"How many of the unit '{unit}' are there, publicly?", "1000000", "official estimate")
        if neighbors == "replace-one":  # how many records there are is public, so none may be left out for its values
            proposed = [_keeping_all(each) for each in proposed]
        self.groupings = {each.name: _groupings(each, self.seen.columns) for each in proposed}
        tables = self._tables(answers, proposed)
        kept = self._kept(proposed, tables)
        cost = self._number(f"What does an epsilon cost one {unit}, in USD a year?", "2.5", "survey or damage data")
        worth = self._number(
            "What is a squared error of 1 in one number worth, in USD a year?", "50000", "what a squared error costs"
        )
        attributes, hierarchies, lists = self._attributes(kept)
        most = self._most_records(identifier)
        lines = [
            f"#:schema ./{PROGRAM_SCHEMA}",
            "# Drafted from the records by `dualmandate init`. INTERNAL until nothing in it is marked: keys listed in",
            "# seen_in_the_data are seen in the data: replace by a public source before you approve, and unlist them.",
            '# Numbers of kind = "assumed" come from nowhere: replace them too.',
            "",
            "[program]",
            "schema = 1",
            f"name   = {toml_text(self.name)}",
            *HEAD,
            "",
            "[population]",
            f"account         = {toml_text(account)}",
            f"unit            = {toml_text(unit)}",
            f"neighbors       = {toml_text(neighbors)}",
            f"population_size = {{ {_number(size, unit)} }}",
            *most,
            *([LEFT_OUT] if neighbors == "replace-one" and identifier is not None else []),
            f"source          = {self.source}",
            "seen_in_the_data = [",
            *(f"  {toml_text(key)}," for key in self.marked),
            "]",
            "",
            "[population.attributes]",
            *(f"# {_comment(name)}: {why}" for name, why in self.left_out.items()),
            *attributes,
            *hierarchies,
        ]
        for names in tables:
            words = f"{plural(unit)} by {self._headings(names)}" if names else plural(unit)
            lines += [
                "",
                "[[workload]]",
                f"name              = {toml_text(words)}",
                f"by                = [{', '.join(map(toml_text, names))}]",
                f"value_of_accuracy = {{ {_number(worth, f'USD per {unit}^2', yearly=True)} }}",
            ]
        lines += self._sums(kept, tables, worth)
        lines += [
            "",
            "[mechanism]",
            'noise = "best"',
            "",
            "[preferences]",
            'information_utility  = "linear"',
            f"mean_disclosure_cost = {{ {_number(cost, f'USD per {unit} per epsilon', yearly=True)} }}",
            "relative_privacy_weight = 1",
            "",
            "[limits]",
            "largest_epsilon = 10",
            "",
        ]
        return "\n".join(lines), lists

    def _sums(
        self, kept: Sequence[ColumnDraft], tables: Sequence[tuple[str, ...]], worth: tuple[str, str]
    ) -> list[str]:
        """A table that adds an amount up, in comments: nobody asked for it, and its unit is not known."""
        amounts = [each for each in kept if each.form == "numbers"]
        if not amounts:
            return []
        amount, names = amounts[0], tables[0]
        # An error as large as the largest amount is worth what an error of one unit is.
        value = Decimal(worth[0]) / Decimal(float(max(abs(amount.lower), abs(amount.upper)))) ** 2
        unit = "amount"
        words = " by ".join([f"sum of {amount.name.strip()}", *([self._headings(names)] * bool(names))])
        stated = _number((f"{value:.2g}", f"{ASSUMED} what a squared error costs"), f"USD per {unit}^2", yearly=True)
        lines = [
            "[[workload]]",
            f"name              = {toml_text(words)}",
            f"by                = [{', '.join(map(toml_text, names))}]",
            f"sum_of            = {toml_text(amount.name)}",
            f"unit              = {toml_text(unit)}",
            f"value_of_accuracy = {{ {stated} }}",
        ]
        return [
            "",
            "# To add an amount up, take these signs off, and write its unit in place of both:",
            *map("# ".__add__, lines),
        ]

    def _check_answers(self, answers: DraftAnswers, proposed: Sequence[ColumnDraft]) -> None:
        if not proposed:
            raise InvalidRequest(
                f"no column of '{self.seen.source}' can be an attribute",
                why="; ".join(f"{name}: {why}" for name, why in self.left_out.items()) or "it has no columns",
                instead="begin with `dualmandate init blank`, and state attributes by hand",
            )
        names = [each.name for each in self.seen.columns]
        if answers.identifier not in (None, "none", *names):
            raise InvalidRequest(
                f"there is no column '{answers.identifier}' to name the unit",
                why=f"the columns are {', '.join(names)}",
                instead=did_you_mean(str(answers.identifier), names, 'name one of them, or "none"'),
            )

    def _identifier(self, answers: DraftAnswers, unit: str) -> str | None:
        """The column that names the unit, where one does."""
        if answers.identifier is not None:
            return None if answers.identifier == "none" else answers.identifier
        likely = [each.name for each in self.seen.columns if each.identifies]
        names = ("none", *(each.name for each in self.seen.columns))
        default = likely[0] if likely else "none"
        found = self._chosen(f"Which column names the {unit}, or none?", names, default=default)
        return None if found == "none" else found

    def _most_records(self, identifier: str | None) -> list[str]:
        if identifier is None:
            vouched = 'one_record_per_unit = { source = "…" }'
            return [f'# no column names the unit, so a record is protected: state identifier = "…", or {vouched}']
        most = next(each.records_of_one for each in self.seen.columns if each.name == identifier)
        lines = [f"identifier      = {toml_text(identifier)}"]
        if most > 1:
            self.marked.append("most_records_per_unit")
            lines.append(f"most_records_per_unit = {most}")
        return lines

    def _chosen(self, question: str, names: Sequence[str], *, default: str | None = None) -> str:
        """One of some names, asked for until it is one."""
        while (said := self.ask(question, default or names[0])) not in names:
            write(f"one of: {', '.join(names)}\n", sys.stderr)
        return said

    def _number(self, question: str, default: str, public: str) -> tuple[str, str]:
        """A number above 0 as TOML writes it, and its source."""
        while True:
            said = self.ask(question, default).replace(",", "").replace("_", "")
            try:
                number = Decimal(said)
            except InvalidOperation:
                number = Decimal(0)
            if number.is_finite() and number > 0:
                break
            write("a number above 0\n", sys.stderr)
        source = f"{ASSUMED} {public}"
        return f"{number:f}", source if said == default else self.ask("Where is that known from?", source)

    def _tables(self, answers: DraftAnswers, proposed: Sequence[ColumnDraft]) -> list[tuple[str, ...]]:
        """The attributes or groupings of each table."""
        sizes = {name: size for each in proposed for name, size in self.groupings[each.name].items()}
        if answers.by:
            there = self._sized(sizes)
            tables = [_names(text, there) for text in answers.by]
            unknown = next((name for names in tables for name in names if name not in there), None)
            if unknown is not None:
                why = self.left_out.get(unknown, f"the draft has {', '.join(there)}")
                others = f"name others, as {shlex.join(['--by', ','.join(there[:2])])}" if there else "leave --by out"
                instead = did_you_mean(unknown, there, others)
                raise InvalidRequest(f"nothing to tabulate by is called '{unknown}'", why=why, instead=instead)
            return list(dict.fromkeys(self._meant(names) for names in tables))
        fine = {name for each in proposed if each.fine for name in self.groupings[each.name]}
        usual = [name for name in sizes if sizes[name] <= LARGEST_TABLE and name not in fine and self._preferred(name)]
        first = usual[:FIRST_TABLES]
        tables = [(name,) for name in first] or [()]
        if len(first) > 1 and sizes[first[0]] * sizes[first[1]] <= LARGEST_CROSSED:
            tables.append((first[0], first[1]))
        default = "; ".join(", ".join(names) for names in tables)
        known = self._sized(sizes)
        while True:
            said = self.ask(f"Tables by {', '.join(known)}; as region, age; sex?", default)
            asked = [_names(text, known) for text in said.split(";")]
            unknown = next((name for names in asked for name in names if name not in known), None)
            if unknown is None or said == default:
                return tables if said == default else list(dict.fromkeys(self._meant(names) for names in asked))
            write(f"there is no '{unknown}'\n", sys.stderr)

    def _sized(self, sizes: Mapping[str, int]) -> list[str]:
        return [*dict.fromkeys([*self.groupings, *sizes])]

    def _meant(self, names: Sequence[str]) -> tuple[str, ...]:
        """Groupings in place of attributes whose levels are written in several ways, or are days."""
        return tuple(next(iter(self.groupings.get(name, {name: 0})), name) for name in names)

    def _preferred(self, name: str) -> bool:
        """Whether a grouping is the first of its attribute."""
        return any(name == next(iter(found), None) for found in self.groupings.values())

    def _headings(self, names: Sequence[str]) -> str:
        """What a table by these is called: of a grouping the attribute, where only spellings differ."""
        spelled = [each.name for each in self.seen.columns if each.spellings]
        columns = (next((each for each in spelled if name in self.groupings.get(each, ())), name) for name in names)
        return " and ".join(each.strip() for each in columns)  # a file may have blanks around a name

    def _kept(self, proposed: Sequence[ColumnDraft], tables: Sequence[tuple[str, ...]]) -> list[ColumnDraft]:
        """The columns that the domain has room for: first those of the tables, then an amount."""
        asked = {name for names in tables for name in names}
        unasked = {each.name for each in proposed if not asked & {each.name, *self.groupings[each.name]}}
        kept, size = set(), 1
        amount = next((each.name for each in proposed if each.form == "numbers"), None)  # which a table can add up
        order = sorted(proposed, key=lambda each: (each.name in unasked, each.name != amount, each.size))
        for each in order:
            by = f"; to have it, name a table by it: {shlex.join(['--by', each.name])}"
            if each.fine and each.name in unasked:
                names = f"; if it names the unit: {shlex.join(['--identifier', each.name])}"
                self.left_out[each.name] = f"left out: {FINE}{by}{names}"
            elif size * each.size <= LARGEST_DOMAIN:
                size *= each.size
                kept.add(each.name)
            else:
                self.left_out[each.name] = f"left out: {NO_ROOM}{'' if each.form == 'numbers' else by}"
        return [each for each in proposed if each.name in kept]

    def _attributes(self, kept: Sequence[ColumnDraft]) -> tuple[list[str], list[str], dict[str, str]]:
        """The lines of attributes and of hierarchies, and the code lists."""
        lines, below, lists = [], [], {}
        for number, each in enumerate(kept):
            self.marked.append(dotted(("attributes", each.name)))
            file = f"codes-{number + 1}-{re.sub('[^a-z0-9]+', '-', each.name.casefold()).strip('-') or 'column'}.csv"
            described, codes = _described(each, file)
            if codes is not None:
                lists[file] = codes
            lines.append(f"{toml_key(each.name)} = {described}")
            below += self._hierarchy(each)
        return lines, below, lists

    def _hierarchy(self, column: ColumnDraft) -> list[str]:
        found = [name for name in self.groupings[column.name] if name != column.name]
        if not found:
            return []
        head = f"{column.name} in time" if column.form == "days" else found[0]
        self.marked.append(dotted(("hierarchies", head)))
        lines = ["", f"[population.hierarchies.{toml_key(head)}]", f"attribute = {toml_text(column.name)}"]
        if column.form == "days":
            lengths = ", ".join(f"{toml_text(name)} = {length}" for name, length in zip(found, (4, 7), strict=True))
            return [*lines, f"prefixes  = {{ {lengths} }}"]
        lines += [
            "# likely the same level, written in several ways",
            "[population.hierarchies." + toml_key(head) + ".groups]",
        ]
        groups = dict(column.spellings)
        if column.missing is not None:
            groups[column.missing] = (column.missing,)
        return [
            *lines,
            *(f"{toml_text(name)} = [{', '.join(map(toml_text, alike))}]" for name, alike in groups.items()),
        ]


def _number(stated: tuple[str, str], unit: str, *, yearly: bool = False) -> str:
    """A number with its unit and source, as a program file states it; one that nobody gave says so."""
    value, source = stated
    parts = [f"value = {value}", f"unit = {toml_text(unit)}", f"source = {toml_text(source)}"]
    parts += ['kind = "assumed"'] * source.startswith(ASSUMED) + ['time_base = "per year"'] * yearly
    return ", ".join(parts)


def _keeping_all(column: ColumnDraft) -> ColumnDraft:
    """The same attribute with a level for whatever has none of its own."""
    missing = column.missing or next(name for name in ("not stated", "(not stated)") if name not in column.levels)
    return replace(column, missing=missing, unlisted=True)


def _names(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """What is listed between commas, as the file spells it: blanks around a name may be left out."""
    spelled = {name.strip(): name for name in known}
    said = [name.strip() for name in text.split(",") if name.strip()]
    return (spelled[text.strip()],) if text.strip() in spelled else tuple(spelled.get(name, name) for name in said)


def _comment(name: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in name)


def _groupings(column: ColumnDraft, columns: Sequence[ColumnDraft]) -> dict[str, int]:
    """What tables may be broken down by, for one attribute, and how many numbers that makes."""
    taken = {each.name for each in columns}

    def free(name: str) -> str:
        while name in taken:
            name += "'"
        return name

    told = column.name.strip()
    if column.form == "days":
        years = int(column.levels[-1][:4]) - int(column.levels[0][:4]) + 1
        extra = column.missing is not None
        return {free(f"year of {told}"): years + extra, free(f"month of {told}"): 12 * years + extra}
    if column.spellings:
        return {free(f"{told}, spelled once"): len(column.spellings) + (column.missing is not None)}
    if column.form == "numbers":
        return {}
    return {column.name: column.size}


def _described(column: ColumnDraft, file: str) -> tuple[str, str | None]:
    """An attribute as a program file states it, and its code list where that is a file of its own."""
    rules, codes = [], None
    if column.missing is not None:
        rules.append(f"missing = {toml_text(column.missing)}")
    if column.form in ("levels", "days"):
        if column.unlisted and column.missing is not None:
            rules.append('outside = "missing"')
        if len(column.levels) > MOST_INLINE:
            made = [f"codes = {toml_text(file)}"]
            lines = zip(column.levels, column.labels, strict=True) if column.labels else zip(column.levels)
            head = "code,label" if column.labels else "code"
            codes = "".join(f"{line}\n" for line in (head, *(",".join(map(_csv, each)) for each in lines)))
        else:
            made = [f"levels = [{', '.join(map(toml_text, column.levels))}]"]
            if column.labels:
                made.append(f"labels = [{', '.join(map(toml_text, column.labels))}]")
    elif column.form == "bins":
        made = [f"edges = [{', '.join(map(str, column.edges))}]"]
        rules.append(f"outside = {toml_text('missing' if column.beyond_is_missing else 'clamp')}")
    else:
        numbers = (("lower", column.lower), ("upper", column.upper), ("grid", column.grid))
        made = [f"{key} = {_decimal(float(number))}" for key, number in numbers]
    return f"{{ {', '.join([*made, *rules])} }}", codes


def _decimal(number: float) -> str:
    return (
        f"{number:.0f}" if number == math.floor(number) and abs(number) < 1e15 else format(Decimal(repr(number)), "f")
    )


def _csv(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
