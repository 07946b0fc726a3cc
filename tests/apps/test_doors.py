"""The names that `import dualmandate` promises."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

import dualmandate

HEAVY = ("altair", "numba", "numpy", "pint", "pydantic", "rich", "scipy", "vl_convert")


@pytest.mark.parametrize("name", dualmandate.__all__)
def test_every_door_opens(name: str) -> None:
    assert getattr(dualmandate, name)
    assert name in dir(dualmandate)


def test_a_door_is_the_thing_in_its_room() -> None:
    from dualmandate.population import Domain

    assert dualmandate.Domain is Domain


def test_there_are_no_other_doors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'publish_without_noise'"):
        dualmandate.publish_without_noise  # noqa: B018


def test_the_version_is_the_installed_one() -> None:
    assert dualmandate.__version__ == metadata.version("dualmandate")


RUN = "from dualmandate.apps.cli import app; from dualmandate.apps.output import run; "


@pytest.mark.parametrize(
    "code",
    [
        "import dualmandate; dualmandate.__version__",
        RUN + "assert run(app, ['--help']) == 0",
        RUN + "assert run(app, ['plan', '--help']) == 0",
    ],
)
def test_importing_the_package_and_asking_for_help_load_nothing_heavy(code: str) -> None:
    check = f"import sys; {code}; print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stderr == "[]\n"
