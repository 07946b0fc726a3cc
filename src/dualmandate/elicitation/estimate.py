"""What an estimator found: parameters with their covariance, and willingness to pay with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import UnknownName

Method = Literal["delta", "krinsky-robb", "fieller"]


@dataclass(frozen=True, eq=False)
class Estimates:
    """What an estimator found.

    `covariance` is the sandwich H⁻¹(Σ g_c g_cᵀ)H⁻¹ of the log likelihood's Hessian H and its gradients g_c summed in
    each cluster (no small-sample factor), or −H⁻¹ where the errors are plain.
    """

    names: tuple[str, ...]  # parameters
    values: NDArray[np.float64]  # (parameters,)
    covariance: NDArray[np.float64]  # (parameters, parameters)
    log_likelihood: float  # natural logarithm, ≤ 0
    observations: int  # answers
    clusters: int  # people whose answers may hang together

    def value(self, name: str) -> float:
        """The estimate of one parameter."""
        return float(self.values[self._position(name)])

    def standard_error(self, name: str) -> float:
        """The standard error of one parameter."""
        position = self._position(name)
        return math.sqrt(self.covariance[position, position])

    def joint(self, names: tuple[str, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Estimates and covariance of some parameters, in the order asked for."""
        positions = [self._position(name) for name in names]
        return self.values[positions], self.covariance[np.ix_(positions, positions)]

    def _position(self, name: str) -> int:
        if name not in self.names:
            raise UnknownName(
                f"there is no parameter '{name}' in these estimates",
                why="an estimate exists for each parameter of the model, and for nothing else",
                instead=f"choose one of {', '.join(self.names)}",
            )
        return self.names.index(name)


@dataclass(frozen=True)
class Willingness:
    """Willingness to pay or to accept, in the price's unit per unit of the attribute."""

    estimate: float | None  # None where unbounded: the price coefficient's confidence set contains zero
    standard_error: float | None
    interval: tuple[float, float] | None
    level: float = 0.95  # of the interval
    method: Method = "delta"
