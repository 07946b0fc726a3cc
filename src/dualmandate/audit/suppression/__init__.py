"""Suppressed cells: between which numbers they lie, and what other periods give away."""
