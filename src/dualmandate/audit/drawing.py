"""Draws of audits: from a key of their own, one stream a purpose, never from the secret of a release."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(key: bytes, purpose: str) -> np.random.Generator:
    """Draws for one purpose of an audit; equal for an equal key."""
    words = hashlib.blake2b(purpose.encode(), key=key[:64], digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(words, "little")))
