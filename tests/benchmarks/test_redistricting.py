"""Rhode Island: persons that match the published counts, and releases whose constraints all hold."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.benchmarks.work import missed

from dualmandate.benchmarks import redistricting, rhode_island
from dualmandate.benchmarks.redistricting import ReleaseDesign
from dualmandate.benchmarks.rhode_island import RACES, SINGLE, Blocks
from dualmandate.planning.release_spec import release_spec_of_plan
from dualmandate.publication import release_spec
from dualmandate.publication.nested_tables import nest_together
from dualmandate.publication.writing import read_table

SMALL = (2, 4, 8, 60)


def check_persons(blocks: Blocks) -> None:
    cells = rhode_island.cells(blocks).reshape(-1, 2, 2, RACES, 8)
    races = cells.sum(axis=4)
    assert np.array_equal(races[:, :, 0, : len(SINGLE)], blocks.persons[:, :, : len(SINGLE)])
    assert np.array_equal(races[:, :, 0, len(SINGLE) :].sum(axis=2), blocks.persons[:, :, -2])
    assert np.array_equal(races[:, :, 1].sum(axis=2), blocks.persons[:, :, -1])
    assert cells[:, 0, :, :, [1, 3, 4, 5, 6]].sum() == 0  # minors live in few kinds of quarters


@pytest.mark.parametrize("sizes", [SMALL, rhode_island.SIZES])
def test_generated_blocks_nest_in_the_order_of_their_codes(sizes: tuple[int, int, int, int]) -> None:
    blocks = rhode_island.generated_blocks(sizes)
    assert blocks.tree.sizes == (1, *sizes)
    assert list(blocks.codes) == sorted(set(blocks.codes))
    assert {len(code) for code in blocks.codes} == {16}


def test_generated_persons_match_their_blocks() -> None:
    blocks = rhode_island.generated_blocks(SMALL)
    assert not blocks.real
    check_persons(blocks)


def test_published_blocks_are_matched() -> None:
    path = rhode_island.block_file()
    if path is None:
        pytest.skip("the block file is not in the folder of real data")
    blocks = rhode_island.published_blocks(path)
    assert blocks.tree.sizes == (1, 5, 244, 815, 25181)
    assert blocks.persons.sum() == 1_052_567
    assert blocks.persons[:, 1].sum() == 828_611
    check_persons(blocks)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[ReleaseDesign, Path]:
    blocks = rhode_island.generated_blocks(SMALL)
    persons = tmp_path_factory.mktemp("persons") / "persons.parquet"
    rhode_island.write_persons(rhode_island.cells(blocks), blocks, persons)
    return ReleaseDesign.of(blocks), persons


def test_the_loss_is_spent_to_the_last_fraction(small: tuple[ReleaseDesign, Path]) -> None:
    design, _ = small
    spent = sum(1 / noise.parameter for noise in design.noises.values())
    assert spent == redistricting.RHO  # a replaced record changes two numbers of each table by 1: ρ = 2/(2σ²)
    assert (0, 0) not in design.noises  # the state's total is known


def test_a_small_release_under_a_key_holds_every_constraint(small: tuple[ReleaseDesign, Path], tmp_path: Path) -> None:
    design, persons = small
    order = release_spec_of_plan(redistricting.program_of(design, persons, tmp_path).plan())
    made = redistricting.make(order, persons, 0)
    total = int(rhode_island.cells(design.blocks).sum())
    redistricting.check_constraints(made, total)
    wrong = replace(made, tables=(made.tables[0] + 1, *made.tables[1:]))
    with pytest.raises(ValueError, match="is right"):
        redistricting.check_constraints(wrong, total)


def test_the_program_states_what_the_design_says(small: tuple[ReleaseDesign, Path], tmp_path: Path) -> None:
    """The loss and every share of it, exactly; the order of its plan has the noise of the design."""
    design, persons = small
    program = redistricting.program_of(design, persons, tmp_path)
    plan = program.plan()
    assert (plan.loss.amount, plan.choice.bound_by) == (redistricting.RHO, "largest rho")
    ordered = release_spec_of_plan(plan)
    ordered.check()
    assert sum(group.loss for group in ordered.groups) == redistricting.RHO
    counties = sum(group.loss for group in ordered.groups if group.name.startswith("county"))
    assert counties == redistricting.RHO * Fraction(447, 4099)
    assert [group.noises for group in ordered.groups] == [(noise,) for noise in design.noises.values()]
    nest = nest_together(ordered)
    assert nest is not None
    assert nest.is_complete
    assert nest.tree.sizes == design.blocks.tree.sizes
    assert all(place.in_order for place in nest.places)  # so that large tables are never copied
    assert [place.pair for place in nest.places[:-1]] == list(design.noises)


@pytest.mark.parametrize("sparse_from", [0, 2**24])
def test_a_small_release_is_published(
    small: tuple[ReleaseDesign, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse_from: int
) -> None:
    monkeypatch.setattr(release_spec, "SPARSE_FROM", sparse_from)
    design, persons = small
    at = redistricting.release(design, persons, tmp_path)
    redistricting.check_release(design, at)
    redistricting.check_interval(design, at)
    redistricting.check_intervals(design, at)
    facts = json.loads((at / "release.json").read_text(encoding="utf-8"))
    assert facts["estimated_together"]
    tables = {table["name"]: table for table in facts["tables"]}
    assert len(tables) == 5 * 4
    assert tables["number of records"]["exact"]
    tracts = read_table(at / tables["tract, voting age × Hispanic"]["parquet"])
    assert tracts.columns == ("tract", "voting_age", "hispanic")
    assert tracts.labels[0] == tuple(sorted({code[:11] for code in design.blocks.codes}))
    assert (at / "index.html").is_file()
    table = at / tables["block, × race"]["parquet"]
    table.write_bytes((at / tables["block, total"]["parquet"]).read_bytes())
    with pytest.raises(ValueError, match="is right"):
        redistricting.check_release(design, at)


def test_errors_are_counted_by_level(small: tuple[ReleaseDesign, Path]) -> None:
    design, persons = small
    told = redistricting.errors(design, persons, 3)
    assert told["blocks_a_second"] > 0
    found = told["errors"]
    assert list(found) == list(rhode_island.LEVELS)
    assert found["state"]["final"][0] == 0
    assert 0 < found["block"]["final"][0] < found["block"]["unbiased"][0]


@pytest.mark.slow
def test_the_targets_are_met_with_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole state where its blocks are at hand; else a small one, in this process, whose memory is not judged."""
    real = rhode_island.block_file() is not None
    if not real:
        monkeypatch.setattr(redistricting, "blocks_at_hand", lambda: rhode_island.generated_blocks(SMALL))
        monkeypatch.setattr(redistricting, "apart", lambda work, *given, environment=None: work(*given))
    rows = redistricting.rows(lambda _: None, keys=1)
    assert [row for row in missed(rows) if real or row.unit != "megabytes"] == []
    assert sum(row.target is not None for row in rows) == 7 + 9 * real
