"""`dualmandate preferences`: what answers say about preferences, or what to ask to learn them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.apps.folder import check_writable, file_meant, written_whole
from dualmandate.apps.output import Output, Progress

if TYPE_CHECKING:
    from dualmandate.survey.questionnaire import SurveyQuestionnaire
    from dualmandate.survey.survey_file import Survey

SURVEY_FILE = "survey.toml"
REPORT_FILE = "preferences.json"


def carry_out(survey: Path, out: Path | None, voice: Output, *, questionnaire: bool = False) -> None:
    """Estimate, or design, then write where asked, then speak. Nothing is written before all of it stands."""
    file = survey_file(survey)
    if out is not None:
        check_writable(out)
    if questionnaire:
        _ask(file, out, voice)
    else:
        _measure(file, out, voice)


def survey_file(survey: Path) -> Path:
    """The survey file meant by a file or by the folder that holds it."""
    return file_meant(survey, SURVEY_FILE, "survey", "dualmandate init survey")


def _measure(file: Path, out: Path | None, voice: Output) -> None:
    with voice.progress(f"reading {file.name}") as progress:
        from dualmandate.report.documents.survey import preferences_document
        from dualmandate.report.survey_words import words
        from dualmandate.survey.estimates import PREFERENCES_FILE, SurveyEstimates, measure

        found = measure(_loaded(file), progress)
        document = preferences_document(found)
        block = found.block() if isinstance(found, SurveyEstimates) else None
        if out is not None:
            with written_whole(out) as draft:
                text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
                (draft / REPORT_FILE).write_text(text + "\n", encoding="utf-8")
                if block is not None:
                    (draft / PREFERENCES_FILE).write_text(block, encoding="utf-8", newline="\n")
    voice.say(words(found))
    if out is None and block is not None:
        voice.say(f"\n{block}")
    elif out is not None:
        voice.say(f"\nwritten: {out / (REPORT_FILE if block is None else PREFERENCES_FILE)}")
    if block is not None:
        voice.say("next: a program with this table, or with from in its [preferences], and `dualmandate plan`")
    voice.document(lambda: document)


def _ask(file: Path, out: Path | None, voice: Output) -> None:
    with voice.progress(f"reading {file.name}") as progress:
        from dualmandate.report.documents.survey import questionnaire_document
        from dualmandate.report.survey_words import FORM, questionnaire_files

        made = _designed(_loaded(file), progress)
        if out is not None:
            progress("writing the web form")
            files = questionnaire_files(made)
            with written_whole(out) as draft:
                for name, text in files.items():
                    (draft / name).write_text(text, encoding="utf-8", newline="\n")
    voice.say(made.words())
    if out is not None:
        voice.say(f"\nwritten: {', '.join(str(out / name) for name in files)}\nto open: {out / FORM}")
    else:
        said = f"dualmandate preferences {shlex.quote(str(file))} --questionnaire --out DIR"
        voice.say(f"\nto write the web form, the answer sheet and the design:\n  {said}")
    voice.document(lambda: questionnaire_document(made))


def _loaded(file: Path) -> Survey:
    from dualmandate.survey.survey_file import load_survey

    return load_survey(file)


def _designed(survey: Survey, progress: Progress) -> SurveyQuestionnaire:
    from dualmandate.survey.questionnaire import survey_questionnaire

    progress("looking for the tasks that tell most")
    return survey_questionnaire(survey)
