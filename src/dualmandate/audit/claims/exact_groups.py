"""What exact numbers by groups tell of one person to whoever knows everybody else: no noise is in the way.

An exact number less the others' records is the group of the one who is left. Neighbors that keep these numbers hide
nothing of it, so that no test among neighbors can find it: it is a proof, and no ε bounds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dualmandate.audit.finding import Baseline, Finding, Rate
from dualmandate.audit.options import Effort


@dataclass(frozen=True)
class ExactGroups:
    """Exact numbers of a release by groups: by name, how many groups."""

    groups: Mapping[str, int]
    coarsening: str


@dataclass(frozen=True)
class ExactGroupsAttack:
    """In which group somebody is counted, by subtraction."""

    effort: Effort = field(default_factory=Effort)
    name: str = "reconstruction from exact numbers"

    def run(self, target: ExactGroups, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        return tuple(
            Finding(
                attack=self.name,
                claim=f"in which of {groups:,} groups of '{name}' somebody is counted, told by exact numbers",
                success=Rate(groups, groups),
                baselines=(Baseline("whoever guesses a group", Rate(1, groups)),),
                attacker_knows="everybody else's records",
                coarsening=target.coarsening,
                reference="published",
                counted_in_full=True,
            )
            for name, groups in target.groups.items()
        )
