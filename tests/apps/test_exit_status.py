from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import typer

from dualmandate.apps.output import BUG, DONE, INTERRUPTED, REFUSED, run
from dualmandate.errors import InvalidLoss

CANARY = "canary-8c1f"


def door(act: Callable[[], None]) -> typer.Typer:
    app = typer.Typer(rich_markup_mode=None)

    @app.callback()
    def top() -> None: ...

    @app.command()
    def work(json: bool = typer.Option(False, "--json")) -> None:
        act()

    return app


def refuse() -> None:
    raise InvalidLoss("a loss of 0", why="it must be positive", instead="state a positive one")


def interrupt() -> None:
    raise KeyboardInterrupt


def break_down() -> None:
    secret = CANARY
    raise RuntimeError(f"cannot handle {secret}")


def test_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(door(lambda: None), ["work"]) == DONE
    assert capsys.readouterr() == ("", "")


def test_a_refusal_leaves_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(door(refuse), ["work"]) == REFUSED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("a loss of 0\n  why:")
    assert run(door(refuse), ["work", "--json"]) == REFUSED
    assert '"code": "invalid loss"' in capsys.readouterr().out


def test_an_interruption_leaves_with_130_and_the_command_to_run_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(door(interrupt), ["work", "--json"]) == INTERRUPTED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("  dualmandate work --json\n")


def test_a_bug_is_owned_and_shows_no_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DUALMANDATE_DEBUG", raising=False)
    assert run(door(break_down), ["work", "--json"]) == BUG
    out, err = capsys.readouterr()
    assert out == ""
    assert "this is our bug" in err
    assert "RuntimeError" in err
    assert "Traceback" not in err
    assert CANARY not in err


def test_the_traceback_of_a_bug_must_be_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUALMANDATE_DEBUG", "1")
    assert run(door(break_down), ["work"]) == BUG
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "secret =" not in err.replace("secret = CANARY", "")  # source lines, no locals


def test_a_reader_who_leaves_early_is_no_bug() -> None:
    lines = "from dualmandate.apps.output import Output\nfor _ in range(20000): Output().say('x' * 80)"
    code = f"""
import sys, typer
from dualmandate.apps.output import run
app = typer.Typer(rich_markup_mode=None)
@app.callback()
def top(): pass
@app.command()
def work():
    exec({lines!r})
sys.exit(run(app, ["work"]))
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=300) == DONE
