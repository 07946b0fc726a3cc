"""How much accuracy each privacy loss buys."""
