"""What every test may use, and what makes it say the same each time; a missing system part is never a green skip."""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, Page, Request, sync_playwright
from xdist.scheduler import LoadScopeScheduling

from system_parts import PARTS, line_to_paste, missing

NOT_RUN, TOLD, TRIED = "not run", "told", "tried"
LANDED = re.compile(r"\b(\d+) (?:landed|programs)\b")
COUNTS = "DUALMANDATE_COUNTS"  # where a run writes what each test tried, for the page of promises
QUIET_BROWSER = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]

# A test says the same each time, on a quiet machine and on a busy one: what it tries is a function of its name, and no
# clock judges it. To look further: pytest --hypothesis-profile=explore
settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("house")

IN_ONE_PROCESS = {  # modules whose tests share what takes long to start, by what they share
    "test_auditing.py": "attacks of the benchmark",
    "test_processors.py": "imitated processors",
    "test_spark.py": "a cluster",
    "test_spark_release.py": "a cluster",
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests go to whichever process is free, those of some modules to the same one."""
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = _in_one_process
    return scheduler


def _in_one_process(test: str) -> str:
    return IN_ONE_PROCESS.get(Path(test.partition("::")[0]).name, test)


@pytest.fixture(scope="session", autouse=True)
def _fixed_secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The noise of a release is a function of its secret; in tests the secret is one of the release's place and name.

    What is asserted of noise then holds always or never. Tests of the ledger itself keep fresh secrets, and so do tests
    that set their own.
    """
    from dualmandate.ledger.chain import SecretFolder

    base, fresh, seal = tmp_path_factory.getbasetemp().resolve(), secrets.token_bytes, SecretFolder._seal

    def fixed(folder: SecretFolder, release: str, secret: bytes) -> bytes:
        ours = os.environ.get("PYTEST_CURRENT_TEST", "").startswith("tests/ledger/")
        if ours or secrets.token_bytes is not fresh:
            return seal(folder, release, secret)
        place = folder.folder.resolve()
        inside = place.relative_to(base).parts if place.is_relative_to(base) else (place.name,)
        # pytest numbers its folders, and how many came before depends on what else is run.
        name = "/".join([re.sub(r"\d+$", "", inside[0]), *inside[1:], release])
        return seal(folder, release, hmac.digest(b"a test", name.encode(), "sha256"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecretFolder, "_seal", fixed)
        yield


class NotRun(Exception):
    """A test whose system part is missing: neither passed, nor failed, nor skipped."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser_page" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    absent = missing([part for part in PARTS if item.get_closest_marker(part.mark)])
    if absent:
        names = ", ".join(part.name for part in absent)
        raise NotRun(f"{names} missing; to install: {line_to_paste(absent)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What was not run is no failure; examples that hypothesis tried count as tried."""
    report = yield
    examples = re.findall(r"(\d+) passing, ", getattr(item, "hypothesis_statistics", ""))
    if report.when == "call" and examples:
        report.user_properties.append((TRIED, sum(map(int, examples))))
    if call.excinfo is not None and isinstance(call.excinfo.value, NotRun):
        report.longrepr = str(call.excinfo.value)
        report.sections.append((NOT_RUN, report.longrepr))
    return report


def reason_not_run(report: pytest.TestReport) -> str | None:
    return dict(report.sections).get(NOT_RUN)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    return (NOT_RUN, "N", "NOT RUN") if report.when == "setup" and reason_not_run(report) else None


class Tell(Protocol):
    """Says what a suite counted, and how many cases it tried, if its words ("7 landed", "7 programs") do not."""

    def __call__(self, words: str, tried: int | None = None) -> None:
        """In the summary of the run, with its time."""


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Say what a suite counted, in the summary of the run; its time is added."""
    began = time.monotonic()

    def told(words: str, tried: int | None = None) -> None:
        request.node.user_properties.append((TOLD, f"{words} in {time.monotonic() - began:.1f} s"))
        if tried is None and (landed := LANDED.search(words)):
            tried = int(landed[1])
        if tried is not None:
            request.node.user_properties.append((TRIED, tried))

    return told


def counts_of(reports: Iterable[pytest.TestReport]) -> dict[str, dict[str, int]]:
    """What each test function tried, over all its cases: what it told, else one a case; and what did not pass."""
    found: dict[str, dict[str, int]] = {}
    for report in reports:
        count = found.setdefault(report.nodeid.partition("[")[0], {"tried": 0, "cases": 0, "wrong": 0})
        if report.outcome != "passed":
            count["wrong"] += 1
        elif report.when == "call":
            told = [int(str(value)) for name, value in report.user_properties if name == TRIED]
            count["tried"] += sum(told) if told else 1
            count["cases"] += 1
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    heard = [report for reports in terminalreporter.stats.values() for report in reports]
    if place := os.environ.get(COUNTS):
        counts = counts_of(report for report in heard if isinstance(report, pytest.TestReport))
        Path(place).write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    lines = [value for report in heard for name, value in getattr(report, "user_properties", ()) if name == TOLD]
    if lines:
        terminalreporter.section("suites")
        for line in dict.fromkeys(lines):
            terminalreporter.line(line)
    reports = terminalreporter.getreports(NOT_RUN)
    if reports:
        terminalreporter.section("tests not run", red=True)
        for reason in sorted({reason_not_run(report) or "" for report in reports}):
            count = sum(reason_not_run(report) == reason for report in reports)
            terminalreporter.line(f"{count} not run: {reason}")


@pytest.fixture(scope="module")  # not the session: while it lives, asyncio.run() is refused in this process
def browser() -> Iterator[Browser]:
    """Debian's chromium, started when the first test asks for it."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            chromium_sandbox=os.geteuid() != 0,  # as root chromium starts only without its sandbox
            args=QUIET_BROWSER,
        )
        yield chromium
        chromium.close()


@pytest.fixture
def browser_page(browser: Browser) -> Iterator[Page]:
    """A fresh page. A script error on it, or a request that leaves this machine, fails the test."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    errors: list[str] = []
    outside: list[str] = []

    def note(request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme in {"http", "https", "ws", "wss"} and address.hostname not in {"localhost", "127.0.0.1"}:
            outside.append(request.url)

    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", note)
    yield page
    page.close()
    assert not errors, f"the page's scripts failed: {errors}"
    assert not outside, f"the page asked for things outside this machine: {outside}"
