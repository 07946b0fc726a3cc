from __future__ import annotations

from pathlib import Path

from typer.main import get_command

from dualmandate.apps.cli import app
from dualmandate.apps.reference import page

WRITTEN = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def test_the_written_page_is_what_the_commands_say() -> None:
    assert WRITTEN.read_text(encoding="utf-8") == page(), "python -m dualmandate.apps.reference writes it again"


def test_every_command_has_a_heading_and_every_parameter_words() -> None:
    commands = vars(get_command(app))["commands"]
    assert set(commands) == {
        "approve",
        "ask",
        "audit",
        "benchmark",
        "demo",
        "doctor",
        "index",
        "init",
        "keys",
        "ledger",
        "plan",
        "preferences",
        "publish",
        "replicate",
        "schema",
        "serve",
        "check",
    }
    inner = vars(commands["ledger"])["commands"]
    assert set(inner) == {
        "accounts",
        "anchor",
        "cancel",
        "decide",
        "events",
        "export",
        "open",
        "report",
        "show",
        "verify",
    }
    commands = commands | {f"ledger {name}": command for name, command in inner.items()}
    text = page()
    for name, command in commands.items():
        assert f"## dualmandate {name}\n" in text
        assert command.help
        for parameter in command.params:
            assert parameter.help, f"{name} {parameter.name}"
