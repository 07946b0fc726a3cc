"""Linkage and guessers: on a file small enough to count by hand, by a plain recount, and on generated blocks."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.audit.finding import Rate
from dualmandate.audit.linkage import attack as linkage_attack
from dualmandate.audit.linkage.linking import (
    PERSON,
    PLACE,
    LinkageCounts,
    Reidentification,
    Stages,
    judge,
    listed,
    put_names,
    reidentify_counts,
    stages_of,
)
from dualmandate.audit.linkage.probabilistic import best_pairs, compared_by, probabilistic
from dualmandate.audit.options import Effort
from dualmandate.audit.reconstruction import exact
from dualmandate.audit.reconstruction.exact import Reconstruction, reconstruct
from dualmandate.audit.tables import Equations, ExactTables, boxed
from dualmandate.benchmarks import generated_blocks
from dualmandate.errors import InvalidRequest, InvalidTables, NoEstimate
from dualmandate.population import Attribute, Domain, Grouping, Hierarchy
from dualmandate.workload import marginals

KEYS = Stages((("sex", "age"), ("sex", "bin")), {}, ("race",))
COLUMNS = (PERSON, PLACE, "sex", "age", "bin", "race")
# Block 1: four people, three of race w; block 2: two people of race b.
PEOPLE = [
    ("ann", 1, "f", 30, 3, "w"),
    ("bob", 1, "m", 41, 4, "w"),
    ("cem", 1, "m", 42, 4, "w"),
    ("dia", 1, "f", 77, 7, "b"),
    ("eva", 2, "f", 20, 2, "b"),
    ("fay", 2, "f", 21, 2, "b"),
]
Rows = Sequence[tuple[object, ...]]


def reidentify(records: Any, names: Any, truth: Any, keys: Stages) -> Reidentification:
    return judge(put_names(records, names, keys), truth, keys)


def table(rows: Rows, columns: Sequence[str] = COLUMNS) -> pyarrow.Table:
    return pyarrow.table({name: [each[i] for each in rows] for i, name in enumerate(columns)})


TRUTH = table(PEOPLE)


def rate(found: Rate | None) -> Rate:
    assert found is not None
    return found


@pytest.mark.parametrize("first", ["w", "b"])
def test_the_order_of_records_says_nothing(first: str) -> None:
    """Two records fit each of 400 names, one of them its own: whichever comes first, half of the links are right."""
    second = "b" if first == "w" else "w"
    records = table([(str(each), each, "f", 30, 3, race) for each in range(400) for race in (first, second)])
    truth = table([(str(each), each, "f", 30, 3, "w") for each in range(400)])
    found = reidentify(records.drop_columns([PERSON]), truth.drop_columns(["race"]), truth, KEYS)
    assert 160 < rate(found.everybody.precision).successes < 240
    both = table([(f"{each}{race}", each, "f", 30, 3, race) for each in range(400) for race in (first, second)])
    guessed = reidentify(records.drop_columns([PERSON]), both.drop_columns(["race"]), both, KEYS).everybody
    assert guessed.modal == 400  # of two that are as frequent, either is said


def test_links_and_baselines_by_hand() -> None:
    # Bob's age is one year off outside: he is linked by his bin, after Cem was linked exactly. Fay is not outside.
    outside = table([(*row[:3], 40 if row[0] == "bob" else row[3], *row[4:]) for row in PEOPLE[:5]])
    found = reidentify(TRUTH.drop_columns([PERSON]), outside.drop_columns(["race"]), TRUTH, KEYS)
    group = found.everybody
    assert (group.names, group.putative, group.confirmed) == (5, 5, 5)
    assert group.modal == group.modal_on_links == 4  # everybody in block 1 is called w, everybody in block 2 b
    assert group.proportional == round(3 * 3 / 4 + 1 / 4 + 1)
    assert rate(group.precision) == rate(group.confirmed_rate) == rate(group.putative_rate) == Rate(5, 5)
    assert found.nonmodal_uniques == LinkageCounts(1, 1, 1, 0, 0, 0, 0)  # Dia: expected 1/4
    assert found.proved_uniques.names == 0


def test_guessers_are_counted_on_links_too() -> None:
    reconstructed = TRUTH.slice(0, 2).drop_columns([PERSON])  # only Ann and Bob can be linked
    group = reidentify(reconstructed, TRUTH.drop_columns(["race"]), TRUTH, KEYS).everybody
    assert (group.names, group.putative, group.confirmed) == (6, 2, 2)
    assert (group.modal, group.modal_on_links) == (5, 2)
    assert (group.proportional, group.proportional_on_links) == (round(3 * 3 / 4 + 1 / 4 + 2), round(2 * 3 / 4))
    assert group.guesses == (Rate(5, 6), Rate(4, 6))
    assert group.guesses_on_links == (Rate(2, 2), Rate(2, 2))


def test_nothing_to_count_is_no_rate() -> None:
    nobody = LinkageCounts(0, 0, 0, 0, 0, 0, 0)
    assert {nobody.putative_rate, nobody.confirmed_rate, nobody.precision, nobody.guesses} == {None}
    unlinked = LinkageCounts(3, 0, 0, 1, 1, 0, 0)
    assert {unlinked.precision, unlinked.guesses_on_links} == {None}
    assert unlinked.confirmed_rate == Rate(0, 3)


def test_a_wrong_reconstruction_is_not_confirmed() -> None:
    wrong = table([(*row[:5], "w") for row in PEOPLE]).drop_columns([PERSON])
    group = reidentify(wrong, TRUTH.drop_columns(["race"]), TRUTH, KEYS).everybody
    assert (group.putative, group.confirmed) == (6, 3 + 1 - 1)  # three in block 1; nobody in block 2


def test_each_record_is_linked_once_and_ties_by_lot() -> None:
    # Twenty people with one key, half of each race; records in the order of race, names in that of people.
    rows = [(f"p{i:02}", 1, "f", 30, 3, "wb"[i >= 10]) for i in range(20)]
    found = reidentify(table(rows).drop_columns([PERSON]), table(rows).drop_columns(["race"]), table(rows), KEYS)
    digest = sorted((hashlib.md5(row[0].encode()).hexdigest(), row[5]) for row in rows)
    records = sorted((hashlib.md5(f"record {number}".encode()).hexdigest(), row[5]) for number, row in enumerate(rows))
    expected = sum(race == other for (_, race), (_, other) in zip(digest, records, strict=True))
    assert found.everybody.confirmed == expected
    assert 4 <= expected <= 16  # an order that both files share would have made it 20
    assert found.nonmodal_uniques.names == 0  # nobody is alone, and neither race is less frequent
    one = table(rows[:1]).drop_columns([PERSON])
    assert put_names(one, table(rows).drop_columns(["race"]), KEYS).putative == 1


def test_equally_frequent_values_are_both_modal() -> None:
    rows = [("a", 1, "f", 1, 1, "w"), ("b", 1, "m", 2, 2, "b"), ("c", 1, "m", 30, 3, "b"), ("d", 1, "f", 40, 4, "w")]
    found = reidentify(table(rows).drop_columns([PERSON]), table(rows).drop_columns(["race"]), table(rows), KEYS)
    assert found.nonmodal_uniques.names == 0
    assert found.everybody.modal == 2


def test_whoever_is_not_there_or_elsewhere_is_not_confirmed() -> None:
    outside = table([("ann", 2, "f", 20, 2), ("zoe", 1, "f", 77, 7)], COLUMNS[:5])
    group = reidentify(TRUTH.drop_columns([PERSON]), outside, TRUTH, KEYS).everybody
    assert group == LinkageCounts(2, 2, 0, 0, 0, 0, 0)


def test_somebody_who_stands_twice_in_the_truth_is_judged_by_the_first_record() -> None:
    twice = pyarrow.concat_tables([TRUTH, table([("ann", 1, "f", 30, 3, "b")])])
    group = reidentify(TRUTH.drop_columns([PERSON]), TRUTH.slice(0, 1).drop_columns(["race"]), twice, KEYS).everybody
    assert (group.names, group.confirmed) == (1, 1)


def recounted(records: Rows, names: Rows, truth: Rows) -> tuple[list[Fraction], list[Fraction], Fraction]:
    """The same in plain Python: counts of everybody and of nonmodal uniques, and links by chance, not rounded."""
    left, named = list(enumerate(records)), dict[int, int]()
    order = sorted(range(len(names)), key=lambda row: (hashlib.md5(str(names[row][0]).encode()).hexdigest(), row))
    for key in (lambda row: row[1:4], lambda row: (*row[1:3], row[4])):
        for row in order:
            match = next((i for i, (_, record) in enumerate(left) if key(record) == key(names[row])), None)
            if row not in named and match is not None:
                named[row] = left.pop(match)[0]
    shares, widest, known = defaultdict[object, Counter[object]](Counter), Counter[object](), dict[object, int]()
    for row, each in enumerate(truth):
        shares[each[1]][each[5]] += 1
        widest[each[1], each[2], each[4]] += 1
        known.setdefault(each[0], row)
    sums = [[Fraction(0)] * 7 for _ in range(2)]
    for row, name in enumerate(names):
        own = truth[known[name[0]]] if name[0] in known else None
        counts: list[int | Fraction] = [1, int(row in named), 0, 0, 0, 0, 0]
        special = False
        if own is not None and own[1] == name[1]:
            of_place = shares[own[1]]
            most = max(of_place.values())
            modal = min(str(race) for race, number in of_place.items() if number == most)
            chance = Fraction(of_place[own[5]], sum(of_place.values()))
            right = row in named and records[named[row]][5] == own[5]
            is_modal = own[5] == modal
            linked = int(row in named)
            counts = [1, linked, int(right), int(is_modal), chance, linked * int(is_modal), linked * chance]
            special = of_place[own[5]] < most and widest[own[1], own[2], own[4]] == 1
        for group in (0, 1) if special else (0,):
            sums[group] = [one + Fraction(other) for one, other in zip(sums[group], counts, strict=True)]
    keys, homes = Counter((row[2], row[4]) for row in names), Counter(row[1] for row in records)
    own_keys = Counter((row[1], row[2], row[4]) for row in names)
    chance_links = sum(
        min(Fraction(number), Fraction(homes[place] * keys[sex, age], len(names)))
        for (place, sex, age), number in own_keys.items()
    )
    return sums[0], sums[1], Fraction(chance_links)


PERSON_ROWS = st.tuples(
    st.integers(0, 25).map(lambda number: f"p{number}"),
    st.integers(0, 2),
    st.sampled_from("fm"),
    st.integers(0, 7),
    st.just(0),
    st.sampled_from("wba"),
).map(lambda row: (*row[:4], row[3] // 3, row[5]))
FILES = st.lists(PERSON_ROWS, min_size=1, max_size=30)


def counts_of(group: LinkageCounts) -> list[int]:
    return [
        group.names,
        group.putative,
        group.confirmed,
        group.modal,
        group.proportional,
        group.modal_on_links,
        group.proportional_on_links,
    ]


@settings(max_examples=10, deadline=None)
@given(records=FILES, names=FILES, truth=FILES)
def test_every_count_is_that_of_a_plain_recount(records: Rows, names: Rows, truth: Rows) -> None:
    claims = put_names(table(records).drop_columns([PERSON]), table(names).drop_columns(["race"]), KEYS)
    found = judge(claims, table(truth), KEYS)
    everybody, uniques, by_chance = recounted(records, names, truth)
    assert abs(claims.by_chance - by_chance) <= Fraction(1, 2) + Fraction(1, 10**6)
    for group, expected in ((found.everybody, everybody), (found.nonmodal_uniques, uniques)):
        assert all(
            abs(one - other) <= Fraction(1, 2) + Fraction(1, 10**6) if other.denominator > 1 else one == other
            for one, other in zip(counts_of(group), expected, strict=True)
        )


def test_the_stages_are_declared_groupings_or_bins_of_five() -> None:
    age = Attribute.numbers("age", 0, 12, missing="unknown")
    sex, grade = Attribute.categories("sex", ["f", "m"]), Attribute.ordered_levels("grade", [*"abcde"])
    domain = Domain((sex, age, grade))
    stages = stages_of(domain, domain.names, ())
    assert stages.stages == (("sex", "age", "grade"), ("sex", "age in bins of 5", "grade"))  # five grades are one bin
    assert stages.coarser["age in bins of 5"].assignment.tolist() == [0] * 5 + [1] * 5 + [2] * 3 + [3]
    fine = Grouping.of("decade", [*"aaabbbcccddd", "e", None])
    coarse = Grouping.of("adult", [*"nnnnnnyyyyyy", "y", None])
    declared = Domain((sex, age), (Hierarchy("age", (coarse, fine)),))
    grouped = stages_of(declared, declared.names, ())
    assert grouped.stages == (("sex", "age"), ("sex", "decade"), ("sex", "adult"))
    assert grouped.coarser["adult"].assignment.tolist() == [0] * 6 + [1] * 7 + [2 + 13]  # in no group: for itself
    assert grouped.words("block") == "block and sex × age, then sex × decade, then sex × adult"
    assert grouped.words(None) == "sex × age, then sex × decade, then sex × adult"


def test_counts_become_people() -> None:
    domain = Domain((Attribute.categories("sex", ["f", "m"]), Attribute.categories("race", [*"bwa"])))
    people = listed(np.array([[0, 2, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0]]), domain, proved=np.array([True, False]))
    assert people.column(PLACE).to_pylist() == [0, 0, 0, 1]
    assert people.column("sex").to_pylist() == [0, 0, 1, 0]
    assert people.column("race").to_pylist() == [1, 1, 2, 0]
    assert people.column("@proved").to_pylist() == [True, True, True, False]
    for secret in ((), ("sex", "race")):
        with pytest.raises(InvalidRequest, match="knows"):
            reidentify_counts(np.ones((1, 6), dtype=np.int64), np.ones((1, 6), dtype=np.int64), domain, secret=secret)


def test_attributes_may_have_any_name() -> None:
    names = ("row", 'pl"ace', "secret", "turn", "person")
    domain = Domain(tuple(Attribute.categories(name, ["a", "b"]) for name in names))
    people = np.random.default_rng(3).integers(0, 2, (4, 32))
    for secret in names:
        found = reidentify_counts(people, people, domain, secret=[secret]).everybody
        assert found.putative == people.sum()
        assert found.confirmed > found.proportional


def test_what_a_limit_of_time_left_open_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain((Attribute.categories("sex", ["f", "m"]), Attribute.categories("race", ["b", "w"])))
    people = np.array([[1, 0, 0, 3], [0, 2, 1, 0]])
    equations = Equations.of_workload(marginals((2, 2), [2]))
    least = np.array([0, 0, 0, 2])

    def stopped(*_: object, **__: object) -> Iterator[Reconstruction]:
        yield Reconstruction(None, least, least + 1, 0, False, None, None, False)
        yield Reconstruction(people[1], people[1], people[1], 1, True, None, None, True)

    monkeypatch.setattr(exact, "reconstruct_or_refuse", stopped)
    tables = ExactTables("tables", equations, equations.of(people), ("a", "b"), "as is")
    found = linkage_attack.reconstructed_counts(tables, Effort(), b"key")
    assert found.counts.tolist() == [[0, 0, 0, 2], [0, 2, 1, 0]]
    assert found.proved.tolist() == [False, True]
    target = linkage_attack.Linkage(replace(tables, truths={"synthetic": boxed(people)}), domain, ("race",))
    findings = linkage_attack.LinkageAttack().run(target, b"key")
    assert findings[0].success == Rate(5, 7)  # two of the four in the first place
    assert all("in 1 places no file was found in time" in (each.partial or "") for each in findings)


@pytest.fixture(scope="module")
def census() -> Reidentification:
    """Names for 100 generated blocks, from their exact tables."""
    equations = Equations.of_workload(generated_blocks.tables())
    truth = generated_blocks.blocks(100, seed=2010)
    solved = list(reconstruct(equations, equations.of(truth), variability=False))
    found = np.array(
        [np.zeros_like(own) if each.counts is None else each.counts for each, own in zip(solved, truth, strict=True)]
    )
    proved = np.array([each.unique for each in solved])
    return reidentify_counts(found, truth, generated_blocks.domain(), secret=("hispanic", "race"), proved=proved)


def test_nonmodal_uniques_separate_an_attack_from_a_guess(census: Reidentification) -> None:
    modal, proportional = census.nonmodal_uniques.guesses_on_links or (None, None)
    precision = rate(census.nonmodal_uniques.precision)
    assert rate(modal).successes == 0  # by construction
    assert precision.interval()[0] > rate(proportional).interval()[1] + 0.4
    everybody = rate(census.everybody.precision).value
    assert everybody - rate((census.everybody.guesses_on_links or (None,))[0]).value < 0.1
    assert rate(census.proved_uniques.precision).value == 1.0  # alone, and proved: nothing can go wrong
    assert rate(census.proved_uniques.precision).trials > 10


def errors(draws: np.random.Generator, people: int = 1000) -> tuple[Domain, dict[str, pyarrow.Table]]:
    """People in small places, their records in another order, and an outside file with ages off by one and gaps."""
    domain = Domain(
        (
            Attribute.categories("sex", ["f", "m"]),
            Attribute.numbers("age", 0, 89),
            Attribute.categories("race", [*"abcd"]),
        )
    )
    place, sex, age = (draws.integers(0, most, people) for most in (people // 25, 2, 90))
    race = draws.integers(0, 4, people)
    order = draws.permutation(people)
    noisy = np.where(draws.random(people) < 0.3, np.clip(age + draws.choice([-1, 1], people), 0, 89), age)
    unknown = pyarrow.array(sex, mask=draws.random(people) < 0.1)
    names = np.arange(people)
    return domain, {
        "truth": pyarrow.table({PLACE: place, PERSON: names, "sex": sex, "age": age, "race": race}),
        "records": pyarrow.table({PLACE: place[order], "sex": sex[order], "age": age[order], "race": race[order]}),
        "names": pyarrow.table({PLACE: place, PERSON: names, "sex": unknown, "age": noisy}),
    }


def test_splink_finds_more_right_links_behind_errors() -> None:
    domain, files = errors(np.random.default_rng(7))
    stages = stages_of(domain, ("sex", "age"), ("race",))
    records, names, truth = (stages.added(files[name]) for name in ("records", "names", "truth"))
    exact = judge(put_names(records, names, stages), truth, stages)
    claims = put_names(records, names, stages, linker=probabilistic(domain))
    likely = judge(claims, truth, stages)
    assert likely.everybody.confirmed > exact.everybody.confirmed + 60
    assert likely.nonmodal_uniques.confirmed > exact.nonmodal_uniques.confirmed
    assert claims.putative <= claims.names
    again = put_names(records, names, stages, linker=probabilistic(domain))
    assert again.table.equals(claims.table)


def test_attributes_are_compared_as_equal_next_to_each_other_and_in_one_group() -> None:
    age, sex = Attribute.numbers("age", 0, 12, missing="unknown"), Attribute.categories("sex", ["f", "m"])
    stages = stages_of(Domain((age, sex)), ("age", "sex"), ())
    found = [
        [level["sql_condition"] for level in each.create_comparison_dict("duckdb")["comparison_levels"][1:]]
        for each in compared_by(Domain((age, sex)), stages)
    ]
    near = "abs(k0_l - k0_r) = 1 AND greatest(k0_l, k0_r) < 13"
    assert found == [['"k0_l" = "k0_r"', near, "k2_l = k2_r", "ELSE"], ['"k1_l" = "k1_r"', "ELSE"]]


def test_the_best_pairs_take_each_name_and_each_record_once() -> None:
    names, records = np.array([0, 1, 0, 1, 2]), np.array([5, 5, 6, 6, 6])
    assert best_pairs(names, records, 3, 7).tolist() == [True, False, False, True, False]


def test_splink_links_nothing_across_places_and_says_where_it_cannot_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    domain, files = errors(np.random.default_rng(7), people=100)
    stages = stages_of(domain, ("sex", "age"), ("race",))
    records, names = (stages.added(files[name]) for name in ("records", "names"))
    elsewhere = names.set_column(0, PLACE, pyarrow.array(np.full(100, 10**6)))
    assert put_names(records, elsewhere, stages, linker=probabilistic(domain)).putative == 0

    def failing(*_: object) -> None:
        raise ValueError("canary-4711")

    monkeypatch.setattr("dualmandate.audit.linkage.probabilistic._scored", failing)
    with pytest.raises(NoEstimate, match="no weights") as refused:
        put_names(records, names, stages, linker=probabilistic(domain))
    assert refused.value.__context__ is None


def test_files_without_the_columns() -> None:
    with pytest.raises(InvalidTables, match="lack race"):
        reidentify(TRUTH.drop_columns(["race"]), TRUTH, TRUTH, KEYS)
    with pytest.raises(InvalidTables, match="outside file lack sex, @person"):
        reidentify(TRUTH, TRUTH.drop_columns([PERSON, "sex"]), TRUTH, KEYS)
    with pytest.raises(InvalidTables, match="confidential file lack bin"):
        judge(put_names(TRUTH, TRUTH, KEYS), TRUTH.drop_columns(["bin"]), KEYS)
