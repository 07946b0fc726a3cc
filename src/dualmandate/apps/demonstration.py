"""`dualmandate demo`: the story on the embedded Title I program, as far as this version tells it."""

from __future__ import annotations

from pathlib import Path

from dualmandate.apps import planning
from dualmandate.apps.folder import check_writable, written_whole
from dualmandate.apps.settings import PROJECT_FILE
from dualmandate.apps.starting import IGNORE_FILE, PROJECT, ignoring, write_files
from dualmandate.apps.voice import Voice

PROGRAM = "title_i"
REPORT = "report"
PICTURE = "figures/tangency.png"


def demonstrate(directory: Path, voice: Voice) -> None:
    """Write the program folder, plan it, write the report, and say in plain words what happened."""
    check_writable(directory)
    report = directory / REPORT
    with voice.progress("writing the program folder") as progress:
        kept = _write_program(directory)
        from dualmandate.program import load

        plan = load(directory / planning.PROGRAM_FILE).plan(progress=progress)
        document = plan.document()
        planning.write(plan, document, report, progress)
    page = report / planning.page_name()
    if kept:
        voice.say(f"(you had changed files of an earlier demo; they are kept as {', '.join(kept)})\n")
    voice.say(_story(directory, plan.words()))
    voice.document(
        {
            "schema": "demo/1",
            "directory": str(directory),
            "open": str(page),
            "kept": kept,
            "choice": document["choice"],
        }
    )


def _story(directory: Path, words: str) -> str:
    program, report = directory / planning.PROGRAM_FILE, directory / REPORT
    return f"""\
The United States allot money to school districts by their number of poor children. Noise in those counts protects the
children and misdirects money. How much of each? A program file says who is counted, what is asked, and what a privacy
loss and an error cost: {program}

{words}

What was done: the program was planned, from public numbers alone. No confidential data were opened and nothing was
published; publication is not part of this version.

Open this next, in any browser:
  {report / planning.page_name()}
Its first picture alone, where what can be produced meets what society wants:
  {report / PICTURE}
Then change a number in the program file and plan it again:
  dualmandate plan {program}"""


def _write_program(directory: Path) -> list[str]:
    """The embedded program, every time the same; a file that was changed since the last demo is kept aside."""
    from dualmandate import gallery

    files = gallery.files(PROGRAM) | {PROJECT_FILE: PROJECT, IGNORE_FILE: ignoring(directory)}
    kept = []
    for file, text in files.items():
        path = directory / file
        if path.is_file() and path.read_bytes() != text.encode() and file != IGNORE_FILE:
            kept.append(_keep_aside(path))
    with written_whole(directory) as draft:
        write_files(files, draft)
    return kept


def _keep_aside(path: Path) -> str:
    count = 1
    while (aside := path.with_name(f"{path.stem}.changed-{count}{path.suffix}")).exists():
        count += 1
    path.rename(aside)
    return str(aside)
