"""The environment: uv in .tools, packages and the `dualmandate` command in .venv, pins in requirements/.

    python3 scripts/environment.py base            packages to run (an environment with the test set will do)
    python3 scripts/environment.py test            packages to run, test and check
    python3 scripts/environment.py requirements    compile the pins anew, to the newest versions

Needs Python 3.11 to 3.13 with pip, and nothing else: no venv package, no git, no installed uv.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "set-up.json"
SETS = {"base": ("base", "test"), "test": ("test",)}  # which sets are enough for the one asked for

UV_NAMES = {  # pip's setting → uv's variable, and how uv separates several values
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
}


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def run(command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
    subprocess.run([str(word) for word in command], cwd=ROOT, env=dict(environment), check=True)


def pip_environment() -> dict[str, str]:
    """Personal habits that would refuse `--target` or a package in .venv do not count here."""
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    return os.environ | {"PIP_REQUIRE_VIRTUALENV": "0", "PIP_USER": "0"} | quiet


def pip_settings() -> dict[str, str]:
    """What pip would use: its files, then its variables, by option name."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listing = subprocess.run(command, cwd=ROOT, env=pip_environment(), capture_output=True, text=True, check=True)
    return read_pip_settings(listing.stdout)


def read_pip_settings(listing: str) -> dict[str, str]:
    """The listing's lines are section.option='value'; variables win over [install], and that over [global]."""
    ranks = {"global": 0, "install": 1, ":env:": 2}
    found: list[tuple[int, str, str]] = []
    for line in listing.splitlines():
        name, equals, value = line.partition("=")
        section, dot, option = name.partition(".")
        if equals and dot and section in ranks:
            found.append((ranks[section], option, str(ast.literal_eval(value))))
    return {option: value for _, option, value in sorted(found, key=lambda entry: entry[0])}


def uv_environment(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """uv's variables for the same packages from the same places as pip; a variable the user set for uv stays."""
    ours = {
        "UV_SYSTEM_CERTS": "1",  # uv leaves the system's certificates aside otherwise
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # as pip: several places are one market
    }
    for option, value in settings.items():
        variable, separator = UV_NAMES.get(option, ("", ""))
        if variable:
            ours[variable] = separator.join(value.split())
    return {**ours, **environment}


def uv_options(settings: Mapping[str, str]) -> list[str]:
    """What uv takes as an option only: a wheel folder and nothing else; a progress bar for people only."""
    offline = settings.get("no-index", "").lower() in {"1", "true", "yes", "on"}
    return ["--no-index"] * offline + ["--quiet"] * (not sys.stderr.isatty())


def fingerprint(name: str) -> str:
    """What an environment depends on; another fingerprint means: set up again."""
    files = (ROOT / "pyproject.toml", ROOT / "requirements" / f"{name}.txt")
    parts = [str(ROOT), f"{sys.version_info[0]}.{sys.version_info[1]}", *(file.read_text("utf-8") for file in files)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def present(name: str) -> bool:
    """Whether .venv already holds the set, or a larger one."""
    if not STAMP.is_file() or not (VENV / "bin" / "dualmandate").exists() or not PYTHON.exists():
        return False
    stamp = json.loads(STAMP.read_text())
    return any(stamp == {"set": enough, "fingerprint": fingerprint(enough)} for enough in SETS[name])


def usable() -> bool:
    """Whether .venv is an environment of this Python, made in this folder."""
    activate = VENV / "bin" / "activate"
    if not PYTHON.exists() or not activate.is_file() or str(VENV) not in activate.read_text():
        return False
    question = "import sys; print(*sys.version_info[:2])"
    answer = subprocess.run([PYTHON, "-c", question], capture_output=True, text=True, check=False)
    return answer.stdout.split() == [str(part) for part in sys.version_info[:2]]


def uv(environment: Mapping[str, str]) -> Path:
    """The pinned uv, installed beside the project by plain pip."""
    pin = ROOT / "requirements" / "uv.txt"
    version = pin.read_text().strip().removeprefix("uv==")
    if not (TOOLS / f"uv-{version}.dist-info").is_dir():
        say(f"getting uv {version}")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade"]
        run([*pip, "--target", TOOLS, "-r", pin], environment)
    return TOOLS / "bin" / "uv"


def install_with_uv(name: str) -> None:
    settings = pip_settings()
    environment = uv_environment(settings, pip_environment())
    program = uv(environment)
    if not usable():
        run([program, "venv", "--quiet", "--clear", "--python", sys.executable, VENV], environment)
    install: Sequence[str | Path] = [program, "pip", "install", "--python", PYTHON, *uv_options(settings)]
    run([*install, "--exact", "-r", f"requirements/{name}.txt"], environment)
    run([*install, "--no-deps", "--no-build-isolation", "--editable", "."], environment)


def install_with_pip(name: str) -> None:
    environment = pip_environment()
    if not usable():
        run([sys.executable, "-m", "venv", "--without-pip", "--clear", VENV], environment)
    install: Sequence[str | Path] = [sys.executable, "-m", "pip", "--python", PYTHON, "install", "--quiet"]
    run([*install, "-r", f"requirements/{name}.txt"], environment)
    run([*install, "--no-deps", "--no-build-isolation", "--editable", "."], environment)


def set_up(name: str) -> None:
    """Make .venv hold the set `name`: by uv, or by pip where uv cannot."""
    if present(name):
        return
    STAMP.unlink(missing_ok=True)
    say(f"setting up .venv from requirements/{name}.txt (the first time takes a minute)")
    try:
        install_with_uv(name)
    except (subprocess.CalledProcessError, OSError) as failure:
        say(f"uv did not do it ({failure.__class__.__name__}); trying plain pip, which is slower")
        try:
            install_with_pip(name)
        except (subprocess.CalledProcessError, OSError):
            sys.exit(
                f"set-up failed: neither uv nor pip could install requirements/{name}.txt\n"
                "  why:     the messages above\n"
                '  instead: with no network, collect a wheel folder elsewhere (CONTRIBUTING.md, "With no network")\n'
                "           and set PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER"
            )
    STAMP.write_text(json.dumps({"set": name, "fingerprint": fingerprint(name)}))


def compile_requirements() -> None:
    """Both sets from one resolution: the test set first, and the base set held to its versions.

    The base set holds the extra `audit`: the demo attacks what it released.
    """
    environment = uv_environment(pip_settings(), pip_environment())
    options = ["--quiet", "--upgrade", "--universal", "--python-version", "3.11", "--no-annotate", "--no-header"]
    compile_: Sequence[str | Path] = [uv(environment), "pip", "compile", *options, "pyproject.toml"]
    test, base = "requirements/test.txt", "requirements/base.txt"
    run([*compile_, "--group", "test", "--all-extras", "--output-file", test], environment)
    run([*compile_, "--group", "build", "--extra", "audit", "--constraint", test, "--output-file", base], environment)


def main(arguments: Sequence[str]) -> None:
    if not (3, 11) <= sys.version_info[:2] < (3, 14):
        sys.exit(
            f"Python {sys.version_info[0]}.{sys.version_info[1]} cannot run dualmandate\n"
            "  why:     it is written and tested for Python 3.11 to 3.13\n"
            "  instead: name another one: make PYTHON=python3.12 …"
        )
    if list(arguments) == ["requirements"]:
        compile_requirements()
    elif len(arguments) == 1 and arguments[0] in SETS:
        set_up(arguments[0])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
