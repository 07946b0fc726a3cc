"""What a release or a mechanism claims of its privacy, checked; who is recognized in it; rates that are published."""
