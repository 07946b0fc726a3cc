"""From a survey to epsilon: a questionnaire, the answers of parents who do not exist, and the program that needs them.

The answers are made from a known cost of privacy loss, 1,400 USD per child per epsilon, and a known price of squared
misallocation, 1 USD per USD^2, so that whoever runs the survey can see whether it is found again.
"""

from __future__ import annotations

from importlib.resources import files as resources
from pathlib import Path

from dualmandate.gallery.title_i.synthetic_data import code_list


def files() -> dict[str, str]:
    """The survey file, the program file, the preferences that it begins with, and its code list."""
    written = {
        name: (resources(__package__) / name).read_text(encoding="utf-8")
        for name in ("survey.toml", "program.toml", "preferences.toml")
    }
    return {**written, "districts.csv": code_list()}


def write_records(path: Path) -> None:
    """Write the answers of the survey."""
    from dualmandate.gallery.survey.parents import answers

    path.write_text(answers(), encoding="utf-8", newline="\n")
