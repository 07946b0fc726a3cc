"""Title I in a folder of its own, as embedded and with the paper's technology, and copies with something changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dualmandate import gallery

Change = Callable[..., Path]


@pytest.fixture(scope="session")
def title_i_files() -> dict[str, str]:
    """The embedded Title I program with the paper's own technology, a study, without other readings and a public total.

    Its amounts say nothing of time, so that tests can add others that say nothing either, and nothing of their worth.
    """
    files = gallery.files("title_i")
    text = files["program.toml"]
    assert text.count('noise = "best"   ') == 1
    readings = text[text.index("# How else these numbers") : text.index("[limits]")]
    text = text.replace('noise = "best"   ', 'noise = "laplace"').replace(readings, "")
    left_out = ("public_total", "agency ", "author ", "version ", "date ")
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(left_out))
    return {**files, "program.toml": re.sub(r', (kind|time_base) = "\w+"', "", text)}


@pytest.fixture
def embedded(tmp_path: Path) -> Path:
    """The program file of a fresh folder with Title I as it is embedded: with the best noise that is drawn."""
    gallery.write("title_i", tmp_path)
    return tmp_path / "program.toml"


@pytest.fixture
def title_i(tmp_path: Path, title_i_files: dict[str, str]) -> Path:
    """The program file of a fresh Title I folder, with the paper's own technology."""
    for name, text in title_i_files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / "program.toml"


@pytest.fixture
def changed(title_i: Path) -> Change:
    """Replace pieces of the program's text (each must be there) and give back its path."""

    def change(*pieces: tuple[str, str]) -> Path:
        text = title_i.read_text(encoding="utf-8")
        for old, new in pieces:
            assert old in text, old
            text = text.replace(old, new, 1)
        title_i.write_text(text, encoding="utf-8")
        return title_i

    return change


SURVEY = """\
[program]
schema = 1
name = "survey"

[population]
account = "residents"
unit = "person"
neighbors = "add-or-remove"
population_size = { value = 1000000, unit = "people", source = "assumed" }
household_size = 3

[population.attributes]
block = { codes = "blocks.csv" }
age = { from = 0, to = 9 }
sex = ["f", "m"]
income = { lower = 0, upper = 200, grid = 10 }

[population.hierarchies.geography]
attribute = "block"
prefixes = { state = 1, county = 2 }

[population.hierarchies.district]
attribute = "block"
columns = ["district"]

[population.hierarchies.band]
attribute = "age"
groups = { young = [0, 1, 2], old = [8, 9] }

[[population.structural_zeros]]
age = [0, 1]
income = ["10", "20"]

[[workload]]
name = "people by county and sex"
by = ["county", "sex"]
value_of_accuracy = { value = 100, unit = "USD per person^2", source = "assumed" }

[[workload]]
name = "ages in state A"
by = ["age"]
where = { state = "A" }
value_of_accuracy = { value = 100, unit = "USD per person^2", source = "assumed" }

[[workload]]
name = "income by state"
by = ["state"]
sum_of = "income"
unit = "USD"
consequence = { value = 0.001, unit = "USD^2 per USD^2", source = "assumed" }

[mechanism]
noise = "laplace"
strategy = "workload"

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 2.5, unit = "USD per person per epsilon", source = "assumed" }
price_of_squared_misallocation = { value = 1.0, unit = "USD per USD^2", source = "assumed" }
"""
BLOCKS = "code,district\n" + "".join(
    f"{state}{county}{block},{block}\n" for state in "AB" for county in "12" for block in "xyz"
)


@pytest.fixture
def survey(tmp_path: Path) -> Change:
    """A small program with many kinds of keys, with pieces of its text replaced."""

    def make(*pieces: tuple[str, str]) -> Path:
        text = SURVEY
        for old, new in pieces:
            assert old in text, old
            text = text.replace(old, new, 1)
        path = tmp_path / "survey.toml"
        path.write_text(text, encoding="utf-8")
        (tmp_path / "blocks.csv").write_text(BLOCKS, encoding="utf-8")
        return path

    return make
