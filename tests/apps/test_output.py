from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.table import Table

from dualmandate.apps import output as voice
from dualmandate.apps.output import Output, write, write_json
from dualmandate.errors import CannotWrite, InvalidLoss

ESCAPE = "\x1b"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def at_a_terminal() -> Iterator[Terminal]:
    stream = Terminal()
    with redirect_stdout(stream), redirect_stderr(stream):
        yield stream


@pytest.fixture
def _colors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


class Clock:
    """Time that passes when a test says so; what waits for it is called then, and not by whatever else is running."""

    def __init__(self) -> None:
        self.now, self.waiting = 0.0, list[tuple[float, Callable[[], None]]]()

    def timer(self, seconds: float, function: Callable[[], None]) -> Any:
        started = lambda: self.waiting.append((self.now + seconds, function))  # noqa: E731
        return SimpleNamespace(start=started, cancel=lambda: self.waiting.clear(), join=lambda: None)

    def passes(self, seconds: float) -> None:
        self.now += seconds
        due = [function for at, function in self.waiting if at <= self.now]
        self.waiting = [each for each in self.waiting if each[0] > self.now]
        for function in due:
            function()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(voice, "threading", SimpleNamespace(Timer=made.timer))
    monkeypatch.setattr(voice, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def refresh(progress: Any) -> None:
    """Draw the bar now; by itself it does so ten times a second."""
    progress._progress.refresh()


def table() -> Table:
    drawn = Table("what", title="numbers", title_style="bold")
    drawn.add_row("[bold]not markup[/bold] :smile:")
    return drawn


def test_words_go_to_standard_output_and_under_json_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Output().say("ε = 2.5")
    Output().document(lambda: pytest.fail("made for nobody"))
    assert capsys.readouterr() == ("ε = 2.5\n", "")
    Output(json=True).say("ε = 2.5")
    Output(json=True).document(lambda: {"schema": "x/1"})
    assert capsys.readouterr() == ('{\n  "schema": "x/1"\n}\n', "ε = 2.5\n")


def test_a_table_is_plain_text_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Output().show(table())
    out = capsys.readouterr().out
    assert "[bold]not markup[/bold] :smile:" in out
    assert ESCAPE not in out


@pytest.mark.usefixtures("_colors")
@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_escape_codes_where_they_are_not_wanted(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, name: str, value: str
) -> None:
    with at_a_terminal() as colored:
        Output().show(table())
    assert ESCAPE in colored.getvalue()
    monkeypatch.setenv(name, value)
    with at_a_terminal() as plain:
        Output().show(table())
        with Output().progress("working"):
            clock.passes(2.0)
    assert "working …" in plain.getvalue()
    assert ESCAPE not in plain.getvalue()


@pytest.mark.usefixtures("_colors")
def test_progress_is_a_bar_on_a_terminal(clock: Clock) -> None:
    with at_a_terminal() as terminal, Output().progress("working") as progress:
        clock.passes(2.0)
        progress("reading")
        refresh(progress)
    assert "reading" in terminal.getvalue()
    assert ESCAPE in terminal.getvalue()


def test_progress_is_plain_lines_elsewhere_and_silent_before_two_seconds(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with Output().progress("quick") as progress:
        progress("quicker")
        clock.passes(1.9)
    clock.passes(1.0)
    assert capsys.readouterr() == ("", "")
    with Output().progress("working") as progress:
        progress("first")
        clock.passes(2.0)
        progress("second")
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(" s  ")[1] for line in err.splitlines()] == ["first …", "second …"]


@pytest.mark.usefixtures("_colors")
def test_a_bar_says_how_much_is_done(clock: Clock) -> None:
    with at_a_terminal() as terminal, Output().progress("working") as progress:
        clock.passes(2.0)
        for done in (1, 3):
            progress.count("attacking places", done, 4)
            refresh(progress)
        progress("writing")
        refresh(progress)
    shown = terminal.getvalue()
    assert "attacking places" in shown
    assert "3 of 4" in shown
    assert "writing" in shown


def test_plain_lines_say_how_much_is_done_and_how_long_it_takes(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with Output().progress("working") as progress:
        clock.passes(2.0)
        for done in range(1, 101):
            progress.count("attacking places", done, 100)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1  # not one for every place
    with Output().progress("working") as progress:
        clock.passes(2.0)
        progress.count("attacking places", 1, 3)
        clock.passes(6.0)
        progress.count("attacking places", 2, 3)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("attacking places: 2 of 3, 3 s left …")


def test_a_refusal_is_told_and_documented(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = InvalidLoss("a loss of 0", why="it must be positive", instead="state a positive one")
    Output(json=True).refuse(refusal)
    out, err = capsys.readouterr()
    assert '"schema": "refusal/1"' in out
    assert err == "a loss of 0\n  why:     it must be positive\n  instead: state a positive one\n"
    Output().refuse(refusal)
    assert capsys.readouterr().out == ""


def test_an_encoding_without_greek_does_not_stop_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    Output().say("ε = 2.5")
    write_json({"what": "ε"})
    assert raw.getvalue() == b'? = 2.5\n{\n  "what": "\\u03b5"\n}\n'


def test_a_number_that_is_not_finite_is_never_printed() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json({"epsilon": float("nan")})


def test_a_full_disk_under_standard_output_is_refused() -> None:
    full = Path("/dev/full")
    assert full.exists()
    with full.open("w", encoding="utf-8") as stream, pytest.raises(CannotWrite) as caught:
        write("words", stream)
    assert caught.value.why == "no space left on device"
    assert caught.value.instead == "send it to a file on a disk with room"
