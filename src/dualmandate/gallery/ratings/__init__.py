"""Ratings of films by people who do not exist, as sparse as a shop's, to be linked to a few things said in public.

Popularity falls as a power of rank; some people rate three films and some a thousand. Days cluster: people rate in
bouts.
"""

from __future__ import annotations

import numpy as np

from dualmandate.audit.linkage.sparse import SparseRecords

SEED = 2006  # The seed is public: nobody saw these films.
PEOPLE, FILMS, DAYS = 10_000, 4_000, 2_000
MEDIAN, SPREAD, LEAST, MOST = 40.0, 1.0, 3, 1_000  # ratings a person
POPULARITY = 0.9  # how popularity falls with rank
BOUT = 5.0  # days
STARS = (0.05, 0.10, 0.29, 0.34, 0.22)


def invented_ratings(
    *, known: int, wrong: int = 0, kept: float = 1.0, day_error: int = 14, people: int = PEOPLE
) -> SparseRecords:
    """The published file, and how much an attacker knows of each person that is looked for."""
    draws = np.random.default_rng(SEED)
    counts = np.clip(np.rint(MEDIAN * np.exp(SPREAD * draws.standard_normal(people))), LEAST, MOST).astype(np.int64)
    popularity = (1.0 + np.arange(FILMS)) ** -POPULARITY
    cumulated = np.cumsum(popularity / popularity.sum())
    record = np.repeat(np.arange(people), counts)
    item = np.minimum(np.searchsorted(cumulated, draws.random(len(record))), FILMS - 1)
    first = np.unique(record * FILMS + item, return_index=True)[1]  # nobody rates a film twice
    record, item = record[first], item[first]
    bouts = draws.integers(0, DAYS, (people, 4))
    day = bouts[record, draws.integers(0, 4, len(record))] + np.rint(BOUT * draws.standard_normal(len(record)))
    rating = 1 + np.minimum(np.searchsorted(np.cumsum(STARS), draws.random(len(record))), len(STARS) - 1)
    return SparseRecords(
        "ratings of films",
        record,
        item.astype(np.int64),
        rating.astype(np.int64),
        np.clip(day, 0, DAYS - 1).astype(np.int64),
        known=known,
        wrong=wrong,
        day_error=day_error,
        kept=kept,
    )
