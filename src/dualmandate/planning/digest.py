"""What is signed: the exact part of a plan, and the digest that an approver puts a name to.

Only exact things are covered: what the program file says (numbers as decimal strings, never floats), the code lists,
the chosen loss and how it is shared out, the mechanism, and the versions of these formats. The same program gives the
same digest on every machine.
"""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import TypeAlias

PLAN_VERSION = 1  # of the exact part: raised whenever a key of it changes its meaning

Exact: TypeAlias = "str | bool | list[Exact] | dict[str, Exact]"


def exact_content(value: object) -> Exact:
    """What a program file says, with each number as `{"number": "46000000"}` so that no reader rounds it."""
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int | Decimal):
        return {"number": decimal_string(value)}
    if isinstance(value, list):
        return [exact_content(item) for item in value]
    assert isinstance(value, dict)  # dates never pass the schema
    return {str(key): exact_content(item) for key, item in value.items()}


def decimal_string(value: int | Decimal) -> str:
    """A number without exponent and without trailing zeros: 4.6e7 and 46000000.0 are the same."""
    sign, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)  # infinities never pass the schema
    kept = "".join(map(str, digits)).rstrip("0")
    if not kept:
        return "0"
    plain = Decimal(f"{'-' if sign else ''}{kept}E{exponent + len(digits) - len(kept)}")
    return f"{plain:f}"


def digest_of(exact: Exact) -> str:
    """SHA-256 of the exact part as JSON with sorted keys, no spaces and only ASCII: 64 hexadecimal digits."""
    text = json.dumps(exact, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
