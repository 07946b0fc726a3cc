"""What the tests of strategies share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(20100401)
