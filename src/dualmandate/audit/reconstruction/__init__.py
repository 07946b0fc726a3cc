"""Records behind published tables: exact ones with proof, noisy ones as likely as can be."""
