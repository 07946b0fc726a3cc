"""What a command finds when it runs here: versions, extras, programs of the system, settings and their sources."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
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
    """A distribution that lies in this environment, as it was locked when it was installed, and as it lies there now.

    The SHA-256 is over what came with it: whoever installs the same file has the same, with any installer, anywhere.
    """

    name: str
    version: str
    sha256: str | None  # None: it was installed without a list of its files
    changed: tuple[str, ...] | None  # files that are not as they were installed; None: without such a list


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
    installed: tuple[InstalledDistribution, ...]  # none where they were not asked for
    programs: tuple[SystemProgram, ...]
    project: str | None
    settings: tuple[Setting, ...]
    findings: tuple[str, ...]  # what should be mended, in words; empty where all is well

    def words(self) -> str:
        lines = [f"dualmandate {self.version}, Python {self.python}, {self.system}", "", "packages"]
        lines += _columns(
            [(p.name, p.version or "not installed", f"extra '{p.extra}'" if p.extra else "") for p in self.packages]
        )
        lines += ["", "what is installed, each distribution with its hash and files that were changed: --json lists it"]
        lines += ["", "programs of the system"]
        lines += _columns([(p.name, p.version or "not found", p.used_for) for p in self.programs])
        lines += ["", f"settings (project: {self.project or 'none, no dualmandate.toml here or above'})"]
        lines += _columns([(s.name, s.value or "not set", f"{s.source}: {s.origin}") for s in self.settings])
        lines += ["", "findings"] + [f"  {finding}" for finding in self.findings or ("nothing to mend",)]
        return "\n".join(lines)

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.commands import DoctorDocument

        return DoctorDocument.made_of(self).as_json()


def examine(start: Path, *, every_file: bool = False) -> Examination:
    """Look at this environment, from the folder `start`; at every file that is installed if that is asked for."""
    packages = tuple(_packages())
    programs = tuple(_programs())
    installed = installed_distributions() if every_file else ()
    changed = [f"{each.name}: {len(each.changed)} files are not as installed" for each in installed if each.changed]
    return Examination(
        version=metadata.version("dualmandate"),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        packages=packages,
        installed=installed,
        programs=programs,
        project=str(project) if (project := project_folder(start)) else None,
        settings=tuple(_without_password(setting) for setting in settings(start, {}).values()),
        findings=(*_findings(packages, programs), *changed),
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
    """Everything that can be imported from here, in the order of names: what a report of a weakness needs.

    Every file is read, some seconds for two gigabytes.
    """
    found: dict[str, InstalledDistribution] = {}
    for each in metadata.distributions():
        name = each.metadata["Name"]
        key = re.sub(r"[-_.]+", "-", name or "").lower()
        if key and key not in found:  # the first on the path is the one that is imported
            found[key] = _installed(each, name)
    return tuple(found[name] for name in sorted(found))


def _installed(each: metadata.Distribution, name: str) -> InstalledDistribution:
    if each.read_text("RECORD") is None:
        return InstalledDistribution(name, each.version, None, None)
    listed = [(file.as_posix(), file) for file in each.files or () if file.hash is not None]
    lines = [f"{path},{file.hash.mode}={file.hash.value}" for path, file in listed if file.hash and _came_along(path)]
    if not any(_is_code(path) for path, _ in listed):  # installed as a link to its sources
        lines += _own_files(name)
    changed = [path for path, file in listed if _digest(file) != (file.hash and file.hash.value)]
    digest = sha256("\n".join(sorted(lines)).encode()).hexdigest()
    return InstalledDistribution(name, each.version, digest, tuple(sorted(changed)))


def _came_along(path: str) -> bool:
    """Whether a file is of the distribution itself: installers add their own, and scripts that name their folder."""
    added = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json", "uv_build.json")
    return not path.startswith("../") and Path(path).suffix != ".pyc" and Path(path).name not in added


def _is_code(path: str) -> bool:
    return Path(path).suffix in (".py", ".so", ".pyi") and not Path(path).name.startswith("_editable_")


def _own_files(name: str) -> list[str]:
    """The files of this very package, where its distribution only points to them."""
    if name != "dualmandate":
        return []
    folder = Path(__file__).parents[1]
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return [f"{path.relative_to(folder.parent).as_posix()},sha256={_file_digest(path, 'sha256')}" for path in files]


def _digest(file: metadata.PackagePath) -> str | None:
    return None if file.hash is None else _file_digest(Path(str(file.locate())), file.hash.mode)


def _file_digest(path: Path, algorithm: str) -> str | None:
    """A digest as lists of installed files write it; None for a file that is gone or that nobody may read."""
    try:
        with path.open("rb") as opened:
            return urlsafe_b64encode(file_digest(opened, algorithm).digest()).rstrip(b"=").decode()
    except (OSError, ValueError):
        return None


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
