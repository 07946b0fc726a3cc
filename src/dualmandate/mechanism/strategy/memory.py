"""Work that would not fit into this machine's memory is refused before it starts, with what it would take."""

from __future__ import annotations

import os

from dualmandate.errors import TooLarge

SHARE = 0.8  # of the machine's memory that one piece of work may take
UNKNOWN = 8 * 2**30  # bytes, where the system does not say what it has


def machine_memory() -> int:
    """Bytes of this machine's memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN


def require_memory(needed: float, what: str, *, instead: str) -> None:
    """Refuse work that takes more bytes than this machine can give it."""
    available = SHARE * machine_memory()
    if needed > available:
        raise TooLarge(
            f"{what}, which takes some {_size(needed)} of memory",
            why=f"this machine can give it {_size(available)}",
            instead=instead,
        )


def _size(count: float) -> str:
    return f"{count / 2**30:,.3g} GiB" if count >= 2**30 else f"{count / 2**20:,.3g} MiB"
