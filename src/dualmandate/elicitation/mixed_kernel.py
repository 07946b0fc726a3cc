"""The simulated likelihood of each person's choices and its gradient, in one pass over draws that stays in the cache.

A chunk of draws at a time: coefficients, indices of the alternatives (a small matrix product), one exponential each,
the probability of all choices of the person, and the gradient by coefficient (another small matrix product). Sums over
chunks are kept relative to the largest log probability so far, so that no number of tasks underflows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CHUNK = 64  # draws: indices of some thirty alternatives, and their coefficients, fit the first cache
LARGEST_INDEX = 80.0  # odds of e⁸⁰ against a choice are as good as none; eight such tasks still have a probability
TASKS_A_LOGARITHM = 8
LINEAR, POSITIVE, NEGATIVE = range(3)  # forms of a coefficient
CONTRACT = {"contract", "nnan", "ninf", "nsz", "arcp"}  # not "reassoc": the rounding of _exp would be undone


def _reinterpreted(name: str, source: Any, target: Any) -> Any:
    """A function that reads the same 64 bits as another type."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(target))

    def typed(_context: Any, _value: Any) -> Any:
        return target(source), generate

    typed.__name__ = typed.__qualname__ = name
    return intrinsic(typed)


_bits = _reinterpreted("_bits", types.float64, types.int64)
_number = _reinterpreted("_number", types.int64, types.float64)


@njit(cache=True, inline="always", fastmath=CONTRACT)
def _exp(x: float) -> float:
    """e^x for −700 ≤ x ≤ 700 to two units in the last place, in steps that a compiler can do for several x at once."""
    shifted = x * 1.4426950408889634 + 6755399441055744.0  # adding 1.5·2⁵² rounds x/ln 2 to an integer, in the low bits
    whole = shifted - 6755399441055744.0
    r = (x - whole * 0.6931471803691238) - whole * 1.9082149292705877e-10
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return float(_number(_bits(p) + (_bits(shifted) << 52)))


@njit(cache=True, fastmath=CONTRACT)
def exponentials(values: Floats) -> None:
    """e^x of each x, in place."""
    for place in range(values.size):
        values[place] = _exp(min(max(values[place], -700.0), 700.0))


class Panel(NamedTuple):
    """Choices and draws, person by person."""

    rows: Floats  # (alternatives not chosen, attributes), less the chosen alternative
    task_starts: Integers  # (tasks + 1,), places in `rows`
    person_starts: Integers  # (people + 1,), places in `task_starts`
    draws: Floats  # (people, random coefficients, draws)


class Layout(NamedTuple):
    """How coefficients come from parameters: a location each, then a spread for each random one."""

    forms: Integers  # (attributes,): LINEAR x, POSITIVE e^x or NEGATIVE −e^x, where x = location + spread·draw
    columns: Integers  # (attributes,): which draw, −1 for none
    price: int  # the attribute −e^x by which willingness to pay for the others is multiplied; −1 in preference space


@njit(cache=True, fastmath=CONTRACT)
def _product(left: Floats, right: Floats, out: Floats, width: int) -> None:
    """out = left @ right, over the first `width` columns; four terms at a time so that `out` is touched less."""
    for row in range(left.shape[0]):
        line = out[row]
        for c in range(width):
            line[c] = 0.0
        inner = 0
        while inner + 4 <= left.shape[1]:
            a, b, d, e = left[row, inner], left[row, inner + 1], left[row, inner + 2], left[row, inner + 3]
            first, second, third, fourth = right[inner], right[inner + 1], right[inner + 2], right[inner + 3]
            for c in range(width):
                line[c] += (a * first[c] + b * second[c]) + (d * third[c] + e * fourth[c])
            inner += 4
        while inner < left.shape[1]:
            a, first = left[row, inner], right[inner]
            for c in range(width):
                line[c] += a * first[c]
            inner += 1


@njit(cache=True, fastmath=CONTRACT)
def _coefficients(layout: Layout, theta: Floats, draws: Floats, taste: Floats, beta: Floats) -> None:
    """(attributes, chunk): `taste` as it is distributed, `beta` as it enters utility."""
    size, width = layout.forms.size, draws.shape[1]
    for k in range(size):
        column = layout.columns[k]
        spread = theta[size + column] if column >= 0 else 0.0
        drawn = draws[max(column, 0)]
        for c in range(width):
            taste[k, c] = theta[k] + spread * drawn[c]
        if layout.forms[k] != LINEAR:
            sign = 1.0 if layout.forms[k] == POSITIVE else -1.0
            for c in range(width):
                taste[k, c] = sign * _exp(min(max(taste[k, c], -LARGEST_INDEX), LARGEST_INDEX))
    for k in range(size):
        if layout.price < 0 or k == layout.price:
            beta[k, :width] = taste[k, :width]
        else:
            for c in range(width):
                beta[k, c] = -taste[layout.price, c] * taste[k, c]


@njit(cache=True, fastmath=CONTRACT)
def _choices(panel: Panel, person: int, shares: Floats, inverse: Floats, logs: Floats) -> None:
    """Indices in `shares` become odds against the choice, `inverse` 1/(1 + odds) a task, `logs` log P of all tasks."""
    width = logs.size
    begin = panel.task_starts[panel.person_starts[person]]
    product = np.ones(width)
    logs[:] = 0.0
    for task in range(panel.person_starts[person], panel.person_starts[person + 1]):
        total = inverse[task - panel.person_starts[person]]
        total[:width] = 1.0
        for row in range(panel.task_starts[task] - begin, panel.task_starts[task + 1] - begin):
            line = shares[row]
            for c in range(width):
                line[c] = _exp(min(max(line[c], -LARGEST_INDEX), LARGEST_INDEX))
                total[c] += line[c]
        for c in range(width):
            total[c] = 1.0 / total[c]
            product[c] *= total[c]
        if (task + 1 - panel.person_starts[person]) % TASKS_A_LOGARITHM == 0:
            logs += np.log(product)
            product[:] = 1.0
    logs += np.log(product)


@njit(cache=True, fastmath=True)
def _sums(layout: Layout, slopes: Floats, draws: Floats, taste: Floats, beta: Floats, sums: Floats) -> None:
    """Add to `sums` the gradient by parameters, from `slopes` by coefficients."""
    size, width = layout.forms.size, draws.shape[1]
    if layout.price >= 0:
        for c in range(width):
            whole = 0.0
            for k in range(size):
                whole += slopes[k, c] * beta[k, c]
            for k in range(size):
                slopes[k, c] *= -taste[layout.price, c]
            slopes[layout.price, c] = whole
    for k in range(size):
        line = slopes[k]
        if layout.forms[k] != LINEAR and k != layout.price:
            for c in range(width):
                line[c] *= taste[k, c]
        plain = 0.0
        for c in range(width):
            plain += line[c]
        sums[k] += plain
        if layout.columns[k] >= 0:
            drawn, crossed = draws[layout.columns[k]], 0.0
            for c in range(width):
                crossed += line[c] * drawn[c]
            sums[size + layout.columns[k]] += crossed


@njit(cache=True, fastmath=CONTRACT)
def simulate(panel: Panel, layout: Layout, theta: Floats, values: Floats, scores: Floats) -> None:
    """Fill each person's simulated log likelihood (people,) and its gradient by parameters (people, parameters)."""
    size, draws = layout.forms.size, panel.draws.shape[2]
    most_tasks = np.diff(panel.person_starts).max()
    most_rows = np.diff(panel.task_starts[panel.person_starts]).max()
    shares, inverse, logs = np.empty((most_rows, CHUNK)), np.empty((most_tasks, CHUNK)), np.empty(CHUNK)
    taste, beta, slopes = np.empty((size, CHUNK)), np.empty((size, CHUNK)), np.empty((size, CHUNK))
    sums = np.empty(theta.size)
    for person in range(panel.person_starts.size - 1):
        first, last = panel.person_starts[person], panel.person_starts[person + 1]
        rows = panel.rows[panel.task_starts[first] : panel.task_starts[last]]
        turned = np.ascontiguousarray(rows.T)
        begin, top, weight = panel.task_starts[first], -np.inf, 0.0
        sums[:] = 0.0
        for start in range(0, draws, CHUNK):
            width = min(CHUNK, draws - start)
            drawn = panel.draws[person, :, start : start + width]
            _coefficients(layout, theta, drawn, taste, beta)
            _product(rows, beta, shares, width)
            _choices(panel, person, shares, inverse, logs[:width])
            highest = max(top, logs[:width].max())
            faded = np.exp(top - highest)
            top, weight = highest, weight * faded
            sums *= faded
            for c in range(width):
                logs[c] = np.exp(logs[c] - top)
                weight += logs[c]
            for task in range(first, last):
                line = inverse[task - first]
                for c in range(width):
                    line[c] *= -logs[c]
                for row in range(panel.task_starts[task] - begin, panel.task_starts[task + 1] - begin):
                    for c in range(width):
                        shares[row, c] *= line[c]
            _product(turned, shares, slopes, width)
            _sums(layout, slopes, drawn, taste, beta, sums)
        values[person] = top + np.log(weight / draws)
        for parameter in range(theta.size):
            scores[person, parameter] = sums[parameter] / weight
