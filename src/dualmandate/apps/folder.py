"""Folders that commands read and write: the file meant by one, and what is written appears whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp

from dualmandate.errors import CannotWrite, InvalidFile, Place

# what a disk says of itself; any other error while writing is our bug
DISK_ERRORS = {
    *(errno.EACCES, errno.EDQUOT, errno.EEXIST, errno.EFBIG, errno.EIO, errno.EISDIR, errno.ENOSPC),
    *(errno.ENOTDIR, errno.ENOTEMPTY, errno.EPERM, errno.EROFS),
}


def check_writable(directory: Path) -> None:
    """Refuse, before any work is done, a folder that can never be written."""
    try:
        standing = _nearest_standing(directory)
    except OSError as error:
        raise CannotWrite.because(error, directory) from None
    if not standing.is_dir():
        raise CannotWrite(
            f"'{directory}' cannot be a folder",
            why=f"'{standing}' is a file",
            instead="name a folder, or one that does not exist yet",
            where=Place(file=str(standing)),
        )
    if not os.access(standing, os.W_OK | os.X_OK):
        raise CannotWrite(
            f"'{directory}' cannot be written",
            why=f"you may not write to '{standing}'",
            instead="name a folder you may write to",
            where=Place(file=str(standing)),
        )
    try:
        Path(mkdtemp(prefix=DRAFT, dir=standing)).rmdir()  # what is allowed, a read-only disk refuses
    except OSError as error:
        raise CannotWrite.because(error, directory) from None


OWNER_FILE, OWNER_FOLDER = 0o600, 0o700
DRAFT, BEGUN = ".dualmandate-draft-", ".dualmandate-begun-"


def check_private(directory: Path) -> None:
    """Refuse a folder for internal files that others may enter."""
    if directory.is_dir() and directory.stat().st_mode & 0o077:
        raise CannotWrite(
            f"'{directory}' is open to others",
            why="what is internal lies in a folder that only its owner can enter",
            instead=f"chmod 700 '{directory}', or name a folder that does not exist yet",
            where=Place(file=str(directory)),
        )


@contextmanager
def written_whole(directory: Path, *, private: bool = False) -> Iterator[Path]:
    """A folder to write into, moved to `directory` at the end; on any refusal, bug or interruption it is gone.

    Files of the same name are replaced one by one, each whole; other files in `directory` stay. What is `private` is
    for its owner alone, files and folders. What a killed process left of such a folder is removed by the next one.
    """
    from dualmandate.publication.wall import private_folder, remove_left_behind

    check_writable(directory)
    remove_left_behind(directory.absolute().parent, DRAFT, BEGUN)  # of one that was killed before the folder stood
    with ExitStack() as held:
        try:
            # beside what it becomes: a move within one disk is a rename
            draft = held.enter_context(private_folder(_nearest_standing(directory), DRAFT, BEGUN))
        except OSError as error:
            raise CannotWrite.because(error, directory) from None
        try:
            yield draft
            _move(draft, directory, private=private)
        except OSError as error:
            if error.errno in DISK_ERRORS:
                raise CannotWrite.because(error, directory) from None
            raise


def write_files(files: Mapping[str, str | bytes], folder: Path) -> None:
    """Write files, with the folders they stand in."""
    for file, content in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode(errors="surrogateescape"))


def json_text(document: Mapping[str, object]) -> str:
    """A JSON document as it stands in a file."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _nearest_standing(directory: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    here = directory.absolute()
    while not here.exists() and here != here.parent:
        here = here.parent
    return here


def _move(draft: Path, directory: Path, *, private: bool) -> None:
    if private:
        for path in draft.rglob("*"):
            path.chmod(OWNER_FOLDER if path.is_dir() else OWNER_FILE)
    else:
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o777 & ~mask)  # a draft is private, what it becomes is like any other folder
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        draft.rename(directory)
        return
    for path in sorted(draft.rglob("*")):
        target = directory / path.relative_to(draft)
        if path.is_dir():
            target.mkdir(exist_ok=True, mode=OWNER_FOLDER if private else 0o777)
        else:
            path.replace(target)


def file_meant(given: Path, name: str, kind: str, begin: str) -> Path:
    """The file meant by itself or by the folder that holds it; `kind` and `begin` are words of the refusal."""
    inside = given / name
    try:
        if not given.is_dir() or inside.exists():
            return inside if given.is_dir() else given
    except OSError:  # not to be looked at: whoever opens it will say why
        return given
    raise InvalidFile(
        f"the folder '{given}' holds no {name}",
        why=f"a folder stands for the {kind} file in it",
        instead=f"name the {kind} file itself, or begin with `{begin}`",
        where=Place(file=str(given)),
    )
