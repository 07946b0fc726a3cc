"""How answers are produced: one technology a module."""
