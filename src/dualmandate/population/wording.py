"""The one way to print a number, an amount as stated, money, a share and a privacy loss, in words and on pages.

`number` is for what was worked out, `exact` for counts and for what somebody stated, `money` for a currency, `quantity`
for an amount in the unit of a table, `stated_amount` for one with all its digits, `clipped_words` for what clipping
makes of it, `chosen_loss` for a privacy loss that is chosen or would be, `told_loss` for another one. What goes into
files and JSON is written elsewhere, with all of its digits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from dualmandate.population.currency import currency_of, short_sign
from dualmandate.population.loss import PrivacyLoss, PrivacyMeasure
from dualmandate.population.units import PER, plural, singular

if TYPE_CHECKING:
    from dualmandate.population.domain import Attribute
    from dualmandate.population.protection import Protection

SYMBOLS = {PrivacyMeasure.PURE_DP: "ε", PrivacyMeasure.ZCDP: "ρ"}
LEAST_MILLION = 999_999.5  # From here on money is told in millions.
LARGE_SUMS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LOSS_DIGITS = 5  # of a chosen privacy loss
MOST_DIGITS = 15  # that a float is sure to hold
LEAST, MOST = 1e-4, 1e15  # beyond these sizes a number is written with a power of ten


def number(value: float, digits: int = 4) -> str:
    """A number that was worked out, with `digits` significant digits or all before the point: 0.5595, 2.5, 3,220."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "not a number"
    size = float(f"{abs(value):.{digits - 1}e}")  # first, so that 9.9996 is 10 and never 10.000
    if size == 0:
        return "0"
    sign = "−" if value < 0 else ""
    if not LEAST <= size < MOST:
        mantissa, exponent = f"{size:e}".split("e")
        mantissa = f"{float(mantissa):.{digits}g}"
        return f"{sign}{mantissa} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    return f"{sign}{_stripped(f'{abs(value):,.{max(0, digits - 1 - math.floor(math.log10(size)))}f}')}"


def exact(value: float) -> str:
    """A count, or a number that somebody stated, with the digits it was stated with: 13,000, 2, 3.1623."""
    if float(value).is_integer() and abs(value) < MOST:
        return f"{value:,.0f}".replace("-", "−")
    return number(value, 10)


def money(value: float, currency: str, *, short: bool = False) -> str:
    """Money in four digits, hundredths below 100: USD 0.71, EUR 2,502, −USD 81.4 billion; short, for axes, €2,502."""
    unit = short_sign(currency) if short else f"{currency} "
    sign, size = "−" if value < 0 else "", abs(float(value))
    if size >= 10 * MOST:
        return f"{sign}{unit}{number(size)}"
    if size >= LEAST_MILLION:
        size = float(f"{size:.4g}")  # first, so that 999.99 million is 1 billion and never 1,000 million
    for scale, word in LARGE_SUMS:
        if size >= scale:
            return f"{sign}{unit}{number(size / scale)} {word}"
    cents = round(size, 2) if size >= 0.01 else size
    if cents >= 100 or cents.is_integer():
        return f"{sign}{unit}{size:,.0f}"  # not of rounded cents, so that 973.495 is 973
    return f"{sign}{unit}{cents:.2f}" if size >= 0.01 else f"{sign}{unit}{number(size, 3)}"


def quantity(value: float, unit: str) -> str:
    """An amount in the unit of a table or a ratio: "0.5595 children", "USD 5.536 million", "USD 2,990 per child"."""
    what, per, each = unit.partition(PER)
    currency = currency_of(what)
    if currency is not None:
        return money(value, currency) + per + each
    return f"{number(value)} {singular(unit) if number(value) == '1' else plural(unit)}"


def counted(count: float, unit: str) -> str:
    """So many of them: "1 child", "46,000,000 children"."""
    return f"{exact(count)} {singular(unit) if count == 1 else plural(unit)}"


def stated_amount(value: Fraction | float, unit: str | None) -> str:
    """An amount as somebody stated it, in the unit of a table: "USD 100,000", "80 hours"; a number where none is."""
    currency = None if unit is None else currency_of(unit)
    if currency is None:
        return exact(float(value)) if unit is None else counted(float(value), unit)
    return f"{'−' if value < 0 else ''}{currency} {exact(abs(float(value)))}"


def percent(share: float, digits: int = 3) -> str:
    """A share as a percentage, in three digits: 66.7 %; in more just below all, which is never told as all: 99.99 %."""
    while share < 1 and digits < MOST_DIGITS and number(100 * share, digits) == "100":
        digits += 1
    return f"{number(100 * share, digits)} %"


def chosen_loss(amount: float) -> str:
    """A loss that is chosen, or would be, as it would be stated: in five digits, and never more than it is: 2.5276."""
    if not 0 < amount < math.inf:
        return number(amount)
    nearest = float(f"{amount:.{LOSS_DIGITS}g}")  # a loss that was rounded before stays as it is
    return f"{nearest if nearest <= amount else float(PrivacyLoss.chosen(amount).amount):,.6g}"


def told_loss(amount: float) -> str:
    """A loss that was claimed or found, to the nearest of the five digits of one that is chosen: 2.4442."""
    return number(amount, LOSS_DIGITS)


def stated_loss(loss: PrivacyLoss) -> str:
    """The chosen loss with all of its digits, so that printing never rounds it up: ε = 2.5276."""
    return f"{SYMBOLS[loss.privacy_measure]} = {float(loss.amount):,.6g}"


def _stripped(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def clipped_words(
    attribute: Attribute | None, unit: str | None, protection: Protection, *, outside: str = "clamp"
) -> str | None:
    """What is counted where amounts, or the records of a unit, are clipped; None where neither is.

    "cost, each person's counted up to USD 100,000, in steps of USD 100, at most 3 records of each person". `attribute`
    is what is added up, None where records are counted; `outside` is what becomes of amounts beyond its bounds.
    """
    person, most = singular(protection.unit), protection.most_records_per_unit
    words = []
    if attribute is not None and attribute.lower is not None and attribute.upper is not None:
        low, high, step = (
            stated_amount(each, unit) for each in (attribute.lower, attribute.upper, attribute.grid or 1)
        )
        whose = f"each {person if most == 1 else 'record'}'s counted"
        ways = {
            "clamp": f", {whose} up to {high}" if attribute.lower == 0 else f", {whose} from {low} up to {high}",
            "drop": f" from {low} to {high}, others left out",
            "missing": f" from {low} to {high}, others counted as missing",
        }
        words.append(f"{attribute.name}{ways[outside]}, in steps of {step}")
    if protection.identifier is not None:
        words.append(f"at most {counted(most, 'record')} of each {person}")
    return ", ".join(words) or None
