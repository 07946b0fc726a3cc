"""Numbers as they were written: a decimal 0.1 means 1/10, not the binary fraction next to it."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from numbers import Integral

from dualmandate.errors import Refusal

Written = Fraction | Decimal | float | int | str

# A short exponent: "1e999999999" would otherwise be a number of a billion digits.
_PLAIN = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?|[+-]?\d{1,40}/\d{1,40}", re.ASCII)
_EXACT = re.compile(r"-?\d{1,4000}(/0*[1-9]\d{0,3999})?", re.ASCII)


def read_exact(text: object) -> Fraction:
    """The number that the house wrote exactly, as p or p/q; ValueError for anything else, before it costs time."""
    if not isinstance(text, str) or _EXACT.fullmatch(text) is None:
        raise ValueError("not an exact number")
    return Fraction(text)


def rational(number: Written) -> Fraction:
    """The exact number that was written; ValueError for what is not a finite number."""
    if isinstance(number, bool):
        raise ValueError("a truth value is not a number")
    if isinstance(number, Integral):
        return Fraction(int(number))
    if isinstance(number, float):
        if not math.isfinite(number):
            raise ValueError("not a finite number")
        return Fraction(float.__repr__(number))
    if isinstance(number, Decimal):
        if not number.is_finite() or abs(number.adjusted()) > 999:
            raise ValueError("not a finite number")
        return Fraction(number)
    if isinstance(number, str) and _PLAIN.fullmatch(number.strip()) is None:
        raise ValueError("not a number")
    try:
        return Fraction(number.strip() if isinstance(number, str) else number)
    except ZeroDivisionError:
        raise ValueError("not a finite number") from None


def written(number: Fraction) -> str:
    """A number as a decimal where it ends, as p/q where it does not: `rational` reads it back exactly."""
    rest, powers = number.denominator, {2: 0, 5: 0}
    for prime in powers:
        while rest % prime == 0:
            rest, powers[prime] = rest // prime, powers[prime] + 1
    digits = max(powers.values())
    if rest != 1 or digits > 40:
        return f"{number.numerator}/{number.denominator}"
    whole, part = divmod(abs(number.numerator) * 10**digits // number.denominator, 10**digits)
    sign = "-" if number < 0 else ""
    return f"{sign}{whole}.{part:0{digits}d}" if digits else f"{sign}{whole}"


def rational_or(refused: type[Refusal], number: Written, *, what: str, instead: str) -> Fraction:
    """The exact number that was written; refused where it is none."""
    try:
        return rational(number)
    except ValueError as error:
        raise refused(what, why=f"it is {error}", instead=instead) from None
    except TypeError:
        raise refused(what, why="it is no number", instead=instead) from None


def rounded_up(number: Fraction, digits: int) -> Decimal:
    """A number in so many significant digits, never smaller than it is."""
    upward = Context(prec=digits, rounding=ROUND_CEILING)
    return upward.divide(Decimal(number.numerator), Decimal(number.denominator))


def written_probability(number: Written) -> Fraction | None:
    """The exact probability that was written; None for what does not lie strictly between 0 and 1."""
    try:
        found = rational(number)
    except (ValueError, TypeError):
        return None
    return found if 0 < found < 1 else None
