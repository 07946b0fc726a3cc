"""Who approved, and who published: words that are signed with a person's own ssh key, and names that are only typed.

An act is signed over everything it says: which ledger, account, plan, loss and person. `ssh-keygen` signs and checks,
so that keys, agents and hardware tokens are those that people have already. Who may sign in which role is a file of
allowed signers, as ssh has them: a name, and that person's public key. A project that names one takes no other word.
"""

from __future__ import annotations

import re
import secrets
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from dualmandate.errors import LedgerTampered, NotApproved, Place
from dualmandate.ledger.chain import Event, EventKind, written_details

PATIENCE = 300.0  # seconds: a person may have to type a passphrase or touch a token
PROGRAM = "ssh-keygen"
_KEY = re.compile(r"\bkey (SHA256:\S+)")
_LEFT_OUT = ("signature", "supersedes")  # of an entry: what is not known when it is signed


class Role(StrEnum):
    """What a person does, and the ssh namespace in which it is signed: a signature for one is none for the other."""

    APPROVAL = "approval"
    PUBLICATION = "publication"

    @property
    def namespace(self) -> str:
        return f"dualmandate-{self.value}"


ROLE_OF = {  # of the entries that may be signed; a grant is an approval too
    EventKind.APPROVED: Role.APPROVAL,
    EventKind.DECIDED: Role.APPROVAL,
    EventKind.RESERVED: Role.PUBLICATION,
}


@dataclass(frozen=True)
class Signature:
    """A person's signature of one act. `nonce` makes it good for this act and no second one."""

    text: str  # as ssh writes it
    key: str  # the fingerprint of the public key
    nonce: str

    def document(self) -> dict[str, object]:
        """As an entry records it."""
        return {"text": self.text, "key": self.key, "nonce": self.nonce}


def read_signature(document: Mapping[str, Any]) -> Signature | None:
    """The signature that the details of an entry hold."""
    found = document.get("signature")
    return None if found is None else Signature(str(found["text"]), str(found["key"]), str(found["nonce"]))


def statement(role: Role, ledger: str, by: str, account: str, said: Mapping[str, object], nonce: str) -> bytes:
    """What is signed: the act, as one line of JSON that is always the same for the same content."""
    kept = {key: value for key, value in said.items() if key not in _LEFT_OUT}
    about = {"schema": f"{role.value}-statement/1", "ledger": ledger, "by": by, "account": account}
    return written_details({**about, "nonce": nonce, "said": kept}).encode("ascii")


def sign(role: Role, ledger: str, by: str, account: str, said: Mapping[str, object], *, key: Path) -> Signature:
    """Sign an act with the key in a file; or with that of an agent, where the file holds a public key."""
    nonce = secrets.token_hex(16)
    signed = statement(role, ledger, by, account, said, nonce)
    made = _run(["-q", "-Y", "sign", "-f", str(key), "-n", role.namespace], signed)
    if made is None or "BEGIN SSH SIGNATURE" not in made:
        raise NotApproved(
            f"nothing could be signed with '{key.name}'",
            why=f"{PROGRAM} found no such key, or its passphrase, its agent or its token was not there",
            instead="name the file of an ssh key that you can use",
            where=Place(file=str(key)),
        )
    return Signature(made, _key_of(role, signed, made) or "", nonce)


@dataclass(frozen=True)
class Signers:
    """Who may approve and who may publish in a project, each in a file of allowed signers, where it names one.

    `two_persons` asks that who publishes is not the only one who approved, by name and by key.
    """

    approvers: Path | None = None
    publishers: Path | None = None
    two_persons: bool = False

    def of(self, role: Role) -> Path | None:
        """The file of a role."""
        return self.approvers if role is Role.APPROVAL else self.publishers

    def check(self, role: Role, signed: bytes, by: str, signature: Signature | None) -> None:
        """Refuse an act that is not signed as the project asks."""
        file = self.of(role)
        if signature is None:
            if file is None:
                return
            article = "an" if role is Role.APPROVAL else "a"
            raise NotApproved(
                f"the {role} by '{by}' is not signed",
                why=f"the project names who may sign {article} {role}, and takes no name that is only typed",
                instead="sign it: --sign KEY, with the ssh key that stands beside your name there",
                where=Place(file=str(file)),
            )
        if file is None:
            raise NotApproved(
                f"the {role} by '{by}' is signed, and the project names nobody who may",
                why="without a file of allowed signers nobody knows whose key that is",
                instead=f'name the file in dualmandate.toml: {role_setting(role)} = "FILE"',
            )
        if not self.knows(role, signed, by, signature):
            raise NotApproved(
                f"the signature of the {role} is not one of '{by}'",
                why="the file of allowed signers knows no such key under this name, or not at this time",
                instead="state --by NAME as it stands there, and sign with that person's key",
                where=Place(file=str(file)),
            )

    def knows(self, role: Role, signed: bytes, by: str, signature: Signature) -> bool:
        """Whether the file of a role has this person with this key, and the signature is good."""
        file = self.of(role)
        if file is None:
            return False
        words = ["-Y", "verify", "-f", str(file), "-I", by, "-n", role.namespace]
        said = _with_signature(words, signed, signature.text)
        found = None if said is None else _KEY.search(said)
        return found is not None and found[1] == signature.key


def role_setting(role: Role) -> str:
    """The setting of the project file that names who may sign."""
    return "approvers" if role is Role.APPROVAL else "publishers"


def check_recorded(ledger: str, event: Event) -> tuple[bytes, Signature] | None:
    """What an entry says was signed, and the signature; refused where the two do not belong together.

    None where it is not signed. Whether the signer may is a question of its own, which a file of signers answers.
    """
    said = event.document()
    signature = read_signature(said)
    if signature is None:
        return None
    assert event.account is not None
    role = ROLE_OF[event.kind]
    signed = statement(role, ledger, event.by, event.account, said, signature.nonce)
    if _key_of(role, signed, signature.text) != signature.key:
        raise LedgerTampered(
            f"entry {event.sequence} of the ledger is not what was signed",
            why="its signature is about something else, or of another key than it says",
            instead="ask the person whose name it bears; who wrote it has the ledger's key",
        )
    return signed, signature


def signed_words(key: str | None) -> str:
    """How a page labels a name: signed with a key, or only typed."""
    return "unsigned" if key is None else f"signed with {key}"


def standing_words(facts: Mapping[str, Any]) -> str | None:
    """Who stands behind a release, from what its release.json says; None where it says nothing."""
    if "signatures" not in facts:
        return None
    said = facts["signatures"]
    approvals = [_person(each, "approved") for each in said["approvals"]]
    return "; ".join([*approvals, _person(said["publication"], "published")]) + "."


def _person(said: Mapping[str, Any], act: str) -> str:
    if said["key"] is None:
        return f"{act}, unsigned: the ledger has a name that was typed"
    return f"{act} by {said['by']}, {signed_words(said['key'])}"


def _key_of(role: Role, signed: bytes, text: str) -> str | None:
    """The fingerprint of the key that made a good signature, whoever it belongs to."""
    said = _with_signature(["-Y", "check-novalidate", "-n", role.namespace], signed, text)
    found = None if said is None else _KEY.search(said)
    return None if found is None else found[1]


def _with_signature(words: list[str], signed: bytes, text: str) -> str | None:
    with tempfile.NamedTemporaryFile("w", suffix=".sig") as file:
        file.write(text)
        file.flush()
        return _run([*words, "-s", file.name], signed)


def _run(words: list[str], content: bytes) -> str | None:
    """What ssh-keygen prints; None where it refuses."""
    try:
        ran = subprocess.run([PROGRAM, *words], input=content, capture_output=True, timeout=PATIENCE, check=True)
    except FileNotFoundError:
        raise NotApproved(
            f"{PROGRAM} is not installed",
            why="signatures are made and checked by it",
            instead="install OpenSSH 8.1 or later (Debian: openssh-client)",
        ) from None
    except (OSError, subprocess.SubprocessError):
        return None
    return ran.stdout.decode("utf-8", errors="replace")
