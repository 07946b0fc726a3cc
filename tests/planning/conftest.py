"""Programs to start from."""

from tests.programs import changed, embedded, survey, title_i, title_i_files

__all__ = ["changed", "embedded", "survey", "title_i", "title_i_files"]
