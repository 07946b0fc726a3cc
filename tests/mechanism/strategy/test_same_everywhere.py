"""The same workload gives the same published rows, whatever linear algebra and instructions the processor has.

Each kind of processor is imitated in a process of its own: kernels of OpenBLAS, instructions that numpy, the compiler
of loops and the C library may use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DISPATCHED = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
PLAIN = {  # nothing beyond what every processor of the family has
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED),
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F",
}
# A processor imitates what it has the instructions for.
WIDEST = "SkylakeX" if "avx512f" in Path("/proc/cpuinfo").read_text(encoding="utf-8") else "Sandybridge"
PROCESSORS = [PLAIN, *({"OPENBLAS_CORETYPE": name} for name in ("Haswell", WIDEST, "Zen"))]
SMALL = "prefix(64), all_range(20), stack(prefix(30), identity(30)), marginals((4, 3, 5), (1, 2))"
LARGE = "prefix(128), prefix(256), all_range(256)"
WIDE = "stack(kron(prefix(12), total(9)), kron(total(12), all_range(9)), kron(prefix(12), prefix(9)))"
CODE = """
from dualmandate.mechanism import optimize_strategy
from dualmandate.mechanism.strategy.strategy_file import strategy_digest
from dualmandate.workload import all_range, identity, kron, marginals, prefix, stack, total
for workload in [{workloads}]:
    print(strategy_digest(optimize_strategy(workload, {noise!r}).exact))
"""


def digests(workloads: str, noise: str, processor: dict[str, str], caches: Path) -> list[str]:
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"} | processor
    if "NUMBA_CPU_NAME" in processor:
        environment["NUMBA_CACHE_DIR"] = str(caches)
    words = [sys.executable, "-W", "ignore", "-c", CODE.format(workloads=workloads, noise=noise)]
    result = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_small_workloads(noise: str, tmp_path: Path) -> None:
    first, second = (digests(SMALL, noise, processor, tmp_path) for processor in (PLAIN, {}))
    assert len(set(first)) == 4
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize(("workloads", "noise"), [(f"{LARGE}, {WIDE}", "laplace"), (WIDE, "gaussian")])
def test_on_four_kinds_of_processors(workloads: str, noise: str, tmp_path: Path) -> None:
    first, *others = (digests(workloads, noise, processor, tmp_path) for processor in PROCESSORS)
    assert first
    assert all(other == first for other in others)
