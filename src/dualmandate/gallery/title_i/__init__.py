"""The paper's application: grants to school districts under Title I, for 13,000 generated districts.

Population, costs and weights are the paper's; districts are made up, because nothing in the argument depends on them.
"""

from __future__ import annotations

from importlib.resources import files as resources
from pathlib import Path

from dualmandate.gallery.title_i.synthetic_data import code_list


def files() -> dict[str, str]:
    """The program file and its code list of districts."""
    return {
        "program.toml": (resources(__package__) / "program.toml").read_text(encoding="utf-8"),
        "districts.csv": code_list(),
    }


def write_records(path: Path) -> None:
    """Write the file that the program publishes from, of children who do not exist."""
    from dualmandate.gallery.title_i.synthetic_data import write_children

    write_children(path)
