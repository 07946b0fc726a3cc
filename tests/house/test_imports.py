"""Doors open fast, and every dependency lives beside every other."""

from __future__ import annotations

import ast
import importlib.metadata
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


SAVED = """
import os, sys
from pathlib import Path
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.planning.release_spec import order_of
from dualmandate.planning.saved_plan import load_plan
from dualmandate.program.program import read_program
from dualmandate.publication import act

plan, program = load_plan("report/plan.json"), read_program("program.toml")
ledger = open_ledger(Path("ledger.sqlite"), make_key(Path("key")), create=True)
ledger.open_account(Account(plan.account, "person", plan.charge), by="Ann")
ledger.approve(Approval(plan.account, plan.digest, plan.charge, "person", by="Ben"))
order = order_of(plan, program, Path("report"))
act.publish(order, program.source, ledger, out=Path("out"), asked=act.Asked("Eve", program.source.name))
from dualmandate.planning.released import load_release
[folder] = Path("out").iterdir()
load_release(folder).interval("wards", ward="north")
rooms = {".".join(name.split(".")[:2]) for name in sys.modules}
print(*sorted(rooms & {"dualmandate.choice", "dualmandate.frontier", "dualmandate.report", "altair"}))
print(*sorted(name for name in sys.modules if name.startswith("dualmandate.planning.")))
"""


def test_a_saved_plan_is_published_without_the_economics(tmp_path: Path) -> None:
    """Neither the choice nor the frontiers, nor what makes plans: the plan holds all that publishing needs."""
    import json

    from tests.planning.test_released import PROGRAM

    from dualmandate.planning.program import load
    from dualmandate.planning.release_spec import strategy_files
    from dualmandate.report.plan_document import plan_document

    text = PROGRAM.replace("STRATEGY", "optimized").replace("MEASURED", "together")
    (tmp_path / "program.toml").write_text(text, encoding="utf-8")
    (tmp_path / "residents.csv").write_text("ward,age\nnorth,1\neast,2\n", encoding="utf-8")
    plan = load(tmp_path / "program.toml").plan()
    files = {"plan.json": json.dumps(plan_document(plan)).encode(), **strategy_files(plan)}
    for name, content in files.items():
        (tmp_path / "report" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "report" / name).write_bytes(content)
    result = subprocess.run([sys.executable, "-c", SAVED], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    economics, planning = result.stdout.split("\n")[:2]
    assert economics == ""
    assert {name.rpartition(".")[2] for name in planning.split()} <= {
        "digest",
        "release_spec",
        "released",
        "saved_plan",
        "study",
    }


def test_heavy_is_seen() -> None:
    assert "numpy" in loaded_after("import dualmandate.population") & HEAVY


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_every_dependency_in_one_process(root: Path, backward: bool) -> None:
    modules = sorted(declared_modules(root) | declared_modules(root, "audit"))
    assert {"numpy", "scipy", "altair", "vl_convert", "ortools", "highspy"} <= set(modules)
    ordered = modules[::-1] if backward else modules
    assert set(modules) <= loaded_after("\n".join(f"import {module}" for module in ordered))


def test_what_is_imported_is_declared(root: Path, trees: Mapping[Path, ast.Module]) -> None:
    sample = "import os, numpy.linalg\ndef f():\n    from torch import nn\n"
    assert imported_modules(ast.parse(sample)) == {"numpy", "torch"}
    declared = declared_modules(root)
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    known = declared | declared_modules(root, *extras)
    imported = {path: imported_modules(tree) for path, tree in trees.items()}
    assert not {str(path): names - known for path, names in imported.items() if names - known}
    assert not declared - set[str]().union(*imported.values())
