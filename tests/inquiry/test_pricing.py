"""What an answer costs and how wrong it is: by hand, by the measurement's variances, and by simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest
from tests.inquiry.towns import AGES, DOMAIN, Town, counts_of, records

from dualmandate.errors import InvalidQuery, InvalidRequest
from dualmandate.inquiry import Inquirer, Price, question_of
from dualmandate.inquiry.answer import rows_of
from dualmandate.inquiry.pricing import MeasuredQuestion, quantile_levels
from dualmandate.inquiry.sql import parse_sql
from dualmandate.mechanism.noise import NoiseKey
from dualmandate.population import Neighbors, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arrays import Integers

ROWS = records()
INQUIRER = Inquirer(Town())
EPSILON, RHO = PrivacyLoss.pure("0.3"), PrivacyLoss.concentrated("0.02")
COUNT = "SELECT COUNT(*) FROM records WHERE age >= 5"
SUM = "SELECT ward, SUM(income) FROM records GROUP BY ward"
MEAN = "SELECT ward, AVG(income) FROM records GROUP BY ward"
QUANTILE = "SELECT QUANTILE(age, 0.3) FROM records"


def measured(text: str, loss: PrivacyLoss, protection: Protection | None = None) -> MeasuredQuestion:
    return MeasuredQuestion(question_of(parse_sql(text), DOMAIN), protection or Protection(), loss)


def simulated(asked: MeasuredQuestion, draws: int) -> Iterator[Mapping[str, Integers]]:
    """What would be measured of the town, again and again, by the exact samplers under keys that anybody may know."""
    truths = {group.name: group.rows.count(counts_of(ROWS)) for group in asked.groups}
    noise = {}
    for group in asked.groups:
        key, size = NoiseKey(sha256(group.name.encode()).digest()), len(truths[group.name])
        noise[group.name] = group.noises[0].sampler().draw(key, range(draws * size)).reshape(draws, size)
    for draw in range(draws):
        yield {name: truths[name] + noise[name][draw] for name in truths}


def truth_of_means() -> list[float]:
    found = []
    for ward in ("north", "east", "south", "west"):
        own = [float(row[2]) for row in ROWS if row[1] == ward and row[2] != "not asked"]
        found.append(sum(own) / len(own))
    return found


def test_a_count_is_priced_as_by_hand() -> None:
    """Two-sided geometric noise of scale 1/ε: variance 2a/(1 − a)², P(|X| > k) = 2a^(k+1)/(1 + a), a = e^−ε."""
    price = INQUIRER.price(COUNT, EPSILON)
    a = math.exp(-0.3)
    assert price.standard_error == pytest.approx(math.sqrt(2 * a) / (1 - a))
    beyond = [2 * a ** (k + 1) / (1 + a) for k in (price.half_width, price.half_width - 1)]
    assert beyond[0] <= 0.05 < beyond[1]
    assert (price.numbers, price.unit, price.is_exact, price.loss) == (1, "records", True, EPSILON)


def test_a_sum_moves_by_its_largest_number() -> None:
    """One record adds 100 at most, 20 steps of the grid: noise of scale 20/ε in steps of 5."""
    a = math.exp(-0.3 / 20)
    price = INQUIRER.price(SUM, EPSILON)
    assert price.standard_error == pytest.approx(5 * math.sqrt(2 * a) / (1 - a))
    assert price.numbers == 4
    assert price.together > price.half_width


@pytest.mark.parametrize("loss", [EPSILON, RHO], ids=str)
@pytest.mark.parametrize("text", [COUNT, SUM])
def test_prices_are_those_of_the_measurement(text: str, loss: PrivacyLoss) -> None:
    [group] = measured(text, loss).groups
    grid, name = float(group.tables[0].grid), group.tables[0].name
    price = INQUIRER.price(text, loss)
    [variance] = set(group.measurement.query_variances(name, group.loss).tolist())
    assert price.standard_error == pytest.approx(grid * math.sqrt(variance))
    assert price.half_width == pytest.approx(grid * float(group.measurement.half_width(name, float(loss), 0.95)[0]))
    together = group.measurement.simultaneous_half_width(name, float(loss), 0.95)
    assert price.together == pytest.approx(grid * float(together[0]))


def test_a_mean_spends_half_on_its_sum_and_half_on_its_count() -> None:
    groups = measured(MEAN, EPSILON).groups
    assert [group.loss for group in groups] == [Fraction(3, 20)] * 2
    assert [group.measurement.sensitivity.power for group in groups] == [20, 1]
    added, counted = (math.sqrt(2 * a) / (1 - a) for a in (math.exp(-0.15 / 20), math.exp(-0.15)))
    price = INQUIRER.price(MEAN, EPSILON, records=100)
    assert price.standard_error == pytest.approx(math.hypot(5 * added, 100 * counted) / 100)
    assert not price.is_exact


@pytest.mark.parametrize("loss", [EPSILON, RHO], ids=str)
def test_intervals_of_counts_and_sums_hold_as_often_as_they_say(loss: PrivacyLoss) -> None:
    for text in (COUNT, SUM):
        asked = measured(text, loss)
        grid = float(asked.groups[0].tables[0].grid)
        truth = asked.groups[0].rows.count(counts_of(ROWS)) * grid
        errors, held = [], []
        for drawn in simulated(asked, 400):
            for row, true in zip(rows_of(asked, drawn, 0.9), truth, strict=True):
                assert isinstance(row.value, float)
                errors.append(row.value - true)
                held.append(float(row.lower) <= true <= float(row.upper))
        stated = INQUIRER.price(text, loss).standard_error
        assert np.std(errors) == pytest.approx(stated, rel=0.12)
        assert abs(np.mean(errors)) < 4 * stated / math.sqrt(len(errors))
        assert np.mean(held) >= 0.9 - 4 * 0.3 / math.sqrt(len(held))


def test_intervals_of_means_hold_as_often_as_they_say() -> None:
    asked, truth, held, errors = measured(MEAN, PrivacyLoss.pure(3)), truth_of_means(), [], []
    for drawn in simulated(asked, 100):
        rows = rows_of(asked, drawn, 0.9)
        held += [float(row.lower) <= true <= float(row.upper) for row, true in zip(rows, truth, strict=True)]
        errors += [(float(row.value) - true) / row.standard_error for row, true in zip(rows, truth, strict=True)]  # type: ignore[operator]
    assert np.mean(held) >= 0.9 - 4 * 0.3 / math.sqrt(len(held))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("loss", [PrivacyLoss.pure("0.4"), PrivacyLoss.concentrated("0.05")], ids=str)
@pytest.mark.parametrize("level", ["0.5", "0.1", "0.99"])
def test_intervals_of_quantiles_hold_as_often_as_they_say(level: str, loss: PrivacyLoss) -> None:
    asked = measured(f"SELECT QUANTILE(age, {level}) FROM records", loss)
    ages = sorted(int(row[0]) for row in ROWS if row[0] != "unknown")
    truth = ages[math.ceil(Fraction(level) * len(ages)) - 1]
    held, wide = [], []
    for drawn in simulated(asked, 300):
        [row] = rows_of(asked, drawn, 0.9)
        held.append(int(row.lower) <= truth <= int(row.upper))
        wide.append(int(row.upper) - int(row.lower))
        assert int(row.lower) <= int(row.value) <= int(row.upper)
    assert np.mean(held) >= 0.9 - 4 * 0.3 / math.sqrt(len(held))
    assert np.mean(wide) < len(AGES) - 2


def test_a_quantile_is_the_first_level_that_holds_its_share() -> None:
    """3 of 30 records are a tenth of them, also where 0.1 · 30 is more than 3 to floats."""
    counts = np.array([3, 27, *[0] * 10])
    for level, expected in (("0.1", 0), ("0.101", 1), ("0.999", 1)):
        asked = measured(f"SELECT QUANTILE(age, {level}) FROM records", PrivacyLoss.pure(200))
        assert quantile_levels(asked, counts, Fraction(9, 10))[0] == expected


def test_a_rank_is_off_by_as_much_as_is_priced() -> None:
    """The records up to a level less p of all: at the last level its error is that of 0.7 of every count."""
    asked, price = measured(QUANTILE, EPSILON), INQUIRER.price(QUANTILE, EPSILON)
    a = math.exp(-0.3)
    assert price.standard_error == pytest.approx(0.7 * math.sqrt(12 * 2 * a) / (1 - a))
    truth = asked.groups[0].rows.count(counts_of(ROWS))
    ranks = [np.cumsum(each["answer"] - truth) for each in simulated(asked, 400)]
    for place in (0, 6, 11):
        errors = [float(each[place] - 0.3 * each[-1]) for each in ranks]
        assert np.std(errors) <= price.standard_error * 1.12
        assert np.mean(np.abs(errors) > price.half_width) <= 0.05 + 4 * 0.22 / 20


@pytest.mark.parametrize("measure", list(PrivacyMeasure))
@pytest.mark.parametrize("text", [COUNT, SUM, MEAN, QUANTILE])
def test_the_loss_for_an_accuracy_is_the_least_that_meets_it(text: str, measure: PrivacyMeasure) -> None:
    def price(loss: PrivacyLoss) -> Price:
        return INQUIRER.price(text, loss, records=1000)

    loss = INQUIRER.loss_for(text, 0.02, of=1000, records=1000, privacy_measure=measure)
    assert loss.privacy_measure is measure
    assert price(loss).half_width <= 20
    less = PrivacyLoss(loss.amount * Fraction(98, 100), measure)
    assert price(less).half_width > 20


def test_an_accuracy_of_all_numbers_at_once_costs_more() -> None:
    each, every = (INQUIRER.loss_for(SUM, 500, together=together) for together in (False, True))
    assert INQUIRER.price(SUM, every).together <= 500 < INQUIRER.price(SUM, each).together


def test_what_no_loss_gives_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        INQUIRER.loss_for(COUNT, 0)
    with pytest.raises(InvalidRequest, match="mean"):
        INQUIRER.price(MEAN, EPSILON)
    with pytest.raises(InvalidRequest, match="1e-09"):
        INQUIRER.loss_for(MEAN, 1e-9, records=1)


def test_several_records_of_a_unit_cost_as_much_noise() -> None:
    several = Protection(most_records_per_unit=3, identifier="person")
    price = Inquirer(Town(protection=several)).price(COUNT, EPSILON)
    a = math.exp(-0.1)
    assert price.standard_error == pytest.approx(math.sqrt(2 * a) / (1 - a))


def test_under_replace_one_what_is_public_is_refused_and_the_rest_protected() -> None:
    inquirer = Inquirer(Town(protection=Protection(neighbors=Neighbors.REPLACE_ONE)))
    a = math.exp(-0.3)
    assert inquirer.price(COUNT, EPSILON).standard_error == pytest.approx(math.sqrt(2 * a) / (1 - a))
    a = math.exp(-0.15)  # a record leaves one ward and enters another
    by_ward = inquirer.price("SELECT COUNT(*) FROM records GROUP BY ward", EPSILON)
    assert by_ward.standard_error == pytest.approx(math.sqrt(2 * a) / (1 - a))
    with pytest.raises(InvalidQuery, match="public"):
        inquirer.price("SELECT COUNT(*) FROM records", EPSILON)
