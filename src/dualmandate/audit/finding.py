"""What an attack found: its claim, how often it succeeded, beside what a guess without the tables would have done.

An attack gives a lower bound on risk. Another attack may find more, and no finding ever says that there is no risk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from dualmandate.errors import InvalidRequest
from dualmandate.population.wording import number, percent, told_loss

Label = Literal["public", "internal"]
Reference = Literal["published", "outside", "synthetic", "tabulated", "confidential", "booked", "draws"]
REFERENCES: dict[Reference, str] = {
    "published": "the published numbers alone",
    "outside": "the published numbers and a file from outside",
    "synthetic": "a synthetic population",
    "tabulated": "the file that was tabulated",
    "confidential": "the confidential file",
    "booked": "the confidential file, by numbers with noise whose loss is booked in the ledger",
    "draws": "draws of the mechanism",
}
INTERNAL: frozenset[Reference] = frozenset({"tabulated", "confidential"})
MOST_DETAILS = 200  # At most this many cells or records are named inside.
CLAIMED = "what the claim allows"
OF_OWN_SIZE = "at the size that its tables say"  # of a reconstructed file, in claims about it
LOSSES = ("epsilon", "rho")
MOST_DIGITS = 7
FEWEST_TRIALS = 20  # below it a share is told as a count: its interval would be half as wide as all there is
LOWER_BOUND = "An attack gives a lower bound on risk: another one may find more."
T_contra = TypeVar("T_contra", contravariant=True)


@dataclass(frozen=True)
class Range:
    """A number that is known to lie between two others, in a unit."""

    least: float
    largest: float
    unit: str

    def __post_init__(self) -> None:
        if not self.least <= self.largest:
            raise InvalidRequest(
                f"a range from {self.least} to {self.largest}",
                why="its least number is not above its largest",
                instead="state the smaller number first",
            )

    def __str__(self) -> str:
        share = self.unit.startswith("of the ")
        told = percent if share else told_loss if self.unit in LOSSES else _amount
        ends = [told(end) for end in (self.least, self.largest)]
        if self.least == 0 < self.largest and (share or self.unit in LOSSES):  # nothing is below 0
            return f"at most {ends[1]} {self.unit}"
        return f"{' to '.join(dict.fromkeys(ends))} {self.unit}"


@dataclass(frozen=True)
class Baseline:
    """What somebody achieves who does not attack: a guesser, or what a claim allows."""

    who: str
    success: Rate | Range


@dataclass(frozen=True)
class DetectionPower:
    """How often a check would find a fault, by draws of the fault: an honest target is accused at the stated rate."""

    what: str
    rows: int  # of what is judged: the more, the more is seen
    share: float


@dataclass(frozen=True, eq=False)
class ResultTable:
    """Results as a file: one row a place, say. `inside` is one that names single records."""

    name: str
    columns: Mapping[str, Sequence[object]] = field(repr=False)
    inside: bool = False


@dataclass(frozen=True)
class Finding:
    """One thing that an attack found, with all that is needed to judge it.

    `counted_in_full`: everything that could be tried was, so that the rate is no estimate and its interval a point.
    `partial` says what a limit of time left open, `booked` what was paid for a number with noise. `details` name single
    cells or records: they are shown inside alone.
    """

    attack: str
    claim: str
    success: Rate | Range
    baselines: tuple[Baseline, ...]
    attacker_knows: str
    coarsening: str  # age bins, or whatever else makes values coarser than they were recorded
    reference: Reference  # what success is judged by
    counted_in_full: bool = False
    partial: str | None = None
    booked: str | None = None  # the loss and the ledger's entry of a rate that was published
    details: tuple[str, ...] = field(default=(), repr=False)
    power: tuple[DetectionPower, ...] = ()  # what would have been found, and how often
    tables: tuple[ResultTable, ...] = field(default=(), repr=False, compare=False)  # what it was counted from

    def __post_init__(self) -> None:
        if not self.baselines:
            raise InvalidRequest(
                f"the finding '{self.claim}' without a baseline",
                why="a rate alone does not separate an attack from a guess",
                instead="state what somebody achieves without attacking",
            )
        if (self.booked is None) == (self.reference == "booked"):
            raise InvalidRequest(
                f"the finding '{self.claim}' that is published, and not booked, or booked for nothing",
                why="what was judged by records is shown outside with noise alone, and after it was paid for",
                instead="state the loss and the entry of the ledger",
            )

    @property
    def label(self) -> Label:
        """Whom it is for: what was judged by confidential data stays inside."""
        return "internal" if self.reference in INTERNAL else "public"

    def interval(self, success: Rate | Range | None = None) -> tuple[float, float]:
        """Where the true rate (of the attack, or of one of its baselines) lies, with a probability of 95 %."""
        found = self.success if success is None else success
        if isinstance(found, Range):
            return found.least, found.largest
        return (found.value, found.value) if self.counted_in_full else found.interval()

    def written(self, success: Rate | Range) -> str:
        """A rate with its interval, or a range, in words."""
        if isinstance(success, Range) or not self.counted_in_full:
            return str(success)
        counted = f"{success.successes:,} of {success.trials:,}"
        few = success.trials < FEWEST_TRIALS
        return (
            f"{counted} (all of them counted)" if few else f"{percent(success.value)} ({counted}, all of them counted)"
        )

    def judged(self, coarsening: str | None = None) -> str:
        """What success is judged by, and how coarse values are, where that was not said before."""
        return "; ".join([REFERENCES[self.reference], *([self.coarsening] * (self.coarsening != coarsening))])

    def words(self, coarsening: str | None = None) -> str:
        """The finding for people: claim, success, baselines, and what the attacker knows."""
        lines = [f"{self.claim}: {self.written(self.success)}"]
        lines += [f"  beside it  {each.who}: {self.written(each.success)}" for each in self.baselines]
        lines.append(f"  attacker   {self.attacker_knows}")
        lines.append(f"  judged by  {self.judged(coarsening)}")
        lines += [] if self.partial is None else [f"  not done   {self.partial}"]
        lines += [] if self.booked is None else [f"  booked     {self.booked}"]
        return "\n".join(lines)

    def document(self, *, inside: bool = False) -> dict[str, object]:
        """The finding as a part of the JSON document `audit/1`; its details only `inside`."""
        found: dict[str, object] = {
            "attack": self.attack,
            "claim": self.claim,
            "label": self.label,
            "success": self._number(self.success),
            "baselines": [{"who": each.who, **self._number(each.success)} for each in self.baselines],
            "counted_in_full": self.counted_in_full,
            "attacker_knows": self.attacker_knows,
            "coarsening": self.coarsening,
            "reference": self.reference,
            "partial": self.partial,
            "booked": self.booked,
            "power": [{"what": each.what, "rows": each.rows, "share": each.share} for each in self.power],
            "words": self.words(),
        }
        return {**found, "details": list(self.details)} if inside else found

    def _number(self, success: Rate | Range) -> dict[str, object]:
        low, high = self.interval(success)
        if isinstance(success, Range):
            return {"low": low, "high": high, "unit": success.unit}
        counted = {"value": success.value, "successes": success.successes, "trials": success.trials}
        return {**counted, "low": low, "high": high}


def coarseness(findings: Sequence[Finding]) -> str | None:
    """How coarse values are in most findings, to be said once; None where no two are alike."""
    often = Counter(finding.coarsening for finding in findings).most_common(1)
    return often[0][0] if often and often[0][1] > 1 else None


class Attack(Protocol[T_contra]):
    """One way to learn from what was published."""

    @property
    def name(self) -> str: ...

    def run(self, target: T_contra, key: bytes, /) -> tuple[Finding, ...]:
        """Attack. Equal targets and keys give equal findings; the key is the audit's own, never a release's."""
        ...


def proved_share(
    make: Callable[..., Finding], claim: str, found: int, of: int, *, beside: str = "whoever has no tables", **more: Any
) -> Finding:
    """A share that was counted in full, beside somebody who gets none: without the tables nothing of a proof follows.

    `make` is `Finding`, with what several have in common.
    """
    baselines = (Baseline(beside, Rate(0, of)),)
    return make(claim=claim, success=Rate(found, of), baselines=baselines, counted_in_full=True, **more)


@dataclass(frozen=True)
class Rate:
    """Successes among trials."""

    successes: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.successes <= self.trials or self.trials < 1:
            raise InvalidRequest(
                f"{self.successes} successes among {self.trials} trials",
                why="a rate needs at least one trial, and not more successes than trials",
                instead="count what was tried",
            )

    @property
    def value(self) -> float:
        return self.successes / self.trials

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Clopper and Pearson's interval: covers the true rate with at least this probability, also at 0 and at 1."""
        from scipy.stats import beta

        tail = (1 - level) / 2
        right, wrong = self.successes, self.trials - self.successes
        low = float(beta.ppf(tail, right, wrong + 1)) if right else 0.0
        return low, float(beta.ppf(1 - tail, right + 1, wrong)) if wrong else 1.0

    def __str__(self) -> str:
        if self.trials < FEWEST_TRIALS:
            return f"{self.successes:,} of {self.trials:,} (too few to be told as a rate)"
        low, high = percents(*self.interval())
        return f"{percent(self.value)} ({self.successes:,} of {self.trials:,}; 95 % interval {low} to {high})"


def _amount(value: float) -> str:
    """A number; in words where it has too many digits to be read, up to a sextillion."""
    for size, name in ((1e18, "quintillion"), (1e15, "quadrillion")):
        if size <= value < 1e21:
            return f"{number(value / size, 3)} {name}"
    return number(value)


def percents(low: float, high: float) -> tuple[str, str]:
    """The ends of an interval as percentages, with as many digits as tell them apart."""
    for digits in range(3, MOST_DIGITS + 1):
        ends = percent(low, digits), percent(high, digits)
        if ends[0] != ends[1]:
            break
    return ends


def shown(success: Rate | Range) -> str:
    """A rate without what it was counted from, or a range: for a sentence."""
    if isinstance(success, Range):
        return str(success)
    few = success.trials < FEWEST_TRIALS
    return f"{success.successes:,} of {success.trials:,}" if few else percent(success.value)
