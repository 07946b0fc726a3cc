"""How many records must change together, so that files with the same exact totals can be reached from one another.

A *move* is what is added to one file to make another with the same totals: whole numbers, as many records coming as
going; its size is how many go. The number asked for is the smallest m such that any two files with the same totals are
linked by files with the same totals, each at most m records from the one before: the largest size in a smallest Markov
basis [DS98]. Below it some file has no neighbor, and a loss stated for fewer records is a
promise about pairs of files that do not exist.

Totals of nested groups decide the total of every atom, so each family of nested exact totals is one partition of the
cells. Of two partitions the moves are the cycles of a bipartite graph, and the chordless ones are a smallest Markov
basis [OH99]. Margins that are the cliques of a chordal graph need two records [Dob03]. What is
small besides is worked out from all primitive moves [Pot96], and what is not is bounded from below: by what files of a
few groups need, by every file of a few records, and by integer programs, the fewest records that change where a record
of a given cell does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise

import numpy as np
from numpy.typing import NDArray

from dualmandate.population.domain import Domain

Labels = dict[int, NDArray[np.int64]]
Integers = NDArray[np.int64]

MOST_CELLS = 2**21  # kinds of cells that are told apart by exact totals and structural zeros
MOST_LISTED = 3  # groups of levels of an attribute that are looked at where all together are too many
MOST_PATHS = 10**5  # paths that are followed for the longest chordless cycle
MOST_PRIMITIVE = 200  # primitive moves that are held, of one part of the cells
MOST_SMALL = 100  # cells of such a part
MOST_FILES = 20_000  # files that are looked at: with the same totals, or of the same few records
MOST_ALIKE = 200  # of them, with the same totals, where all are written out
MOST_RECORDS = 6  # in a file that is written out
MOST_PROGRAMS = 8  # cells for which an integer program is solved
LARGEST_PROGRAM = 2_000  # cells in it
MOST_NODES = 2_000  # of its search
TOLERANCE = 1e-6  # of its bound


@dataclass(frozen=True)
class Together:
    """How many records change together between files with the same exact totals.

    Steps of fewer than `least` do not link all of them; steps of `enough` do, None where that was not established.
    """

    least: int
    enough: int | None

    def establishes(self, records: int) -> bool:
        """Whether steps of so many records were shown to link all files with the same totals."""
        return self.enough is not None and self.enough <= records


def together(domain: Domain, totals: Sequence[Labels], crossing: Iterable[tuple[int, int]]) -> Together:
    """The number for exact totals, given by the groups of levels of each and by which two of them cross."""
    pairs = frozenset(crossing)
    if not pairs:
        return Together(1, 1)
    margins = None if domain.structural_zeros else _margins(totals)
    if margins is not None and len(margins) == 1:
        return Together(1, 1)  # it decides the others: what crosses among them crosses nothing that is left
    if margins is not None and _chordal(margins):
        return Together(2, 2)
    # Of whole margins every cell is like every other, since levels may change places: one is asked, among few levels.
    programs = MOST_PROGRAMS if margins is None else 0
    groups = _groups(domain, totals, None)
    found = Together(1, None) if groups is None else _of_groups(groups, pairs, programs)
    if found.enough is not None:
        return found
    # Files without a record in some groups are files too, with fewer files beside them: what they need is needed.
    axes, least = range(len(domain.shape)), found.least
    named = sorted({axis for labels in totals for axis in labels})
    fewer = (([MOST_LISTED - (axis == one) for axis in axes], 0) for one in named)
    for most, asked in (([MOST_LISTED for _ in axes], programs), ([2 for _ in axes], 1), *fewer):
        some = _groups(domain, totals, most)
        least = max(least, 1 if some is None else _of_groups(some, pairs, asked).least)
    return Together(least, None)


def _margins(totals: Sequence[Labels]) -> list[set[int]] | None:
    """The attributes of each total that no other holds; None where some is no margin of whole attributes."""
    seen: dict[int, Integers] = {}
    for labels in totals:
        for axis, groups in labels.items():
            known = seen.setdefault(axis, groups)
            if bool(np.any(groups < 0)) or not (known is groups or np.array_equal(known, groups)):
                return None
    one_group = {axis for axis, groups in seen.items() if not np.any(groups != groups[0])}
    return _widest([set(labels) - one_group for labels in totals])


def _chordal(margins: Sequence[set[int]]) -> bool:
    """Whether margins form an acyclic hypergraph (Graham's reduction)."""
    edges = list(margins)
    while True:
        edges = _widest(edges)
        alone = {axis for edge in edges for axis in edge if sum(axis in other for other in edges) == 1}
        if not alone or len(edges) == 1:
            return len(edges) == 1
        edges = [edge - alone for edge in edges]


def _widest(edges: Sequence[set[int]]) -> list[set[int]]:
    return [edge for place, edge in enumerate(edges) if not _inside(edge, place, edges)]


def _inside(edge: set[int], place: int, edges: Sequence[set[int]]) -> bool:
    return any(edge < other or (edge == other and number < place) for number, other in enumerate(edges))


def _groups(domain: Domain, totals: Sequence[Labels], most: Sequence[int] | None) -> Integers | None:
    """The group of each kind of cell in each total, -1 outside; shape (totals, kinds). None for too many kinds.

    With `most`, only levels in the first so many groups, by attribute, of a total that counts every cell by it.
    """
    whole = [labels for labels in totals if not any(np.any(each < 0) for each in labels.values())]
    kinds: list[Integers] = []  # by attribute: levels that stand for all that nothing tells from them
    for axis, size in enumerate(domain.shape):
        told = [labels[axis] for labels in totals if axis in labels]
        told += [masks[axis].astype(np.int64) for masks in domain.all_zero_masks if axis in masks]
        if not told:
            kinds.append(np.zeros(1, dtype=np.int64))
            continue
        levels = np.arange(size)
        limit = next((labels[axis] for labels in whole if axis in labels), None)
        if most is not None and limit is not None:
            levels = np.flatnonzero(limit < most[axis])
        _, first = np.unique(np.stack(told)[:, levels], axis=1, return_index=True)
        kinds.append(levels[first])
    if math.prod(len(levels) for levels in kinds) > MOST_CELLS:
        return None
    grid = [axis.reshape(-1) for axis in np.meshgrid(*kinds, indexing="ij")]
    possible = np.ones(len(grid[0]), dtype=np.bool_)
    for masks in domain.all_zero_masks:
        possible &= ~np.logical_and.reduce([mask[grid[axis]] for axis, mask in masks.items()])
    cells = [axis[possible] for axis in grid]
    return np.stack(
        [_numbered([groups[cells[axis]] for axis, groups in labels.items()], cells[0]) for labels in totals]
    )


def _numbered(parts: Sequence[Integers], like: Integers) -> Integers:
    """One number for each different column; -1 where some part is."""
    if not parts:
        return np.zeros(len(like), dtype=np.int64)
    stacked = np.stack(parts)
    _, numbers = np.unique(stacked, axis=1, return_inverse=True)
    return np.where(np.any(stacked < 0, axis=0), -1, numbers.reshape(-1))


def _of_groups(groups: Integers, crossing: frozenset[tuple[int, int]], programs: int) -> Together:
    atoms = np.stack([_atoms(groups[family]) for family in _families(len(groups), crossing)])
    kinds = np.unique(atoms, axis=1)
    if len(kinds) == 2:
        return _of_cycles(kinds)
    found = [_of_primitive(part) or Together(_bound(part, programs), None) for part in _parts(kinds)]
    open_still = any(part.enough is None for part in found)
    return Together(max(part.least for part in found), None if open_still else max(part.enough or 1 for part in found))


def _families(count: int, crossing: frozenset[tuple[int, int]]) -> list[list[int]]:
    """The totals in families of which no two cross: two families wherever two suffice."""
    beside: list[set[int]] = [set() for _ in range(count)]
    for one, other in crossing:
        beside[one].add(other)
        beside[other].add(one)
    family: dict[int, int] = {}
    for start in range(count):
        waiting = [start]
        while waiting:
            total = waiting.pop()
            if total not in family:
                taken = {family[other] for other in beside[total] if other in family}
                family[total] = next(number for number in range(count) if number not in taken)
                waiting += sorted(beside[total] - family.keys())
    return [[total for total in range(count) if family[total] == number] for number in sorted(set(family.values()))]


def _atoms(groups: Integers) -> Integers:
    return np.unique(groups, axis=1, return_inverse=True)[1].reshape(-1)


# Two families: cycles of a bipartite graph.


def _of_cycles(edges: Integers) -> Together:
    """Half the length of the longest chordless cycle; twice two atoms that share two atoms are a cycle of four."""
    least = 1
    while True:
        before = edges.shape[1]
        for side in (0, 1):
            order = np.argsort(edges[side], kind="stable")
            edges = edges[:, order]
            ends = [0, *(np.flatnonzero(np.diff(edges[side])) + 1).tolist(), edges.shape[1]]
            kept: dict[bytes, int] = {}
            stays = np.ones(edges.shape[1], dtype=np.bool_)
            for begin, end in pairwise(ends):
                beside = np.sort(edges[1 - side, begin:end])
                # An atom that touches one other is in no cycle; of atoms that touch the same, a longer one has one.
                if end - begin == 1:
                    stays[begin:end] = False
                elif kept.setdefault(beside.tobytes(), begin) != begin:
                    stays[begin:end], least = False, 2
            edges = edges[:, stays]
        if edges.shape[1] == before or edges.shape[1] == 0:
            break
    if edges.shape[1] == 0:
        return Together(least, least)
    longest, all_followed = _longest_chordless(edges)
    least = max(least, longest // 2)
    return Together(least, least if all_followed else min(len(np.unique(side)) for side in edges))


def _longest_chordless(edges: Integers) -> tuple[int, bool]:
    """The length of the longest chordless cycle that was found, and whether all were looked at."""
    sides = [np.unique(side, return_inverse=True)[1].reshape(-1) for side in edges]
    first = int(sides[0].max()) + 1
    beside = [0] * (first + int(sides[1].max()) + 1)
    for one, other in zip(sides[0].tolist(), (sides[1] + first).tolist(), strict=True):
        beside[one] |= 1 << other
        beside[other] |= 1 << one
    longest = followed = 0
    for start in range(first):
        earlier = (1 << start + 1) - 1
        # A path of atoms from `start`: its last one, its length, and what lies on it or beside one of its inner atoms.
        waiting = [(atom, 2, earlier) for atom in _bits(beside[start] & ~earlier)]
        while waiting:
            if followed == MOST_PATHS:
                return longest, False
            followed += 1
            last, length, blocked = waiting.pop()
            for atom in _bits(beside[last] & ~blocked):
                if beside[atom] >> start & 1:
                    longest = max(longest, length + 1)
                else:
                    waiting.append((atom, length + 1, blocked | beside[last] | 1 << last))
    return longest, True


def _bits(number: int) -> Iterable[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


# Three families and more.


def _parts(atoms: Integers) -> list[Integers]:
    """The cells in parts that share no atom, each once where several are alike; the atoms of each numbered anew."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    cells = atoms.shape[1]
    offset = np.cumsum([0, *(atoms.max(axis=1) + 1)])[:-1, None]
    rows, columns = (atoms + offset).reshape(-1) + cells, np.tile(np.arange(cells), len(atoms))
    size = int(rows.max()) + 1
    graph = coo_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(size, size))
    _, part = connected_components(graph, directed=False)
    order = np.argsort(part[:cells], kind="stable")
    starts = np.flatnonzero(np.diff(part[:cells][order], prepend=-1))
    found: dict[bytes, Integers] = {}
    for chosen in np.split(order, starts[1:]):
        some = np.stack([np.unique(each[chosen], return_inverse=True)[1].reshape(-1) for each in atoms])
        found.setdefault(np.int64(len(chosen)).tobytes() + some.tobytes(), some)
    return list(found.values())


def _matrix(atoms: Integers) -> Integers:
    """One row an atom of each family: which cells it holds."""
    return np.concatenate([each == np.arange(each.max() + 1)[:, None] for each in atoms]).astype(np.int64)


def _of_primitive(atoms: Integers) -> Together | None:
    """Exactly, from all primitive moves; None where there are too many."""
    basis = _lattice(_matrix(atoms)) if atoms.shape[1] <= MOST_SMALL else None
    moves = None if basis is None or len(basis) > MOST_PRIMITIVE // 4 else _primitive(basis)
    if moves is None:
        return None
    sizes = np.abs(moves).sum(axis=1) // 2
    for size in sorted(set(sizes.tolist()), reverse=True):
        smaller = moves[sizes < size]
        for move in moves[sizes == size]:
            linked = _linked(move, smaller)
            if linked is None:
                return None
            if not linked:
                return Together(size, size)
    return Together(1, 1)


def _lattice(matrix: Integers) -> Integers:
    """A basis of all whole-number moves, by operations on columns that can be undone in whole numbers."""
    rows, cells = matrix.shape
    work = [[*map(int, matrix[:, cell]), *(int(cell == other) for other in range(cells))] for cell in range(cells)]
    done = 0
    for row in range(rows):
        while True:
            left = [place for place in range(done, cells) if work[place][row]]
            if not left:
                break
            best = min(left, key=lambda place: abs(work[place][row]))
            work[done], work[best] = work[best], work[done]
            pivot = work[done]
            if len(left) == 1:
                done += 1
                break
            for place in range(done + 1, cells):
                times = work[place][row] // pivot[row]
                if times:
                    work[place] = [one - times * other for one, other in zip(work[place], pivot, strict=True)]
    return np.array([column[rows:] for column in work[done:]], dtype=np.int64).reshape(-1, cells)


def _primitive(basis: Integers) -> Integers | None:
    """All moves that are no sum of two moves without opposite signs, each with its opposite; None for too many."""
    held = np.zeros((MOST_PRIMITIVE + 2, basis.shape[1]), dtype=np.int64)
    count, place = 2 * len(basis), 1
    held[:count] = np.concatenate([basis, -basis])
    while place < count:
        for other in range(place):
            left = held[place] + held[other]
            while left.any():
                fits = np.all((held[:count] * left >= 0) & (np.abs(held[:count]) <= np.abs(left)), axis=1)
                if not fits.any():
                    held[count : count + 2] = left, -left
                    count += 2
                    break
                left = left - held[int(np.argmax(fits))]
            if count > MOST_PRIMITIVE:
                return None
        place += 1
    held = held[:count]
    smaller = (held[:, None, :] * held[None] >= 0) & (np.abs(held[None]) <= np.abs(held[:, None, :]))
    inside = np.all(smaller, axis=2) & ~np.eye(len(held), dtype=np.bool_)
    primitive: Integers = held[~inside.any(axis=1)]
    return primitive


def _linked(move: Integers, smaller: Integers) -> bool | None:
    """Whether what goes and what comes in a move are linked by smaller moves; None for too many files between."""
    begin, end = np.maximum(-move, 0), np.maximum(move, 0)
    seen, waiting = {begin.tobytes()}, [begin]
    while waiting:
        file = waiting.pop()
        after = file + smaller
        for other in after[np.all(after >= 0, axis=1)]:
            if np.array_equal(other, end):
                return True
            if other.tobytes() not in seen:
                seen.add(other.tobytes())
                waiting.append(other)
        if len(seen) > MOST_FILES:
            return None
    return False


def _bound(atoms: Integers, programs: int) -> int:
    """What is needed at least."""
    return max(_of_programs(atoms, programs), _of_files(atoms))


def _of_programs(atoms: Integers, most: int) -> int:
    """The most, over so many cells, of the fewest records that change where a record of the cell does."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, hstack

    cells = atoms.shape[1]
    if cells > LARGEST_PROGRAM:
        return 1
    matrix = csr_array(_matrix(atoms))
    same = LinearConstraint(hstack([matrix, -matrix]), 0, 0)
    least = 1
    for cell in np.unique(np.linspace(0, cells - 1, min(cells, most)).astype(np.int64)).tolist():
        low, high = np.zeros(2 * cells), np.full(2 * cells, np.inf)
        low[cell], high[cells + cell] = 1, 0
        cost = np.concatenate([np.ones(cells), np.zeros(cells)])
        options = {"node_limit": MOST_NODES}
        found = milp(cost, integrality=np.ones(2 * cells), bounds=Bounds(low, high), constraints=same, options=options)
        bound = found.mip_dual_bound if found.status in (0, 1) else None
        if bound is not None and math.isfinite(bound):
            least = max(least, math.ceil(bound - TOLERANCE))
    return least


def _of_files(atoms: Integers) -> int:
    """What links all files of a few records that have the same totals, written out."""
    from scipy.sparse.csgraph import connected_components

    cells, matrix, least, records = atoms.shape[1], _matrix(atoms), 1, 2
    while records <= MOST_RECORDS and math.comb(cells + records - 1, records) <= MOST_FILES:
        places = np.array(list(combinations_with_replacement(range(cells), records)))
        files = np.zeros((len(places), cells), dtype=np.int64)
        np.add.at(files, (np.arange(len(places))[:, None], places), 1)
        _, told = np.unique(files @ matrix.T, axis=0, return_inverse=True)
        order = np.argsort(told.reshape(-1), kind="stable")
        for alike in np.split(files[order], np.flatnonzero(np.diff(told.reshape(-1)[order])) + 1):
            # What all of them hold is held by files of fewer records.
            if 1 < len(alike) <= MOST_ALIKE and not alike.all(axis=0).any():
                apart = np.abs(alike[:, None] - alike[None]).sum(axis=2) // 2
                while connected_components(apart <= least)[0] > 1:
                    least += 1
        records += 1
    return least
