"""Studies: plans whose noise is priced but never drawn, so that they are compared and not published.

A promise is kept only by noise that is drawn exactly. A law of real numbers (continuous Laplace), or one without an
exact sampler for what is measured (staircase), tells what a technology would give; nobody can approve it.
"""

from __future__ import annotations

from dualmandate.mechanism import NOISE_LAWS, NoiseLaw
from dualmandate.program.schema import BEST


def is_study(noise: str) -> bool:
    """Whether noise of this name is compared only: no exact sampler draws it; the best one is drawn."""
    return noise != BEST and not NOISE_LAWS[noise].publishable


def may_be_used(noise: str, asked: str) -> bool:
    """Whether a program that asks for `asked` may use this noise: the one it names, or the best that is drawn."""
    return noise == asked or (asked == BEST and not is_study(noise))


def drawn_instead(noise: str) -> NoiseLaw:
    """The law to use instead of a studied one: drawn exactly, with its privacy loss counted in the same way."""
    studied = NOISE_LAWS[noise]
    return next(
        law for law in NOISE_LAWS.values() if law.publishable and law.privacy_measure is studied.privacy_measure
    )


def marked(words: str, noise: str) -> str:
    """Words for a technology, marked where it is there for comparison only."""
    return f"{words} (study)" if is_study(noise) else words


def study_words(noise: str) -> str:
    """What a reader of a study must know first: that it is one, why, and what to plan instead."""
    return (
        f"This plan is a study: {noise} noise is not drawn exactly, so it is for comparison only and can be neither "
        f'approved nor published. To publish, state noise = "{drawn_instead(noise).name}" or "{BEST}".'
    )
