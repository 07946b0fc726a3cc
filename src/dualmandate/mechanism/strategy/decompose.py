"""A workload as independent groups of attributes: a product of smaller ones where its tables are all combinations."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism.strategy.axes import axis_of, with_zeros
from dualmandate.mechanism.strategy.workload_blocks import Key, WorkloadBlock
from dualmandate.workload import Factor, Workload
from dualmandate.workload.factor import LARGEST_DENSE, Numbers


def parts_of(
    workload: Workload,
    values: Mapping[str, Fraction] | None = None,
    *,
    split: bool = True,
    public: tuple[tuple[Factor, ...], ...] = (),
) -> tuple[WorkloadBlock, ...]:
    """The parts of a workload: attributes split off one by one where the tables are all combinations (if `split`).

    `values` says what the squared error of each table costs (1 where None). With `public` tables there is one part.
    """
    squares: dict[Key, Fraction] = {}
    tables: dict[Key, tuple[Factor, ...]] = {}
    for table in workload.tables:
        key = tuple(factor.key for factor in table.factors)
        tables[key] = table.factors
        worth = Fraction(1) if values is None else values[table.name]
        squares[key] = squares.get(key, Fraction(0)) + table.weight**2 * worth
    axes = tuple(range(len(workload.domain.shape)))
    if workload.domain.structural_zeros:
        return (_part_with_zeros(workload, tables, squares, public=public),)
    if public:
        return (_part(axes, tables, squares, public=public),)
    found = []
    for axis in axes if split else ():
        place = axes.index(axis)
        alone = _alone(squares, place) if len(axes) > 1 else None
        if alone is not None:
            single: dict[Key, tuple[Factor, ...]] = {
                (key,): (next(f[place] for k, f in tables.items() if k[place] == key),) for key in alone
            }
            found.append(_part((axis,), single, {(key,): value for key, value in alone.items()}))
            first = next(iter(alone))
            axes = axes[:place] + axes[place + 1 :]
            squares = {k[:place] + k[place + 1 :]: value for k, value in squares.items() if k[place] == first}
            tables = {k[:place] + k[place + 1 :]: f[:place] + f[place + 1 :] for k, f in tables.items()}
    found.append(_part(axes, tables, squares))
    return tuple(found)


def _alone(squares: dict[Key, Fraction], place: int) -> dict[Hashable, Fraction] | None:
    """Squared weights of one attribute's factors relative to the first, if they multiply those of the rest."""
    rest: dict[Key, dict[Hashable, Fraction]] = {}
    for key, value in squares.items():
        rest.setdefault(key[:place] + key[place + 1 :], {})[key[place]] = value
    first_key = next(iter(squares))[place]
    ratios: dict[Hashable, Fraction] | None = None
    for values in rest.values():
        if first_key not in values:
            return None
        found = {key: value / values[first_key] for key, value in values.items()}
        if ratios is not None and found != ratios:
            return None
        ratios = found
    return ratios


def _part(
    axes: tuple[int, ...],
    tables: dict[Key, tuple[Factor, ...]],
    squares: dict[Key, Fraction],
    *,
    public: tuple[tuple[Factor, ...], ...] = (),
) -> WorkloadBlock:
    levels = tuple(axis_of([factors[place] for factors in (*tables.values(), *public)]) for place in range(len(axes)))
    return WorkloadBlock(axes, levels, tables, {key: float(value) for key, value in squares.items()}, public=public)


def _part_with_zeros(
    workload: Workload,
    tables: dict[Key, tuple[Factor, ...]],
    squares: dict[Key, Fraction],
    *,
    public: tuple[tuple[Factor, ...], ...],
) -> WorkloadBlock:
    """All attributes together: a merged cell is possible where one of its cells is."""
    if workload.domain.size > LARGEST_DENSE:
        raise TooLarge(
            f"a strategy for {workload.domain.size:.3g} cells with structural zeros",
            why=f"impossible cells are listed for at most {LARGEST_DENSE:,} cells",
            instead="optimize for fewer attributes, or without the structural zeros",
        )
    part = _part(tuple(range(len(workload.domain.shape))), tables, squares, public=public)
    counts: Numbers = workload.domain.possible_cells().reshape(workload.domain.shape).astype(np.int64)
    for place, level in enumerate(part.levels):
        counts = level.merge(counts, place)
    possible = counts > 0
    levels = tuple(
        with_zeros(
            level,
            [factors[place] for factors in (*tables.values(), *public)],
            np.moveaxis(possible, place, 0).reshape(level.merged, -1),
        )
        for place, level in enumerate(part.levels)
    )
    return replace(part, levels=levels, possible=possible)
