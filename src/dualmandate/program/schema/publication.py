"""`[publication]`: where a release is made, and in which forms it is written."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from dualmandate.program.schema.number import CLOSED, Several, Text


class PublicationTable(BaseModel):
    """How a release is made. Every table is written as Parquet; the forms here come besides."""

    model_config = CLOSED

    formats: Several[Literal["csv", "sdmx-csv", "sdmx-ml"]] = ("csv",)
    """Further forms of the tables: "csv", and for agencies "sdmx-csv" and "sdmx-ml", each beside its structure."""
    agency: Text | None = None
    """The agency that SDMX names as the maintainer of its structures."""
    engine: Literal["local", "spark"] = "local"
    """Where records are tabulated, noise is drawn and tables are made consistent: here, or by the workers of a Spark
    cluster as far as the tables allow it; the numbers are the same."""
