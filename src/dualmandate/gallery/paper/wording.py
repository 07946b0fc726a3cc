"""The mistakes of the paper that are signs, definitions and wording, each with the mended sentence.

Numbers in E1 to E27 stand in the modules of their sections; here are those that no number settles.
"""

from __future__ import annotations

from dualmandate.gallery.paper.row import Row

SECTION = "definitions and wording"


def rows() -> list[Row]:
    """The errata that are words, in the order of the paper."""
    return [
        Row(
            "erratum.E11", SECTION, "Appendix E: weights of a person's data utility",
            "‖ΠᵀQA‖², ‖QA‖²", "QA⁺ in the derivation above it", "‖ΠᵀQA⁺‖², ‖QA⁺‖²",
            "E11: the reconstruction uses the pseudo-inverse; QA is not even conformable unless A is square",
        ),
        Row(
            "erratum.E16", SECTION, "Title I: aggregate misallocation W = Σ C(Ê − E)",
            "total = ΣÊC", "W ≡ 0 once the appropriation is fixed", "Σ over districts of each district's error",
            "E16: real grants are reduced ratably to a fixed appropriation, so errors cancel in the total",
        ),
        Row(
            "erratum.E18", SECTION, "range edits (no negative counts)",
            "only minor consequences", None, "a bias upward for small districts that grows as ε falls",
            "E18: truncating at zero lowers the squared error of small counts but makes them too large on average",
        ),
        Row(
            "erratum.E19", SECTION, "school districts do not overlap, so ΔQ = 1",
            "do not overlap", None, "elementary and secondary districts overlap in territory",
            "E19: children are counted once only because each district counts the grades it serves",
        ),
        Row(
            "erratum.E20", SECTION, "Definition 3, differential privacy",
            "for all ε > 0, all x, x′ ∈ N_x", None, "for the given ε, all (x, x′) ∈ N",
            "E20: ε is fixed, and N is a set of pairs",
        ),
        Row(
            "erratum.E22", SECTION, "Appendix D: parameters θ of the data generating process",
            "{π₁ … π_N, f₁ … f_N}", None, "{π₁ … π_N*, f₁ … f_N*}",
            "E22: the probability of the database uses π_j of people who are not in it",
        ),
        Row(
            "erratum.E23", SECTION, "footnote on tax evaders, μ = 1",
            "when the data report d = 0, 1 we know Y = 0", None, "only d = 0 reveals Y = 0, and ε = ∞",
            "E23: with μ = 1 a reported 1 is uninformative and a reported 0 certain, so no ε bounds it",
        ),
        Row(
            "erratum.E24", SECTION, "what ε measures",
            "the maximum difference in the log odds", None, "the maximum difference in log probability",
            "E24: Definition 3 bounds a ratio of probabilities of one event under two databases, not an odds ratio",
        ),
        Row(
            "erratum.E25", SECTION, "the discrete equivalent of Laplace noise",
            "the geometric distribution", None, "the two-sided geometric distribution",
            "E25: noise must be symmetric about zero",
        ),
        Row(
            "erratum.E27", SECTION, "neighbors of randomized response",
            "Definition 3 (add or remove a record)", None, "replace one record; N is public",
            "E27: each respondent answers, so the guarantee compares two answers of one person; label each mechanism",
        ),
    ]
