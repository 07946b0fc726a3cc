"""What only a door can refuse: a command that cannot be read, and a folder that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

from dualmandate.errors import Place, Refusal


class InvalidRequest(Refusal):
    """A command, option or argument that does not exist, or one that is missing."""

    code = "invalid request"


class CannotWrite(Refusal):
    """A place on disk where nothing can be written, or where something stands that must not be overwritten."""

    code = "cannot write"

    @classmethod
    def because(cls, error: OSError, path: Path | str) -> CannotWrite:
        """The refusal for an error of the operating system while writing to `path`."""
        reason = os.strerror(error.errno) if error.errno is not None else "the operating system refused"
        return cls(
            f"'{path}' cannot be written",
            why=reason[:1].lower() + reason[1:],
            instead="name a folder you may write to, on a disk with room",
            where=Place(file=str(path)),
        )
