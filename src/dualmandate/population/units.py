"""Units of the economics: money, the protected unit, epsilon and rho, each a dimension of its own; numbers in them.

Parsing is pint's, in a registry that holds these words and nothing else, so that a year, a second currency or a
typing mistake is refused and never quietly taken for something similar. A number carries its unit and its source: 1,400
is "USD per child per epsilon, DOJ 2015", or it is refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from tokenize import TokenError
from typing import Any

from dualmandate.errors import IncompatibleUnits, InvalidValue, MissingKey
from dualmandate.population.currency import ALSO_CALLED, CURRENCIES, DEFAULT, checked_currency, currency_of
from dualmandate.population.loss import PrivacyMeasure

LONGEST_UNIT = 200  # characters
MONEY = "[money]"  # the dimension
RESERVED_WORDS = frozenset({*ALSO_CALLED, "epsilon", "rho", "disclosure", "disclosures", "dimensionless"})
OPERATOR_WORDS = frozenset({"per", "squared", "cubed", "square", "sq", "cubic", "nan", "percent", "delta"})
IRREGULAR_PLURALS = {"child": "children", "person": "people", "man": "men", "woman": "women"}
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
PER = " per "  # between what is counted and each of what
NAMED_POWERS = {"squared": "2", "cubed": "3"}
TOKEN = re.compile(
    r"""\s*(?:
    (?:\^|\*\*)\s*(?P<power>-?\d) (?!\d|\.) |
    (?P<raised>⁻?[⁰¹²³⁴-⁹]) |
    (?P<word>[^\W\d](?:(?![⁰¹²³⁴-⁹])\w)*) |
    (?P<sign>[*/()·]) |
    (?P<one>1) (?![\w.])
    )\s*""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Units:
    """The words that a unit may be made of in one program.

    `others` are units of tables that count neither protected units nor money ("hour"): dimensions of their own, to be
    declared before they are used. All money is in one `currency`.
    """

    protected_unit: str = "person"
    others: tuple[str, ...] = ()
    currency: str = DEFAULT

    def __post_init__(self) -> None:
        checked_currency(self.currency)
        words = [self.protected_unit, *self.others]
        for word in words:
            _checked_word(word, self.currency)
        names = [singular(word).casefold() for word in words]
        if len(set(names)) != len(names):
            raise IncompatibleUnits(
                f"the units {', '.join(words)} are not all different",
                why="each word stands for one dimension",
                instead="declare each unit once",
            )

    @property
    def singular(self) -> str:
        """One protected unit, in words: "child"."""
        return singular(self.protected_unit)

    @property
    def plural(self) -> str:
        """Several protected units, in words: "children"."""
        return plural(self.protected_unit)

    def conversion(self, unit: str, expected: str) -> float:
        """What one `unit` is in `expected` units; refused where the two cannot be added."""
        given, wanted = self._parsed(unit), self._parsed(expected)
        if given.dimensionality != wanted.dimensionality:
            raise self._incompatible(unit, expected)
        return float((1 * given).to(wanted).magnitude)

    def agree(self, unit: str, expected: str) -> bool:
        """Whether quantities in the two units can be added."""
        return bool(self._parsed(unit).dimensionality == self._parsed(expected).dimensionality)

    def _parsed(self, unit: str) -> Any:
        text = _canonical(self._joined(_checked_text(unit)))
        registry = _registry(self)
        import pint

        try:
            return registry.parse_units(text)
        except pint.UndefinedUnitError as error:
            raise self._undefined(unit, error.unit_names) from None
        except (pint.PintError, TokenError, ValueError, TypeError, AssertionError, ArithmeticError, SyntaxError):
            raise IncompatibleUnits(
                f"the unit '{unit}' cannot be read",
                why="a unit is made of words, 'per', '/', '*' and powers such as ^2",
                instead=f"write for example '{self.currency} per {self.singular} per epsilon' or "
                f"'{self.currency}^2 per {self.singular}^2'",
            ) from None

    def _joined(self, text: str) -> str:
        """The text with each unit of several words ("school child") turned into one word."""
        for word in (self.protected_unit, *self.others):
            for form in sorted(_forms(word), key=len, reverse=True):
                if form != _identifier(form):
                    text = re.sub(rf"\b{re.escape(form)}\b", _identifier(form), text, flags=re.IGNORECASE)
        return text

    def _undefined(self, unit: str, names: str | tuple[str, ...]) -> IncompatibleUnits:
        name = names if isinstance(names, str) else names[0]
        known = [self.currency, self.singular, *self.others, *map(str, PrivacyMeasure)]
        instead = f"use {', '.join(known)}"
        if (other := currency_of(name)) is not None:
            return self.other_money(other, unit)
        if singular(name).casefold() in {"year", "month", "week", "day", "hour", "decade", "lifetime"}:
            instead = f'say the time in time_base (time_base = "per {singular(name)}"), not in the unit'
        return IncompatibleUnits(
            f"the unit '{unit}' uses '{name}', which is not declared",
            why="only the units of this program can be compared with each other",
            instead=instead,
        )

    def other_money(self, other: str, where: str) -> IncompatibleUnits:
        """The refusal of money that is not the program's."""
        return IncompatibleUnits(
            f"'{where}' is in {other}, and the money of this file is {self.currency}",
            why="amounts in different currencies cannot be added",
            instead=f'convert it to {self.currency}, or state currency = "{other}" once and all money in it',
        )

    def _incompatible(self, unit: str, expected: str) -> IncompatibleUnits:
        why = f"a quantity in {unit} cannot be added to one in {expected}"
        instead = f"state it in {expected}"
        given = self._parsed(unit).dimensionality.get(MONEY, 0)
        wanted = self._parsed(expected).dimensionality.get(MONEY, 0)
        if given == 2 and wanted == 1:
            money = self.currency
            why = f"squared {money} cannot be added to {money}; state price_of_squared_misallocation"
            instead = f"give it as a consequence, with a price_of_squared_misallocation in '{money} per {money}^2'"
        return IncompatibleUnits(f"'{unit}' stands where '{expected}' is needed", why=why, instead=instead)


@lru_cache(maxsize=64)
def _registry(units: Units) -> Any:
    """One pint registry a set of words; imported late, because it costs more than the rest of the room together."""
    import pint

    registry: Any = pint.UnitRegistry(None, case_sensitive=False)
    also = [word for word, code in ALSO_CALLED.items() if code == units.currency and word != code.casefold()]
    registry.define(" = ".join([units.currency, MONEY, "_", *also]))
    registry.define("epsilon = [epsilon] = _ = ε")
    registry.define("rho = [rho] = _ = ρ")
    registry.define("disclosure = [] = _ = disclosures")
    for word in (units.protected_unit, *units.others):
        first, *rest = dict.fromkeys(_identifier(form) for form in _forms(word))
        registry.define(" = ".join([first, f"[{first}]", "_", *rest]))
    return registry


def singular(word: str) -> str:
    """One of them: "children" → "child", "companies" → "company", "household" → "household"."""
    head, last = _last_word(word)
    lower = last.casefold()
    for one, many in IRREGULAR_PLURALS.items():
        if lower in {one, many, one + "s"}:
            return head + one
    if lower.endswith("ies") and len(lower) > 4:
        return head + last[:-3] + "y"
    if lower.endswith(("sses", "xes", "ches", "shes")):
        return head + last[:-2]
    if lower.endswith("s") and not lower.endswith(("ss", "us", "is")):
        return head + last[:-1]
    return word


def plural(word: str) -> str:
    """Several of them: "child" → "children", "company" → "companies", "hour per person" → "hours per person"."""
    if PER in word:
        several, _, each = word.partition(PER)
        return plural(several) + PER + each
    head, last = _last_word(singular(word))
    if last in IRREGULAR_PLURALS:
        return head + IRREGULAR_PLURALS[last]
    if last.isupper():
        return head + last
    if last.endswith("y") and last[-2:-1] not in "aeiou":
        return head + last[:-1] + "ies"
    return head + last + ("es" if last.endswith(("s", "x", "ch", "sh")) else "s")


def is_money(unit: str) -> bool:
    """Whether a table is counted in money."""
    return currency_of(unit) is not None


def _last_word(word: str) -> tuple[str, str]:
    head, space, last = word.rpartition(" ")
    return head + space, last


def _forms(word: str) -> tuple[str, ...]:
    regular = singular(word) + "s"  # "persons" is as good as "people"
    return tuple(dict.fromkeys((singular(word), plural(word), regular, word)))


def _identifier(form: str) -> str:
    return re.sub(r"[\s-]+", "_", form)


def _checked_word(word: str, currency: str) -> None:
    known = isinstance(word, str) and re.fullmatch(r"[^\W\d_]+(?:[ -][^\W\d_]+)*", word) and len(word) <= 60
    taken = RESERVED_WORDS | OPERATOR_WORDS | {currency.casefold()}
    if not known or word in CURRENCIES or singular(word).casefold() in taken:
        raise IncompatibleUnits(
            f"'{word}' cannot be a unit",
            why="a unit is a word for what is counted; currencies, epsilon, rho and the words of arithmetic are taken",
            instead="use a noun: child, person, household, establishment",
        )


def _checked_text(unit: str) -> str:
    if not isinstance(unit, str) or not unit.strip():
        raise MissingKey(
            "a quantity has no unit",
            why="1,400 may be money, children or money per child per epsilon",
            instead="state unit",
        )
    return " ".join(unit.split())


def _canonical(unit: str) -> str:
    """The unit with nothing left to guess: words, * and /, and one power of one digit after a word or a bracket.

    pint would otherwise compute towers such as x^9^9^9, and never come back.
    """
    pieces: list[str] = []
    place = 0
    while place < len(unit):
        found = TOKEN.match(unit, place)
        if found is None or len(unit) > LONGEST_UNIT:
            raise _unreadable(unit)
        place = found.end()
        raised = (found["raised"] or "").translate(SUPERSCRIPTS)
        power = found["power"] or raised or NAMED_POWERS.get(found["word"] or "")
        operand = bool(pieces) and pieces[-1] not in ("*", "/", "(")
        if power:
            if not operand or pieces[-1].startswith("**"):
                raise _unreadable(unit, "write one power, after the word: 'child^2' or 'child squared'")
            pieces.append(f"**{power}")
        elif found["sign"] == ")" or found["sign"] in ("*", "·", "/") or found["word"] == "per":
            pieces.append({"·": "*", None: "/"}.get(found["sign"], found["sign"]))
        else:
            pieces += [*("*" if operand else ""), found["sign"] or found["word"] or "1"]
    return "".join(pieces)


def _unreadable(
    unit: str, instead: str = "scale the value and leave the unit plain: value = 2000 in 'child', not '1000 child'"
) -> IncompatibleUnits:
    return IncompatibleUnits(
        f"the unit '{unit[:LONGEST_UNIT]}' cannot be read",
        why="a unit is made of words, 'per', '/', '*' and powers such as ^2; numbers belong into the value",
        instead=instead,
    )


@dataclass(frozen=True)
class Calibrated:
    """A public number with where it comes from.

    `time_base` says over what time money runs ("once", "per year"), where that matters. A number that is known
    with uncertainty states its `standard_error`, and then `value` is its mean; one of which only a range is agreed
    states `least` and `largest`.
    """

    value: float  # finite, ≥ 0, in `unit`
    unit: str
    source: str
    time_base: str | None = None
    standard_error: float | None = None  # finite, > 0, in `unit`
    least: float | None = None  # ≥ 0, in `unit`; together with `largest`
    largest: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise InvalidValue(
                f"{self.value!r} is not a number", why="a calibrated quantity is a number", instead="state a number"
            )
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise MissingKey(
                f"{self.value:,g} has no unit",
                why="it may be money, children or money per child per epsilon",
                instead="state unit: what it counts, and per what",
            )
        if not isinstance(self.source, str) or not self.source.strip():
            raise MissingKey(
                f"{self.value:,g} {self.unit} has no source",
                why="a review board must be able to see where each number comes from",
                instead="state source: a publication, a survey, or who decided it",
            )
        if not math.isfinite(self.value) or self.value < 0:
            raise InvalidValue(
                f"{self.value} {self.unit} is {'negative' if self.value < 0 else 'no finite number'}",
                why="costs, values, prices and sizes are finite and not negative",
                instead="state a finite number of at least 0",
            )
        self._check_uncertainty()

    def _check_uncertainty(self) -> None:
        error = self.standard_error
        if error is not None and not (math.isfinite(error) and error > 0 and self.value > 0):
            raise InvalidValue(
                f"{self.value:,g} {self.unit} has the standard_error {error:,g}",
                why="an uncertain cost or value is positive, and its standard error too",
                instead="state a finite standard_error above 0, or leave it out",
            )
        if self.least is None and self.largest is None:
            return
        low, high = self.least, self.largest
        if low is None or high is None or not (0 <= low <= self.value <= high < math.inf and low < high):
            raise InvalidValue(
                f"{self.value:,g} {self.unit} lies between least {low} and largest {high}",
                why="a range has two finite ends, and the value lies between them",
                instead="state least and largest around the value, or neither",
            )

    @property
    def uncertain(self) -> bool:
        """Whether a standard error or a range is stated."""
        return self.standard_error is not None or self.least is not None

    def to(self, unit: str, units: Units) -> Calibrated:
        """The same quantity in another unit of the same kind; refused where the two cannot be added."""
        return self.scaled(units.conversion(self.unit, unit), unit=unit)

    def scaled(self, factor: float, **changes: Any) -> Calibrated:
        """So many times the quantity, its errors and ranges with it; in another unit or over another time."""
        known: dict[str, Any] = {
            name: stated * factor
            for name in ("value", "standard_error", "least", "largest")
            if (stated := getattr(self, name)) is not None
        }
        return replace(self, **known, **changes)

    def __str__(self) -> str:
        time_base = f", {self.time_base}" if self.time_base else ""
        return f"{self.value:,g} {self.unit} ({self.source}{time_base})"
