"""The parts of the test suite that are not Python packages: look for them, and install them where that is allowed.

    python3 scripts/system_parts.py

Runs before anything is downloaded. As root, or with sudo that asks no password, it installs Debian's packages.
Otherwise it prints the one line to paste and leaves: the tests that need a missing part are then counted as not run,
and the test run ends red.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Part:
    """One system part: what people call it, Debian's package, the mark of the tests that need it, how to find it."""

    name: str
    package: str
    mark: str
    found: Callable[[], bool]


def library_loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def postgres_program(name: str) -> Path | None:
    """A program of PostgreSQL's server: Debian keeps them off the path, one folder a version."""
    found = shutil.which(name)
    if found is not None:
        return Path(found).resolve()
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: path.parts)
    return versions[-1] if versions else None


PARTS = (
    Part("chromium", "chromium", "browser", lambda: shutil.which("chromium") is not None),
    Part("a font", "fonts-liberation", "browser", lambda: any(Path("/usr/share/fonts").rglob("*.[to]tf"))),
    Part("libatomic", "libatomic1", "browser", lambda: library_loads("libatomic.so.1")),  # playwright's driver links it
    Part("PostgreSQL", "postgresql", "postgres", lambda: postgres_program("initdb") is not None),
    Part("OpenSSH", "openssh-client", "ssh", lambda: shutil.which("ssh-keygen") is not None),
    Part("Java", "default-jre-headless", "spark", lambda: shutil.which("java") is not None),
)


def missing(parts: Sequence[Part] = PARTS) -> tuple[Part, ...]:
    return tuple(part for part in parts if not part.found())


def install_words(parts: Sequence[Part]) -> list[str]:
    return ["apt-get", "install", "--yes", "--no-install-recommends", *sorted({part.package for part in parts})]


def line_to_paste(parts: Sequence[Part]) -> str:
    return f"sudo apt-get update && sudo {' '.join(install_words(parts))}"


def rights() -> list[str] | None:
    """What goes before a command to run it as root, or None where that needs a password."""
    if os.geteuid() == 0:
        return []
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return ["sudo", "-n"]
    return None


def install(parts: Sequence[Part], root: Sequence[str]) -> None:
    """Debian's packages, without a question asked; a failure is left to the check that follows."""
    quietly = [*root, "env", "DEBIAN_FRONTEND=noninteractive"]
    wait = ["-qq", "-o", "DPkg::Lock::Timeout=120"]
    for words in (["apt-get", "update"], install_words(parts)):
        subprocess.run([*quietly, *words, *wait], stdout=sys.stderr, check=False)


def main() -> None:
    absent = missing()
    root = rights()
    if absent and root is not None and shutil.which("apt-get"):
        print(f"installing {', '.join(part.package for part in absent)}", file=sys.stderr, flush=True)
        install(absent, root)
        absent = missing()
    if absent:
        print(
            f"missing: {', '.join(part.name for part in absent)}; the tests that need it will not run. To install it:\n"
            f"  {line_to_paste(absent)}",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    main()
