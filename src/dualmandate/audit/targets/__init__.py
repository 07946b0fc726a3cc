"""From a program, a release or a folder of published tables to what attacks are made on."""
