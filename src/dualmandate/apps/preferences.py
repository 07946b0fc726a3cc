"""`dualmandate preferences`: what answers say about preferences, or what to ask to learn them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.apps.folder import check_writable, file_meant, json_text, write_files, written_whole
from dualmandate.apps.output import Output, Progress

if TYPE_CHECKING:
    from dualmandate.survey.survey_file import Survey

SURVEY_FILE = "survey.toml"
REPORT_FILE = "preferences.json"
Found = tuple[dict[str, str], list[str], dict[str, object]]  # files to write, what to say, and the document


def carry_out(survey: Path, out: Path | None, output: Output, *, questionnaire: bool = False) -> None:
    """Estimate, or design, then write where asked, then speak. Nothing is written before all of it stands."""
    file = file_meant(survey, SURVEY_FILE, "survey", "dualmandate init survey")
    if out is not None:
        check_writable(out)
    with output.progress(f"reading {file.name}") as progress:
        from dualmandate.survey.survey_file import load_survey

        find = _asked if questionnaire else _measured
        files, words, document = find(load_survey(file), file, out, progress)
        if out is not None:
            with written_whole(out) as draft:
                write_files(files, draft)
    for line in words:
        output.say(line)
    output.document(lambda: document)


def _measured(survey: Survey, _file: Path, out: Path | None, progress: Progress) -> Found:
    """What the answers say: as a document, as the [preferences] of a program, and in words."""
    from dualmandate.report.documents.survey import preferences_document
    from dualmandate.report.survey_words import words
    from dualmandate.survey.estimates import PREFERENCES_FILE, SurveyEstimates, measure

    found = measure(survey, progress)
    document, said = preferences_document(found), [words(found)]
    block = found.block() if isinstance(found, SurveyEstimates) else None
    files = {REPORT_FILE: json_text(document)} | ({} if block is None else {PREFERENCES_FILE: block})
    if out is not None:
        said.append(f"\nwritten: {out / list(files)[-1]}")
    elif block is not None:
        said.append(f"\n{block}")
    if block is not None:
        said.append("next: a program with this table, or with from in its [preferences], and `dualmandate plan`")
    return files, said, document


def _asked(survey: Survey, file: Path, out: Path | None, progress: Progress) -> Found:
    """What to ask: the web form, the answer sheet and the design."""
    from dualmandate.report.documents.survey import questionnaire_document
    from dualmandate.report.survey_words import FORM, questionnaire_files
    from dualmandate.survey.questionnaire import survey_questionnaire

    progress("looking for the tasks that tell most")
    made = survey_questionnaire(survey)
    document, files = questionnaire_document(made), dict[str, str]()
    if out is not None:
        progress("writing the web form")
        files = questionnaire_files(made)
        then = f"written: {', '.join(str(out / name) for name in files)}\nto open: {out / FORM}"
    else:
        command = f"dualmandate preferences {shlex.quote(str(file))} --questionnaire --out DIR"
        then = f"to write the web form, the answer sheet and the design:\n  {command}"
    return files, [made.words(), f"\n{then}"], document
