"""Names for reconstructed records, beside those who guess."""
