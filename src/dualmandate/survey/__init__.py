"""The survey file: whose answers to what, the models asked for, what was found; and the questionnaire before it."""
