"""The HTML report in a real browser: what it says, how it opens, and that nothing leaves it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from passhat._display import percent
from passhat.cli import main
from passhat.readers import base
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.html import HtmlOptions, html_report
from passhat.reporting.html import payload as page_data
from passhat.stats.compare import compare
from passhat.stats.outcomes import Outcomes, Run

# One process builds the reports and starts the browser, once.
pytestmark = pytest.mark.xdist_group("page")

Page = Callable[..., Any]
Passhat = Callable[..., Any]

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def _table(tasks: int, attempts: int, *, agents: tuple[str, ...] = ("alpha",)) -> str:
    """Made-up attempts with failures, missing ones, seconds, steps and cost."""
    draw = np.random.default_rng(7)
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("model", "task", "trial", "success", "failure", "duration", "steps", "cost"))
    for place, agent in enumerate(agents):
        rates = np.clip(np.random.default_rng(3).beta(0.8, 0.6, tasks) + 0.1 * place, 0, 1)
        for task in range(tasks):
            for trial in range(1, attempts + 1):
                passed, lost = draw.random() < rates[task], draw.random() < 0.01
                why = "rate_limit" if lost else "" if passed else "wrong_state"
                verdict = "" if lost else int(passed)
                used = (round(draw.gamma(3, 4), 3), draw.integers(3, 30), round(draw.gamma(2), 5))
                rows.writerow((agent, f"retail/{task:04d}", trial, verdict, why, *used))
    return out.getvalue()


def _made(folder: Path, name: str, text: str, *command: str) -> Path:
    table, page = folder / f"{name}.csv", folder / f"{name}.html"
    table.write_text(text, encoding="utf-8")
    assert main([*command, str(table), "-o", str(page)]) == 0
    return page


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on one run of 50 tasks x 8."""
    return _made(tmp_path_factory.mktemp("html"), "one", _table(50, 8), "report")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of two runs of 50 tasks x 8."""
    text = _table(50, 8, agents=("alpha", "beta"))
    return _made(tmp_path_factory.mktemp("html"), "two", text, "compare")


@pytest.fixture(scope="module", autouse=True)
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page that `passhat demo` ends with, of attempts with conversations.

    It is made before anything else here: once the browser is there, its event loop runs in this
    thread, and the demo could not have one of its own.
    """
    store = tmp_path_factory.mktemp("demo") / "demo.db"
    assert main(["demo", "-n", "4", "--store", str(store)]) == 0
    return store.with_suffix(".html")


def _embedded(page: Path) -> Any:
    text = page.read_text(encoding="utf-8")
    found = re.search(r'id="report-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 420])
def test_it_opens_from_a_file_without_a_complaint(
    browser_page: Page, two: Path, scheme: str, width: int
) -> None:
    own = browser_page(two.as_uri(), scheme=scheme, width=width)
    own.page.wait_for_selector(".task")
    assert own.complaints == []
    assert own.external == []
    assert own.requests == [two.as_uri()]
    beyond = own.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert beyond <= 0, "something is wider than the window"
    paper = own.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", paper)[:3]))
    assert (brightness > 600) == (scheme == "light")
    # No chart is cut off: what it draws lies within the page.
    ends = own.page.evaluate(
        "[...document.querySelectorAll('figure svg text')]"
        ".map(t => t.getBoundingClientRect().right - document.documentElement.clientWidth)"
    )
    assert max(ends) <= 0


def test_the_headline_the_cards_and_the_command(browser_page: Page, two: Path) -> None:
    own = browser_page(two.as_uri())
    data = _embedded(two)
    first = data["comparison"]["verdicts"][0]
    said = own.page.inner_text(".lead")
    # The page calls the runs by their labels, so the part before the names is looked for.
    assert first["sentence"].partition(", from ")[0] in said
    assert own.page.inner_text(".badge") == first["claim"]
    titles = own.page.locator(".card h2").all_inner_texts()
    assert titles == ["pass^1", "pass^8", "pass@8", "cost per solved task"]
    runs = data["report"]["runs"]
    for title, card in zip(titles[:3], own.page.locator(".card").all(), strict=False):
        for run, shown in zip(runs, card.locator(".figure").all(), strict=True):
            (found,) = (
                e for e in run["estimates"] if (e["metric"], e["about"]) == (title, "new tasks")
            )
            text = shown.inner_text()
            assert f"{100 * found['value']:.1f}" in text
            assert f"{percent(found['low'], 1)} to {percent(found['high'], 1)}" in text
            assert f"{found['tasks']} tasks, {found['attempts']} attempts" in text
    assert own.page.inner_text("footer code").startswith("passhat compare ")
    assert "passhat 0." in own.page.inner_text("footer")


def test_the_page_holds_what_json_prints(passhat: Passhat, one: Path, two: Path) -> None:
    table = one.with_suffix(".csv")
    assert _embedded(one)["report"] == json.loads(passhat("report", table, "--json").out)
    compared = json.loads(passhat("compare", two.with_suffix(".csv"), "--json").out)
    changes = compared.pop("changes")
    page = _embedded(two)
    assert page["comparison"] == compared
    assert page["changes"] == changes


def test_values_on_hover_equal_the_json(browser_page: Page, one: Path) -> None:
    own = browser_page(one.as_uri())
    (run,) = _embedded(one)["report"]["runs"]
    expected = [
        f"{family[:-1]}{point['k']} = {point['value']:.3f} "
        f"[{point['low']:.3f}, {point['high']:.3f}]"
        for family in ("pass^k", "pass@k")
        for point in run["curves"][family]
    ]
    marks = own.page.locator("#figure-curves [data-tip]")
    assert sorted(mark.get_attribute("data-tip") for mark in marks.all()) == sorted(expected)
    for place in (0, 5, 15):
        mark = marks.nth(place)
        mark.scroll_into_view_if_needed()
        box = mark.bounding_box()
        own.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        own.page.wait_for_selector("#tip:not([hidden])")
        assert own.page.inner_text("#tip") in expected
    own.page.mouse.move(2, 2)
    own.page.wait_for_selector("#tip", state="hidden")


def test_a_fit_of_temperatures_says_values_changes_colours_and_saves_its_data(
    browser_page: Page, tmp_path: Path
) -> None:
    rows = "".join(
        f"a,t{task},{heat},4,{min(4, task * round(2 + heat) % 6)}\n"
        for heat in (0.2, 0.8, 1.6)
        for task in range(20)
    )
    fit = _made(tmp_path, "fit", f"model,task,temperature,n,c\n{rows}", "temperature", "fit")
    own = browser_page(fit.as_uri())
    found = json.loads(re.findall(r'id="fit-data">(.*?)</script>', fit.read_text("utf-8"))[0])
    expected = [
        f"T = {cell['temperature']:g}: pass@{cell['k']} = {cell['value']:.3f} "
        f"[{cell['low']:.3f}, {cell['high']:.3f}]"
        for cell in found["agents"][0]["cells"]
    ]
    marks = own.page.locator("#figure-temperature-1 [data-tip]")
    assert sorted(mark.get_attribute("data-tip") for mark in marks.all()) == sorted(expected)
    for mark in (marks.first, own.page.locator("#figure-heatmap [data-tip]").last):
        # A neighbour may lie closer to the middle of what the mark covers.
        mark.hover(force=True)
        expect(own.page.locator("#tip")).to_be_visible()
        said = own.page.locator("#tip").inner_text().removeprefix("k = 4, ")
        assert said in expected
    own.page.mouse.move(2, 2)
    expect(own.page.locator("#tip")).to_be_hidden()
    light = own.page.evaluate("getComputedStyle(document.body).backgroundColor")
    own.page.select_option("#scheme", "dark")
    dark = own.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    own.page.reload()
    assert own.page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    with own.page.expect_download() as saved:
        own.page.click("#save")
    assert saved.value.suggested_filename == "temperature.json"
    assert json.loads(saved.value.path().read_text("utf-8")) == found
    assert (own.complaints, own.external) == ([], [])


@pytest.mark.parametrize(
    ("link", "run", "attempt"),
    [("retail/012#3", 1, 3), ("retail/024#1@2", 2, 1), ("retail/001#4@1", 1, 4)],
)
def test_a_deep_link_opens_the_right_attempt(
    browser_page: Page, demo: Path, passhat: Passhat, link: str, run: int, attempt: int
) -> None:
    own = browser_page(f"{demo.as_uri()}#{link}")
    here = own.page.locator(".attempt.here")
    assert here.count() == 1
    task = link.split("#")[0]
    assert here.get_attribute("data-attempt") == f"{task}#{attempt}@{run}"
    assert here.evaluate("node => node.getBoundingClientRect().bottom > 0")
    store = demo.with_suffix(".db")
    runs = json.loads(passhat("runs", "--store", store, "--json").out)["runs"]
    told = passhat("show", runs[run - 1]["id"], f"{task}#{attempt}", "--store", store).out
    assert ("passed" in told.splitlines()[0]) == ("● passed" in here.inner_text())
    turns = here.locator(".turn pre").all_inner_texts()
    assert len(turns) > 2
    last = " ".join(turns[-1].split())
    assert last[:40] in " ".join(told.split())
    at_once = own.page.evaluate(
        "() => { location.hash = '#retail/007#2'; dispatchEvent(new Event('hashchange'));"
        " return document.querySelectorAll('.attempt.here .turn').length; }"
    )
    assert at_once > 2  # no frame is drawn before


def test_a_click_on_a_dot_and_the_tools(browser_page: Page, two: Path) -> None:
    own = browser_page(two.as_uri())
    page = own.page
    assert page.locator(".task").count() == 50
    page.fill("#find", "retail/0012")
    assert page.locator(".task .name").all_inner_texts() == ["retail/0012"]
    page.fill("#find", "")
    page.select_option("#show", "never")
    assert all(side.startswith("0 of") for side in page.locator(".side b").all_inner_texts())
    page.select_option("#show", "all")
    page.select_option("#sort", "gain")
    largest = page.locator(".task .name").first.inner_text()
    rates = {task["task"]: task["change"] for task in _embedded(two)["changes"]}
    assert rates[largest] == pytest.approx(max(rates.values()), abs=0.13)
    dots = page.locator(".task .dots").first
    dots.scroll_into_view_if_needed()
    box = dots.bounding_box()
    page.mouse.click(box["x"] + 4, box["y"] + box["height"] / 2)
    page.wait_for_selector(".attempt.here")
    expect(page).to_have_url(re.compile("#1$"))


def test_charts_and_tables_have_names(browser_page: Page, two: Path) -> None:
    own = browser_page(two.as_uri())
    seen = own.page.locator("main").aria_snapshot()
    for name in (
        *("Capability and reliability over k", "What uneven difficulty adds to pass^k"),
        *("The change on every task, pass^1", "The lift over k", "The runs side by side"),
        *("Beyond the attempts that were made", "Why attempts fail", "What an attempt takes"),
    ):
        assert re.search(rf'img "{re.escape(name)} \S+', seen), f"{name} has no description"
    tables = re.findall(r"table(.*)", seen)
    assert len(tables) >= 8
    assert all(re.match(r' "\S', name) for name in tables), "a table without a name"
    assert 'searchbox "Search"' in seen
    assert re.search(r'img "\d of 8 passed', seen)


def test_on_paper_it_has_five_pages_at_most(browser_page: Page, one: Path, two: Path) -> None:
    for page in (one, two):
        printed = browser_page(page.as_uri()).page.pdf(format="A4")
        assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 5


def test_five_hundred_tasks_stay_small_and_two_thousand_open_at_once(
    browser_page: Page, tmp_path: Path
) -> None:
    middle = _made(tmp_path, "middle", _table(500, 8), "report")
    assert middle.stat().st_size <= 600_000
    large = _made(tmp_path, "large", _table(2000, 16), "report")
    own = browser_page(f"{large.as_uri()}#retail/1999#16")
    # At once: a screenful of rows is drawn, not all of them, and the link is first.
    assert own.page.locator(".task").count() <= 200
    assert own.page.locator(".attempt.here").get_attribute("data-attempt") == "retail/1999#16@1"
    assert own.page.inner_text("#count") == "2,000 tasks"
    assert own.complaints == []
    own.page.select_option("#sort", "name")
    own.page.locator("#more").scroll_into_view_if_needed()
    own.page.locator(".task").nth(100).wait_for(state="attached")
    own.page.set_viewport_size({"width": 1400, "height": 16_000})  # the end is in sight for long
    # The page's policy refuses the eval of wait_for_function, so the page itself waits.
    assert own.page.evaluate(
        """() => new Promise((done) => {
            setTimeout(() => done(false), 60000);
            const look = () =>
                document.querySelector("#more").getBoundingClientRect().top > innerHeight
                    ? done(true) : requestAnimationFrame(look);
            look();
        })"""
    )


def test_the_policy_of_the_page_refuses_other_scripts_and_requests(
    browser_page: Page, one: Path
) -> None:
    own = browser_page(one.as_uri())
    assert own.complaints == []  # its own scripts run
    # The browser may tell of a refusal after the script that met it has ended.
    with own.page.expect_console_message(lambda said: "Content Security Policy" in said.text):
        ran = own.page.evaluate(
            """async () => {
                const script = document.createElement("script");
                script.textContent = "window.ran = true";
                document.head.append(script);
                const sent = await fetch("data:text/plain,x").then(() => true, () => false);
                return [window.ran === true, sent];
            }"""
        )
    assert ran == [False, False]


def test_what_sources_say_is_text_never_markup(browser_page: Page, tmp_path: Path) -> None:
    text = f'model,task,trial,success,failure\n"{HOSTILE}","{HOSTILE}",1,0,"{HOSTILE}"\n'
    text += f'"{HOSTILE}","{HOSTILE}",2,1,""\n"{HOSTILE}","</script>b",1,0,x\n'
    text += f'"{HOSTILE}","</script>b",2,0,"\\u001b[2J"\n'
    page = _made(tmp_path, "hostile", text, "report")
    own = browser_page(page.as_uri())
    said: list[str] = []

    def heard(dialog: Any) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    own.page.on("dialog", heard)
    for task in own.page.locator(".task > summary").all():
        task.click()
    assert HOSTILE in own.page.locator(".task .name").all_inner_texts()
    assert own.page.locator("img[src], main script").count() == 0
    assert (said, own.complaints, own.external) == ([], [], [])


def test_many_runs_stand_in_a_table(browser_page: Page, tmp_path: Path) -> None:
    text = _table(6, 2, agents=("a", "b", "c", "d"))
    own = browser_page(_made(tmp_path, "many", text, "report").as_uri())
    assert own.page.inner_text("h1") == "4 runs"
    assert own.page.locator(".card").count() == 0
    table = own.page.get_by_role("table", name="Every run, with intervals for new tasks")
    assert [row.split()[0] for row in table.locator("tbody tr").all_inner_texts()] == list("abcd")
    assert own.complaints == []


def test_a_page_of_counts_says_what_it_leaves_out(
    browser_page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    table, page = tmp_path / "t.parquet", tmp_path / "t.html"
    duckdb.execute(
        "COPY (SELECT 't' || (i // 20) AS task, i % 20 AS trial, CASE WHEN i % 7 = 0 THEN NULL "
        f"ELSE i % 20 > i // 5 END AS success FROM range(100) t(i)) TO '{table}'"
    )
    for name in ("FEW_ATTEMPTS", "MOST_ATTEMPTS"):
        monkeypatch.setattr(base, name, 10)
    monkeypatch.setattr(page_data, "MOST_TASKS", 3)
    assert main(["report", str(table), "-o", str(page)]) == 0
    own = browser_page(page.as_uri())
    own.page.wait_for_selector(".task")
    assert own.complaints == []
    said = own.page.inner_text("#left-out")
    assert "100 of t were counted" in said
    assert "--one-by-one" in said
    assert own.page.inner_text("#count") == "3 tasks"
    own.page.locator(".task summary").first.click()
    # It is filled when the browser tells that it was opened.
    expect(own.page.locator(".task .inside").first).to_contain_text("attempts are left out")
    inside = own.page.inner_text(".task .inside")
    numbers = [*map(int, re.findall(r"\d+", inside))]
    assert sum(numbers) == 20
    assert "single attempts are left out" in inside


def test_the_mark_and_the_sentence_are_about_the_same_metric() -> None:
    # pass^1 is not settled by these tasks, pass^4 is.
    a = Run("a", "a", Outcomes.from_counts(8, [8, 7, 5, 4, 6, 3, 5, 6, 2, 7] * 2))
    b = Run("b", "b", Outcomes.from_counts(8, [8, 8, 8, 8, 8, 2, 8, 8, 1, 8] * 2))
    leaky = replace(b, warnings=("leak: in 3 of 8",))
    found = compare(a, leaky, ["pass^1", "pass^4"])
    report = build_report([a, leaky], ReportOptions(ks=(1, 4), short=True))
    page = html_report(report, HtmlOptions(), found)
    lead = page[page.index('class="lead"') : page.index('class="facts"')]
    sentences = re.findall(r"<p [^>]*>(.*?)</p>", lead)
    assert "Warning: b: leak: in 3 of 8." in sentences
    (verdict,) = re.findall(r'<p class="claim">(.*?)</p>', lead)
    shown = next(result for result in found.results if str(result.metric) in verdict)
    assert f'<span class="badge {shown.claim}">' in lead
