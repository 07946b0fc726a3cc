from __future__ import annotations

import hashlib
import hmac
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import noise
from dualmandate.mechanism.noise import SAMPLER_VERSION, GaussianSampler, LaplaceSampler, NoiseKey, Sampler, subkey

SECRET = bytes(range(32))
CHANGES = [
    {"plan": "another plan"},
    {"data": b"other data"},
    {"measurement": "another table"},
    {"version": SAMPLER_VERSION + 1},
]


def test_a_key_is_a_mac_of_prefixed_fields() -> None:
    message = b""
    for each in (b"1", b"plan", b"data", b"table"):
        message += len(each).to_bytes(8, "little") + each
    found = subkey(SECRET, "plan", histogram_mac=b"data", measurement="table", version=1)
    assert found.content == hmac.digest(SECRET, message, hashlib.sha256)
    assert subkey(SECRET, "plan", histogram_mac=b"data", measurement="table").content == found.content
    assert SAMPLER_VERSION == 1


def test_fields_cannot_flow_into_each_other() -> None:
    one = subkey(SECRET, "ab", histogram_mac=b"c", measurement="d")
    other = subkey(SECRET, "a", histogram_mac=b"bc", measurement="d")
    assert one != other


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_other_lengths_are_refused(length: int) -> None:
    with pytest.raises(InvalidRequest, match="not 32 bytes"):
        NoiseKey(bytes(length))
    with pytest.raises(InvalidRequest, match="not 32 bytes"):
        subkey(bytes(length), "plan", histogram_mac=b"data", measurement="table")


def test_a_key_is_never_printed(key: NoiseKey) -> None:
    assert f"{key!r} {key!s}" == "NoiseKey() NoiseKey()"


def test_no_public_function_takes_a_seed() -> None:
    modules = [
        importlib.import_module(f"{noise.__name__}.{each.name}") for each in pkgutil.iter_modules(noise.__path__)
    ]
    things = [thing for module in modules for _, thing in inspect.getmembers(module) if _is_ours(thing)]
    parameters = {name for thing in things for name in inspect.signature(thing).parameters}
    assert {"key", "cells", "secret"} <= parameters
    assert not parameters & {"seed", "random_state", "generator", "rng"}


def _is_ours(thing: object) -> bool:
    callable_ = inspect.isfunction(thing) or inspect.isclass(thing)
    return callable_ and getattr(thing, "__module__", "").startswith(noise.__name__)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
@pytest.mark.parametrize(
    "sampler", [LaplaceSampler(Fraction(10)), GaussianSampler(Fraction(100))], ids=["laplace", "gaussian"]
)
def test_noise_is_independent_when_anything_changes(
    make_key: Callable[..., NoiseKey], change: dict[str, str | bytes | int], sampler: Sampler
) -> None:
    cells = range(200_000)
    one, other = sampler.draw(make_key(), cells), sampler.draw(make_key(**change), cells)
    assert abs(np.corrcoef(one, other)[0, 1]) < 4.5 / len(cells) ** 0.5
    # Independent draws are equal as often as chance has it, and no more often where one of them is known.
    shares = [np.bincount(each - min(one.min(), other.min()), minlength=2000) / len(cells) for each in (one, other)]
    expected = float(shares[0] @ shares[1])
    assert abs(np.mean(one == other) - expected) < 4.5 * (expected / len(cells)) ** 0.5


def test_edited_plans_would_meet_the_same_noise_under_one_key(key: NoiseKey) -> None:
    """Why keys are bound: under one key, noise of two scales rises and falls together."""
    one, other = (LaplaceSampler(Fraction(scale)).draw(key, range(10_000)) for scale in (10, 5))
    assert np.corrcoef(one, other)[0, 1] > 0.99
