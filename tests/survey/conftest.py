"""Programs to start from."""

from tests.programs import changed, survey, title_i, title_i_files

__all__ = ["changed", "survey", "title_i", "title_i_files"]
