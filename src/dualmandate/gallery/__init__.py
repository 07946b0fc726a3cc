"""The worked programs, each a folder to start from: a program file and the code lists it names."""

from __future__ import annotations

from importlib.resources import files as resources
from pathlib import Path

from dualmandate.errors import InvalidFile, Place, UnknownName, did_you_mean

__all__ = ["about", "files", "names", "records", "write", "write_records"]

# `blank` is small, complete and commented key by key. `block` is no program: seven people and what was published of
# them, exactly, with which an article made reconstruction known (Garfinkel, Abowd and Martindale, ACM Queue 2018); (D)
# is what they left out. `survey` leads from answers to epsilon. `title_i` is the paper's application: population, costs
# and weights are the paper's, its 13,000 districts are made up, because nothing in the argument depends on them.
_PROGRAMS = {
    "blank": ("program.toml",),
    "block": ("tables.toml", "block.csv"),
    "national_accounts": ("program.toml", "detail.toml", "both.toml"),
    "redistricting": ("program.toml", "exact_blocks.toml"),
    "survey": ("survey.toml", "program.toml", "preferences.toml"),
    "title_i": ("program.toml", "law.toml"),
}
_ABOUT = {
    "blank": "a small program, commented key by key, to write your own over",
    "block": "tables that somebody published of seven people, to attack",
    "national_accounts": "payroll of businesses for the national accounts, published at the level of use",
    "redistricting": "counts of persons by census block, from which districts are drawn",
    "survey": "from the answers of a survey to preferences, and to an epsilon",
    "title_i": "the paper's application: grants to school districts by their number of poor children",
}
_RECORDS = {
    "national_accounts": "establishments.parquet",
    "redistricting": "persons.parquet",
    "survey": "answers.csv",
    "title_i": "children.parquet",
}


def names() -> tuple[str, ...]:
    """The worked programs, and `blank`."""
    return tuple(_PROGRAMS)


def about(name: str) -> str:
    """What a program is, in a line."""
    return _ABOUT[_known(name)]


def files(name: str) -> dict[str, str]:
    """The files of a program by name, as text; `title-i` is as good as `title_i`."""
    known = _known(name)
    folder = resources(__package__) / known
    found = {file: (folder / file).read_text(encoding="utf-8") for file in _PROGRAMS[known]}
    if known == "national_accounts":
        from dualmandate.gallery.national_accounts.establishments import code_lists

        found |= code_lists()
    elif known == "redistricting":
        from dualmandate.gallery.redistricting import invented_state

        found |= invented_state().public_files
    elif known in _RECORDS:
        from dualmandate.gallery.districts import code_list

        found["districts.csv"] = code_list()
    if known == "title_i":
        from dualmandate.gallery.grants.invented import law_files

        found |= law_files()
    return found


def records(name: str) -> str | None:
    """The name of the file of invented records that a program publishes from; None where it has none."""
    return _RECORDS.get(_known(name))


def write_records(name: str, folder: Path) -> None:
    """Write the invented records of a program into a folder."""
    path = folder / _RECORDS[_known(name)]
    if _known(name) == "title_i":
        from dualmandate.gallery.districts import write_children

        write_children(path)
    elif _known(name) == "national_accounts":
        from dualmandate.gallery.national_accounts import write_establishments

        write_establishments(path)
    elif _known(name) == "redistricting":
        from dualmandate.gallery.redistricting import invented_state

        invented_state().write_persons(path)
    else:
        from dualmandate.gallery.parents import answers

        path.write_text(answers(), encoding="utf-8", newline="\n")


def _known(name: str) -> str:
    known = name.replace("-", "_")
    if known not in _PROGRAMS:
        raise UnknownName(
            f"there is no program called '{name}'",
            why=f"the programs to start from are {', '.join(_PROGRAMS)}",
            instead=did_you_mean(known, _PROGRAMS, "name one of them"),
        )
    return known


def write(name: str, directory: str | Path) -> tuple[Path, ...]:
    """Write the files of a program into a folder, made where it is not there; nothing is ever overwritten."""
    folder = Path(directory)
    contents = {folder / file: text for file, text in files(name).items()}
    taken = next((path for path in contents if path.exists()), None)
    if taken is not None:
        raise InvalidFile(
            f"'{taken.name}' is already there",
            why="a program that somebody wrote is never overwritten",
            instead="name another folder",
            where=Place(str(taken)),
        )
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in contents.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    return tuple(contents)
