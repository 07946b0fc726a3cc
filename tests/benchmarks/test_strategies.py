from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.benchmarks.work import missed

from dualmandate.benchmarks import peers, strategies
from dualmandate.benchmarks.harness import ONE_THREAD, BenchmarkRow, run_apart
from dualmandate.benchmarks.strategies import ALLOWANCE, CASES, ERROR, PEERS_VARIABLE, SECONDS, SIDES, rows
from dualmandate.errors import TooLarge
from dualmandate.workload import prefix

BY_NAME = {case.name: case for case in CASES}
RANGES = BY_NAME["all ranges 64, laplace"]
PRODUCT = BY_NAME["prefix 64 × prefix 64, gaussian"]
PRODUCT_ALONE = replace(PRODUCT, has_reference=False)

Interpreter = Callable[[str], None]


@pytest.fixture
def peer_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Interpreter:
    """Names a Python for the peers that says some words whatever it is given."""

    def named(words: str) -> None:
        program = tmp_path / "python"
        program.write_text(f"#!{sys.executable}\n{words}\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv(PEERS_VARIABLE, str(program))

    return named


def only(found: list[BenchmarkRow], unit: str, peer: str | None) -> BenchmarkRow:
    [row] = [each for each in found if (each.unit, each.peer) == (unit, peer)]
    return row


def test_every_case_has_its_own_name_and_a_target() -> None:
    assert len(BY_NAME) == len(CASES) == 17
    assert all(case.error or case.gap for case in CASES)
    assert all(case.seconds > 0 and case.name.endswith(case.noise) for case in CASES)


def test_rows_beside_a_package_and_the_reference(peer_python: Interpreter) -> None:
    peer_python("""print('{"peer": "tree 1.0", "error": 64125.0, "seconds": null}')""")
    stages: list[str] = []
    found = rows(stages.append, [RANGES])
    assert stages == ["all ranges 64, laplace"]
    error = only(found, ERROR, "tree 1.0")
    assert error.met
    assert error.ours is not None
    assert 32_000 < error.ours <= 32_070
    assert error.ratio == pytest.approx(64_125 / error.ours)
    reference = only(found, ERROR, "p-identity, one start")
    assert (reference.ours, reference.target) == (error.ours, None)
    assert reference.peer_value is not None
    assert reference.peer_value >= error.ours
    seconds = only(found, SECONDS, "tree 1.0")
    assert seconds.target == ALLOWANCE * 0.2
    assert seconds.peer_value is None
    assert only(found, SECONDS, "p-identity, one start").ratio is not None
    assert {row.unit for row in found} == {ERROR, SECONDS}  # no certificate is near for laplace noise


def test_rows_with_a_certificate_without_a_package() -> None:
    found = rows(lambda _: None, [replace(PRODUCT_ALONE, peer="a-package-that-is-not-there", bound=79_637.0, gap=1e-6)])
    assert only(found, ERROR, None).met
    assert only(found, "certified lower bound", None).met
    gap = only(found, "certified gap", None)
    assert gap.met
    assert gap.ours is not None
    assert gap.ours >= 0
    assert only(found, SECONDS, None).peer_value is None


@pytest.mark.parametrize("words", ["raise SystemExit('no jax here')", "import a_package_that_is_not_there"])
def test_a_peer_that_does_not_run_is_no_peer(peer_python: Interpreter, words: str) -> None:
    peer_python(words)
    stages: list[str] = []
    found = rows(stages.append, [PRODUCT_ALONE])
    assert only(found, ERROR, None).met
    assert stages[1].startswith(f"{PRODUCT.name}: jax-privacy does not run: ")
    assert stages[1].endswith(("no jax here", "'a_package_that_is_not_there'"))


def test_a_python_that_is_not_there_is_no_peer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PEERS_VARIABLE, str(tmp_path / "nowhere"))
    stages: list[str] = []
    assert only(rows(stages.append, [PRODUCT_ALONE]), ERROR, None).met
    assert "does not run" in stages[1]


def test_a_refused_case_meets_no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise TooLarge("a strategy for everything", why="it is", instead="ask for less")

    monkeypatch.setattr("dualmandate.mechanism.optimize_strategy", refuse)
    found = SIDES["ours"](prefix(4), "laplace")
    assert (found.error, found.complaint) == (None, "refused: a strategy for everything")
    row = BenchmarkRow("case", found.error, ERROR, target=1.0, peer="peer", peer_value=2.0)
    assert (row.met, row.ratio) == (False, None)


def test_a_floor_is_met_from_above() -> None:
    assert [BenchmarkRow("case", ours, "bound", target=2.0, is_floor=True).met for ours in (1.9, 2.0, 2.1)] == [
        False,
        True,
        True,
    ]


def test_a_fresh_process_has_one_thread() -> None:
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    environment = run_apart([sys.executable, "-c", code], case="environment", environment=ONE_THREAD)
    assert environment.items() >= ONE_THREAD.items()


def test_peers_are_given_the_queries_up_to_a_rotation() -> None:
    [root] = RANGES.roots()
    assert root.T @ root == pytest.approx(RANGES.build().gram())
    for root in PRODUCT.roots():  # one an attribute
        assert root.T @ root == pytest.approx(prefix(64).gram())


def layers(size: int, branches: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Counts of a complete tree over `size` leaves, from the root down; size is a power of `branches`."""
    counts, width = [], size
    while width >= 1:
        counts.append(np.kron(np.eye(size // width, dtype=np.int64), np.ones((1, width), dtype=np.int64)))
        width //= branches
    return np.concatenate(counts)


def test_the_error_of_a_tree_of_counts() -> None:
    """Published for the binary tree: 2,840 for prefix sums of 64 cells, 132,336 for all ranges; sevenfold counted."""

    def tree(*_: object, leaf_count: int, branching_factor: int) -> Callable[[list[int]], list[int]]:
        return lambda counts: [int(each) for each in layers(leaf_count, branching_factor) @ np.array(counts)]

    def consistent(*, branching_factor: int, **_: object) -> Callable[[list[int]], list[float]]:
        inverse = np.linalg.pinv(layers(64, branching_factor).astype(np.float64))
        return lambda noisy: [float(each) for each in inverse @ np.array(noisy)]

    package = SimpleNamespace(
        vector_domain=lambda domain: domain,
        atom_domain=lambda T: T,  # noqa: N803
        l1_distance=lambda T: T,  # noqa: N803
        t=SimpleNamespace(make_b_ary_tree=tree, make_consistent_b_ary_tree=consistent),
    )
    [ranges] = RANGES.roots()
    assert peers._tree_error(package, ranges, 2) == pytest.approx(132_336, abs=0.5)
    assert peers._tree_error(package, np.tri(64), 2) == pytest.approx(2_840, abs=0.5)


def test_the_error_of_a_dense_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell alone, twice as large as it need be: the squares of all queries; two attributes multiply."""
    modules = {
        "jax": SimpleNamespace(config=SimpleNamespace(update=lambda *_: None), numpy=SimpleNamespace(asarray=np.array)),
        "jax_privacy.matrix_factorization.dense": SimpleNamespace(optimize=lambda size, A: 2.0 * np.eye(size)),  # noqa: N803
    }
    monkeypatch.setattr(peers, "import_module", modules.__getitem__)
    monkeypatch.setattr("importlib.metadata.version", {"jax-privacy": "2.0"}.__getitem__)
    answer = peers.found("jax-privacy", [np.tri(3), np.eye(5)])
    assert answer is not None
    assert (answer["peer"], answer["error"]) == ("jax-privacy 2.0", pytest.approx(6.0 * 5.0))
    assert isinstance(answer["seconds"], float)


def test_a_package_that_is_not_installed_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "queries.npz"
    np.savez(file, np.eye(2))
    peers.main("a-package-that-is-not-there", str(file))
    assert json.loads(capsys.readouterr().out) is None


@pytest.mark.slow
def test_errors_are_as_small_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, without the slow reference: tests of the strategies themselves hold every error against it."""
    monkeypatch.delenv(PEERS_VARIABLE, raising=False)
    monkeypatch.setattr(strategies, "apart", lambda work, *given: asdict(work(*given)))
    found = rows(lambda _: None, [replace(case, has_reference=False) for case in CASES if case.seconds <= 3])
    assert len({row.case for row in found}) == 13
    assert missed(found) == []
