"""The only act that opens confidential data to publish from it: tabulate, measure, estimate, make consistent, write."""

from dualmandate.publication.rules import AttributeRule, Rule, Rules
from dualmandate.publication.sources import (
    CsvFile,
    DatabaseTable,
    ParquetFile,
    Source,
    SparkTable,
    StatisticalFile,
    source_file,
)
from dualmandate.publication.tabulated import Findings, SparseHistogram, Tabulated
from dualmandate.publication.tabulating import check, tabulate

__all__ = [
    "AttributeRule",
    "CsvFile",
    "DatabaseTable",
    "Findings",
    "ParquetFile",
    "Rule",
    "Rules",
    "Source",
    "SparkTable",
    "SparseHistogram",
    "StatisticalFile",
    "Tabulated",
    "check",
    "source_file",
    "tabulate",
]
