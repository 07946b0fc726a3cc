"""The doors: the command line. A door takes words in and gives words out; it does no arithmetic of its own."""
