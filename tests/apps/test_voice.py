from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from rich.table import Table

from dualmandate.apps import voice
from dualmandate.apps.voice import Voice, write, write_json
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


def table() -> Table:
    drawn = Table("what", title="numbers", title_style="bold")
    drawn.add_row("[bold]not markup[/bold] :smile:")
    return drawn


def test_words_go_to_standard_output_and_under_json_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Voice().say("ε = 2.5")
    Voice().document(lambda: pytest.fail("made for nobody"))
    assert capsys.readouterr() == ("ε = 2.5\n", "")
    Voice(json=True).say("ε = 2.5")
    Voice(json=True).document(lambda: {"schema": "x/1"})
    assert capsys.readouterr() == ('{\n  "schema": "x/1"\n}\n', "ε = 2.5\n")


def test_a_table_is_plain_text_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Voice().show(table())
    out = capsys.readouterr().out
    assert "[bold]not markup[/bold] :smile:" in out
    assert ESCAPE not in out


@pytest.mark.usefixtures("_colors")
@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_escape_codes_where_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    with at_a_terminal() as colored:
        Voice().show(table())
    assert ESCAPE in colored.getvalue()
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(voice, "PATIENCE", 0.0)
    with at_a_terminal() as plain:
        Voice().show(table())
        with Voice().progress("working"):
            time.sleep(0.1)
    assert "working …" in plain.getvalue()
    assert ESCAPE not in plain.getvalue()


@pytest.mark.usefixtures("_colors")
def test_progress_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice, "PATIENCE", 0.0)
    with at_a_terminal() as terminal, Voice().progress("working") as progress:
        time.sleep(0.1)
        progress("reading")
        time.sleep(0.2)
    assert "reading" in terminal.getvalue()
    assert ESCAPE in terminal.getvalue()


def test_progress_is_plain_lines_elsewhere_and_silent_before_two_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert voice.PATIENCE == 2.0
    with Voice().progress("quick") as progress:
        progress("quicker")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(voice, "PATIENCE", 0.05)
    with Voice().progress("working") as progress:
        progress("first")
        time.sleep(0.3)
        progress("second")
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(" s  ")[1] for line in err.splitlines()] == ["first …", "second …"]


@pytest.mark.usefixtures("_colors")
def test_a_bar_says_how_much_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice, "PATIENCE", 0.0)
    with at_a_terminal() as terminal, Voice().progress("working") as progress:
        time.sleep(0.1)
        for done in (1, 3):
            progress.count("attacking places", done, 4)
            time.sleep(0.15)
        progress("writing")
        time.sleep(0.15)
    shown = terminal.getvalue()
    assert "attacking places" in shown
    assert "3 of 4" in shown
    assert "writing" in shown


def test_plain_lines_say_how_much_is_done_and_how_long_it_takes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voice, "PATIENCE", 0.0)
    with Voice().progress("working") as progress:
        time.sleep(0.1)
        for done in range(1, 101):
            progress.count("attacking places", done, 100)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1  # not one for every place
    monkeypatch.setattr(voice, "NEWS", 0.0)
    with Voice().progress("working") as progress:
        time.sleep(0.1)
        progress.count("attacking places", 1, 3)
        time.sleep(1.0)
        progress.count("attacking places", 2, 3)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("attacking places: 2 of 3, 1 s left …")


def test_a_refusal_is_told_and_documented(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = InvalidLoss("a loss of 0", why="it must be positive", instead="state a positive one")
    Voice(json=True).refuse(refusal)
    out, err = capsys.readouterr()
    assert '"schema": "refusal/1"' in out
    assert err == "a loss of 0\n  why:     it must be positive\n  instead: state a positive one\n"
    Voice().refuse(refusal)
    assert capsys.readouterr().out == ""


def test_an_encoding_without_greek_does_not_stop_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    Voice().say("ε = 2.5")
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
