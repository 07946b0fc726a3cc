"""What a command finds when it runs here: versions, extras, programs of the system, settings and their sources."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from dualmandate.apps.settings import Setting, project_folder, settings, unread_variables

PATIENCE = 10.0  # seconds for a program to state its version
SMALLEST_JAVA = 17


@dataclass(frozen=True)
class Package:
    """A Python package this one needs, or can use through an extra."""

    name: str
    version: str | None  # None: not installed
    extra: str | None = None


@dataclass(frozen=True)
class InstalledDistribution:
    """A distribution that lies in this environment, with the SHA-256 of the list of its files and of their hashes."""

    name: str
    version: str
    sha256: str | None  # None: it was installed without such a list


@dataclass(frozen=True)
class SystemProgram:
    """A program of the operating system."""

    name: str
    path: str | None  # None: not found
    version: str | None
    used_for: str


@dataclass(frozen=True)
class Examination:
    """Everything `dualmandate doctor` reports."""

    version: str
    python: str
    system: str
    packages: tuple[Package, ...]
    installed: tuple[InstalledDistribution, ...]
    programs: tuple[SystemProgram, ...]
    project: str | None
    settings: tuple[Setting, ...]
    findings: tuple[str, ...]  # what should be mended, in words; empty where all is well

    def words(self) -> str:
        lines = [f"dualmandate {self.version}, Python {self.python}, {self.system}", "", "packages"]
        lines += _columns(
            [(p.name, p.version or "not installed", f"extra '{p.extra}'" if p.extra else "") for p in self.packages]
        )
        lines += ["", f"{len(self.installed)} distributions are installed; --json lists them, each with its hash"]
        lines += ["", "programs of the system"]
        lines += _columns([(p.name, p.version or "not found", p.used_for) for p in self.programs])
        lines += ["", f"settings (project: {self.project or 'none, no dualmandate.toml here or above'})"]
        lines += _columns([(s.name, s.value or "not set", f"{s.source}: {s.origin}") for s in self.settings])
        lines += ["", "findings"] + [f"  {finding}" for finding in self.findings or ("nothing to mend",)]
        return "\n".join(lines)

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.commands import DoctorDocument

        return DoctorDocument.made_of(self).as_json()


def examine(start: Path) -> Examination:
    """Look at this environment, from the folder `start`."""
    packages = tuple(_packages())
    programs = tuple(_programs())
    return Examination(
        version=metadata.version("dualmandate"),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        packages=packages,
        installed=installed_distributions(),
        programs=programs,
        project=str(project) if (project := project_folder(start)) else None,
        settings=tuple(_without_password(setting) for setting in settings(start, {}).values()),
        findings=tuple(_findings(packages, programs)),
    )


def _without_password(setting: Setting) -> Setting:
    """A setting that can be shown: the URL of a database may hold a password."""
    if setting.value is None or "://" not in setting.value:
        return setting
    hidden = re.sub(r"(://[^:@/]*):.*@", r"\1:…@", setting.value)
    return replace(setting, value=re.sub(r"(password=)[^&]*", r"\1…", hidden))


def _packages() -> list[Package]:
    """What the package's own metadata asks for, so that this list cannot go stale."""
    asked = []
    for requirement in metadata.requires("dualmandate") or ():
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", requirement)
        if name:
            asked.append(Package(name.group(), _version(name.group()), extra.group(1) if extra else None))
    return asked


def installed_distributions() -> tuple[InstalledDistribution, ...]:
    """Everything that can be imported from here, in the order of names: what a report of a weakness needs."""
    found: dict[str, InstalledDistribution] = {}
    for each in metadata.distributions():
        name, record = each.metadata["Name"], each.read_text("RECORD")
        if name:  # the first on the path is the one that is imported
            digest = None if record is None else sha256(record.encode()).hexdigest()
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), InstalledDistribution(name, each.version, digest))
    return tuple(found[name] for name in sorted(found))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _programs() -> list[SystemProgram]:
    debian = [str(folder) for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    return [
        _program("Java", ["java"], "tables of Spark (extra 'spark')", words=["-version"]),
        _program("PostgreSQL", ["postgres"], "tests of a ledger and of records in PostgreSQL", beside=debian),
        _program("OpenSSH", ["ssh"], "signatures of approvals and publications", words=["-V"]),
        _program("Chromium", ["chromium", "chromium-browser", "google-chrome"], "tests of the dossier's page"),
    ]


def _program(
    name: str,
    commands: Sequence[str],
    used_for: str,
    *,
    words: Sequence[str] = ("--version",),
    beside: Sequence[str] = (),
) -> SystemProgram:
    search = os.pathsep.join([os.environ.get("PATH", os.defpath), *beside])
    path = next((found for command in commands if (found := shutil.which(command, path=search))), None)
    if path is None:
        return SystemProgram(name, None, None, used_for)
    try:
        ran = subprocess.run(
            [path, *words], capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return SystemProgram(name, path, None, used_for)
    number = re.search(r"\d+(?:\.\d+)*", ran.stdout + ran.stderr)  # Java speaks on standard error
    return SystemProgram(name, path, number.group() if number else None, used_for)


def _findings(packages: Sequence[Package], programs: Sequence[SystemProgram]) -> list[str]:
    findings = [f"{p.name} is needed and not installed" for p in packages if p.version is None and p.extra is None]
    java = next(program for program in programs if program.name == "Java")
    if java.version and int(java.version.split(".")[0]) < SMALLEST_JAVA:
        findings.append(f"Java {java.version} is older than {SMALLEST_JAVA}")
    findings += [f"{name} is set and nobody reads it: a misspelling?" for name in unread_variables()]
    encoding = (sys.stdout.encoding or "").lower()
    if encoding.replace("-", "") != "utf8":
        findings.append(f"standard output is {encoding or 'unknown'}, not UTF-8: Greek letters are printed as '?'")
    return findings


def _columns(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    first = max(len(row[0]) for row in rows)
    second = max(len(row[1]) for row in rows)
    return [f"  {a:<{first}}  {b:<{second}}  {c}".rstrip() for a, b, c in rows]
