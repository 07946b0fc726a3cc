"""Files that survive a crash: complete or not there, on the disk before anything relies on them."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dualmandate.errors import CannotWrite

OWNER_ONLY = 0o600


def write_durably(path: Path, content: bytes, *, mode: int = OWNER_ONLY) -> None:
    """Write a whole file, for its owner alone unless another mode is stated."""
    with durably(path, mode=mode) as file:
        file.write(content)


@contextmanager
def durably(path: Path, *, mode: int = OWNER_ONLY) -> Iterator[BinaryIO]:
    """A file to write piece by piece: under another name, to the disk, then renamed, then the folder to the disk.

    Whoever is interrupted, or raises, leaves what stood there before.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(file.fileno(), mode)
                yield file
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise CannotWrite.because(error, path) from None


def discard_drafts(path: Path) -> None:
    """Remove what killed writers of a file left under other names; for the only process that now writes it."""
    for draft in path.parent.glob(f".{path.name}.*"):
        erase(draft)


def erase(path: Path) -> None:
    """Overwrite a file, then remove it; a file that is gone already is no matter."""
    try:
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
        sync_folder(path.parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CannotWrite.because(error, path) from None


def make_folders(path: Path) -> None:
    """A folder for all to see, with every folder above it that is missing, each on the disk by its name."""
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)
    except OSError as error:
        raise CannotWrite.because(error, path) from None


def make_folder(path: Path) -> None:
    """A folder for its owner alone; one that is there already stays as it is."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise CannotWrite.because(error, path) from None


def sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """One process at a time in this folder; a process that is killed lets go."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise CannotWrite.because(error, folder) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:  # some network disks have no locks
            raise CannotWrite.because(error, folder) from None
        yield
    finally:
        os.close(handle)
