"""Keys for tests: made as every key is, from a secret that is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dualmandate.mechanism.noise import NoiseKey, subkey


@pytest.fixture(scope="session")
def make_key() -> Callable[..., NoiseKey]:
    def make(plan: str = "plan", *, data: bytes = b"data", measurement: str = "table", version: int = 1) -> NoiseKey:
        return subkey(bytes(range(32)), plan, histogram_mac=data, measurement=measurement, version=version)

    return make


@pytest.fixture(scope="session")
def key(make_key: Callable[..., NoiseKey]) -> NoiseKey:
    return make_key()
