"""The methods before differential privacy beside it, on the same people: risk and accuracy."""
