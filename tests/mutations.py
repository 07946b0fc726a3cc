"""Files with something wrong in them: seeded mutations of good ones, of their bytes, words, numbers and lines."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

ODD_WORDS = (
    *(b'"', b"'", b'"""', b"[", b"]", b"[[", b"{", b"}", b"=", b",", b";", b"\\", b"\\u0000", b"#", b".", b"\n", b"\r"),
    *(b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", "é\u202e☃".encode(), b"../../etc/passwd", b"%s{0}"),
    *(b"true", b"null", b"[]", b"{}", b'""', b"nan", b"inf", b"1979-05-27", b"x" * 3000, b"x" * 70 + b" = 1\n"),
)
ODD_NUMBERS = (
    *(
        b"0",
        b"-1",
        b"-0.0",
        b"1",
        b"2",
        b"0.5",
        b"1e-300",
        b"1e300",
        b"1e999",
        b"-1e999",
        b"nan",
        b"inf",
        b"1/0",
        b"1/3",
    ),
    *(b"9223372036854775808", b"9" * 60, b"0x10", b"1_000", b"0.1e", b'"7"', b"true"),
)


def mutated(content: bytes, seed: int, *, binary: bool = False) -> bytes:
    """The content with one to three things wrong in it; the same for the same seed.

    In a `binary` file they mostly leave everything in its place.
    """
    draws = random.Random(seed)
    for _ in range(draws.choice((1, 1, 1, 2, 3))):
        content = draws.choice(BINARY if binary else MUTATIONS)(content, draws)
    return content


def _flipped(content: bytes, draws: random.Random) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    for _ in range(draws.choice((1, 1, 4, 32))):
        changed[draws.randrange(len(changed))] ^= 1 << draws.randrange(8)
    return bytes(changed)


def _overwritten(content: bytes, draws: random.Random) -> bytes:
    word = draws.choice((*ODD_WORDS, *ODD_NUMBERS))[:40]
    place = draws.randrange(len(content) + 1)
    return content[:place] + word + content[place + len(word) :]


def _cut(content: bytes, draws: random.Random) -> bytes:
    return content[: draws.randrange(len(content) + 1)]


def _without_part(content: bytes, draws: random.Random) -> bytes:
    first = draws.randrange(len(content) + 1)
    return content[:first] + content[first + draws.choice((1, 1, 2, 8, 64)) :]


def _with_word(content: bytes, draws: random.Random) -> bytes:
    place = draws.randrange(len(content) + 1)
    return content[:place] + draws.choice(ODD_WORDS) + content[place:]


def _other_number(content: bytes, draws: random.Random) -> bytes:
    return _replaced(content, rb"-?\d+(?:[._]\d+)*(?:[eE][+-]?\d+)?", lambda _: draws.choice(ODD_NUMBERS), draws)


def _other_text(content: bytes, draws: random.Random) -> bytes:
    """A quoted text becomes another one of the file, or an odd one."""
    texts = re.findall(rb'"[^"\n]*"', content)
    words = [*texts, *(b'"' + word + b'"' for word in (*ODD_WORDS, *ODD_NUMBERS))]
    return _replaced(content, rb'"[^"\n]*"', lambda _: draws.choice(words), draws)


def _other_key(content: bytes, draws: random.Random) -> bytes:
    keys = re.findall(rb"[A-Za-z_]+", content) or [b"x"]
    return _replaced(content, rb"[A-Za-z_]+", lambda found: draws.choice([*keys, found + b"s"]), draws)


def _replaced(content: bytes, pattern: bytes, other: Callable[[bytes], bytes], draws: random.Random) -> bytes:
    places = list(re.finditer(pattern, content))
    if not places:
        return content
    place = draws.choice(places)
    return content[: place.start()] + other(place.group()) + content[place.end() :]


def _other_lines(content: bytes, draws: random.Random) -> bytes:
    """A line is gone, stands twice, or stands elsewhere."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    place = draws.randrange(len(lines))
    line = lines[place]
    act = draws.choice(("gone", "twice", "elsewhere"))
    if act != "twice":
        del lines[place]
    if act != "gone":
        lines.insert(draws.randrange(len(lines) + 1), line)
    return b"".join(lines)


BINARY = (*[_flipped] * 6, *[_overwritten] * 6, _cut, _without_part, _with_word)
MUTATIONS = (
    *(_flipped, _cut, _without_part, _with_word, _other_number, _other_number),
    *(_other_text, _other_text, _other_key, _other_key, _other_lines, _other_lines),
)
