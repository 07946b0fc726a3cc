"""The pages in a real browser: a journey by keyboard alone, roles, refusals, a phone, and what axe finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.apps.http.conftest import COUNT, Served

WAIT = 300_000  # ms: a busy machine is no failure
LOUD = {"serious", "critical"}


@pytest.fixture
def page(browser_page: Page) -> Page:
    expect.set_options(timeout=WAIT)
    browser_page.set_default_timeout(WAIT)
    return browser_page


def sign_in(page: Page, served: Served, role: str, path: str = "/") -> None:
    page.goto(str(served.client.base_url.join(path)))
    page.locator("#key").fill(served.secrets[role])
    page.locator("#key").press("Enter")
    settled(page)


def settled(page: Page) -> None:
    page.wait_for_selector("#content:not([hidden])")
    page.wait_for_selector("[aria-busy=true]", state="detached")


def findings(page: Page) -> list[str]:
    """What axe calls serious, in words."""
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found if each["impact"] in LOUD]


def too_wide(page: Page) -> bool:
    wide = page.evaluate("() => document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert isinstance(wide, bool)
    return wide


def tab_to(page: Page, name: str) -> None:
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.id") == name:
            return
    raise AssertionError(f"Tab never reaches '{name}'")


def test_a_question_is_asked_by_keyboard_alone(served: Served, page: Page) -> None:
    page.goto(str(served.client.base_url.join("/ask")))
    expect(page.locator("#key")).to_be_focused()
    page.keyboard.type(served.secrets["analyst"])
    page.keyboard.press("Enter")
    settled(page)
    tab_to(page, "query")
    page.keyboard.press("Control+A")
    page.keyboard.type("SELECT ward, COUNT(*) FROM records GROUP BY ward")
    tab_to(page, "spend-slider")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#submit")).to_have_text("Ask, and spend ε = 0.1")
    expect(page.locator("#submit")).to_be_enabled()
    assert served.service.ledger.spent("residents") == 0  # a price is free
    tab_to(page, "submit")
    page.keyboard.press("Enter")
    expect(page.locator("#answer-section .lead")).to_contain_text("2 numbers")
    expect(page.locator("#answer-title")).to_be_focused()
    expect(page.locator("#answer-section tbody tr")).to_have_count(2)
    assert page.locator("#answer-section svg").get_attribute("aria-label") is not None
    told = served.client.get(
        "/v1/programs/town/answers/residents-1", headers={"Authorization": f"Bearer {served.secrets['analyst']}"}
    ).json()
    shown = page.locator("#answer-section tbody tr td").all_inner_texts()
    assert shown[1].replace(",", "") == str(round(told["rows"][0]["value"]))
    assert served.service.ledger.remaining("residents") > 0


def test_more_is_asked_for_on_one_page_and_granted_on_another(served: Served, page: Page) -> None:
    sign_in(page, served, "analyst")
    page.get_by_text("Ask for more than your limit").click()
    page.get_by_label("So much more").fill("1/4")
    page.get_by_label("Because").fill("a second <b>chapter</b>")
    page.get_by_role("button", name="Send it to a curator").click()
    expect(page.get_by_role("cell", name="a second <b>chapter</b>")).to_be_visible()  # text, never HTML
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("#content")).to_be_hidden()
    sign_in(page, served, "curator")
    page.get_by_label("Grant").fill("1")
    page.get_by_label("Because").fill("gladly")
    page.get_by_role("button", name="Grant it").click()
    expect(page.get_by_role("alert")).to_contain_text("granted where 1/4 was asked for")
    page.get_by_label("Grant").fill("0.1")
    page.get_by_role("button", name="Grant it").click()
    expect(page.get_by_text("0.1 granted by Cem: gladly")).to_be_visible()
    [decided] = served.service.ledger.budget_requests()
    assert (decided.state, decided.decision is not None and str(decided.decision.granted)) == ("granted", "1/10")


def test_refusals_and_wrong_keys_are_shown(served: Served, page: Page) -> None:
    sign_in(page, served, "analyst", "/ask")
    page.locator("#query").fill("SELECT ward, COUNT(*) FROM records GROUP BY ward HAVING COUNT(*) > 9")
    expect(page.locator("#price")).to_contain_text("HAVING")
    expect(page.locator("#price")).to_contain_text("Instead:")
    expect(page.locator("#submit")).to_be_disabled()
    page.locator("#query").fill(COUNT)
    page.locator("#spend-slider").fill("60")
    expect(page.locator("#price")).to_contain_text("not enough for this")
    expect(page.locator("#submit")).to_be_disabled()
    page.get_by_role("button", name="Sign out").click()
    page.locator("#key").fill("dm_wrong")
    page.locator("#key").press("Enter")
    expect(page.locator("#trouble")).to_contain_text("This key opens nothing here")
    assert page.evaluate("() => sessionStorage.length") == 0
    served.stop()
    page.locator("#key").fill(served.secrets["analyst"])
    page.locator("#key").press("Enter")
    expect(page.locator("#trouble")).to_contain_text("The service does not answer")


def test_a_public_file_opens_by_its_link_and_nothing_else_does(served: Served, page: Page) -> None:
    report = served.folder / "report"
    report.mkdir()
    plan = '{"schema": "plan/1", "study": false, "digest": "' + "a" * 64 + '", "program": {"name": "town"}}'
    (report / "plan.json").write_text(plan, encoding="utf-8")
    (report / "dossier.html").write_text("<title>Dossier</title><p>a page</p>", encoding="utf-8")
    (report / "secret.csv").write_text("CANARY", encoding="utf-8")
    sign_in(page, served, "auditor")
    with page.expect_popup() as opened:
        page.get_by_role("table", name="Plans").get_by_role("link", name="town").click()
    expect(opened.value).to_have_title("Dossier")
    for path in (
        "report/secret.csv",
        "program.toml",
        ".dualmandate/key",
        "report/../.dualmandate/key",
        "report/%2e%2e/x",
    ):
        reply = served.call("auditor", "GET", f"/v1/files/{path}")
        assert reply.status_code == 404, path
        assert "CANARY" not in reply.text
    (report / "link.json").symlink_to(served.folder / "program.toml")
    assert served.call("auditor", "GET", "/v1/files/report/link.json").status_code == 404
    assert served.client.get("/v1/files/report/plan.json").status_code == 401
    kept = {"Cookie": f"dm_key={served.secrets['auditor']}"}
    assert served.client.get("/v1/files/report/plan.json", headers=kept).status_code == 200
    assert served.client.get("/v1/me", headers=kept).status_code == 401  # a cookie opens files and nothing else


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_is_usable_and_fits(width: int, served: Served, page: Page, tmp_path: Path) -> None:
    served.ask(COUNT)
    asked = {"account": "residents", "amount": "1/4", "reason": "a chapter"}
    served.call("analyst", "POST", "/v1/requests", json=asked)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(str(served.client.base_url))
    expect(page.locator("#key")).to_be_visible()
    assert findings(page) == []
    for role in ("analyst", "curator", "auditor", "administrator"):
        for path in ("/", "/ask", "/ledger"):
            page.evaluate("() => sessionStorage.clear()")
            sign_in(page, served, role, path)
            assert findings(page) == [], (role, path)
            assert not too_wide(page), (role, path)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert findings(page) == [], scheme
