"""A release by a technology whose errors depend on the data: its transcript, from the records to the disk and back.

The technology asks for one private draw after the other, and only these see the counts. They are sealed and kept as
measurements are. Everything that is published is then told anew from the transcript alone, without the records: by the
same steps after a crash as before it, and by anybody who has the release.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import UnknownName
from dualmandate.mechanism.data_dependent import Draw, RecordsCurator, Told, TranscriptCurator
from dualmandate.mechanism.noise import NoiseKey, subkey
from dualmandate.mechanism.technologies import noise_named
from dualmandate.population import Confidential, Counts
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.tabulating import SparseHistogram, Tabulated
from dualmandate.publication.wall import guarded
from dualmandate.publication.writing import NoisyRows, Parquet, ReleaseSheet, damaged

FOLDER, TRANSCRIPT = "measurements", "transcript"


def transcribed(
    order: ReleaseSpec, tabulated: Confidential[Tabulated], secret: Confidential[bytes], *, mac: str
) -> tuple[Draw, ...]:
    """Every draw of the technology of an order; `mac` is the fingerprint that the ledger has bound the release to."""
    technology = order.technology
    assert technology is not None
    histogram, opened = tabulated.open_for("drawing").histogram, secret.open_for("drawing noise")
    assert not isinstance(histogram, SparseHistogram)
    counts: Counts = histogram

    def key(name: str) -> NoiseKey:
        words = f"{technology.name} {technology.format} / {name}"
        return subkey(opened, order.plan_digest, histogram_mac=bytes.fromhex(mac), measurement=words)

    def work() -> tuple[Draw, ...]:
        curator = RecordsCurator(counts, key)
        technology.tell(curator, order.protection)
        return tuple(curator.transcript)

    return guarded(work, name="tabulated records")


def transcript_rows(transcript: Sequence[Draw]) -> NoisyRows:
    """A transcript as rows: the number of its draw, and what came out."""
    kinds = np.repeat(np.arange(len(transcript)), [len(draw.values) for draw in transcript])
    values = np.concatenate([draw.values for draw in transcript])
    return NoisyRows(TRANSCRIPT, (), kinds.astype(np.int64), values)


def write_transcript(transcript: Sequence[Draw], stem: Path, facts: Mapping[str, str]) -> None:
    """Bring a transcript to the disk, durably, with the words and the noise of each draw."""
    rows, told = transcript_rows(transcript), [_draw_facts(draw) for draw in transcript]
    words = {f"draw {number}": json.dumps(each, ensure_ascii=False) for number, each in enumerate(told)}
    numbers: dict[str, NDArray[Any]] = {"kind": rows.kinds.astype(np.int32), "value": rows.values}
    Parquet().write(ReleaseSheet(TRANSCRIPT, "", (), (), numbers, {**facts, **words}), stem)


def _draw_facts(draw: Draw) -> dict[str, Any]:
    noise = None if draw.noise is None else {"law": draw.noise.law, "parameter": str(draw.noise.parameter)}
    return {"name": draw.name, "of": draw.words, "noise": noise, "numbers": len(draw.values)}


def read_transcript(path: Path) -> tuple[Draw, ...]:
    """A transcript from its file."""
    sheet = Parquet().read(path)
    found, start = list[Draw](), 0
    try:
        while (written := sheet.facts.get(f"draw {len(found)}")) is not None:
            said = json.loads(written)
            law, end = said["noise"], start + int(said["numbers"])
            noise = None if law is None else noise_named(law["law"], Fraction(law["parameter"]))
            found.append(Draw(said["name"], said["of"], noise, sheet.numbers["value"][start:end].astype(np.int64)))
            start = end
    except (ValueError, KeyError, TypeError, ArithmeticError, UnknownName):
        raise damaged("the transcript of a release", "it does not say what each number was drawn for") from None
    if start != sheet.rows or not found:
        raise damaged("the transcript of a release", "it has other numbers than its draws")
    return tuple(found)


def told_of(order: ReleaseSpec, transcript: Sequence[Draw]) -> Told:
    """What a transcript says: by the steps that drew it, and without the records."""
    assert order.technology is not None
    return order.technology.tell(TranscriptCurator(transcript), order.protection)


def technology_facts(order: ReleaseSpec, transcript: Sequence[Draw], told: Told) -> dict[str, Any]:
    """What `release.json` says of the technology: what it is, what the release rests on, and each of its draws."""
    assert order.technology is not None
    return {
        **order.technology.document(),
        "words": order.technology.mechanism.name,
        "loss": str(order.technology.loss),
        "covers": told.covers,
        "measurements": f"{FOLDER}/{TRANSCRIPT}.parquet",
        "measured": list(told.measured),
        "draws": [_draw_facts(draw) for draw in transcript],
    }
