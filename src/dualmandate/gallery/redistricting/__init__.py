"""Redistricting: what noise in the counts of blocks does to the districts that are drawn from them."""

from __future__ import annotations

from dualmandate.gallery.redistricting.districts import DistrictErrors, Districts, district_errors, read_districts
from dualmandate.gallery.redistricting.state import InventedState, invented_state

__all__ = ["DistrictErrors", "Districts", "InventedState", "district_errors", "invented_state", "read_districts"]
