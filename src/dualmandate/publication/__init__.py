"""The only act that opens confidential data to publish from it: tabulate, measure, estimate, make consistent, write."""

from dualmandate.publication.checking import CheckFindings, check
from dualmandate.publication.rules import AttributeRule, Rules, ValueRule
from dualmandate.publication.sources import (
    CsvFile,
    DatabaseTable,
    Frame,
    ParquetFile,
    Source,
    SparkTable,
    StatisticalFile,
    source_file,
)
from dualmandate.publication.tabulating import SparseHistogram, Tabulated, tabulate

__all__ = [
    "AttributeRule",
    "CheckFindings",
    "CsvFile",
    "DatabaseTable",
    "Frame",
    "ParquetFile",
    "Rules",
    "Source",
    "SparkTable",
    "SparseHistogram",
    "StatisticalFile",
    "Tabulated",
    "ValueRule",
    "check",
    "source_file",
    "tabulate",
]
