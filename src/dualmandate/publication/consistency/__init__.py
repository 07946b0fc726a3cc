"""From noisy whole numbers to best estimates, and from those to counts that add up."""

from dualmandate.publication.consistency.descending import family, root_table, solve_subtree, top_down
from dualmandate.publication.consistency.effect import Effect, consistency_effect, histogram_releases, tree_releases
from dualmandate.publication.consistency.estimating import Estimates, State, estimate, rise, settle
from dualmandate.publication.consistency.fitting import consistent_histogram
from dualmandate.publication.consistency.nesting import Chain, Tree
from dualmandate.publication.consistency.programming import WholeSolution, integer_program
from dualmandate.publication.consistency.sharing import Sharing, shared
from dualmandate.publication.consistency.weighing import Pair, Weights

__all__ = [
    "Chain",
    "Effect",
    "Estimates",
    "Pair",
    "Sharing",
    "State",
    "Tree",
    "Weights",
    "WholeSolution",
    "consistency_effect",
    "consistent_histogram",
    "estimate",
    "family",
    "histogram_releases",
    "integer_program",
    "rise",
    "root_table",
    "settle",
    "shared",
    "solve_subtree",
    "top_down",
    "tree_releases",
]
