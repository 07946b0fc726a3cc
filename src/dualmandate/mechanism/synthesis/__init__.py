"""Synthetic records by select, measure, generate: which marginals are measured is chosen by what a model still misses."""
