"""The benchmark `scale`: its programs are what they say, and what was measured once is not measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dualmandate import load
from dualmandate.benchmarks import scale

TOOK: dict[str, Any] = {
    "plan": {"seconds": 1.0, "megabytes": 300.0},
    "estimated": {"seconds": 2.0, "memory": 4e8, "disk": 1e6},
    "publish": {"seconds": 2.0, "megabytes": 400.0, "disk": 1.1},
    "load": {"seconds": 0.5, "megabytes": 400.0},
}


def test_programs_are_read(tmp_path: Path) -> None:
    for point in scale.points():
        if point.value <= 20 or point.value == 256 or point.name == "areas: 100":
            small = type(point)(**{**vars(point), "records": 30})
            small.write(tmp_path)
            program = load(tmp_path / "program.toml")
            assert program.domain.shape == point.sizes
            assert program.expected_records == 30
            assert program.file.mechanism.noise == point.noise


def test_a_run_goes_on_where_it_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds that double where a value grows by ten, and a point that is refused in words."""
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []

    def measured(point: scale.Point) -> dict[str, Any]:
        asked.append(point.name)
        if len(asked) == 3:
            raise KeyboardInterrupt
        if point.axis == "records" and point.value == 10**8:
            return {"refused": "plan: too much, because it is"}
        took = {**TOOK, "plan": {"seconds": 2.0 ** len(f"{point.value}"), "megabytes": 300.0}}
        return took | {"numbers": 4 if point.axis == "records" else point.value**2}

    monkeypatch.setattr(scale, "_measured", measured)
    with pytest.raises(KeyboardInterrupt):
        scale.rows(lambda _: None)
    rows = {(row.case, row.unit): row for row in scale.rows(lambda _: None)}
    assert len(asked) == len(list(scale.points())) + 1
    assert len(set(asked)) == len(asked) - 1
    refused = next(
        row for (case, _), row in rows.items() if case == "records: 100,000,000, plan: too much, because it is"
    )
    assert refused.ours is None
    by_areas, by_numbers = (rows[f"areas, growth of plan{by}", "exponent"] for by in ("", ", by numbers published"))
    assert by_areas.ours == pytest.approx(0.30103)
    assert by_numbers.ours == pytest.approx(0.30103 / 2)
    assert by_areas.target is None
    assert by_numbers.met
    assert rows["records, growth of plan", "exponent"].met
    assert ("records, growth of plan, by numbers published", "exponent") not in rows
    assert rows["records: 1,000,000, publish, as estimated", "megabytes"].ours == 400.0


def test_a_point_says_what_it_takes_and_what_refused_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    point = scale.Point("tables", 2, (3, 2, 4), ('by = ["a0", "a1"]', 'by = ["a1", "a2"]'), 50)
    point.write(tmp_path)
    scale.carry_out(tmp_path)
    told = capsys.readouterr().out
    assert all(f'"{stage}": {{"seconds"' in told for stage in scale.STAGES)
    assert '"refused"' not in told
    text = (tmp_path / "program.toml").read_text(encoding="utf-8")
    (tmp_path / "program.toml").write_text(text.replace("to = 3", "to = 999999999"), encoding="utf-8")
    scale.carry_out(tmp_path)
    assert '{"refused": "plan: \'a2\' has 1e+09 levels, because an attribute has at most' in capsys.readouterr().out
