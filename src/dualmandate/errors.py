"""The tree of refusals: what the house says when it will not do something.

A refusal says what, where, why and what instead. It never holds a confidential number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from os import PathLike, strerror
from typing import ClassVar, Self


@dataclass(frozen=True)
class Place:
    """Where in the user's files a refusal points: file, line (from 1) and dotted key, each if known."""

    file: str | None = None
    line: int | None = None
    key: str | None = None

    def __str__(self) -> str:
        spot = self.file or ""
        if self.line is not None:
            spot = f"{spot}, line {self.line}" if spot else f"line {self.line}"
        if self.key is not None:
            spot = f"{spot}, {self.key}" if spot else self.key
        return spot


class Refusal(Exception):
    """The work asked for will not be done; nothing was written and nothing was spent."""

    code: ClassVar[str] = "refusal"  # in documents and the ledger: the name of the class, in words

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower()

    def __init__(self, what: str, *, why: str, instead: str, where: Place | None = None) -> None:
        super().__init__(what)
        self.what, self.why, self.instead, self.where = what, why, instead, where

    def at(self, place: Place) -> Self:
        """The same refusal with the parts of its place that it did not know yet."""
        known = self.where or Place()
        placed = copy(self)
        placed.where = Place(
            file=known.file if known.file is not None else place.file,
            line=known.line if known.line is not None else place.line,
            key=known.key if known.key is not None else place.key,
        )
        return placed

    def advising(self, instead: str) -> Self:
        """The same refusal with another way out."""
        advised = copy(self)
        advised.instead = instead
        return advised

    def document(self) -> dict[str, object]:
        """The refusal as the JSON document `refusal/1`."""
        place = self.where or Place()
        return {
            "schema": "refusal/1",
            "code": self.code,
            "what": self.what,
            "where": {"file": place.file, "line": place.line, "key": place.key},
            "why": self.why,
            "instead": self.instead,
        }

    def __copy__(self) -> Self:
        return type(self)(self.what, why=self.why, instead=self.instead, where=self.where)

    def __str__(self) -> str:
        lines = [self.what]
        if self.where is not None and str(self.where):
            lines.append(f"  where:   {self.where}")
        lines += [f"  why:     {self.why}", f"  instead: {self.instead}"]
        return "\n".join(lines)


class InvalidProgram(Refusal):
    """The program file cannot be used as it stands."""


class InvalidFile(InvalidProgram):
    """The file is not there, not text, not TOML, or too large to be a program."""


class UnknownKey(InvalidProgram):
    """The program file holds a key that nobody reads."""


class MissingKey(InvalidProgram):
    """The program file leaves out a key that must be stated."""


class InvalidValue(InvalidProgram):
    """The program file gives a key a value that cannot be meant."""


class InvalidDomain(Refusal):
    """Attributes, levels, hierarchies or structural zeros that cannot describe a record."""


class InvalidInvariant(Refusal):
    """Exact totals that the neighbor relation cannot live with."""


class InvalidLoss(Refusal):
    """A privacy loss that is not a positive, finite number."""


class InvalidWorkload(Refusal):
    """A tabulation or query matrix that asks for nothing that exists."""


class UnsupportedWorkload(Refusal):
    """Queries that a strategy cannot answer."""


class InvalidMechanism(Refusal):
    """A technology that cannot serve this workload or this protection."""


class TooLarge(Refusal):
    """A dense object that would not fit in memory."""


class IncompatibleUnits(Refusal):
    """Quantities that cannot be added or compared."""


class InvalidPreferences(Refusal):
    """Costs, weights and values that cannot be preferences."""


class NoOptimum(Refusal):
    """Welfare rises without limit: no privacy loss is the best."""


class ConflictingLimits(Refusal):
    """A cap and a floor that no privacy loss satisfies."""


class UnknownName(Refusal):
    """A program, schema or benchmark that does not exist."""


class InvalidRequest(Refusal):
    """A command, option or argument that does not exist, or one that is missing."""


class CannotWrite(Refusal):
    """A place on disk where nothing can be written, or where something stands that must not be overwritten."""

    @classmethod
    def because(cls, error: OSError, path: PathLike[str] | str) -> Self:
        """The refusal for an error of the operating system while writing to `path`."""
        reason = strerror(error.errno) if error.errno is not None else "the operating system refused"
        return cls(
            f"'{path}' cannot be written",
            why=reason[:1].lower() + reason[1:],
            instead="name a folder you may write to, on a disk with room",
            where=Place(file=str(path)),
        )


class NotAuthenticated(Refusal):
    """A request to the service without a key, or with one that it does not know."""


class NotAllowed(Refusal):
    """A request to the service that the role of its key may not make."""


class TooManyRequests(Refusal):
    """More requests to the service in a time than its limit allows."""


class StillWorking(Refusal):
    """A question that takes longer than a request may: it goes on, and asking the same again finds its answer."""


class InvalidQuery(Refusal):
    """A question that is not one that can be asked, or that names what is not declared."""


class InvalidRule(Refusal):
    """A rule for values outside the domain that an attribute or a neighbor relation cannot live with."""


class UnreadableSource(Refusal):
    """Confidential data that are not there, damaged, or lack a declared column; never what was found in them."""


class NoConsistentTables(Refusal):
    """Exact totals that no counts satisfy, or none that were found in the time that was allowed."""


class InvalidRelease(Refusal):
    """A release that is not there, not whole, or not as it was written."""


class InvalidSurvey(Refusal):
    """Answers from which no preference can be learned: one alternative, a price that never varies, gaps."""


class NoEstimate(Refusal):
    """Estimates that do not exist, or that were not found: separation, a singular design, no convergence."""


class InvalidTables(Refusal):
    """Published tables that an audit cannot read, or that no records can have."""


class LedgerRefusal(Refusal):
    """What the account of privacy losses will not do."""


class LedgerUnavailable(LedgerRefusal):
    """The ledger is not there, busy, gone away, or written by a newer version."""


class LedgerTampered(LedgerRefusal):
    """The ledger's chain is broken, or the ledger is behind one of its anchors."""


class UnsafeKey(LedgerRefusal):
    """A key or secret that is missing, damaged, or open to others."""


class InvalidAccount(LedgerRefusal):
    """An account that cannot be opened, or does not exist."""


class BudgetExceeded(LedgerRefusal):
    """A loss that would go beyond a cap."""


class NotApproved(LedgerRefusal):
    """A plan that nobody approved, or only its own publisher."""


class NotChecked(LedgerRefusal):
    """Records in a state that nobody has held against the program: what does not fit would be published as zeros."""


class ReleaseConflict(LedgerRefusal):
    """A release that exists already, or a step that it cannot take."""


def did_you_mean(word: str, known: Iterable[str], otherwise: str, *, cutoff: float = 0.6) -> str:
    """What to write instead of a word that is not known: the nearest known one, or `otherwise` where none is near."""
    import difflib

    names = list(known)
    near = [name for name in names if name.casefold() == word.casefold()][:1]
    near = near or difflib.get_close_matches(word, names, n=1, cutoff=cutoff)
    return f"did you mean '{near[0]}'?" if near else otherwise
