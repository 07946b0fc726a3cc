"""Keys and secrets: a file each, for its owner alone, and nothing in what is printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dualmandate.errors import CannotWrite, UnsafeKey
from dualmandate.ledger import LedgerKey, make_key, read_key
from dualmandate.ledger.chain import SecretFolder


@pytest.fixture
def secrets_folder(tmp_path: Path, key: LedgerKey) -> SecretFolder:
    return SecretFolder(tmp_path / "secrets", key, "a ledger")


def test_a_key_is_made_once_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "key"
    key = make_key(path)
    assert read_key(path) == key
    assert path.stat().st_mode & 0o777 == 0o600
    assert key.content.hex() not in repr(key)
    with pytest.raises(CannotWrite, match="exists already"):
        make_key(path)
    assert read_key(path) == key


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
def test_a_key_that_others_may_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    make_key(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(UnsafeKey, match=f"open to others .mode {mode:04o}"):
        read_key(tmp_path / "key")


@pytest.mark.parametrize("text", ["", "canary", "ab" * 31, "ab" * 33, "é" * 64])
def test_a_file_without_a_key_is_refused_and_not_quoted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(UnsafeKey) as refusal:
        read_key(path)
    assert "canary" not in str(refusal.value)
    with pytest.raises(UnsafeKey, match="cannot be read"):
        read_key(tmp_path / "nothing")


def test_a_secret_is_sealed_fresh_and_opened(secrets_folder: SecretFolder) -> None:
    secrets_folder.make("r1")
    secrets_folder.make("r2")
    first, second = (secrets_folder.open(name).open_for("a test") for name in ("r1", "r2"))
    assert len(first) == 32
    assert first != second
    assert secrets_folder.path("r1").stat().st_mode & 0o777 == 0o600
    assert first not in secrets_folder.path("r1").read_bytes()


@pytest.mark.parametrize("place", [0, 40, 95])
def test_a_changed_secret_is_refused(secrets_folder: SecretFolder, place: int) -> None:
    secrets_folder.make("r1")
    sealed = bytearray(secrets_folder.path("r1").read_bytes())
    sealed[place] ^= 1
    secrets_folder.path("r1").write_bytes(sealed)
    with pytest.raises(UnsafeKey, match="damaged"):
        secrets_folder.open("r1")


def test_a_secret_belongs_to_one_release_one_ledger_and_one_key(secrets_folder: SecretFolder, tmp_path: Path) -> None:
    secrets_folder.make("r1")
    os.link(secrets_folder.path("r1"), secrets_folder.path("r2"))
    others = [
        (secrets_folder, "r2"),
        (SecretFolder(secrets_folder.folder, secrets_folder.key, "another ledger"), "r1"),
        (SecretFolder(secrets_folder.folder, make_key(tmp_path / "another key"), "a ledger"), "r1"),
    ]
    for folder, release in others:
        with pytest.raises(UnsafeKey, match="damaged"):
            folder.open(release)


def test_a_secret_open_to_others_is_refused(secrets_folder: SecretFolder) -> None:
    secrets_folder.make("r1")
    secrets_folder.path("r1").chmod(0o644)
    with pytest.raises(UnsafeKey, match="open to others"):
        secrets_folder.open("r1")


def test_a_destroyed_secret_is_overwritten_and_gone(secrets_folder: SecretFolder, tmp_path: Path) -> None:
    secrets_folder.make("r1")
    # A second name of the same file shows what became of its content.
    os.link(secrets_folder.path("r1"), tmp_path / "copy")
    secrets_folder.destroy("r1")
    assert not secrets_folder.path("r1").exists()
    assert (tmp_path / "copy").read_bytes() == bytes(96)
    secrets_folder.destroy("r1")
    with pytest.raises(UnsafeKey, match="cannot be read"):
        secrets_folder.open("r1")
