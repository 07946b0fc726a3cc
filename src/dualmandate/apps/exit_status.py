"""How a command ends: 0 done, 1 our bug, 2 a refusal, 130 interrupted. Never a traceback that was not asked for."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer
from typer.main import get_command

from dualmandate.apps.output import Output, write
from dualmandate.apps.settings import debugging
from dualmandate.errors import InvalidRequest, Refusal

if TYPE_CHECKING:
    from types import TracebackType

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
    voice = Output(json="--json" in words)
    try:
        return _run(app, words, voice)
    except KeyboardInterrupt:
        return _interrupted(words)
    except BrokenPipeError:
        return _unheard()
    except Refusal as refusal:  # standard output itself cannot be written
        write(f"{refusal}\n", sys.stderr)
        return REFUSED


def _run(app: typer.Typer, words: Sequence[str], voice: Output) -> int:
    try:
        status = _command(app).main(args=list(words), prog_name="dualmandate", standalone_mode=False)
    except Refusal as refusal:
        voice.refuse(refusal)
        return REFUSED
    except Interruption as interruption:
        again = interruption.again
        write(f"\ninterrupted; what is spent stays spent. To go on where it was left:\n  {again}\n", sys.stderr)
        return INTERRUPTED
    except typer.TyperException as error:
        voice.refuse(_invalid_request(error))
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
            f"this is our bug, not yours: {type(error).__name__} in {_spot(error.__traceback__)}\n"
            "  why:     something happened that this version does not expect\n"
            "  instead: run it again with DUALMANDATE_DEBUG=1 to see where, and report what it prints\n",
            sys.stderr,
        )
    return BUG


def _spot(trace: TracebackType | None) -> str:
    """The innermost line of our own code; an error's own message may hold what must not be printed."""
    spot = "dualmandate"
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module.startswith("dualmandate"):
            spot = f"{module}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return spot
