"""From an empty folder to a plan, as a newcomer would type it."""

from __future__ import annotations

import json
import os
import pty
import resource
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.journeys.conftest import Typed

ESCAPE = "\x1b"


def test_begin_with_title_i_and_plan_it(typed: Typed, tmp_path: Path) -> None:
    begun = typed("init", "title_i")
    assert (begun.returncode, begun.stderr) == (0, "")
    following = begun.stdout.splitlines()[-1].split()
    assert following == ["dualmandate", "plan", "title_i/program.toml", "--out", "title_i/report"]

    planned = typed(*following[1:3], "--out", "report", "--json")
    assert planned.returncode == 0, planned.stderr
    document = json.loads(planned.stdout)
    assert document["choice"]["epsilon"] == pytest.approx(2.444299, abs=1e-6)
    document.pop("publishing")  # what it takes on this machine: printed, and not saved
    assert json.loads((tmp_path / "report" / "plan.json").read_text(encoding="utf-8")) == document
    assert (tmp_path / "report" / "dossier.html").stat().st_size > 10_000
    assert ESCAPE not in planned.stdout + planned.stderr

    again = json.loads(typed(*following[1:3], "--json").stdout)
    again.pop("publishing")
    assert document["program"].pop("file") == "../title_i/program.toml"  # as seen from the plan's own place
    assert "file" not in again["program"]  # no plan was written, so it has no place
    sealed = {"pages", "shown"}  # beside a dossier, whose digests are not those of none
    assert document.keys() - again.keys() == {"pages"}
    assert {key: again[key] for key in again.keys() - sealed} == {key: document[key] for key in again.keys() - sealed}


def test_begin_with_a_blank_program_and_plan_it(typed: Typed) -> None:
    assert typed("init", "blank", "mine").returncode == 0
    planned = typed("plan", "mine")
    assert planned.returncode == 0, planned.stderr
    assert "epsilon" in planned.stdout


def test_a_misspelled_key_is_shown_where_it_stands(typed: Typed, tmp_path: Path) -> None:
    typed("init", "blank", "mine")
    program = tmp_path / "mine" / "program.toml"
    text = program.read_text(encoding="utf-8")
    program.write_text(text.replace("neighbors ", "neighbours "), encoding="utf-8")
    line = next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith("neighbors "))
    before = sorted(tmp_path.rglob("*"))
    refused = typed("plan", program, "--out", "report")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"{program}, line {line}, population.neighbours" in refused.stderr
    assert "did you mean 'neighbors'?" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_help_takes_less_than_half_a_second(typed: Typed) -> None:
    """By processor time, of which help is made: a wall clock would judge whatever else the machine is doing."""

    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    for words in (["--help"], ["plan", "--help"]):
        took = []
        for _ in range(3):
            before = used()
            assert typed(*words).returncode == 0
            took.append(used() - before)
        assert 0 < min(took) < 0.5, words


def test_tab_completion_knows_commands_and_programs(typed: Typed) -> None:
    def complete(line: str) -> list[str]:
        position = str(len(line.split(" ")) - 1)
        return typed(_DUALMANDATE_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=position).stdout.split()

    assert complete("dualmandate re") == ["replicate"]
    assert "title_i" in complete("dualmandate init t")
    assert complete("dualmandate benchmark s") == ["sensitivity", "strategies", "scale", "squares", "synthesis"]
    assert "plan" in complete("dualmandate schema pl")
    assert "--show-completion" in typed("--help").stdout


def test_a_reader_who_leaves_early(installed: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    piped = f"set -o pipefail; {installed} replicate | head -1"
    ran = subprocess.run(
        ["bash", "-c", piped], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 0
    assert all(line.endswith("replicating the paper …") for line in ran.stderr.splitlines())  # on a slow machine


def test_a_full_disk_under_standard_output(installed: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ran = subprocess.run(
            [installed, "doctor"], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, env=environment,
            text=True, timeout=600, check=False,
        )  # fmt: skip
    assert ran.returncode == 2
    assert "no space left on device" in ran.stderr
    assert "Traceback" not in ran.stderr


def at_a_terminal(words: list[str | Path], folder: Path, environment: dict[str, str]) -> str:
    """Everything a command prints on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment, close_fds=True
    )
    os.close(theirs)
    printed = b""
    with process:
        while select.select([ours], [], [], 60)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            printed += piece
    os.close(ours)
    assert process.returncode == 0
    return printed.decode()


def test_colors_on_a_terminal_and_none_under_no_color(
    installed: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    environment |= {"TERM": "xterm-256color", "COLUMNS": "100"}
    assert ESCAPE in at_a_terminal([installed, "replicate"], tmp_path, environment)
    assert ESCAPE not in at_a_terminal([installed, "replicate"], tmp_path, environment | {"NO_COLOR": "1"})
    assert ESCAPE not in at_a_terminal([installed, "plan", "--help"], tmp_path, environment | {"NO_COLOR": "1"})


def test_an_interruption_says_how_to_run_it_again(installed: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n/usr/bin/touch begun\nexec /bin/sleep 60\n", encoding="utf-8")
    java.chmod(0o755)
    process = subprocess.Popen(
        [installed, "doctor", "--json"],
        cwd=tmp_path,
        env=environment | {"PATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        deadline = time.monotonic() + 300
        while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("  dualmandate doctor --json\n")
    assert "Traceback" not in err
