"""The whole replication: the paper's statements, each joined with the numbers that answer it."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from dualmandate.gallery.paper import assumptions, census_2020, learning, technologies, title_i, working_paper
from dualmandate.gallery.paper.row import Computed, Row

MODULES = (technologies, learning, title_i, assumptions, working_paper, census_2020)


def rows() -> list[Row]:
    """Every number of the paper, each with what follows from its inputs, what is right, and why they differ."""
    computed: dict[str, Computed] = {}
    for module in MODULES:
        computed |= module.computed()
    text = (files(__package__) / "statements.toml").read_text(encoding="utf-8")
    found = []
    for section in tomllib.loads(text)["section"]:
        for statement in section["statement"]:
            numbers = computed.pop(statement["id"], None)
            found.append(
                Row(
                    id=statement["id"],
                    section=section["name"],
                    what=statement["what"],
                    unit=statement.get("unit", ""),
                    paper=statement.get("paper", numbers.paper if numbers else None),
                    from_its_inputs=numbers.from_its_inputs if numbers else statement.get("from_its_inputs"),
                    corrected=numbers.corrected if numbers else statement["corrected"],
                    why=statement["why"],
                )
            )
    assert not computed, f"numbers without a statement: {sorted(computed)}"
    return found
