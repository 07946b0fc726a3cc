"""`[mechanism]` and `[limits]`: how answers are produced, and caps set from outside."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from dualmandate.mechanism.technologies import NOISE_LAWS
from dualmandate.program.schema.number import CLOSED, Cap, Probability, refused

BEST = "best"
Measured = Literal["optimized", "workload", "identity"]


def _noise(value: object) -> object:
    """A word of the registry of laws, or the best of all."""
    known = [*NOISE_LAWS, BEST]
    if isinstance(value, str) and value in known:
        return value
    expected = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
    raise PydanticCustomError("literal_error", "one of {expected}", {"expected": expected})


def _measured(value: object) -> object:
    if value in ("together", "apart"):
        return value
    if isinstance(value, list) and value and all(_is_names(group) for group in value):
        return tuple(tuple(group) for group in value)
    raise refused(
        "tables are measured together, each apart, or in groups of named tables",
        'write "together", "apart", or [["one table", "another"], ["a third"]]',
    )


def _is_names(group: object) -> bool:
    return isinstance(group, list) and bool(group) and all(isinstance(name, str) and name for name in group)


_NAMES = {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}
_MEASURED_SCHEMA = WithJsonSchema(
    {"anyOf": [{"enum": ["together", "apart"]}, {"type": "array", "minItems": 1, "items": _NAMES}]}
)


class MechanismTable(BaseModel):
    """The technology: what noise is added to what."""

    model_config = CLOSED

    noise: Annotated[str, BeforeValidator(_noise), WithJsonSchema({"enum": [*NOISE_LAWS, BEST], "type": "string"})]
    """The noise decides how much accuracy a privacy loss buys. "geometric" and "gaussian" are drawn exactly, and "best"
    is the best of them; "laplace" and "staircase" are studies, to compare and not to publish."""
    strategy: Measured = "optimized"
    """What is measured: whatever serves the tables best, weighed by their value ("optimized"), the tables themselves
    ("workload"), or every cell of the domain ("identity"). Where it is not stated and nothing better than the tables
    themselves can be found, these are measured."""
    measured: Annotated[str | tuple[tuple[str, ...], ...], BeforeValidator(_measured), _MEASURED_SCHEMA] = "together"
    """Whether the tables share one measurement or split the privacy loss by their value."""
    failure_probability: Probability | None = None
    """The δ at which Gaussian noise is expressed in epsilon."""

    @property
    def states_strategy(self) -> bool:
        """Whether the file says what is measured, or leaves it to the plan."""
        return "strategy" in self.model_fields_set


class LimitsTable(BaseModel):
    """Caps that law or policy sets, whatever preferences say."""

    model_config = CLOSED

    largest_epsilon: Cap | None = None
    """The largest epsilon that may be chosen."""
    largest_rho: Cap | None = None
    """The largest rho that may be chosen, where the privacy loss is counted in rho."""
