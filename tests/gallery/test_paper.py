"""Every number of the paper, against independently derived ones.

The reference numbers were computed from the stated formulas outside this project (closed forms, root finding and
simulation agreed); printed figures are the paper's.
"""

from __future__ import annotations

import math
import re

import pytest

from dualmandate.gallery.paper import PaperRow, rows
from dualmandate.report.documents.commands import ReplicationRowPart


@pytest.fixture(scope="module")
def by_id() -> dict[str, PaperRow]:
    return {row.id: row for row in rows()}


def test_ids_are_unique_and_every_erratum_is_there(by_id: dict[str, PaperRow]) -> None:
    assert len(by_id) == len(rows()) >= 100
    errata = {int(number) for row in by_id.values() for number in re.findall(r"\bE(\d+):", row.why)}
    assert errata == set(range(1, 28))


@pytest.mark.parametrize(
    ("key", "paper", "from_its_inputs", "corrected"),
    [
        ("title_i.willingness_to_accept", 3220, 3220, 3220),
        ("title_i.epsilon", 2.52, 2.527644, 2.527644),
        ("title_i.root_mean_squared_error", 2509, 2502.15, 2502.15),
        ("title_i.root_mean_squared_error_as_printed", 2509, 2509.74, 2509.74),
        ("title_i.accuracy", None, -4069.506, -4069.506),
        ("title_i.privacy_cost", None, 1.627802e11, 1.627802e11),
        ("title_i.data_loss", None, 8.139012e10, 8.139012e10),
        ("title_i.sign", 3220, -3220, -3220),
        ("title_i.weight_of_others", 0.15, 0.168745, 0.168745),
        ("title_i.epsilon_of_others", 4.74, 4.757207, 4.574095),
        ("title_i.root_mean_squared_error_of_others", 1334, 1329.47, 1382.69),
        ("title_i.per_student_of_others", 0.38, 0.376, 0.391),
        ("title_i.root_mean_squared_error_at_tenth", 63_000, 63_245.6, 63_245.6),
        ("title_i.per_student_at_tenth", 18, 17.87, 17.87),
        ("title_i.lunches", 7, 7.84, 7.84),
        ("title_i.implied_weight", 12_000, 16_149.07, 16_149.07),
        ("title_i.exponential", None, 1.521928, 1.521928),
        ("title_i.exponential_of_others", None, 2.248368, 2.248368),
        ("title_i.worst_case_loss", None, 11.523963, 0.920153),
        ("title_i.cost_of_a_victim", 1400, 1343, 1343),
        ("title_i.cost_in_a_year", None, 61, 61),
        ("title_i.cost_over_time", None, 1410, 1410),
        ("title_i.unconditional_in_a_year", None, 7.183155, 7.183155),
        ("title_i.unconditional_over_time", None, 2.5216, 2.5216),
        ("title_i.in_cents", None, 11.7, 2.527644),
        ("title_i.in_thousands", None, 0.252764, 2.527644),
        ("title_i.geometric", 2.52, 2.527644, 2.444299),
        ("title_i.geometric_error", 2509, 2502.15, 2040.26),
        ("title_i.geometric_of_others", 4.74, 4.757207, 4.055453),
        ("title_i.geometric_error_of_others", 1334, 1329.47, 847.21),
        ("title_i.replace_one", None, 4.012384, 4.012384),
        ("utility.taylor.0.5", 1, 1.150728, 1.150728),
        ("utility.taylor.0.9", 1, 2.050285, 2.050285),
        ("matrix.accuracy", None, -175.54, -175.54),
        ("semantics.belief.0.01", None, 0.112298, 0.112298),
        ("semantics.belief.0.1", None, 0.581861, 0.581861),
        ("semantics.belief.0.5", None, 0.926057, 0.926057),
        ("reconstruction.per_person", 25, 25.0, 25.0),
        ("working_paper.income.epsilon", 0.0442, 0.044164, 0.044164),
        ("working_paper.income.accuracy", 0.8620, 0.862031, 0.862031),
        ("working_paper.health.epsilon", 0.0451, 0.045135, 0.045135),
        ("working_paper.health.accuracy", 0.8722, 0.872220, 0.872220),
        ("working_paper.income.rounds", 3158.7, 3158.7, 3158.7),
        ("working_paper.income.halving", -0.013381, -0.013381, -0.013381),
        ("working_paper.pmw.epsilon", 0.0667, 0.0667, 0.0667),
        ("census_2020.pl94_persons.rho", None, 2.556226, 2.556226),
        ("census_2020.pl94_units.rho", None, 0.0749437, 0.0749437),
        ("census_2020.implied_ratio", None, 1163.3985, 1163.3985),
    ],
)
def test_numbers(
    by_id: dict[str, PaperRow], key: str, paper: float | None, from_its_inputs: float, corrected: float
) -> None:
    row = by_id[key]
    assert row.paper == paper
    for found, expected in ((row.from_its_inputs, from_its_inputs), (row.corrected, corrected)):
        digits = len(re.sub(r"^-?0\.0*|[-.]|e.*$", "", repr(expected)))
        # Within one unit of the last digit that the reference prints.
        assert found == pytest.approx(expected, rel=10.0 ** (1 - min(digits, 7)))


def test_what_the_paper_confirms_is_confirmed_to_its_own_digits(by_id: dict[str, PaperRow]) -> None:
    for row in by_id.values():
        if row.why.startswith(("confirmed", "as announced")) and isinstance(row.paper, int | float):
            assert isinstance(row.corrected, float)
            assert math.isclose(row.corrected, row.paper, rel_tol=0.01), row.id


def test_where_the_paper_errs_the_numbers_differ(by_id: dict[str, PaperRow]) -> None:
    for row in by_id.values():
        if re.match(r"E\d+:", row.why) and row.paper is not None:
            assert row.corrected != row.paper, row.id


def test_another_reading_is_not_called_a_correction(by_id: dict[str, PaperRow]) -> None:
    """A number under another assumption stands beside no printed one: it would compare things of different kind."""
    readings = [row for row in by_id.values() if "not a correction" in row.why]
    in_time = {"title_i.unconditional_in_a_year", "title_i.unconditional_over_time"}
    assert {"title_i.exponential", "title_i.replace_one", *in_time} <= {row.id for row in readings}
    for row in readings:
        assert row.paper is None, row.id
        assert row.from_its_inputs == row.corrected, row.id


def test_e14_says_what_differs_and_what_follows(by_id: dict[str, PaperRow]) -> None:
    """61 USD a year over 40 years at 3 % are 61·(1 − 1.03^−40)/0.03 = 1,410 USD once, and ε* ∝ k^(−1/3)."""
    rows = {row.id: row for row in by_id.values() if row.why.startswith("E14:")}
    units = {row.unit for row in rows.values()}
    assert {"USD per victim", "USD per resident and year", "USD per resident"} <= units
    once = 61 * (1 - 1.03**-40) / 0.03
    assert rows["title_i.cost_over_time"].corrected == pytest.approx(once)
    expected = 2.527644 * (1400 / once) ** (1 / 3)
    assert rows["title_i.unconditional_over_time"].corrected == pytest.approx(expected, rel=1e-6)
    assert f"{expected:.2f}" == "2.52"


def test_e7_says_what_is_spread_over_students(by_id: dict[str, PaperRow]) -> None:
    """Of Laplace noise the mean size of an error is 1/√2 of its root mean square; a lunch costs 2.28 USD."""
    spread = by_id["title_i.per_student_at_tenth"].corrected
    assert isinstance(spread, float)
    mean = spread / math.sqrt(2)
    assert f"{mean:.2f}, is {mean / 2.28:.1f} lunches" in by_id["title_i.lunches"].why


def test_documents_are_finite(by_id: dict[str, PaperRow]) -> None:
    for row in by_id.values():
        document = ReplicationRowPart.made_of(row).as_json()
        assert list(document) == ["id", "section", "what", "unit", "paper", "from_its_inputs", "corrected", "why"]
        numbers = [value for value in document.values() if isinstance(value, float)]
        assert all(math.isfinite(number) for number in numbers)
