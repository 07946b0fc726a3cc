"""What an attacker learns: reconstruction, re-identification, membership, suppression, checks of a DP claim."""
