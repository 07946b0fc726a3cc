"""Benchmarks laid out, and what is heard of them on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

from dualmandate.apps.row_tables import StageLog
from dualmandate.benchmarks.harness import counter


@dataclass
class Said:
    words: list[str] = field(default_factory=list)
    counted: list[tuple[str, int, int]] = field(default_factory=list)

    def __call__(self, words: str, /) -> None:
        self.words.append(words)

    def count(self, words: str, done: int, of: int, /) -> None:
        self.counted.append((words, done, of))


def test_stages_are_kept_and_counts_are_passed_on() -> None:
    said = Said()
    heard = StageLog(said)
    tell = counter(heard, "10,000 blocks", 10_000)
    tell(99)
    tell(100)
    tell(10_000)
    assert heard.stages == said.words == ["10,000 blocks"]
    assert said.counted == [("10,000 blocks", 100, 10_000), ("10,000 blocks", 10_000, 10_000)]
