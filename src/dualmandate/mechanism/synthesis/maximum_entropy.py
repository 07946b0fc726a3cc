"""The most even distribution of records that is near to noisy marginals, as near as their noise says.

Of counts n = N·p the one that minimizes Σ (M_i·n − y_i)²/(2σ_i²) − λ·N·H(p): least squares by the noise, and entropy in
the place of what was not measured. At λ = 1 it is the likeliest data set where every data set was as likely before;
less is said of data whose attributes hang together. Its solution is a product of one factor exp(θ_i) a marginal, and
what is minimized is smooth and convex in θ: N·log Z(θ) − Σ θ_i·y_i + λ/2·Σ σ_i²·|θ_i|², with slope N·M_i·p − y_i +
λσ_i²θ_i. Source: [DPS07]; [MSM19] fits the same family to noisy marginals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dualmandate.mechanism.synthesis.junction_tree import JunctionTree, Places, Propagation, TreeModel, summed
from dualmandate.population.arrays import Booleans, Floats

MEMORY = 10  # steps that the quasi-Newton method remembers
NEAR = 0.02  # of a cell's standard deviation, if its records came by chance: a slope this small is none


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """What was measured of one set of attributes: unbiased counts, and the variance of each."""

    places: Places
    counts: Floats  # in the shape of the attributes
    variance: float
    evenness: float  # λ

    def joined(self, other: NoisyMarginal) -> NoisyMarginal:
        """Both measurements of the same attributes as one, by their precision."""
        precision = 1 / self.variance + 1 / other.variance
        counts = (self.counts / self.variance + other.counts / other.variance) / precision
        return NoisyMarginal(self.places, counts, 1 / precision, self.evenness)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model, and its parameters by sets of attributes, from which the next fit goes on."""

    model: TreeModel
    parameters: Mapping[Places, Floats] = field(repr=False)


def fitted(
    tree: JunctionTree,
    measured: Sequence[NoisyMarginal],
    total: float,
    *,
    possible: Sequence[Booleans | None],
    start: Mapping[Places, Floats],
    steps: int,
) -> Fitted:
    """The model of so many records; `possible` has the cells of each clique that can occur, `evenness` is λ."""
    from scipy.optimize import minimize

    pass_on = Propagation(tree)
    homes = [home for each in measured if (home := tree.home(each.places)) is not None]
    shapes = [each.counts.shape for each in measured]
    ends = np.cumsum([0, *(each.counts.size for each in measured)])
    # A measured sum other than N says nothing of the shares.
    targets = np.concatenate([(y.counts + (total - y.counts.sum()) / y.counts.size).reshape(-1) for y in measured])
    pulls = np.repeat([each.evenness * each.variance for each in measured], np.diff(ends))
    scales = 1 / np.sqrt(np.maximum(targets, 0.0) + pulls + 1.0)  # θ = scale·φ: all φ bend about alike
    spread = [_axes(each.places, tree.cliques[home]) for each, home in zip(measured, homes, strict=True)]

    def believed(parameters: Floats) -> tuple[list[Floats], float]:
        logs = [np.zeros(shape) for shape in pass_on.shapes]
        for number, home in enumerate(homes):
            part = parameters[ends[number] : ends[number + 1]].reshape(shapes[number])
            logs[home] += np.expand_dims(part, spread[number])
        return pass_on.calibrated(logs, possible)

    def loss(points: Floats) -> tuple[float, Floats]:
        parameters = scales * points
        beliefs, log_total = believed(parameters)
        expected = [
            summed(beliefs[home], tree.cliques[home], each.places).reshape(-1)
            for each, home in zip(measured, homes, strict=True)
        ]
        slope = total * np.concatenate(expected) - targets + pulls * parameters
        value = total * log_total - float(parameters @ targets) + float(pulls @ np.square(parameters)) / 2
        return value, scales * slope

    first = np.concatenate([start.get(y.places, np.zeros(y.counts.shape)).reshape(-1) for y in measured])
    options = {"maxiter": steps, "maxcor": MEMORY, "gtol": NEAR, "ftol": 1e-12}
    found = minimize(loss, first / scales, jac=True, method="L-BFGS-B", options=options)
    parameters = scales * found.x
    beliefs, _ = believed(parameters)
    kept = {each.places: parameters[ends[n] : ends[n + 1]].reshape(shapes[n]) for n, each in enumerate(measured)}
    return Fitted(TreeModel(tree, tuple(beliefs)), kept)


def _axes(places: Places, clique: Places) -> tuple[int, ...]:
    return tuple(axis for axis, place in enumerate(clique) if place not in places)
