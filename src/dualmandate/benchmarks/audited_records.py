"""Records from exact tables: the article's block of seven persons, and a generated census that is actually run.

Blocks have 30 to 100 persons unless stated otherwise, tables are like those of PL 94-171 and Summary File 1, ages are
in 38 bins. What is right is counted against the file that was tabulated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from dualmandate.audit.reconstruction.exact import Reconstruction, reconstruct
from dualmandate.audit.reconstruction.persons import Implication, Statistic, Variables, reconstruct_persons
from dualmandate.audit.tables import Equations
from dualmandate.benchmarks import generated_blocks, rhode_island
from dualmandate.benchmarks.generated_blocks import BlockSizes, block_parts, people_of
from dualmandate.benchmarks.harness import BenchmarkRow, apart, counter, peak_megabytes
from dualmandate.population.arrays import Integers

SEED, WARM = 2010, 64
LEAST_BLOCKS, LEAST_BLOCKS_WITH_VARIABILITY = 100.0, 50.0  # a second of one processor
RIGHT, UNIQUE = "share of records right, against the tabulated file", "share of blocks proved unique"
ON_ONE_THREAD = 2_000  # blocks
MOST_GROWTH = 1.25  # of memory, from a tenth of the blocks to all of them
BY_SIZE = (BlockSizes(1, 9), BlockSizes(10, 29), BlockSizes(30, 100), BlockSizes(101, 300))
ARTICLE = {(): 1, ("4A",): 2, ("2A", "2B"): 8}  # solutions without some statistics
SEVEN = Variables(
    "age", 0, 125, {"sex": ("F", "M"), "race": ("B", "W"), "marital": ("S", "M")}, (Implication({"marital": "M"}, 15),)
)
STATISTICS = tuple(
    Statistic(name, group, count, Decimal(median), Decimal(mean))
    for name, group, count, median, mean in (
        ("1A", dict[str, str](), 7, "30", "38.0"),
        ("2A", {"sex": "F"}, 4, "30", "33.5"),
        ("2B", {"sex": "M"}, 3, "30", "44.0"),
        ("2C", {"race": "B"}, 4, "51", "48.5"),
        ("2D", {"race": "W"}, 3, "24", "24.0"),
        ("3B", {"marital": "M"}, 4, "51", "54.0"),
        ("4A", {"sex": "F", "race": "B"}, 3, "36", "36.7"),
    )
)


def article(progress: Callable[[str], None]) -> list[BenchmarkRow]:
    """How many lists of seven persons there are, against what the article proved."""
    found = []
    for dropped, expected in ARTICLE.items():
        case = "seven persons (ACM Queue 2018)" + (f" without {' and '.join(dropped)}" if dropped else "")
        progress(case)
        started = time.process_time()
        solved = reconstruct_persons(SEVEN, [each for each in STATISTICS if each.name not in dropped])
        seconds = time.process_time() - started
        wrong = abs(len(solved.solutions) - expected) + (not solved.complete)
        found += [BenchmarkRow(case, float(wrong), f"solutions off the {expected} proved in the article", target=0.0)]
        found += [BenchmarkRow(case, seconds, "processor seconds", target=None if dropped else 5.0)]
    return found


@dataclass
class Tally:
    """What was found of some blocks, added up as they come, and what the attack took.

    Neither generating blocks nor judging what was found is counted in seconds.
    """

    processor: float = 0.0  # seconds
    elapsed: float = 0.0
    blocks: int = 0
    records: int = 0
    right: int = 0
    proved_records: int = 0
    unique: int = 0
    proved: int = 0
    all_solutions: int = 0
    variability: float = 0.0
    apart: float = 0.0  # records that differ between two files at most
    mixed: float = 0.0
    right_if_unique: int = 0
    records_if_unique: int = 0

    def add(self, found: Reconstruction, truth: Integers) -> None:
        right, records = found.right(truth), int(truth.sum())
        self.blocks += 1
        self.records += records
        self.right += right
        self.proved_records += found.proved_records
        self.unique += found.unique
        self.proved += found.proved
        self.all_solutions += found.all_solutions
        self.variability += found.variability or 0.0
        self.apart += found.most_apart or 0.0
        self.mixed += _mixture(truth)
        self.right_if_unique += right * found.unique
        self.records_if_unique += records * found.unique

    def shares(self) -> dict[str, float]:
        """In words, each as a share of blocks or of records."""
        return {
            RIGHT: self.right / self.records,
            "share of records proved": self.proved_records / self.records,
            UNIQUE: self.unique / self.blocks,
            "share of people in blocks proved unique": self.records_if_unique / self.records,
            "share of blocks with all solutions counted": self.all_solutions / self.blocks,
            "mean solution variability": self.variability / self.blocks,
            "share of all records that can differ": self.apart / self.records,
            "mean probability that two of a block differ in race or origin": self.mixed / self.blocks,
        }


def _mixture(truth: Integers) -> float:
    """The probability that two persons of a block, drawn with replacement, differ in race or origin."""
    shares = truth.reshape(generated_blocks.SHAPE).sum(axis=(0, 1)) / truth.sum()
    return 1 - float(np.square(shares).sum())


def attack(
    equations: Equations,
    parts: Iterable[Integers],
    *,
    variability: bool = True,
    workers: int = 2,
    tell: Callable[[int], None] = lambda _: None,
) -> Tally:
    """Reconstruct blocks part by part, shape (blocks, cells) each: no more of them is in memory at a time."""
    tally = Tally()
    for part in parts:
        values, solved = equations.of(part), list[Reconstruction]()
        began, started = time.perf_counter(), time.process_time()
        for each in reconstruct(equations, values, variability=variability, workers=workers):
            solved.append(each)
            tell(tally.blocks + len(solved))
        tally.processor += time.process_time() - started
        tally.elapsed += time.perf_counter() - began
        for each, truth in zip(solved, part, strict=True):
            tally.add(each, truth)
    return tally


def generated(blocks: int, sizes: BlockSizes | None = None) -> Iterator[Integers]:
    """The census that is attacked."""
    return block_parts(blocks, seed=SEED, sizes=sizes)


def census(progress: Callable[[str], None], blocks: int) -> list[BenchmarkRow]:
    """Blocks a second, what was found, memory, and how much two threads help."""
    equations, found = _everything(), list[BenchmarkRow]()
    attack(equations, generated(WARM))  # compiles
    case = f"{blocks:,} generated blocks, 38 age bins"
    for variability, least in ((False, LEAST_BLOCKS), (True, LEAST_BLOCKS_WITH_VARIABILITY)):
        words = f"{case}, {'with solution variability' if variability else 'solutions'}"
        tell = counter(progress, words, blocks)
        done = attack(equations, generated(blocks), variability=variability, tell=tell)
        rate = blocks / done.processor
        found.append(BenchmarkRow(words, rate, "blocks a second of one processor", target=least, is_floor=True))
        found.append(BenchmarkRow(words, done.elapsed, "seconds, two threads"))
    found += _found(case, done)
    return [*found, *_threads(progress, blocks), *_memory(progress, blocks)]


def _threads(progress: Callable[[str], None], blocks: int) -> list[BenchmarkRow]:
    fewer, equations = min(blocks, ON_ONE_THREAD), _everything()
    case = f"{fewer:,} generated blocks, on two threads and on one"
    progress(case)
    both, alone = (attack(equations, generated(fewer), workers=workers).elapsed for workers in (2, 1))
    return [BenchmarkRow(case, alone / both, "times as fast", is_floor=True)]


def _memory(progress: Callable[[str], None], blocks: int) -> list[BenchmarkRow]:
    """Peak memory of a fresh process that attacks all blocks, beside one that attacks a tenth of them."""
    found, peaks = list[BenchmarkRow](), list[float]()
    for count in (blocks // 10, blocks):
        case = f"{count:,} generated blocks in a fresh process"
        progress(case)
        said = apart(attacked, count)
        peaks.append(said["megabytes"])
        found.append(BenchmarkRow(case, said["first"], f"seconds for its first {WARM} blocks, cold"))
        found.append(BenchmarkRow(case, said["again"], f"seconds for the same {WARM} blocks, warm"))
        found.append(BenchmarkRow(case, said["megabytes"], "megabytes"))
    growth = BenchmarkRow(case, peaks[1] / peaks[0], "times the memory of a tenth of them", target=MOST_GROWTH)
    return [*found, growth]


def by_size(progress: Callable[[str], None], blocks: int) -> list[BenchmarkRow]:
    """The same tables of smaller and of larger blocks."""
    equations, found = _everything(), list[BenchmarkRow]()
    for sizes in BY_SIZE:
        case = f"{blocks:,} generated blocks of {sizes.least} to {sizes.most} persons"
        found += _found(case, attack(equations, generated(blocks, sizes), tell=counter(progress, case, blocks)))
    return found


def like_rhode_island(progress: Callable[[str], None], blocks: int) -> list[BenchmarkRow]:
    """Blocks as large and as mixed as Rhode Island's were in 2010, where its published counts are at hand."""
    file = rhode_island.block_file()
    published = rhode_island.generated_blocks() if file is None else rhode_island.published_blocks(file)
    populated = np.flatnonzero(published.persons.sum(axis=(1, 2)))
    chosen = np.random.default_rng(SEED).permutation(populated)[:blocks]
    where = "populated blocks of Rhode Island 2010" if published.real else "generated blocks, sizes as in Rhode Island"
    case = f"{blocks:,} {where}, sex and age generated"
    people = people_of(published.persons[chosen], seed=SEED)
    return _found(case, attack(_everything(), [people], tell=counter(progress, case, blocks)))


def _found(case: str, tally: Tally) -> list[BenchmarkRow]:
    """What was found, in shares; everything must be proved, and right where it is."""
    proved, wrong = tally.proved / tally.blocks, tally.records_if_unique - tally.right_if_unique
    return [
        *(BenchmarkRow(case, value, words) for words, value in tally.shares().items()),
        BenchmarkRow(case, proved, "share of blocks with all bounds proved", target=1.0, is_floor=True),
        BenchmarkRow(case, float(wrong), "records wrong in blocks proved unique", target=0.0),
    ]


def by_tables(progress: Callable[[str], None], blocks: int) -> list[BenchmarkRow]:
    """Fewer tables of the same blocks: redistricting data alone, with sex by age of everybody, without origin."""
    whole, found = _everything(), list[BenchmarkRow]()
    races, origins = {f"P12{letter}" for letter in "ABCDEF"}, {"P12H", "P12I"}
    fewer = {
        "PL 94-171 alone": {"P12", "P14"} | races | origins,
        "PL 94-171, P12 and P14": races | origins,
        "all tables but P12H and P12I": origins,
    }
    for words, dropped in fewer.items():
        case = f"{blocks:,} generated blocks, {words}"
        tell = counter(progress, case, blocks)
        shares = attack(whole.without(dropped), generated(blocks), variability=False, tell=tell).shares()
        found += [BenchmarkRow(case, shares[name], name) for name in (RIGHT, UNIQUE)]
    return found


def _everything() -> Equations:
    return Equations.of_workload(generated_blocks.tables())


def attacked(blocks: int) -> dict[str, float]:
    """Attack blocks here: seconds, and peak memory."""
    equations, began = _everything(), time.perf_counter()
    attack(equations, generated(WARM))
    cold = time.perf_counter() - began
    warm = attack(equations, generated(WARM)).elapsed
    attack(equations, generated(blocks))
    return {"first": cold, "again": warm, "megabytes": peak_megabytes()}
