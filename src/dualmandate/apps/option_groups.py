"""Options that belong together as one value: a command takes a dataclass of them in place of many parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from typing import Any


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose dataclass parameters are filled from options of their own: one a field, annotated as such."""
    taken = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: each.annotation for name, each in taken.items() if is_dataclass(each.annotation)}
    fields = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    @wraps(command)
    def run(**typed: Any) -> None:
        for name, group in groups.items():
            typed[name] = group(**{field: typed.pop(field) for field in fields[name]})
        command(**typed)

    flat = [part for name, each in taken.items() for part in (fields[name].values() if name in fields else (each,))]
    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in flat]
    run.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]  # what `inspect` looks for
    run.__annotations__ = {each.name: each.annotation for each in keyword}
    return run
