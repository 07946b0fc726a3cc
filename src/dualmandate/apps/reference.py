"""The reference page of the command line, written from the commands' own help.

To write it again: python -m dualmandate.apps.reference docs/reference/command-line.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from dualmandate.apps.cli import app
from dualmandate.apps.settings import KNOWN, PROJECT_FILE

KEPT = "\b"  # before a paragraph that keeps its lines
PREFACE = """\
# The command line

This page is written from the commands' own help (`dualmandate COMMAND --help`).
"""

CONTRACT = f"""\
## What every command keeps to

| exit status | meaning |
| --- | --- |
| 0 | done |
| 1 | a bug of ours; `DUALMANDATE_DEBUG=1` prints where |
| 2 | a refusal: what, where, why, what instead. Nothing was written or spent, or it names the release to resume |
| 130 | interrupted; the command to run it again is printed |

- `--json` prints one JSON document on standard output and nothing else there; words and progress go to standard error.
  A refusal prints a document of schema `refusal/1`. Numbers are finite; a chosen loss is also given as an exact string.
- Work that takes more than two seconds says what it is doing, on standard error: a bar on a terminal, plain lines
  elsewhere. `NO_COLOR` is honored.
- What a command writes appears whole or not at all.
- `dualmandate --install-completion` sets up tab completion for your shell.

## Settings

A flag comes before a variable, and that before `{PROJECT_FILE}` in the nearest folder upward, and that before the
default. Epsilon, neighbors and preferences come only from the program file, caps only from the ledger. The anchor and
the sealed secrets of a ledger in a file lie beside it; those of a ledger in a database lie in the project's
`.dualmandate`, and so does its key.
"""


def page() -> str:
    """The whole page, in Markdown."""
    group = get_command(app)
    return "\n".join([PREFACE, *_commands("dualmandate", group), CONTRACT, *_settings()])


def _commands(path: str, command: Any) -> Iterator[str]:
    yield from _command(path, command)
    inner: dict[str, Any] = vars(command).get("commands", {})  # the library does not export the type of a group
    for name, each in inner.items():
        yield from _commands(f"{path} {name}", each)


def _command(path: str, command: Any) -> Iterator[str]:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = [path, *(argument.metavar if argument.required else f"[{argument.metavar}]" for argument in arguments)]
    yield f"## {path}\n\n```text\n{' '.join(usage)} [OPTIONS]\n```\n\n{_paragraphs(command.help)}\n"
    if arguments:
        yield "| argument | meaning |\n| --- | --- |"
        yield "\n".join(f"| `{argument.metavar}` | {argument.help} |" for argument in arguments) + "\n"
    if options:
        yield "| option | meaning |\n| --- | --- |"
        yield "\n".join(f"| `{_flag(option)}` | {option.help} |" for option in options) + "\n"


def _paragraphs(words: str) -> str:
    """A help text; what is marked to keep its lines keeps them here too."""
    blocks = words.split("\n\n")
    kept = (f"```text\n{each.strip(KEPT).strip()}\n```" if each.startswith(KEPT) else each for each in blocks)
    return "\n\n".join(kept)


def _flag(option: Any) -> str:
    return " ".join(filter(None, [", ".join(option.opts), option.metavar]))


def _settings() -> Iterator[str]:
    yield f"| setting | flag | variable | in {PROJECT_FILE} | meaning |\n| --- | --- | --- | --- | --- |"
    for known in KNOWN:
        flag = f"`{known.flag}`" if known.flag else "–"
        key = f"`{known.name}`" if known.in_project_file else "–"
        variable = f"`{known.variable}`" if known.in_variable else "–"
        yield f"| {known.name} | {flag} | {variable} | {key} | {known.words} |"
    yield ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
