"""People who are alone with their key in their place and unlike most of it: those whom a guess does not find.

Of everybody, a guesser gets many right, because most people are like most others. A unique is the one who has
something to lose: nonmodal uniques. An attacker knows the key of each, everything but the secret, and names that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dualmandate.audit.equations import Floats, Integers
from dualmandate.audit.finding import Rate
from dualmandate.population import Domain


@dataclass(frozen=True, eq=False)
class NonmodalUniques:
    """Nonmodal uniques of a population: one row each.

    `secrets` are true levels of the secret attribute; `key_cells` are the cells of each one's key, one a level of the
    secret; shape (people, levels).
    """

    places: Integers = field(repr=False)
    key_cells: Integers = field(repr=False)
    secrets: Integers = field(repr=False)

    def named(self, file: Floats, believed: Floats) -> Rate | None:
        """How many an attacker names right who has this file, and otherwise believes another one.

        The most likely secret of the file, one drawn in proportion to it, or one drawn as if there were no tables:
        whichever is right most often, drawn ones as expected. None where there is no unique. Files have shape (places,
        cells).
        """
        if not len(self.places):
            return None
        chances = file[self.places[:, None], self.key_cells]
        likely = int(((chances.argmax(axis=1) == self.secrets) & (chances.sum(axis=1) > 0)).sum())
        return Rate(max(likely, self._drawn(file), self._drawn(believed)), len(self.places))

    def drawn(self, file: Floats) -> Rate | None:
        """How many a guesser gets right who draws each one's secret in proportion to a file."""
        return Rate(self._drawn(file), len(self.places)) if len(self.places) else None

    def _drawn(self, file: Floats) -> int:
        chances = file[self.places[:, None], self.key_cells]
        totals = chances.sum(axis=1)
        true = np.take_along_axis(chances, self.secrets[:, None], axis=1)[:, 0]
        shares = np.divide(true, totals, out=np.zeros(len(true)), where=totals > 0)
        return round(float(shares.sum()))

    def modal(self) -> Rate | None:
        """How many are named right by the most frequent secret of their place: nobody, by what they are."""
        return Rate(0, len(self.places)) if len(self.places) else None


def secret_of(domain: Domain, stated: Sequence[str] = ()) -> int | None:
    """The attribute that an attacker is after: the first stated, else the last with a choice of levels.

    None where no other attribute makes a key.
    """
    named = [domain.axis(name) for name in stated if name in domain.names]
    if named and len(domain.shape) > 1:
        return named[0]
    able = [axis for axis, size in enumerate(domain.shape) if size > 1]
    return able[-1] if able and len(domain.shape) > 1 else None


def find_nonmodal_uniques(domain: Domain, truth: Integers, secret: int | None) -> NonmodalUniques:
    """The nonmodal uniques; `truth` has shape (places, cells). Nobody where there is no secret beside a key."""
    if secret is None:
        nobody = np.zeros(0, dtype=np.int64)
        return NonmodalUniques(nobody, nobody.reshape(0, 1), nobody)
    levels = domain.shape[secret]
    cells = np.moveaxis(np.arange(domain.size).reshape(domain.shape), secret, -1).reshape(-1, levels)
    counts = truth[:, cells]  # (places, keys, levels of the secret)
    modal = counts.sum(axis=1).argmax(axis=1)
    places, keys = np.nonzero(counts.sum(axis=2) == 1)
    secrets = counts[places, keys].argmax(axis=1)
    unlike = secrets != modal[places]
    return NonmodalUniques(places[unlike], cells[keys[unlike]], secrets[unlike])


def key_in_words(domain: Domain, secret: int | None, place: str) -> str | None:
    """Who is unique by what, and what is the secret; None where there is none."""
    if secret is None:
        return None
    known = [name for axis, name in enumerate(domain.names) if axis != secret]
    listed = known[0] if len(known) == 1 else f"{', '.join(known[:-1])} and {known[-1]}"
    return f"alone with their {listed} in their {place}, and unlike most of it in {domain.names[secret]}"
