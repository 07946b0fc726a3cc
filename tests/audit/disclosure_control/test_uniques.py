"""Nonmodal uniques: a village that can be checked by eye."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.audit.disclosure_control.comparison import find_nonmodal_uniques, key_in_words, secret_of
from dualmandate.population import Attribute, Domain

DOMAIN = Domain((Attribute.categories("sex", ["F", "M"]), Attribute.categories("race", ["A", "B", "C"])))
# in the first place two women of A and one man of B: he is alone, and A is most frequent; in the second a woman of C
VILLAGE = np.array([[2, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0]])


def test_who_stands_out() -> None:
    people = find_nonmodal_uniques(DOMAIN, VILLAGE, 1)
    assert people.places.tolist() == [0]
    assert people.key_cells.tolist() == [[3, 4, 5]]
    assert people.secrets.tolist() == [1]
    by_sex = find_nonmodal_uniques(DOMAIN, VILLAGE, 0)  # the other way round: alone with B, unlike most in sex
    assert by_sex.key_cells.tolist() == [[1, 4]]
    assert by_sex.secrets.tolist() == [1]


def test_named_by_the_file_or_by_belief() -> None:
    people = find_nonmodal_uniques(DOMAIN, np.repeat(VILLAGE[:1], 10, axis=0), 1)
    file, belief = np.zeros((10, 6)), np.zeros((10, 6))
    file[:, 3:] = [0.3, 0.4, 0.3]
    belief[:, 3:] = [0.5, 0.2, 0.3]
    likely = people.named(file, belief)
    assert likely is not None
    assert (likely.successes, likely.trials) == (10, 10)  # the most likely secret
    drawn = people.named(belief, belief)
    assert drawn is not None
    assert drawn.successes == 2  # most likely is wrong: drawn in proportion, 10 × 0.2
    file[:, 3:] = [0.9, 0.1, 0.0]
    instead = people.named(file, belief)
    assert instead is not None
    assert instead.successes == 2  # no worse than without tables
    guessed, modal = people.drawn(belief), people.modal()
    assert guessed is not None
    assert modal is not None
    assert guessed.successes == 2
    assert modal.successes == 0
    empty = people.named(np.zeros((10, 6)), np.zeros((10, 6)))
    assert empty is not None
    assert empty.value == 0.0  # a file without anybody of this key names nobody
    assert empty.interval()[0] == 0.0 < empty.interval()[1]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_the_order_of_levels_says_nothing(order: list[int]) -> None:
    """Secrets that are as likely are named at random, and of those that are as frequent none is unlike most."""
    truth = VILLAGE.reshape(2, 2, 3)[..., order].reshape(2, 6)
    people = find_nonmodal_uniques(DOMAIN, np.repeat(truth[:1], 12, axis=0), 1)
    assert len(people.places) == 12
    file = np.repeat([[0, 0, 0, 0.4, 0.4, 0.4]], 12, axis=0)
    found = people.named(file, np.zeros((12, 6)))
    assert found is not None
    assert found.successes == 4
    even = np.array([[2, 0, 0, 0, 1, 1]]).reshape(1, 2, 3)[..., order].reshape(1, 6)
    assert len(find_nonmodal_uniques(DOMAIN, even, 0).places) == 0  # two women, two men: nobody is unlike most


def test_nobody_and_no_secret() -> None:
    nobody = find_nonmodal_uniques(DOMAIN, np.zeros((2, 6), dtype=np.int64), 1)
    assert nobody.named(np.zeros((2, 6)), np.zeros((2, 6))) is None
    assert nobody.drawn(np.zeros((2, 6))) is None
    assert nobody.modal() is None
    alone = Domain((Attribute.categories("eligible", ["no", "yes"]),))
    assert secret_of(alone) is None
    assert find_nonmodal_uniques(alone, np.array([[1, 0]]), None).modal() is None
    assert key_in_words(alone, None, "district") is None


@pytest.mark.parametrize(("last", "secret"), [("ABC", 1), ("A", 0)])
def test_the_secret_is_the_last_with_a_choice(last: str, secret: int) -> None:
    domain = Domain((Attribute.categories("sex", ["F", "M"]), Attribute.categories("race", list(last))))
    assert secret_of(domain) == secret
    assert secret_of(domain, ("sex",)) == 0  # or whichever is stated
    assert secret_of(domain, ("block",)) == secret
    words = key_in_words(domain, secret, "block")
    assert words is not None
    assert domain.names[secret] in words.split("unlike")[1]
