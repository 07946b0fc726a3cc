from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dualmandate.benchmarks import BenchmarkRow

if TYPE_CHECKING:
    from tests.apps.conftest import Command


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help_names_every_command(command: Command, words: list[str]) -> None:
    outcome = command(*words)
    assert outcome.status == 0
    for name in (
        "demo",
        "init",
        "plan",
        "approve",
        "publish",
        "ask",
        "ledger",
        "replicate",
        "benchmark",
        "doctor",
        "schema",
    ):
        assert f"  {name} " in outcome.out
    assert "..." not in outcome.out.replace("[ARGS]...", "")  # no summary is cut short
    assert "\x1b" not in outcome.out


@pytest.mark.parametrize(
    "name", ["demo", "init", "plan", "approve", "publish", "check", "ask", "replicate", "benchmark", "doctor", "schema"]
)
def test_every_command_has_help_and_json(command: Command, name: str) -> None:
    outcome = command(name, "--help")
    assert outcome.status == 0
    assert "--json" in outcome.out


def test_the_version_is_the_package_s(command: Command) -> None:
    assert command("--version").out == f"dualmandate {metadata.version('dualmandate')}\n"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["plam"], "no such command 'plam'"),
        (["plan"], "missing argument 'PROGRAM.toml'"),
        (["plan", "a.toml", "--ledger"], "invalid value for '--ledger': '--json' reads like another option"),
        (["ledger", "opem"], "no such command 'opem'"),
        (["ledger", "open", "people", "--cap", "1"], "missing option '--unit'"),
        (["approve"], "missing argument 'PLAN.json'"),
        (["plan", "a.toml", "--epsilon", "1"], "no such option: --epsilon"),
        (["plan", "a.toml", "b.toml"], "got unexpected extra argument(s) (b.toml)"),
        (["plan", "a.toml", "--out"], "invalid value for '--out': '--json' reads like another option"),
        (["publish"], "missing argument 'PLAN.json'"),
    ],
)
def test_a_command_that_cannot_be_read_is_a_refusal(command: Command, words: list[str], what: str) -> None:
    outcome = command(*words, "--json")
    assert outcome.status == 2
    assert outcome.document["schema"] == "refusal/1"
    assert outcome.document["code"] == "invalid request"
    assert outcome.document["what"].startswith(what)
    assert ("largest_epsilon" if "--epsilon" in words else "--help") in outcome.document["instead"]
    assert outcome.err.startswith(what)
    assert "Traceback" not in outcome.err


def test_a_refusal_in_words_leaves_standard_output_empty(command: Command) -> None:
    for words in (["plam"], ["plan"], ["plan", "a.toml", "--out"]):
        outcome = command(*words)
        assert (outcome.status, outcome.out) == (2, "")
        assert "instead:" in outcome.err


def test_a_folder_that_reads_like_an_option_is_taken_by_its_whole_path(command: Command) -> None:
    refused = command("plan", "a.toml", "--out", "--json")
    advised = str(Path.cwd() / "--json")
    assert f"reads like another option; name a folder, or write {advised}" in refused.err
    followed = command("plan", "a.toml", "--out", advised)
    assert "reads like another option" not in followed.err
    assert "a.toml" in followed.err


@pytest.mark.parametrize(("words", "name"), [(["schema", "plam"], "plam"), (["benchmark", "speed"], "speed")])
def test_an_unknown_name_is_refused_with_the_list(command: Command, words: list[str], name: str) -> None:
    outcome = command(*words, "--json")
    assert outcome.status == 2
    assert outcome.document["code"] == "unknown name"
    assert name in outcome.document["what"]
    assert "plan" in outcome.document["why"] + outcome.document["instead"]


def test_schemas_are_listed_and_printed(command: Command) -> None:
    names = command("schema", "--json").document["names"]
    assert {"program", "plan"} <= {name.split("/")[0] for name in names}
    assert command("schema").out.split() == names
    for name in names:
        printed = command("schema", name)
        assert printed.status == 0
        assert json.loads(printed.out)["$schema"].startswith("https://json-schema.org/")


def test_a_benchmark_without_rows_says_why(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: str | None, *, progress: Callable[[str], None]) -> list[BenchmarkRow]:
        progress("there is no accelerator here")
        return []

    monkeypatch.setattr("dualmandate.benchmarks.run", run)
    assert command("benchmark", "accelerator").out.splitlines() == [
        "nothing was measured here:",
        "  there is no accelerator here",
    ]
    assert command("benchmark", "accelerator", "--json").document["rows"] == []


def test_benchmarks_print_rows_with_their_targets(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(name: str | None, *, progress: object) -> list[BenchmarkRow]:
        return [
            BenchmarkRow("quick", 1.5, "seconds", target=10.0),
            BenchmarkRow("slow", 2000.0, "seconds", target=10.0),
        ]

    monkeypatch.setattr("dualmandate.benchmarks.run", run)
    document = command("benchmark", "plan", "--json").document
    assert (document["schema"], document["name"], document["inputs"]) == ("benchmark/1", "plan", "generated")
    for row in document["rows"]:
        assert set(row) == {"case", "ours", "unit", "peer", "peer_value", "ratio", "target", "met"}
    assert [row["met"] for row in document["rows"]] == [True, False]
    words = command("benchmark").out
    assert "yes" in words
    assert "NO" in words
    assert "2,000" in words
