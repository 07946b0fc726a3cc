"""`[publication]`: in which forms a release is written."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from dualmandate.program.schema.number import CLOSED, Several, Text


class PublicationTable(BaseModel):
    """How a release is written. Every table is written as Parquet; the forms here come besides."""

    model_config = CLOSED

    formats: Several[Literal["csv", "sdmx-csv", "sdmx-ml"]] = ("csv",)
    """Further forms of the tables: "csv", and for agencies "sdmx-csv" and "sdmx-ml", each beside its structure."""
    agency: Text | None = None
    """The agency that SDMX names as the maintainer of its structures."""
