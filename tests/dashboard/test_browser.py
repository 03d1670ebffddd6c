"""The dashboard in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.dashboard.conftest import ATTEMPTS, TASKS, Stored, asked, served, until

Open = Callable[..., Any]

pytestmark = pytest.mark.xdist_group("dashboard")


def _paths(stored: Stored) -> list[str]:
    return [
        "/",
        f"/runs/{stored.a}",
        f"/runs/{stored.a}/attempts",
        f"/runs/{stored.a}/task/retail/003",
        f"/runs/{stored.a}/attempt/retail/003/1",
        f"/compare?run={stored.a}&run={stored.b}",
        "/history",
        f"/forecast?run={stored.a}",
        f"/plan?run={stored.a}",
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 420)])
def test_every_page_is_quiet_and_fits(
    browser_page: Open, view: str, stored: Stored, scheme: str, width: int
) -> None:
    own = browser_page(f"{view}/", scheme=scheme, width=width)
    for path in _paths(stored):
        own.page.goto(view + path)
        assert own.page.locator("h1").count() == 1
        room = own.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert room <= 0, path
        paper = own.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(251, 251, 249)") is (scheme == "light")
        unnamed = own.page.evaluate(
            "[...document.querySelectorAll('a, button, input:not([type=hidden]), select, svg')]"
            ".filter(e => !(e.getAttribute('aria-hidden') || e.closest('[aria-hidden], dialog') || "
            "e.textContent.trim() || e.ariaLabel || e.labels?.length)).map(e => e.outerHTML)"
        )
        assert unnamed == [], path
    assert own.complaints == []
    assert own.external == []


def test_themes_are_chosen_by_keyboard_and_remembered(browser_page: Open, view: str) -> None:
    own = browser_page(f"{view}/plan", scheme="light")

    def paper(colour: str) -> None:
        expect(own.page.locator("body")).to_have_css("background-color", colour)

    light, dark = "rgb(251, 251, 249)", "rgb(18, 21, 24)"
    paper(light)
    own.page.get_by_label("Theme").focus()
    own.page.keyboard.press("d")  # the option that begins so
    paper(dark)
    own.page.goto(f"{view}/")
    paper(dark)
    expect(own.page.get_by_label("Theme")).to_have_value("dark")
    own.page.emulate_media(media="print")
    paper("rgb(255, 255, 255)")
    own.page.emulate_media(media="screen", color_scheme="dark")
    own.page.get_by_label("Theme").select_option("light")
    paper(light)
    own.page.get_by_label("Theme").select_option("system")
    paper(dark)
    assert own.complaints == []


def test_hostile_transcripts_are_text(browser_page: Open, view: str, stored: Stored) -> None:
    own = browser_page(f"{view}/runs/{stored.a}/attempt/retail/011/1")
    shown = own.page.locator(".turn-user pre").first.inner_text()
    assert "<script>window.hacked = 1</script>" in shown
    assert "</script>" in own.page.locator(".turn-result pre").inner_text()
    own.page.wait_for_load_state("load")
    for path in (f"/runs/{stored.a}/attempts", f"/runs/{stored.a}", "/"):
        assert own.page.evaluate("window.hacked === undefined")
        own.page.goto(view + path)
    assert own.page.evaluate("window.hacked === undefined")
    assert own.page.locator("b", has_text="bold").count() == 0
    assert own.complaints == []


def test_tool_calls_and_results_are_set_apart(
    browser_page: Open, view: str, stored: Stored
) -> None:
    own = browser_page(f"{view}/runs/{stored.a}/attempt/retail/005/2")
    assert own.page.locator(".turn-call").get_by_text("calls get_order").is_visible()
    assert '"order": "R-1"' in own.page.locator(".turn-call pre").inner_text()
    assert own.page.locator(".turn-result").get_by_text("tool result").is_visible()
    assert own.page.locator(".turn-agent pre").inner_text() == "Done."
    assert "user_error" in own.page.locator(".verdict-box").inner_text()


def test_attempts_by_keyboard(browser_page: Open, view: str, stored: Stored) -> None:
    own = browser_page(f"{view}/runs/{stored.a}/attempt/retail/000/1")

    def press(key: str, leads_to: str) -> None:
        own.page.keyboard.press(key)
        own.page.wait_for_url(f"{view}/runs/{stored.a}{leads_to}")

    press("j", "/attempt/retail/000/2")
    press("ArrowRight", "/attempt/retail/000/3")
    press("k", "/attempt/retail/000/2")
    press("ArrowLeft", "/attempt/retail/000/1")
    press("f", "/attempt/retail/000/1?verdict=failed")
    expect(own.page.get_by_role("switch", name="failed only")).to_be_checked()
    failed = asked(own.page, f"{view}/runs/{stored.a}/attempts.json?verdict=failed&order=suite")
    failed = failed.json()["attempts"]
    for one in [one for one in failed if (one["task"], one["attempt"]) > ("retail/000", 1)][:3]:
        press("j", f"/attempt/{one['task']}/{one['attempt']}?verdict=failed")
        expect(own.page.locator(".verdict-box")).to_contain_text("failed")
    press("u", f"/task/{one['task']}")
    press("u", "")
    assert own.complaints == []


def test_the_calls_of_an_attempt_are_one_click_away(
    browser_page: Open, view: str, stored: Stored
) -> None:
    own = browser_page(f"{view}/runs/{stored.a}/attempt/retail/003/1")
    asked_for: list[str] = []
    own.page.on("request", lambda request: asked_for.append(request.url))
    calls = own.page.locator("#calls")
    expect(calls).not_to_contain_text("m-1")  # nothing is fetched before it is opened
    calls.locator("summary").first.click()
    expect(calls).to_contain_text("openai:m, served by m-1, ended by stop, 1,234 input tokens")
    expect(calls).to_contain_text("retried after HTTP 503: busy")
    expect(calls).to_contain_text("error: no such order")
    expect(calls.get_by_text("said this")).to_be_hidden()
    calls.get_by_text("reply").click()
    expect(calls.get_by_text("said this")).to_be_visible()
    calls.locator("summary").first.click()
    calls.locator("summary").first.click()
    expect(calls.get_by_text("said this")).to_be_visible()
    assert [url for url in asked_for if "/calls" in url] == [
        f"{view}/runs/{stored.a}/attempt/retail/003/1/calls"
    ]
    assert own.page.evaluate("window.hacked") is None
    assert own.complaints == []
    own.page.goto(f"{view}/runs/{stored.a}/attempt/retail/003/2")
    own.page.locator("#calls summary").click()
    expect(own.page.locator("#calls")).to_contain_text("No model calls are recorded")


def test_lists_by_keyboard_and_search(browser_page: Open, view: str, stored: Stored) -> None:
    own = browser_page(f"{view}/")
    own.page.keyboard.press("j")
    own.page.keyboard.press("j")
    expect(own.page.locator(f"#list a[href='/runs/{stored.b}']").first).to_be_focused()
    own.page.keyboard.press("/")
    own.page.keyboard.type("alpha")
    expect(own.page.locator("#list [data-row]")).to_have_count(1)
    expect(own.page.get_by_role("link", name="alpha <b>bold</b>")).to_be_visible()
    with own.page.expect_response("**/runs?part=list*"):  # leaving the field asks once more
        own.page.get_by_role("searchbox").blur()
    own.page.keyboard.press("?")
    expect(own.page.get_by_role("dialog", name="Keys")).to_be_visible()
    own.page.keyboard.press("Escape")
    expect(own.page.locator("#help")).to_be_hidden()
    own.page.keyboard.press("j")
    expect(own.page.locator(f"#list a[href='/runs/{stored.a}']").first).to_be_focused()
    own.page.keyboard.press("Enter")
    own.page.wait_for_url(f"{view}/runs/{stored.a}")
    assert own.complaints == []


def test_a_key_counts_as_soon_as_the_help_is_closed_and_not_before(
    browser_page: Open, view: str, stored: Stored
) -> None:
    own = browser_page(f"{view}/")
    focused = own.page.evaluate(
        """() => {
            const help = document.querySelector("#help");
            const press = (target) => {
                const key = { key: "j", bubbles: true, cancelable: true };
                const left_alone = target.dispatchEvent(new KeyboardEvent("keydown", key));
                return left_alone ? "nothing" : document.activeElement.getAttribute("href");
            };
            help.showModal();
            const open = [press(document.activeElement), press(document.body)];
            help.close();  // no frame is drawn before the key
            return [...open, press(document.activeElement)];
        }"""
    )
    assert focused == ["nothing", "nothing", f"/runs/{stored.c}"]
    assert own.complaints == []


def test_tasks_of_a_run_are_filtered_in_place(
    browser_page: Open, view: str, stored: Stored
) -> None:
    own = browser_page(f"{view}/")
    asked(own.page, f"{view}/runs/{stored.a}.json")  # its estimates are known from here on
    own.page.goto(f"{view}/runs/{stored.a}")
    expect(own.page.locator("#tasks [data-row]")).to_have_count(TASKS)
    expect(own.page.locator("#tasks .dots a")).to_have_count(TASKS * ATTEMPTS)
    own.page.evaluate(
        """() => {
            const real = window.fetch, held = new Promise((go) => { window.go = go; });
            window.fetch = async (...asked) => { await held; return real(...asked); };
        }"""
    )
    for word in ("never", "always", "missing"):  # faster than the answers
        own.page.get_by_label("Show").select_option(word)
    own.page.evaluate("window.go()")
    # "never" has a single row too, which is drawn first.
    expect(own.page.locator("#tasks [data-row]")).to_have_text([re.compile("retail/005")])
    expect(own.page).to_have_url(re.compile("show=missing"))
    own.page.locator("#tasks .dots a").nth(1).click()
    own.page.wait_for_url(f"{view}/runs/{stored.a}/attempt/retail/005/2")
    sent = [one for one in own.requests if "part=tasks" in one]
    assert [word for one in sent for word in ("never", "always", "missing") if word in one] == [
        "never",
        "missing",
    ]
    assert own.complaints == []


def test_two_runs_are_chosen_and_compared(browser_page: Open, view: str) -> None:
    own = browser_page(f"{view}/")
    own.page.get_by_label("Choose beta", exact=False).last.check()
    own.page.get_by_label("Choose alpha", exact=False).check()
    own.page.get_by_role("button", name="Compare the chosen runs").click()
    own.page.wait_for_url("**/compare?*")
    assert own.page.locator(".lead .claim").first.inner_text()
    changed = own.page.locator(".beside tbody tr").count()
    own.page.get_by_role("link", name=f"All {TASKS} tasks").click()
    expect(own.page.locator(".beside tbody tr")).to_have_count(TASKS)
    own.page.wait_for_load_state()
    flips = own.page.locator(".flip-won, .flip-lost").count()
    assert flips == changed
    header = own.page.get_by_role("columnheader").all_inner_texts()
    assert any("alpha" in text for text in header)
    assert any("beta" in text for text in header)
    assert own.complaints == []


def test_the_curve_is_named_and_says_its_values(
    browser_page: Open, view: str, stored: Stored
) -> None:
    own = browser_page(f"{view}/plan")
    answer = asked(own.page, f"{view}/runs/{stored.b}.json").json()
    own.page.goto(f"{view}/runs/{stored.b}")  # drawn once: what it computes is known
    curve = own.page.get_by_role("img", name="Capability and reliability over k")
    curve.wait_for()
    point = curve.locator(".point-1").last
    said = str(point.get_attribute("data-tip"))
    point.hover()
    expect(own.page.locator("#tip")).to_have_text(said)
    (run,) = answer["runs"]
    (told,) = (
        one
        for one in run["estimates"]
        if (one["metric"], one["about"]) == (said.split(" ")[0], "new tasks")
    )
    # From the missing attempts counted as failed to all of them passed, then the interval.
    ends = ("value", "value_if_passed", "low", "high")
    value, if_passed, low, high = (f"{100 * told[name]:.0f}" for name in ends)
    assert said == f"{told['metric']} {value} to {if_passed}% ({low} to {high}%)"
    assert own.complaints == []


def test_a_value_stays_said_when_the_page_scrolls_to_it(
    browser_page: Open, view: str, stored: Stored
) -> None:
    own = browser_page(f"{view}/plan")
    asked(own.page, f"{view}/runs/{stored.a}.json")  # its estimates are known from here on
    own.page.goto(f"{view}/runs/{stored.a}")
    last = own.page.locator("#tasks .dots a").last
    own.page.set_viewport_size({"width": 1400, "height": 300})
    for come_to in ("focus", "hover"):
        own.page.evaluate("scrollTo(0, 0)")
        own.page.evaluate(
            "() => new Promise((drawn) => {"
            " requestAnimationFrame(() => requestAnimationFrame(drawn)); })"
        )
        assert own.page.evaluate("scrollY") == 0
        getattr(last, come_to)()
        until(own.page, "scrollY > 0")
        own.page.evaluate("dispatchEvent(new Event('scroll'))")  # as late as it can come
        expect(own.page.locator("#tip")).to_have_text(str(last.get_attribute("data-tip")))
        expect(own.page.locator("#tip")).to_be_visible()
    own.page.mouse.wheel(0, -5000)  # something else lies under the pointer
    expect(own.page.locator("#tip")).to_be_hidden()
    assert own.complaints == []


def test_a_page_on_another_origin_starts_reads_and_changes_nothing(
    browser_page: Open, stored: Stored, tmp_path: Path
) -> None:
    """Even where runs may be started from the page."""
    with served(stored.place, "--allow-run", folder=tmp_path) as address:
        own = browser_page("data:text/html,<h1>elsewhere")
        results = own.page.evaluate(
            """async ([view, run]) => {
                const tried = [];
                const regrade = `/runs/${run}/regrade`;
                for (const path of ['/', '/runs.json', '/start', '/start.json', regrade])
                    for (const mode of ['cors', 'no-cors'])
                        for (const method of ['GET', 'POST']) {
                            const asked = {method, mode, credentials: 'include'};
                            if (method === 'POST') {
                                asked.body = 'agent=demo:careful&suite=orderdesk/retail&attempts=1';
                                asked.headers = {
                                    'content-type': 'application/x-www-form-urlencoded'};
                            }
                            try { tried.push(await (await fetch(view + path, asked)).text()); }
                            catch (error) { tried.push(''); }
                        }
                return tried;
            }""",
            [address.rstrip("/"), stored.a],
        )
        assert len(results) == 20
        assert set(results) == {""}
        assert asked(own.page, f"{address}start.json").json() == {"commands": []}
