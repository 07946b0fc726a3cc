"""Every number of the paper beside what follows from its own inputs and what is right."""

from dualmandate.gallery.paper.replication import rows
from dualmandate.gallery.paper.row import PaperRow

__all__ = ["PaperRow", "rows"]
