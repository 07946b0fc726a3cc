"""The price of not trusting the curator: how much more a local technology errs than noise that is added once."""

from __future__ import annotations

from dualmandate.mechanism.local.production import REPLACE_ONE
from dualmandate.mechanism.mechanism import Mechanism
from dualmandate.mechanism.technologies import geometric
from dualmandate.population import Protection
from dualmandate.workload import Workload


def price_of_not_trusting_the_curator(
    mechanism: Mechanism, workload: Workload, *, epsilon: float, protection: Protection = REPLACE_ONE
) -> float:
    """Expected squared error, over that of geometric noise on the same answers at the same loss.

    N/2 for a count that is answered with one bit a person, at every ε: N(u² + u) over 2(u² + u), u = 1/(e^ε − 1).
    Source: the first is that of [W65] and of [DKY17], the second that of [GRS12].
    """
    local = mechanism.production(workload, protection)
    return local.expected_squared_error(epsilon) / geometric().production(workload, protection).expected_squared_error(
        epsilon
    )
