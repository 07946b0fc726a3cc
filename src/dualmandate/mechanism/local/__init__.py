"""Nobody is trusted with the records: people, or their devices, randomize what they report."""
