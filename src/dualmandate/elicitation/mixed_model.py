"""Tastes that differ between people: which coefficients, with which distribution, in utility or in money.

Estimation works on standardized attributes; `MixedModel` knows the names of the parameters and the way back to the
attributes' own units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dualmandate.elicitation.differences import Differences
from dualmandate.elicitation.mixed_kernel import LINEAR, NEGATIVE, POSITIVE, Layout
from dualmandate.errors import InvalidSurvey

Floats = NDArray[np.float64]
Distribution = Literal["normal", "lognormal", "negative lognormal", "triangular"]
Space = Literal["preference", "willingness to pay"]
FORMS = {"normal": LINEAR, "triangular": LINEAR, "lognormal": POSITIVE, "negative lognormal": NEGATIVE}
FIRST_SPREAD = 0.5  # of a standardized coefficient, where the search begins
LEAST_START = 0.05  # of a coefficient that must have a sign


@dataclass(frozen=True, eq=False)
class MixedModel:
    """Parameters: a location for each attribute, then a spread for each random one, in their order.

    In preference space utility is Σ β·x. In willingness-to-pay space it is λ·(Σ w·x − price) with λ = e^s > 0, so
    that w is willingness to pay in the price's unit, as it is distributed among people [TW05].
    """

    attributes: tuple[str, ...]
    random: Mapping[str, Distribution]
    price: str | None  # None in preference space
    scale: Floats  # (attributes,), of the differences

    @classmethod
    def of(
        cls, differences: Differences, random: Mapping[str, Distribution], *, space: Space, price: str | None
    ) -> MixedModel:
        """Refused: nothing random, unknown attributes or distributions, a price that may be positive."""
        _check_distributions(differences.names, random)
        if space not in get_args(Space):
            spaces = ", ".join(get_args(Space))
            raise InvalidSurvey(
                f"there is no space '{space}'",
                why="coefficients are in utility or in money",
                instead=f"choose one of {spaces}",
            )
        if space == "willingness to pay" and price not in differences.names:
            raise InvalidSurvey(
                "no attribute is named as the price" if price is None else f"the price '{price}' is not an attribute",
                why="willingness to pay is money",
                instead=f"choose one of {', '.join(differences.names)}",
            )
        if space == "willingness to pay" and FORMS[random.get(str(price), "lognormal")] == LINEAR:
            raise InvalidSurvey(
                f"the scale of the price '{price}' is {random[str(price)]}",
                why="a price counts against an alternative for everybody",
                instead="make it lognormal, or the same for all",
            )
        return cls(differences.names, dict(random), price if space == "willingness to pay" else None, differences.scale)

    @property
    def drawn(self) -> tuple[str, ...]:
        """Attributes with a random coefficient, in the order of the attributes."""
        return tuple(name for name in self.attributes if name in self.random)

    @property
    def layout(self) -> Layout:
        """For the kernel."""
        forms = [NEGATIVE if name == self.price else FORMS[self.random.get(name, "normal")] for name in self.attributes]
        columns = [self.drawn.index(name) if name in self.random else -1 for name in self.attributes]
        price = -1 if self.price is None else self.attributes.index(self.price)
        return Layout(np.array(forms, dtype=np.int64), np.array(columns, dtype=np.int64), price)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parameters, as an agency reads them."""
        return (*map(self._location, self.attributes), *map(self._spread, self.drawn))

    def _subject(self, name: str) -> str:
        subject = "scale" if name == self.price else name if self.price is None else f"willingness to pay for {name}"
        return f"minus {subject}" if self.random.get(name) == "negative lognormal" and name != self.price else subject

    def _is_log(self, name: str) -> bool:
        return name == self.price or FORMS[self.random.get(name, "normal")] != LINEAR

    def _location(self, name: str) -> str:
        if not self._is_log(name):
            return self._subject(name)
        return f"mean of log {self._subject(name)}" if name in self.random else f"log {self._subject(name)}"

    def _spread(self, name: str) -> str:
        if self.random[name] == "triangular":
            return f"half width of {self._subject(name)}"
        return f"standard deviation of {'log ' if self._is_log(name) else ''}{self._subject(name)}"

    @property
    def factors(self) -> tuple[Floats, Floats]:
        """(parameters,) each: a parameter in the attributes' own units is factor·standardized + shift."""
        money = 1.0 if self.price is None else self.scale[self.attributes.index(self.price)]
        unit = np.where([name == self.price for name in self.attributes], 1.0, money) / self.scale
        is_log = np.array([self._is_log(name) for name in self.attributes])
        places = [self.attributes.index(name) for name in self.drawn]
        factor, shift = np.where(is_log, 1.0, unit), np.where(is_log, np.log(unit), 0.0)
        return np.append(factor, factor[places]), np.append(shift, np.zeros(len(places)))

    def start(self, beta: Floats) -> Floats:
        """Parameters (standardized) where the search begins, from coefficients that are the same for all."""
        layout = self.layout
        if self.price is not None:
            money = max(-beta[layout.price], LEAST_START)
            beta = np.where(np.arange(len(beta)) == layout.price, -money, beta / money)
        spreads = np.full(len(beta), FIRST_SPREAD)
        if self.price is not None:
            spreads /= money
        is_log = layout.forms != LINEAR
        spreads[is_log] = FIRST_SPREAD
        sign = np.where(layout.forms == NEGATIVE, -1.0, 1.0)
        logs = np.log(np.maximum(sign * beta, LEAST_START))
        places = [self.attributes.index(name) for name in self.drawn]
        return np.append(np.where(is_log, logs, beta), spreads[places])


def _check_distributions(names: tuple[str, ...], random: Mapping[str, Distribution]) -> None:
    if not random:
        raise InvalidSurvey(
            "no coefficient is random",
            why="a mixed logit is about tastes that differ",
            instead="name a coefficient that differs between people, or take a conditional logit",
        )
    for name, distribution in random.items():
        if name not in names:
            raise InvalidSurvey(
                f"the random coefficient '{name}' is not of an attribute",
                why="coefficients belong to attributes",
                instead=f"choose one of {', '.join(names)}",
            )
        if distribution not in FORMS:
            raise InvalidSurvey(
                f"'{distribution}' is no distribution that '{name}' can have",
                why="draws come from known distributions",
                instead=f"choose one of {', '.join(FORMS)}",
            )
