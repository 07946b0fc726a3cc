"""What a release or a mechanism claims of its privacy, checked; membership in it."""
