"""Doors open fast, and every dependency lives beside every other."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

HEAVY = {
    "altair",
    "duckdb",
    "jinja2",
    "numba",
    "numpy",
    "pint",
    "pyarrow",
    "pydantic",
    "scipy",
    "sqlalchemy",
    "vl_convert",
}


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


ALONGSIDE = {  # modules in the wheel of a dependency that are nothing to us
    "adbc_driver_duckdb": "duckdb",  # for users of another package, which is no dependency here
    "pybind11_abseil": "ortools",  # what its own modules are made with
}


def declared_modules(root: Path, *extras: str) -> set[str]:
    """Top-level modules of the dependencies in pyproject.toml, or of some of its extras."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    optional = [requirement for extra in extras for requirement in project["optional-dependencies"][extra]]
    asked = optional if extras else project["dependencies"]
    names = {re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0] for requirement in asked}
    owners = importlib.metadata.packages_distributions()
    found = {
        module
        for module, distributions in owners.items()
        if module[0] != "_" and names & {name.lower().replace("_", "-") for name in distributions}
    }
    return found - set(ALONGSIDE)


def extras_of(root: Path) -> tuple[str, ...]:
    return tuple(tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def test_what_rides_along_is_of_no_use_here(trees: Mapping[Path, ast.Module]) -> None:
    owners = importlib.metadata.packages_distributions()
    for module, owner in ALONGSIDE.items():
        assert owners[module] == [owner]
        assert not [path for path, tree in trees.items() if module in imported_modules(tree)]


def imported_modules(tree: ast.Module) -> set[str]:
    """Top-level modules from elsewhere that a module imports, also inside its functions."""
    absolute = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return {name.partition(".")[0] for name in absolute | plain} - set(sys.stdlib_module_names) - {"dualmandate"}


@pytest.mark.parametrize("module", ["dualmandate", "dualmandate.errors", "dualmandate.apps.cli"])
def test_doors_import_nothing_heavy(module: str) -> None:
    assert not loaded_after(f"import {module}") & HEAVY


def test_a_plan_is_made_without_a_database() -> None:
    making = (
        "from dualmandate.planning.program import load\nfrom dualmandate.report.documents.plan import plan_document"
    )
    assert not loaded_after(making) & {"alembic", "duckdb", "pyarrow", "sqlalchemy"}


TYPED = """
import sys
from dualmandate.apps.cli import app
from dualmandate.apps.output import run

assert run(app, ["publish", "report/plan.json", "--unchecked", "--by", "Eve"]) == 0
print("LOADED", *sys.modules)
"""
ECONOMICS = ("dualmandate.choice", "dualmandate.frontier", "dualmandate.report.figures", "altair")


def test_a_saved_plan_is_published_without_the_economics(tmp_path: Path) -> None:
    """Neither the choice nor the frontiers, no picture and nothing that makes plans: the plan holds what is needed."""
    from tests.planning.test_released import PROGRAM

    from dualmandate.ledger import Account, Approval, make_key, open_ledger
    from dualmandate.planning.program import load
    from dualmandate.planning.release_spec import strategy_files
    from dualmandate.report.documents.plan import plan_document

    text = PROGRAM.replace("STRATEGY", "optimized").replace("MEASURED", "together")
    (tmp_path / "program.toml").write_text(text, encoding="utf-8")
    (tmp_path / "dualmandate.toml").touch()
    (tmp_path / "residents.csv").write_text("ward,age\nnorth,1\neast,2\n", encoding="utf-8")
    plan = load(tmp_path / "program.toml").plan()
    document = plan_document(plan)
    files = {"plan.json": json.dumps(document).encode(), **strategy_files(plan)}
    for name, content in files.items():
        (tmp_path / "report" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "report" / name).write_bytes(content)
    state = tmp_path / ".dualmandate"
    ledger = open_ledger(state / "ledger.sqlite", make_key(state / "key"), create=True)
    ledger.open_account(Account("residents", "person", plan.charge), by="Ann")
    ledger.approve(Approval("residents", plan.digest, plan.charge, "person", by="Ben", shown=str(document["shown"])))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DUALMANDATE_")}
    typed = [sys.executable, "-c", TYPED]
    result = subprocess.run(typed, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    loaded = result.stdout.partition("LOADED ")[2].split()
    assert [name for name in loaded if name.startswith(ECONOMICS)] == []
    planning = {name.rpartition(".")[2] for name in loaded if name.startswith("dualmandate.planning.")}
    assert {"release_spec", "saved_plan"} <= planning <= {"digest", "release_spec", "saved_plan", "study"}


def test_heavy_is_seen() -> None:
    assert "numpy" in loaded_after("import dualmandate.population") & HEAVY


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_every_dependency_in_one_process(root: Path, backward: bool) -> None:
    modules = sorted(declared_modules(root) | declared_modules(root, "audit"))
    assert {"numpy", "scipy", "altair", "vl_convert", "ortools", "highspy"} <= set(modules)
    ordered = modules[::-1] if backward else modules
    assert set(modules) <= loaded_after("\n".join(f"import {module}" for module in ordered))


NEEDED_BY_OTHERS = {"pandas": "pyspark asks for it in mapInArrow"}  # declared beside what needs it


def looked_for(tree: ast.Module) -> set[str]:
    """Modules whose presence is asked for by `find_spec`: a driver that another package loads."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "find_spec"]
    return {str(call.args[0].value) for call in calls if isinstance(call.args[0], ast.Constant)}


def test_what_is_imported_is_declared(root: Path, trees: Mapping[Path, ast.Module]) -> None:
    sample = "import os, numpy.linalg\ndef f():\n    from torch import nn\n"
    assert imported_modules(ast.parse(sample)) == {"numpy", "torch"}
    known = declared_modules(root) | declared_modules(root, *extras_of(root))
    imported = {path: imported_modules(tree) for path, tree in trees.items()}
    assert not {str(path): names - known for path, names in imported.items() if names - known}


def test_what_is_declared_is_imported(root: Path, trees: Mapping[Path, ast.Module]) -> None:
    used = set[str]().union(*(imported_modules(tree) | looked_for(tree) for tree in trees.values()))
    for extras in ((), *((extra,) for extra in extras_of(root))):
        declared = declared_modules(root, *extras)
        assert declared, extras
        assert not declared - used - set(NEEDED_BY_OTHERS), extras


PLOTTING = {"altair", "vl_convert"}


def test_words_json_and_tables_need_no_plotting_library(tmp_path: Path) -> None:
    from dualmandate import gallery

    gallery.write("title_i", tmp_path)
    said = f"""
from dualmandate import load
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.plan_words import plan_words
from dualmandate.report.release_page import release_page
plan = load({str(tmp_path / "program.toml")!r}).plan()
assert plan_words(plan) and plan_document(plan)
"""
    assert not loaded_after(said) & PLOTTING
    drawn = f"""{said}
from dualmandate.report.figures import tangency
figure = tangency(plan.frontier, plan.welfare, plan.choice)
assert figure.table.rows and figure.specification()
"""
    assert not loaded_after(drawn) & PLOTTING
    assert loaded_after(f"{drawn}figure.svg()") & PLOTTING == {"vl_convert"}


def test_the_release_page_loads_no_figures() -> None:
    modules = "import sys, dualmandate.report.release_page\nassert 'dualmandate.report.figures' not in sys.modules"
    assert "jinja2" not in loaded_after(modules)
