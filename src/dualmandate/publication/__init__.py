"""The only act that opens confidential data to publish from it: tabulate, measure, estimate, make consistent, write."""

from dualmandate.publication.rules import AttributeRule, Rules, ValueRule
from dualmandate.publication.sources import (
    CsvFile,
    DatabaseTable,
    ParquetFile,
    Source,
    SparkTable,
    StatisticalFile,
    source_file,
)
from dualmandate.publication.tabulating import CheckFindings, SparseHistogram, Tabulated, check, tabulate

__all__ = [
    "AttributeRule",
    "CheckFindings",
    "CsvFile",
    "DatabaseTable",
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
