"""Post-processing of measurements: noisy whole numbers become best estimates, and those counts that add up."""

from dualmandate.publication.consistency.estimates import estimate
from dualmandate.publication.consistency.group_sizes import consistent_groups, measured_levels
from dualmandate.publication.consistency.partitions import PartitionChain, Tree
from dualmandate.publication.consistency.top_down_rounding import top_down

__all__ = ["PartitionChain", "Tree", "consistent_groups", "estimate", "measured_levels", "top_down"]
