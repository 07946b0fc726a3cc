"""What is particular to one format, and the names of files."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.publication.reading_back import read_csv, read_sdmx

from dualmandate.errors import InvalidRelease, InvalidRequest
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, Noise
from dualmandate.population import Domain, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.labels import Labels
from dualmandate.publication import writing
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.rules import Rules
from dualmandate.publication.spreadsheet import Xlsx
from dualmandate.publication.writing import (
    Csv,
    NoisyRows,
    Parquet,
    PublishedTable,
    ReleaseSheet,
    SdmxCsv,
    SdmxMl,
    codes_of,
    estimates_sheet,
    file_names,
    identifier,
    measurements_sheet,
    read_measurements,
    read_table,
    slug,
    tidy_sheet,
    values_sheet,
)


@pytest.fixture
def table() -> PublishedTable:
    labels = (("f", "m"), ("young", "old", "old, very"))
    estimates, errors = np.arange(6) / 3, np.full(6, 1.5)
    return PublishedTable("by sex and age", "person", ("sex", "age"), labels, estimates, errors, np.arange(6))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 7), max_size=4), st.integers(1, 50))
def test_pieces_have_the_labels_of_their_rows(shape: list[int], at_once: int) -> None:
    labels = tuple(tuple(map(str, range(size))) for size in shape)
    sheet = ReleaseSheet(
        "t", "", tuple(map(str, range(len(shape)))), labels, {"value": np.arange(np.prod(shape, dtype=int))}
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writing, "ROWS_AT_ONCE", at_once)
        pieces = list(sheet.pieces())
    assert [part.stop - part.start for part, _ in pieces[:-1]] == [at_once] * (len(pieces) - 1)
    places = np.unravel_index(np.arange(sheet.rows), shape) if shape else ()
    for column, expected in enumerate(places):
        np.testing.assert_array_equal(np.concatenate([found[column] for _, found in pieces]), expected)


@pytest.fixture
def labeled(table: PublishedTable) -> PublishedTable:
    """The sexes in two languages, ages in codes alone."""
    words = {"": dict(zip(table.labels[0], ("women", "men"), strict=True))}
    words["fr"] = dict(zip(table.labels[0], ("femmes", "hommes"), strict=True))
    return replace(table, level_labels=(words, {}))


class TestLabels:
    def test_they_stand_beside_the_codes_and_come_back(self, labeled: PublishedTable, tmp_path: Path) -> None:
        [path] = Parquet().write(values_sheet(labeled), tmp_path / "t")
        assert pq.read_schema(path).names == ["sex", "sex_label", "sex_label_fr", "age", "value", "unit"]
        read = read_table(path)
        assert read.level_labels == labeled.level_labels
        assert read.labels == labeled.labels
        assert [*read.level_labels[0][""].values()] == ["women", "men"]
        assert read.level_labels[1] == {}
        [plain] = Csv().write(values_sheet(labeled), tmp_path / "t")
        heading, first, *_ = plain.read_text(encoding="utf-8").splitlines()
        assert heading == "sex,sex_label,sex_label_fr,age,value,unit"
        assert first.split(",")[:3] == [labeled.labels[0][0], "women", "femmes"]

    def test_a_file_whose_labels_were_changed_is_damaged(self, labeled: PublishedTable, tmp_path: Path) -> None:
        [path] = Parquet().write(values_sheet(labeled), tmp_path / "t")
        table = pq.read_table(path)
        other = pa.array(["women", "men"] * (table.num_rows // 2)).dictionary_encode()
        pq.write_table(table.set_column(1, "sex_label", other).replace_schema_metadata(table.schema.metadata), path)
        with pytest.raises(InvalidRelease):
            read_table(path)

    def test_footers_do_not_repeat_them(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Labels are read from the columns, also where row groups hold some levels only, and two words are the same."""
        monkeypatch.setattr(writing, "ROWS_AT_ONCE", 700)
        levels = tuple(f"4400{place:011}" for place in range(2_000))
        words: tuple[Labels, ...] = ({"": {level: f"Block {int(level) % 99}" for level in levels}}, {})
        table = PublishedTable("t", "person", ("block", "sex"), (levels, ("f", "m")), np.zeros(4_000), np.ones(4_000))
        [path] = Parquet().write(estimates_sheet(replace(table, level_labels=words)), tmp_path / "t")
        assert pq.ParquetFile(path).metadata.num_row_groups > 1
        assert sum(map(len, pq.read_schema(path).metadata.values())) < 1_000
        read = read_table(path)
        assert read.labels == table.labels
        assert read.level_labels == words
        with pq.ParquetFile(path) as file:
            held = [len(file.read_row_group(n, columns=["block"]).column(0).chunk(0).dictionary) for n in range(6)]
        assert held == [350] * 5 + [250]  # of those levels alone that stand in it

    @pytest.mark.parametrize(("row", "column"), [(0, "sex"), (750, "sex"), (3_999, "sex"), (1_399, "block")])
    def test_a_row_that_says_another_level_is_found_in_any_piece(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: int, column: str
    ) -> None:
        monkeypatch.setattr(writing, "ROWS_AT_ONCE", 700)
        levels = tuple(f"4400{place:011}" for place in range(2_000))
        table = PublishedTable("t", "person", ("block", "sex"), (levels, ("f", "m")), np.zeros(4_000), np.ones(4_000))
        [path] = Parquet().write(estimates_sheet(table), tmp_path / "t")
        found = pq.read_table(path)
        words = found.column(column).to_pylist()
        words[row] = words[row + 1 if row < 3_999 else 0]
        changed = found.set_column(found.schema.get_field_index(column), column, pa.array(words).dictionary_encode())
        pq.write_table(changed.replace_schema_metadata(found.schema.metadata), path, row_group_size=700)
        with pytest.raises(InvalidRelease) as refused:
            read_table(path)
        assert "row-major" in refused.value.why

    def test_files_of_earlier_versions_have_them_among_their_facts(
        self, labeled: PublishedTable, tmp_path: Path
    ) -> None:
        [path] = Parquet().write(values_sheet(labeled), tmp_path / "t")
        table = pq.read_table(path)
        facts = json.loads(table.schema.metadata[b"dualmandate"])
        facts |= {"schema": "sheet/1", "labels": labeled.labels, "level_labels": labeled.level_labels}
        del facts["sizes"], facts["texts"]
        pq.write_table(table.replace_schema_metadata({b"dualmandate": json.dumps(facts).encode()}), path)
        assert read_table(path).labels == labeled.labels
        assert read_table(path).level_labels == labeled.level_labels

    def test_sdmx_names_codes_by_their_labels(self, labeled: PublishedTable, tmp_path: Path) -> None:
        _, structure = SdmxCsv().write(values_sheet(labeled), tmp_path / "t")
        told = structure.read_text(encoding="utf-8")
        assert ">women<" in told
        assert ">men<" in told

    def test_a_column_that_has_the_name_of_a_label_column_keeps_it(self, table: PublishedTable, tmp_path: Path) -> None:
        words: tuple[Labels, ...] = ({"": {level: level.upper() for level in table.labels[0]}}, {})
        odd = replace(table, columns=("sex", "sex_label"), level_labels=words)
        assert [text.heading for text in values_sheet(odd).texts] == ["sex", "sex_label_", "sex_label"]


class TestParquet:
    def test_columns_have_types(self, table: PublishedTable, tmp_path: Path) -> None:
        [whole] = Parquet().write(values_sheet(table, {"plan digest": "ff00"}), tmp_path / "whole")
        [path] = Parquet().write(estimates_sheet(table, {"plan digest": "ff00"}), tmp_path / "t")
        schema = pq.read_schema(path)
        text = pa.dictionary(pa.int32(), pa.string())
        assert schema.names == ["sex", "age", "estimate", "standard_error", "unit"]
        assert schema.types == [text, text, pa.float64(), pa.float64(), text]
        assert pq.read_schema(whole).types == [text, text, pa.int64(), text]
        facts = json.loads(schema.metadata[b"dualmandate"])
        assert facts["label"] == "public"
        assert (facts["name"], facts["unit"], facts["facts"]) == ("by sex and age", "person", {"plan digest": "ff00"})
        assert list(facts) == sorted(facts)

    def test_tables_and_estimates_come_back_together(self, table: PublishedTable, tmp_path: Path) -> None:
        [values] = Parquet().write(values_sheet(table), tmp_path / "values")
        [estimates] = Parquet().write(estimates_sheet(table), tmp_path / "estimates")
        found = read_table(values, estimates=estimates)
        assert (found.name, found.unit, found.columns, found.labels) == (
            table.name,
            table.unit,
            table.columns,
            table.labels,
        )
        np.testing.assert_array_equal(found.estimates, table.estimates)
        np.testing.assert_array_equal(found.standard_errors, table.standard_errors)
        assert found.values is not None
        np.testing.assert_array_equal(found.values, np.arange(6))
        assert np.isnan(read_table(values).estimates).all()
        assert read_table(estimates).values is None

    def test_estimates_of_another_table_are_refused(self, table: PublishedTable, tmp_path: Path) -> None:
        [values] = Parquet().write(values_sheet(table), tmp_path / "values")
        other = PublishedTable("other", "person", ("sex",), (("f", "m"),), np.ones(2), np.ones(2))
        [estimates] = Parquet().write(estimates_sheet(other), tmp_path / "estimates")
        with pytest.raises(InvalidRelease, match="cannot be used") as refused:
            read_table(values, estimates=estimates)
        assert "other labels" in refused.value.why
        with pytest.raises(InvalidRelease, match="cannot be used") as refused:
            values_sheet(other)
        assert "not made consistent" in refused.value.why

    def test_labels_in_another_order_are_refused(self, table: PublishedTable, tmp_path: Path) -> None:
        [path] = Parquet().write(values_sheet(table), tmp_path / "t")
        content = pq.read_table(path)
        pq.write_table(content.take([1, 0, 2, 3, 4, 5]), path)
        with pytest.raises(InvalidRelease, match="cannot be used") as refused:
            Parquet().read(path)
        assert "row-major" in refused.value.why
        pq.write_table(content.replace_schema_metadata({}), path)
        with pytest.raises(InvalidRelease, match="cannot be used"):
            Parquet().read(path)

    def test_measurements_come_back_with_their_noise(self, tmp_path: Path) -> None:
        noises = (Noise(GEOMETRIC, Fraction(7, 3)), Noise(GAUSSIAN, Fraction(5)))
        kinds, values = np.array([1, 0, 1]), np.array([5, -3, 2**62])
        [path] = Parquet().write(measurements_sheet(NoisyRows("g", noises, kinds, values)), tmp_path / "g")
        found = read_measurements(path)
        assert (found.group, found.noises) == ("g", noises)
        np.testing.assert_array_equal(found.kinds, kinds)
        np.testing.assert_array_equal(found.values, values)
        assert pq.read_schema(path).types == [pa.int32(), pa.int64()]

    def test_one_kind_for_all_is_held_once_and_written_for_each(self, tmp_path: Path) -> None:
        kinds = np.broadcast_to(np.int64(0), (5,))
        sheet = measurements_sheet(NoisyRows("g", (Noise(GEOMETRIC, Fraction(7)),), kinds, np.arange(5)))
        assert sheet.numbers["kind"].strides == (0,)
        [path] = Parquet().write(sheet, tmp_path / "one")
        each = NoisyRows("g", (Noise(GEOMETRIC, Fraction(7)),), np.zeros(5, dtype=np.int64), np.arange(5))
        [other] = Parquet().write(measurements_sheet(each), tmp_path / "each")
        assert path.read_bytes() == other.read_bytes()

    def test_what_is_damaged_is_refused(self, table: PublishedTable, tmp_path: Path) -> None:
        [path] = Parquet().write(values_sheet(table), tmp_path / "table")
        with pytest.raises(InvalidRelease, match="cannot be used"):
            Parquet().read(tmp_path / "none.parquet")
        content = path.read_bytes()
        for broken in (b"", content[: len(content) // 2], b"a,b\n1,2\n", b"\xff\xfe" + content):
            path.write_bytes(broken)
            with pytest.raises(InvalidRelease, match="cannot be used"):
                Parquet().read(path)

    def test_row_groups_say_which_labels_they_hold(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writing, "ROWS_AT_ONCE", 10)
        labels = (tuple(f"{place:02}" for place in range(20)), ("f", "m"))
        [path] = Parquet().write(
            ReleaseSheet("t", "", ("place", "sex"), labels, {"value": np.arange(40)}), tmp_path / "t"
        )
        [place, sex, value] = [pq.read_metadata(path).row_group(1).column(number) for number in range(3)]
        assert (place.statistics.min, place.statistics.max) == ("05", "09")
        assert (value.statistics.min, value.statistics.max) == (10, 19)
        assert sex.statistics is None  # every row group holds both

    @pytest.mark.parametrize("facts", [{}, {"noise 0": "cauchy 1"}, {"noise 0": "laplace 1"}])
    def test_measurements_without_their_noise_are_refused(self, facts: dict[str, str], tmp_path: Path) -> None:
        numbers = {"kind": np.array([0, 1], dtype=np.int32), "value": np.array([1, 2])}
        [path] = Parquet().write(ReleaseSheet("g", "", (), (), numbers, facts), tmp_path / "g")
        with pytest.raises(InvalidRelease, match="cannot be used"):
            read_measurements(path)


class TestCsv:
    def test_it_is_as_rfc_4180_says(self, table: PublishedTable, tmp_path: Path) -> None:
        [path] = Csv().write(values_sheet(table), tmp_path / "t")
        assert path.read_bytes().splitlines(keepends=True)[:4] == [
            b"sex,age,value,unit\r\n",
            b"f,young,0,person\r\n",
            b"f,old,1,person\r\n",
            b'f,"old, very",2,person\r\n',
        ]

    @settings(max_examples=30)
    @given(
        st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1, unique=True)
    )
    def test_any_label_is_read_back_by_another_reader(
        self, tmp_path_factory: pytest.TempPathFactory, levels: list[str]
    ) -> None:
        sheet = ReleaseSheet("t", "", ("label",), (tuple(levels),), {"value": np.arange(len(levels))})
        [path] = Csv().write(sheet, tmp_path_factory.mktemp("csv") / "t")
        with path.open(encoding="utf-8", newline="") as file:
            assert list(csv.reader(file))[1:] == [[level, str(place)] for place, level in enumerate(levels)]
        assert read_csv(path).labels == (tuple(levels),)

    def test_a_label_column_called_like_a_number_is_told_apart(self, tmp_path: Path) -> None:
        numbers = {"value": np.arange(4)}
        sheet = ReleaseSheet("t", "", ("value", "value_"), (("a", "b"), ("c", "d")), numbers)
        assert sheet.headings == ("value_", "value__")
        [path] = Csv().write(sheet, tmp_path / "t")
        np.testing.assert_array_equal(read_csv(path).numbers["value"], np.arange(4))
        [path] = Parquet().write(sheet, tmp_path / "t")
        assert Parquet().read(path).columns == ("value", "value_")

    def test_what_is_counted_stands_beside_every_number(self, tmp_path: Path) -> None:
        said = 'cost, each person\'s counted up to "100"'
        sheet = ReleaseSheet("t", "USD", ("unit",), (("x", "y"),), {"value": np.arange(2)}, {"clipped": said})
        [path] = Csv().write(sheet, tmp_path / "t")
        with path.open(encoding="utf-8", newline="") as file:
            assert list(csv.reader(file)) == [
                ["unit_", "value", "unit", "what_is_counted"],
                ["x", "0", "USD", said],
                ["y", "1", "USD", said],
            ]
        [path] = Parquet().write(sheet, tmp_path / "t")
        assert pq.read_table(path).column("what_is_counted").to_pylist() == [said, said]


class TestXlsx:
    def test_a_table_has_its_margins_all_numbers_and_notes(self, labeled: PublishedTable, tmp_path: Path) -> None:
        [path] = Xlsx(("for print",)).write(tidy_sheet(labeled), tmp_path / "t")
        book = openpyxl.load_workbook(path)
        shown = list(book["Table"].iter_rows(values_only=True))
        assert shown[0] == ("sex", *labeled.labels[1], "Total")
        assert shown[1] == ("women", 0, 1, 2, 3)
        assert shown[3] == ("Total", 3, 5, 7, 15)
        rows = list(book["All numbers"].iter_rows(values_only=True))
        assert rows[0] == tuple(read_names(tidy_sheet(labeled)))
        assert len(rows) == 7
        assert [each[0] for each in book["Notes"].iter_rows(values_only=True)] == [labeled.name, "for print"]

    def test_it_shows_thousands_and_no_more_digits_than_the_error_supports_and_prints_on_pages(
        self, tmp_path: Path
    ) -> None:
        numbers = {"value": np.array([6_351_930]), "estimate": np.array([0.056054]), "standard_error": np.array([5e-4])}
        sheet = ReleaseSheet("cost & care", "USD", ("a",), (("x",),), numbers)
        [path] = Xlsx(("word " * 60,)).write(sheet, tmp_path / "t")
        book = openpyxl.load_workbook(path)
        formats = [cell.number_format for cell in book["All numbers"][2]]
        assert formats[1:4] == ["#,##0", "#,##0.00000", "#,##0.00000"]
        assert book["All numbers"]["C2"].value == 0.056054  # only shown so
        for page in book:
            assert (page.page_setup.orientation, page.page_setup.fitToHeight) == ("landscape", 0)  # one page wide
            assert page.sheet_properties.pageSetUpPr.fitToPage
            assert page.oddHeader.left.text == "cost & care".replace("&", "&&")
        assert book["Notes"].row_dimensions[2].height >= 4 * 15  # 300 letters, 100 of them wide, are not cut

    def test_equal_sheets_give_equal_bytes_at_any_time(
        self, labeled: PublishedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        [first] = Xlsx(("n",)).write(tidy_sheet(labeled), tmp_path / "first")
        monkeypatch.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        time.sleep(2.1)  # a zip file counts time in steps of two seconds
        [second] = Xlsx(("n",)).write(tidy_sheet(labeled), tmp_path / "second")
        assert first.read_bytes() == second.read_bytes()

    def test_no_level_becomes_a_formula_and_no_number_is_left_out(self, tmp_path: Path) -> None:
        numbers = {"estimate": np.array([1.5, np.nan]), "standard_error": np.array([np.inf, 2.0])}
        sheet = ReleaseSheet("r", "share", ("a",), (("=1+1", "https://x.y"),), numbers)
        [path] = Xlsx().write(sheet, tmp_path / "t")
        shown = list(openpyxl.load_workbook(path)["All numbers"].iter_rows(values_only=True))
        assert shown[1:] == [("=1+1", 1.5, None, "share"), ("https://x.y", None, 2, "share")]
        assert openpyxl.load_workbook(path)["All numbers"]["A2"].data_type != "f"
        assert len(list(openpyxl.load_workbook(path)["Table"].iter_rows())) == 3  # shares have no total


def read_names(sheet: ReleaseSheet) -> list[str]:
    return [*(text.heading for text in sheet.texts), *sheet.numbers, "unit"]


class TestSdmx:
    def test_identifiers(self) -> None:
        assert identifier("Adults by sex & income") == "ADULTS_BY_SEX_INCOME"
        assert identifier("2010 count") == "X_2010_COUNT"
        assert identifier("漢字") == "X"
        assert identifier("a b", ["A_B", "A_B_2"]) == "A_B_3"

    def test_codes(self) -> None:
        assert codes_of(["f", "m", "007"]) == ("f", "m", "007")
        assert codes_of(["<=50K", ">50K"]) == ("L1", "L2")
        assert codes_of(["NA", "b"]) == ("L1", "L2")
        assert codes_of([f"level {place}" for place in range(10)])[0] == "L01"

    def test_letters_that_xml_cannot_hold_are_replaced(self, tmp_path: Path) -> None:
        sheet = ReleaseSheet("t\0", "", ("a\x0b",), (("x\x1f", "y"),), {"value": np.arange(2)})
        paths = SdmxCsv("Office of Statistics").write(sheet, tmp_path / "t")
        found = read_sdmx(SdmxCsv("Office of Statistics"), paths[0])
        assert (found.name, found.columns, found.labels) == ("t�", ("a�",), (("x�", "y"),))
        assert b"OFFICE_OF_STATISTICS:T(1.0)" in paths[0].read_bytes()

    @pytest.mark.parametrize("writer", [SdmxCsv(), SdmxMl()], ids=["csv", "xml"])
    def test_what_is_counted_stands_in_the_message_itself(self, writer: SdmxCsv | SdmxMl, tmp_path: Path) -> None:
        said = 'cost <"all" & more>, each person\'s counted up to USD 100,000'
        sheet = ReleaseSheet("t", "USD", ("a",), (("x", "y"),), {"value": np.arange(2)}, {"clipped": said})
        paths = writer.write(sheet, tmp_path / "t")
        assert b"USD 100,000" in paths[0].read_bytes()
        assert read_sdmx(writer, paths[0]).facts == {"clipped": said}  # in the message as in its structure

    def test_without_its_packages_it_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pysdmx.io.xml", None)
        sheet = ReleaseSheet("t", "", ("sex",), (("f", "m"),), {"value": np.arange(2)})
        with pytest.raises(InvalidRequest, match="packages are not installed") as refused:
            SdmxCsv().write(sheet, tmp_path / "t")
        assert refused.value.instead == "install dualmandate[sdmx]"
        domain, loss = Domain.of_shape((2,)), PrivacyLoss(Fraction(1), PrivacyMeasure.PURE_DP)
        order = ReleaseSpec("digest", "p", "a", loss, domain, Protection(), Rules(), (), {}, formats=("sdmx-ml",))
        with pytest.raises(InvalidRequest, match="packages are not installed"):
            order.check()  # before anything is spent
        assert list(tmp_path.iterdir()) == []

    def test_other_writers_do_without_them(self) -> None:
        code = (
            "import sys\nfrom dualmandate.publication.writing import Csv\n"
            "print(not {'pysdmx', 'pandas'} & {name.partition('.')[0] for name in sys.modules})"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert result.stdout.strip() == "True"


class TestNames:
    def test_slugs_are_plain(self) -> None:
        assert slug("Adults by sex & income (2010)") == "adults-by-sex-income-2010"
        assert slug("  Écoles / Élèves ") == "ecoles-eleves"
        assert slug("../../etc/passwd") == "etc-passwd"
        assert slug("漢字") == "table"
        assert slug("CON") == "table-con"
        assert len(slug("x" * 300)) == 80

    def test_names_that_look_alike_are_numbered(self) -> None:
        names = ["A b", "a-b", "a b 2", "a_b"]
        assert file_names(names) == {"A b": "a-b", "a-b": "a-b-2", "a b 2": "a-b-2-2", "a_b": "a-b-3"}

    @given(st.lists(st.text(), unique=True))
    def test_every_name_gets_its_own(self, names: list[str]) -> None:
        found = file_names(names)
        assert len(set(found.values())) == len(names)
        assert all(set(each) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and each for each in found.values())


def test_a_sheet_has_a_number_for_each_label() -> None:
    for numbers in ({"value": np.arange(3)}, {"value": np.arange(2), "estimate": np.ones(3)}):
        with pytest.raises(InvalidRelease, match="the table 't' cannot be used"):
            ReleaseSheet("t", "", ("sex",), (("f", "m"),), numbers)
