"""Releases as files: one writer a format, each of which can read what it wrote."""

from dualmandate.publication.writing.columns import Parquet
from dualmandate.publication.writing.sdmx import SdmxCsv, SdmxMl, require_sdmx
from dualmandate.publication.writing.sheet import Sheet, estimates_sheet, measurements_sheet, table_sheet, values_sheet
from dualmandate.publication.writing.slugs import file_names, slug
from dualmandate.publication.writing.text import Csv
from dualmandate.publication.writing.writer import Writer, read_measurements, read_table

__all__ = [
    "Csv",
    "Parquet",
    "SdmxCsv",
    "SdmxMl",
    "Sheet",
    "Writer",
    "estimates_sheet",
    "file_names",
    "measurements_sheet",
    "read_measurements",
    "read_table",
    "require_sdmx",
    "slug",
    "table_sheet",
    "values_sheet",
]
