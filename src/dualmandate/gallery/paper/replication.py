"""The whole replication, section by section in the order of the paper."""

from __future__ import annotations

from dualmandate.gallery.paper import census_2020, learning, technologies, title_i, wording, working_paper
from dualmandate.gallery.paper.row import Row


def rows() -> list[Row]:
    """Every number of the paper, each with what follows from its inputs, what is right, and why they differ."""
    return [
        *technologies.rows(),
        *learning.rows(),
        *title_i.rows(),
        *wording.rows(),
        *working_paper.rows(),
        *census_2020.rows(),
    ]
