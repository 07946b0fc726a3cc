"""The only act that opens confidential data to publish from it: today, from microdata to a histogram."""

from dualmandate.publication.rules import AttributeRule, Rule, Rules
from dualmandate.publication.sources import CsvFile, ParquetFile, Source
from dualmandate.publication.tabulated import Findings, SparseHistogram, Tabulated
from dualmandate.publication.tabulating import check, tabulate

__all__ = [
    "AttributeRule",
    "CsvFile",
    "Findings",
    "ParquetFile",
    "Rule",
    "Rules",
    "Source",
    "SparseHistogram",
    "Tabulated",
    "check",
    "tabulate",
]
