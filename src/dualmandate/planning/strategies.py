"""What is measured: for each kind of noise the strategy that leaves society best off.

A strategy is looked for with squared errors and continuous noise in mind; noise on whole numbers may prefer the tables
themselves where the loss is large. So the two are compared at the loss that would be chosen on the tables: where the
optimized strategy costs less there, it is better at its own choice too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dualmandate.choice import Limits, SocialWelfare, choose
from dualmandate.errors import InvalidMechanism, Refusal
from dualmandate.mechanism.technologies import NOISE_LAWS, OPTIMIZED, TABLES
from dualmandate.planning.study import may_be_used
from dualmandate.planning.technology import Technology, TechnologyBuilder, combine, is_slow
from dualmandate.program.schema import BEST, MechanismTable

WORTHWHILE = 1e-3  # share of what errors cost that a strategy must save to be measured instead of the tables
Kind = tuple[str, str]  # of technology: noise, and what is measured
SLOW = InvalidMechanism(
    "it was not compared",
    why="absolute errors of sums over many measured numbers take long to work out",
    instead='state noise = "best" to compare all kinds of noise',
)


@dataclass(frozen=True, eq=False)
class Offered:
    """Ways to produce the tables, by noise and by what is measured, and why others cannot serve."""

    able: Mapping[Kind, Technology]
    refused: Mapping[Kind, Refusal]
    used: Mapping[str, str]  # for each kind of noise that can serve, what is measured

    @property
    def technologies(self) -> dict[str, Technology]:
        """For each kind of noise, the technology that the program would use."""
        return {noise: self.able[noise, strategy] for noise, strategy in self.used.items()}


def offered(workshop: TechnologyBuilder, limits: Limits) -> Offered:
    """Every kind of noise that can serve the program, each with the strategy it would use.

    Refused where the noise, or the strategy, that the file states cannot serve. Kinds of noise that were not asked for
    are there to be compared.
    """
    table = workshop.table
    asked = (table.strategy,) if table.states_strategy else (TABLES, OPTIMIZED)
    able: dict[Kind, Technology] = {}
    refused: dict[Kind, Refusal] = {}
    for law in NOISE_LAWS.values():
        for strategy in asked:
            try:
                if law.name != table.noise != BEST and is_slow(strategy, workshop.welfare):
                    raise SLOW
                able[law.name, strategy] = workshop.technology(law, strategy)
            except Refusal as refusal:
                refused[law.name, strategy] = refusal
    if not any(may_be_used(noise, table.noise) for noise, _ in able):
        raise next(refusal for (noise, _), refusal in refused.items() if may_be_used(noise, table.noise))
    return Offered(able, refused, _used(able, workshop, limits))


def _used(able: Mapping[Kind, Technology], workshop: TechnologyBuilder, limits: Limits) -> dict[str, str]:
    """What is measured for each kind of noise: the tables, unless the optimized strategy is worth its trouble."""
    welfare = workshop.welfare
    plain = {noise: technology for (noise, strategy), technology in able.items() if strategy == TABLES}
    better = {noise: technology for (noise, strategy), technology in able.items() if strategy == OPTIMIZED}
    loss = _chosen_on(plain, workshop.table, welfare, limits) if plain and better else None
    used = {noise: strategy for noise, strategy in able if noise not in better or strategy == OPTIMIZED}
    if loss is not None:
        for noise in plain.keys() & better.keys():
            costs = [welfare.data_loss(way[noise].frontier, loss) for way in (plain, better)]
            if costs[1] > costs[0] * (1 - WORTHWHILE):
                used[noise] = TABLES
    return used


def _chosen_on(
    plain: Mapping[str, Technology], table: MechanismTable, welfare: SocialWelfare, limits: Limits
) -> float | None:
    """The loss that would be chosen if the tables themselves were measured; None where none would do."""
    if not any(may_be_used(noise, table.noise) for noise in plain):
        return None
    try:
        return choose(combine(table.noise, plain, welfare), welfare, limits).epsilon
    except Refusal:
        return None
