"""What an attacker learns: reconstruction, re-identification, membership, suppression, checks of a DP claim.

The room is a door too: `dualmandate.audit(target)` audits a program, a release or a folder of published tables.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Door(ModuleType):
    """A module that can be called: the name of the room is the name of the act."""

    def __call__(self, target: object, **asked: Any) -> object:
        """Audit a target; the composer knows every kind of it."""
        return import_module("dualmandate.program").audit(target, **asked)


sys.modules[__name__].__class__ = _Door
