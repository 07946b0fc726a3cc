"""How a command speaks: words for people, one JSON document for programs, progress for those who wait.

Words go to standard output, or to standard error under `--json`, where standard output holds the document alone.
Escape codes are written only to a terminal, and never under `NO_COLOR`.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TextIO

import typer
from typer.main import get_command

from dualmandate.apps.settings import debugging
from dualmandate.errors import CannotWrite, InvalidRequest, Refusal

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console, RenderableType

PATIENCE = 2.0  # seconds before a command says what it is doing
PLAIN_WIDTH = 100  # columns of a table that is not read on a terminal

NEWS = 5.0  # seconds between two plain lines on how much is done


class Progress(Protocol):
    """Whom to tell what is being done, and how much of it."""

    def __call__(self, words: str, /) -> None:
        """What is being done."""
        ...

    def count(self, words: str, done: int, of: int, /) -> None:
        """How much of it is done."""
        ...


class CommandResult(Protocol):
    """What a command did or found, for people and for programs."""

    def words(self) -> str:
        """For people."""
        ...

    def document(self) -> dict[str, object]:
        """The JSON document of the command."""
        ...


@dataclass(frozen=True)
class Output:
    """Where the words and the document of one command go."""

    json: bool = False

    def say(self, text: str = "") -> None:
        """One or more lines of words."""
        write(text + "\n", sys.stderr if self.json else sys.stdout)

    def say_styled(self, lines: Iterable[tuple[str, str]]) -> None:
        """Lines, each in its style where there is a terminal; none is broken or cut, so that commands can be pasted."""
        from rich.text import Text

        stream = sys.stderr if self.json else sys.stdout
        console = _console(stream)
        with console.capture() as captured:
            for text, style in lines:
                console.print(Text(text, style), soft_wrap=True)
        write(captured.get(), stream)

    def show(self, renderable: RenderableType) -> None:
        """A table, laid out for the width at hand."""
        stream = sys.stderr if self.json else sys.stdout
        console = _console(stream)
        with console.capture() as captured:
            console.print(renderable)
        write("\n".join(line.rstrip() for line in captured.get().split("\n")), stream)

    def document(self, made: Callable[[], Mapping[str, object]]) -> None:
        """The one JSON document of this command, made and written where `--json` asked for it."""
        if self.json:
            write_json(made())

    def tell(self, result: CommandResult) -> None:
        """A result: its words, and its document where `--json` asked for it."""
        self.say(result.words())
        self.document(result.document)

    def refuse(self, refusal: Refusal) -> None:
        """A refusal: its words on standard error, and its document where `--json` asked for one."""
        write(f"{refusal}\n", sys.stderr)
        self.document(refusal.document)

    @contextmanager
    def progress(self, task: str) -> Iterator[Progress]:
        """Say what is being done, on standard error, once it has taken more than two seconds."""
        watch = _Bar(task) if _on_terminal(sys.stderr) else _Lines(task)
        timer = threading.Timer(PATIENCE, watch.begin)
        timer.daemon = True
        timer.start()
        try:
            yield watch
        finally:
            timer.cancel()
            timer.join()  # a bar that is just beginning must not outlive its end
            watch.end()


def write(text: str, stream: TextIO) -> None:
    """Write and flush, so that a full disk or a closed pipe is met here and not when Python shuts down."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except OSError as error:
        # what could not be flushed would fail a second time at exit, with a traceback
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise CannotWrite(
            "the output cannot be written",
            why=(os.strerror(error.errno) if error.errno else "the operating system refused").lower(),
            instead="send it to a file on a disk with room",
        ) from None


def write_json(document: Mapping[str, object]) -> None:
    """A JSON document on standard output; a number that is not finite is our bug, not the reader's problem."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    write(json.dumps(document, indent=2, ensure_ascii=not utf8, allow_nan=False) + "\n", sys.stdout)


def _on_terminal(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    terminal = _on_terminal(stream)
    return Console(
        file=stream,
        force_terminal=terminal,
        color_system="auto" if terminal else None,
        width=None if stream.isatty() else PLAIN_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )


class _Lines:
    """Plain lines, for logs and for those who asked for no escape codes."""

    def __init__(self, task: str) -> None:
        self._now, self._started, self._late, self._told = task, time.monotonic(), False, 0.0
        self._counting, self._since = "", 0.0  # what is counted, and since when

    def __call__(self, words: str, /) -> None:
        self._now = words
        if self._late:
            self._print()

    def count(self, words: str, done: int, of: int, /) -> None:
        now = time.monotonic()
        if words != self._counting:
            self._counting, self._since = words, now
        left = f", {(now - self._since) * (of - done) / done:.0f} s left" if done else ""
        self._now = f"{words}: {done:,} of {of:,}{left}"
        if self._late and now - self._told >= NEWS:
            self._print()

    def begin(self) -> None:
        self._late = True
        self._print()

    def end(self) -> None:
        self._late = False

    def _print(self) -> None:
        self._told = time.monotonic()
        write(f"{time.monotonic() - self._started:4.0f} s  {self._now} …\n", sys.stderr)


class _Bar:
    """A moving bar with the stage and the time taken, gone when the work is done."""

    def __init__(self, task: str) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[counted]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=_console(sys.stderr), transient=True)
        self._words = task
        self._task = self._progress.add_task(task, total=None, counted="")

    def __call__(self, words: str, /) -> None:
        self._begin(words, None)

    def count(self, words: str, done: int, of: int, /) -> None:
        if words != self._words:
            self._begin(words, of)
        self._progress.update(self._task, completed=done, total=of, counted=f"{done:,} of {of:,}")

    def _begin(self, words: str, of: int | None) -> None:
        """Another stage, whose time is counted from now on."""
        self._words = words
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(words, total=of, counted="")

    def begin(self) -> None:
        self._progress.start()

    def end(self) -> None:
        self._progress.stop()


LOSSES = frozenset({"epsilon", "eps", "rho", "delta", "budget"})
DONE, BUG, REFUSED, INTERRUPTED = 0, 1, 2, 130


class Interruption(Exception):
    """An interruption of work that waits to be taken up again, by the command that it names.

    The command-line library would take a KeyboardInterrupt for itself.
    """

    def __init__(self, again: str) -> None:
        super().__init__(again)
        self.again = again


def run(app: typer.Typer, words: Sequence[str]) -> int:
    """Run one command line; its exit status."""
    output = Output(json="--json" in words)
    try:
        return _run(app, words, output)
    except KeyboardInterrupt:
        return _interrupted(words)
    except BrokenPipeError:
        return _unheard()
    except Refusal as refusal:  # standard output itself cannot be written
        write(f"{refusal}\n", sys.stderr)
        return REFUSED


def _run(app: typer.Typer, words: Sequence[str], output: Output) -> int:
    try:
        status = _command(app).main(args=list(words), prog_name="dualmandate", standalone_mode=False)
    except Refusal as refusal:
        output.refuse(refusal)
        return REFUSED
    except Interruption as interruption:
        again = interruption.again
        write(f"\ninterrupted; what is spent stays spent. To go on where it was left:\n  {again}\n", sys.stderr)
        return INTERRUPTED
    except typer.TyperException as error:
        output.refuse(_invalid_request(error))
        return REFUSED
    except SystemExit as leaving:
        # the command-line library turns a closed pipe into status 1, which here would say that we have a bug
        if isinstance(leaving.__context__, BrokenPipeError):
            return _unheard()
        return leaving.code if isinstance(leaving.code, int) else DONE
    except BrokenPipeError:
        raise
    except Exception as error:
        return _bug(error)
    return _interrupted(words) if status == INTERRUPTED else DONE


def _command(app: typer.Typer) -> Any:
    """The command, with the flags off that the library leaves undecided.

    An undecided flag is checked by pydantic, whose import alone would triple the time of `dualmandate plan --help`.
    """
    command = get_command(app)
    inner: dict[str, Any] = vars(command).get("commands", {})
    for group in (command, *(each for each in inner.values() if "commands" in vars(each))):
        for parameter in group.get_params(typer.Context(group)):
            if getattr(parameter, "is_bool_flag", False) and parameter.default is None:
                parameter.default = False
    return command


def _invalid_request(error: typer.TyperException) -> InvalidRequest:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "dualmandate"
    what = error.format_message().strip().rstrip(".")
    if getattr(error, "option_name", "").lstrip("-") in LOSSES:
        return InvalidRequest(
            what[:1].lower() + what[1:],
            why="nobody types a privacy loss: the plan derives it from what privacy and accuracy are worth",
            instead="state those in the program; a cap on the loss is largest_epsilon or largest_rho, under [limits]",
        )
    return InvalidRequest(
        what[:1].lower() + what[1:],
        why=f"`{command}` cannot read the command as it was typed",
        instead=f"see `{command} --help`",
    )


def _interrupted(words: Sequence[str]) -> int:
    again = shlex.join(["dualmandate", *words])
    write(f"\ninterrupted; nothing is left half-written. To run it again:\n  {again}\n", sys.stderr)
    return INTERRUPTED


def _unheard() -> int:
    """The reader left before the end (`dualmandate plan … | head`): what was asked for is done."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE


def _bug(error: Exception) -> int:
    if debugging():
        traceback.print_exception(error)
    else:
        write(
            f"this is our bug, not yours: {type(error).__name__} in {spot(error.__traceback__)}\n"
            "  why:     something happened that this version does not expect\n"
            "  instead: run it again with DUALMANDATE_DEBUG=1 to see where, and report what it prints\n",
            sys.stderr,
        )
    return BUG


def spot(trace: TracebackType | None) -> str:
    """The innermost line of our own code; an error's own message may hold what must not be printed."""
    spot = "dualmandate"
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module.startswith("dualmandate"):
            spot = f"{module}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return spot
