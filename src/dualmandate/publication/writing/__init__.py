"""Releases as files: one writer a format, each of which can read what it wrote."""

from dualmandate.publication.writing.formats import (
    Csv,
    Parquet,
    Writer,
    file_names,
    read_measurements,
    read_table,
    slug,
)
from dualmandate.publication.writing.sdmx import SdmxCsv, SdmxMl, require_sdmx
from dualmandate.publication.writing.sheet import ReleaseSheet, estimates_sheet, measurements_sheet, values_sheet

__all__ = [
    "Csv",
    "Parquet",
    "ReleaseSheet",
    "SdmxCsv",
    "SdmxMl",
    "Writer",
    "estimates_sheet",
    "file_names",
    "measurements_sheet",
    "read_measurements",
    "read_table",
    "require_sdmx",
    "slug",
    "values_sheet",
]
