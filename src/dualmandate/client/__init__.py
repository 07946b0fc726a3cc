"""Asking a service of another machine: its prices, answers and budgets, with rows for pyarrow and pandas."""

from dualmandate.client.client import Client, ServedAnswer

__all__ = ["Client", "ServedAnswer"]
