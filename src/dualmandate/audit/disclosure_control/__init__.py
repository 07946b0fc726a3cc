"""Statistical disclosure control beside differential privacy, on the same people: risk and accuracy."""
