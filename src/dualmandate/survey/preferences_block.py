"""`[preferences]` as text: complete TOML that a program can hold, or refer to with `from`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dualmandate.population import Calibrated

PREFERENCES_FILE = "preferences.toml"
IN_PREFERENCES = ("mean_disclosure_cost", "price_of_squared_misallocation", "price_of_misallocation")


def preferences_block(
    form: str,
    numbers: Mapping[str, Calibrated],
    *,
    prior: float | None,
    correlation: float | None,
    remarks: tuple[str, ...],
) -> str:
    """The table `[preferences]`, each number with its unit, source, standard error and time base.

    `correlation` is that of the errors of its two numbers; nothing is said of it where one of them is not a key here.
    What a table of the workload states (`value_of_accuracy`) stands in a remark: it is not a key of `[preferences]`.
    """
    lines = [*(f"# {remark}" for remark in remarks), "", "[preferences]", f'information_utility = "{form}"']
    if prior is not None:
        lines.append(f"prior_probability = {number_text(prior)}")
    if correlation is not None and sum(key in numbers for key in IN_PREFERENCES) == 2:
        lines.append(f"correlation_of_errors = {number_text(correlation)}")
    for key in IN_PREFERENCES:
        if key in numbers:
            lines += ["", f"[preferences.{key}]", *_calibrated(numbers[key])]
    if "value_of_accuracy" in numbers:
        inline = ", ".join(_calibrated(numbers["value_of_accuracy"]))
        lines += ["", "# For a table of the workload:", f"# value_of_accuracy = {{ {inline} }}"]
    return "\n".join(lines).lstrip("\n") + "\n"


def number_text(value: float) -> str:
    """A number with ten significant digits, as TOML reads it."""
    return f"{float(f'{value:.10g}')!r}"


def _calibrated(number: Calibrated) -> list[str]:
    stated = [
        f"value = {number_text(number.value)}",
        f"unit = {_text(number.unit)}",
        f"source = {_text(number.source)}",
    ]
    if number.standard_error is not None:
        stated.append(f"standard_error = {number_text(number.standard_error)}")
    if number.time_base is not None:
        stated.append(f"time_base = {_text(number.time_base)}")
    return stated


def _text(words: str) -> str:
    """A TOML basic string: JSON's escapes are among TOML's, apart from DEL."""
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")
