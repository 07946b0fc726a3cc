"""Whose noise it is: one key for each measurement of one release.

Noise is a function of its key and of the cell's place. Two releases that met the same noise would show their difference
exactly, so a key is bound to everything that may differ between them: the sampler's version, the plan, the data and
the name of the measurement.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import sha256

from dualmandate.errors import InvalidRequest

SAMPLER_VERSION = 1  # raised whenever the same words would become other noise: laws, levels, addresses
KEY_BYTES = 32


@dataclass(frozen=True)
class NoiseKey:
    """256 bits for ChaCha20, made by `subkey`; never printed. Whoever has it and the release has the exact counts."""

    content: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _refuse_unless_key(self.content, "a noise key")


def subkey(
    secret: bytes, plan_digest: str, *, histogram_mac: bytes, measurement: str, version: int = SAMPLER_VERSION
) -> NoiseKey:
    """The key of one measurement: HMAC-SHA-256 under the release's secret of what it is bound to.

    The message is version, plan digest, HMAC of the exact histogram and the measurement's name, each preceded by its
    length in bytes (64 bits, little-endian), so that no two lists of fields give the same message.
    """
    _refuse_unless_key(secret, "the secret of a release")
    fields = (str(version).encode(), plan_digest.encode(), histogram_mac, measurement.encode())
    message = b"".join(len(each).to_bytes(8, "little") + each for each in fields)
    return NoiseKey(hmac.new(secret, message, sha256).digest())


def _refuse_unless_key(content: bytes, name: str) -> None:
    if not isinstance(content, bytes) or len(content) != KEY_BYTES:
        raise InvalidRequest(
            f"{name} that is not {KEY_BYTES} bytes",
            why="the promise of noise rests on 256 bits that nobody can guess",
            instead=f"take {KEY_BYTES} bytes from the operating system's generator",
        )
