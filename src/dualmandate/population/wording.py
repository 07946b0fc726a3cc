"""Numbers as people read them: thousands separated, the digits they deserve, dollars in millions and billions."""

from __future__ import annotations

import math

from dualmandate.population.loss import Currency, PrivacyLoss

SYMBOLS = {Currency.EPSILON: "ε", Currency.RHO: "ρ"}
LARGE_SUMS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """A number with at least `digits` significant digits and no more decimals than that takes: 0.559, 2.53, 3,220."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "not a number"
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-4 or size >= 1e15:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}".replace("-", "−")
    decimals = max(0, digits - 1 - math.floor(math.log10(float(f"{size:.{digits - 1}e}"))))
    return f"{value:,.{decimals}f}".replace("-", "−")


def plain_number(value: float) -> str:
    """A number that somebody stated, with the digits it was stated with: 2, 3.1623."""
    return f"{value:,.10g}".replace("-", "−")


def rounded_number(value: float) -> str:
    """A number that was worked out, in four digits and no trailing zeros: 41,400,000, 4,025."""
    return plain_number(float(f"{value:.4g}"))


def plain_unit(unit: str) -> str:
    """A unit as it is printed: "USD^2 per child^2" → "USD² per child²"."""
    return unit.replace("^2", "²") or "pure number"


def money(value: float, digits: int = 3) -> str:
    """US dollars: $0.71, $2,502, $81.4 billion."""
    sign, size = ("−" if value < 0 else ""), abs(value)
    if not math.isfinite(value):
        return f"{sign}$∞"
    for unit, word in LARGE_SUMS:
        if size >= unit * (1 - 0.5 * 10**-digits):
            return f"{sign}${number(size / unit, digits)} {word}"
    if 0 < size < 0.01:
        return f"{sign}${number(size, digits)}"
    return f"{sign}${size:,.0f}" if size >= 100 else f"{sign}${size:,.2f}"


def percent(share: float) -> str:
    """A share as a percentage: 66.7 %."""
    return f"{number(100 * share)} %"


def loss_symbol(currency: Currency) -> str:
    """The letter for a privacy loss: ε or ρ."""
    return SYMBOLS[currency]


def rounded_down(loss: float) -> str:
    """A privacy loss in five digits, never more than it is, as a chosen one is stated: 2.5276."""
    return f"{float(PrivacyLoss.chosen(loss).amount):,.6g}"


def stated_loss(loss: PrivacyLoss) -> str:
    """The chosen loss with all of its digits, so that printing never rounds it up: ε = 2.5276."""
    return f"{loss_symbol(loss.currency)} = {float(loss.amount):,.6g}"
