"""Numbers on an axis, in Vega's expression language, as `population.wording` writes them elsewhere."""

from __future__ import annotations

_SIZE = (
    "(abs(datum.value) >= 1e15 ? format(abs(datum.value), '~e')"
    " : abs(datum.value) >= 1e12 ? format(abs(datum.value) / 1e12, ',~r') + 'T'"
    " : abs(datum.value) >= 1e9 ? format(abs(datum.value) / 1e9, ',~r') + 'B'"
    " : abs(datum.value) >= 1e6 ? format(abs(datum.value) / 1e6, ',~r') + 'M'"
    " : format(abs(datum.value), ',~r'))"
)
NUMBER_AXIS = f"(datum.value < 0 ? '−' : '') + {_SIZE}"
MONEY_AXIS = f"(datum.value < 0 ? '−$' : '$') + {_SIZE}"
PERCENT_AXIS = "format(100 * datum.value, ',~r') + ' %'"
