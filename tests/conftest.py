"""What every test may use: the browser, and the rule that a missing system part is never a green skip."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright
from xdist.scheduler import LoadScopeScheduling

from system_parts import PARTS, line_to_paste, missing

NOT_RUN, TOLD = "not run", "told"
QUIET_BROWSER = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]


IN_ONE_PROCESS = {  # modules whose tests share what takes long to start, by what they share
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
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, NotRun):
        report.longrepr = str(call.excinfo.value)
        report.sections.append((NOT_RUN, report.longrepr))
    return report


def reason_not_run(report: pytest.TestReport) -> str | None:
    return dict(report.sections).get(NOT_RUN)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    return (NOT_RUN, "N", "NOT RUN") if report.when == "setup" and reason_not_run(report) else None


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Say what a suite counted, in the summary of the run; its time is added."""
    began = time.monotonic()

    def told(words: str) -> None:
        request.node.user_properties.append((TOLD, f"{words} in {time.monotonic() - began:.1f} s"))

    return told


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    heard = [report for reports in terminalreporter.stats.values() for report in reports]
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
