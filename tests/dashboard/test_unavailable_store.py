"""The dashboard in a real browser when an answer, a frame or a timer is late, or comes too soon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.dashboard.conftest import TASKS, Stored, until

from passhat.dashboard.app import make_app
from passhat.dashboard.guard import Access

Open = Callable[..., Any]
Serving = Callable[[Callable[[str], Any]], str]

pytestmark = pytest.mark.xdist_group("dashboard")

HOLD = """() => {
    const real = window.fetch, held = new Promise((go) => { window.go = go; });
    Object.assign(window, { asked: 0, answered: 0 });
    window.fetch = async (...what) => {
        window.asked += 1;
        await held;
        const answer = await real(...what);
        await answer.clone().text();
        window.answered += 1;
        return answer;
    };
}"""
"""No answer comes before ``window.go()`` is called."""
TWO_FRAMES = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
TICK_BY_HAND = "window.setInterval = (call) => { window.tick = call; }"


def _rows(own: Any) -> Any:
    return expect(own.page.locator("#list [data-row]"))


def test_a_choice_counts_before_anything_that_was_put_off(
    browser_page: Open, view: str, stored: Stored
) -> None:
    own = browser_page(f"{view}/plan")
    own.page.add_init_script("window.setTimeout = () => 0")
    own.page.goto(f"{view}/runs/{stored.a}/attempts")
    own.page.get_by_label("Verdict").select_option("missing")
    _rows(own).to_have_count(1)
    assert own.complaints == []


def test_nothing_is_drawn_again_under_a_finger(
    browser_page: Open, view: str, stored: Stored
) -> None:
    own = browser_page(f"{view}/")
    for pressed in ("caption", f"a[href='/runs/{stored.b}']"):
        own.page.goto(f"{view}/")
        own.page.evaluate(HOLD)
        own.page.get_by_role("searchbox").fill("alpha")
        until(own.page, "window.asked")
        own.page.locator(f"#list {pressed}").hover()
        own.page.mouse.down()
        own.page.evaluate("window.go()")
        until(own.page, "window.answered")
        own.page.evaluate(TWO_FRAMES)
        _rows(own).to_have_count(3)
        own.page.mouse.up()
        if pressed == "caption":
            _rows(own).to_have_count(1)
    own.page.wait_for_url(f"{view}/runs/{stored.b}")
    assert own.complaints == []


def test_a_list_that_looks_again_takes_nobodys_place(browser_page: Open, view: str) -> None:
    own = browser_page(f"{view}/plan")
    own.page.add_init_script(TICK_BY_HAND)
    own.page.goto(f"{view}/")
    own.page.evaluate(HOLD)
    own.page.evaluate("window.tick()")  # on its way
    own.page.get_by_label("Agent").select_option("beta")  # waits
    own.page.evaluate("window.tick()")
    own.page.get_by_label("Choose alpha", exact=False).check()  # nothing looks again from here on
    own.page.evaluate("window.go()")
    _rows(own).to_have_count(2)
    assert own.complaints == []


def test_pages_of_a_list_are_turned_as_it_is_filtered(
    browser_page: Open, serving: Serving, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passhat.dashboard.views.runs._PAGE", 2)
    own = browser_page(serving(lambda _url: make_app(stored.place, Access())))
    own.page.add_init_script(TICK_BY_HAND)
    for first, shown in (("window.tick()", [stored.a]), ("", [stored.c, stored.b])):
        own.page.reload()
        own.page.evaluate(HOLD)
        if first:
            own.page.evaluate(first)  # on its way; turning the page waits
        else:
            own.page.get_by_label("Agent").select_option("beta")
        own.page.get_by_role("link", name="next").click()
        own.page.evaluate("window.tick()")
        own.page.evaluate("window.go()")
        expect(own.page.locator("#list code")).to_have_text(shown)
        until(own.page, "window.answered === 2")
        expect(own.page.locator("#list code")).to_have_text(shown)
    assert own.complaints == []


def test_what_is_ticked_stays_with_its_run(browser_page: Open, view: str) -> None:
    own = browser_page(f"{view}/")
    own.page.get_by_label("Choose beta (seed 2)", exact=False).check()
    own.page.evaluate(  # as of a run that goes on: no line of it is as it was
        "for (const one of document.querySelectorAll('#list .badge')) one.textContent = 'new'"
    )
    own.page.get_by_label("Agent").select_option("alpha <b>bold</b>")
    _rows(own).to_have_count(1)
    expect(own.page.get_by_label("Choose alpha", exact=False)).not_to_be_checked()
    assert own.complaints == []


def test_tasks_are_asked_for_again_when_the_store_was_away(
    browser_page: Open, view: str, stored: Stored
) -> None:
    own = browser_page(f"{view}/plan")
    own.page.add_init_script(
        "const real = window.setTimeout;"
        "window.setTimeout = (call, after = 0, ...more) => real(call, after / 50, ...more);"
    )
    own.page.goto(f"{view}/runs/{stored.a}")
    tasks = expect(own.page.locator("#tasks [data-row]"))
    tasks.to_have_count(TASKS)
    own.page.route("**/*part=tasks*", lambda route: route.fulfill(status=503), times=1)
    own.page.evaluate(
        "document.querySelector('#tasks').replaceChildren(),htmx.trigger('form.tools', 'refresh')"
    )
    tasks.to_have_count(TASKS)


def test_a_page_that_comes_back_from_memory_listens_again(
    browser_page: Open, view: str, stored: Stored
) -> None:
    own = browser_page(f"{view}/runs/{stored.a}")
    own.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    with own.page.expect_request("**/live?*"):
        own.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    assert own.complaints == []


def test_a_value_is_not_said_of_what_has_gone(
    browser_page: Open, view: str, stored: Stored
) -> None:
    own = browser_page(f"{view}/runs/{stored.a}")
    own.page.set_viewport_size({"width": 1400, "height": 5000})  # nothing scrolls
    own.page.locator("#tasks .dots a").last.focus()
    expect(own.page.locator("#tip")).to_be_visible()
    own.page.evaluate(
        "() => {"
        " const show = document.querySelector('[name=show]');"
        " show.value = 'missing';"
        " show.dispatchEvent(new Event('change', { bubbles: true })); }"
    )
    expect(own.page.locator("#tasks [data-row]")).to_have_count(1)
    expect(own.page.locator("#tip")).to_be_hidden()
    assert own.complaints == []
