"""`dualmandate tabulate --check`: what does not fit the domain, for the curator inside the wall.

It leaves with status 0 whatever it finds: a scheduler writes exit statuses down where others read them. Only what is
true of every record alike (no file, a damaged file, a rule that cannot be followed) is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dualmandate.apps.output import Output
from dualmandate.apps.plan import program_file
from dualmandate.errors import InvalidRequest, MissingKey


def carry_out(program: Path, output: Output, *, checking: bool, refuse: Sequence[str]) -> None:
    """Check the program's source and say what was counted, on a terminal or as a document."""
    _refuse_unless_for_the_curator(output, checking=checking)
    file = program_file(program)
    with output.progress(f"checking the records of {file.name}") as stage:
        from dualmandate.program import read_program
        from dualmandate.publication import check
        from dualmandate.publication.tabulating import WARNING, refusing, report_for_curator
        from dualmandate.report.documents.ledger import check_document

        loaded = read_program(file)
        if loaded.source is None:
            raise MissingKey(
                "the program names no source",
                why="a check reads the confidential records",
                instead='write source = "people.parquet" under [population]',
                where=loaded.document.place(("population", "source")),
            )
        rules, protection = refusing(loaded.rules, refuse, loaded.domain), loaded.protection

        def read(share: float) -> None:
            stage.count("percent of the records read", round(100 * share), 100)

        box = check(loaded.source, loaded.domain, protection=protection, rules=rules, progress=read)
        report = report_for_curator(box, loaded.source.name, rules=rules, domain=loaded.domain, protection=protection)
    output.say(WARNING if output.json else report.words())  # standard error is often a log
    output.document(lambda: check_document(report))


def _refuse_unless_for_the_curator(output: Output, *, checking: bool) -> None:
    if not checking:
        raise InvalidRequest(
            "tabulating alone is no command",
            why="a histogram without noise is never written: `publish` tabulates, measures with noise and writes",
            instead="see what does not fit with `dualmandate tabulate PROGRAM.toml --check`, or publish a plan",
        )
    if not (output.json or sys.stdout.isatty()):
        raise InvalidRequest(
            "the words of a check go to a terminal only",
            why="its counts are confidential, and a pipe or a file is where they would be forgotten",
            instead="run it on a terminal; a program that keeps them inside the wall asks with --json",
        )
