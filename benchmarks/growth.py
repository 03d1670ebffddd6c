"""What grows with use: resuming a long run, reports over many runs, a page of many tasks.

    python benchmarks/growth.py                          prints the table
    python benchmarks/growth.py --markdown FILE.md       and writes it as a page
    python benchmarks/growth.py --small                  a hundredth of it, to see that it works

Processor seconds and peak memory are those of the command, in a process of its own. The page is
opened in the system's Chromium by Playwright, three times; the fastest counts.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from large_runs import measured, write_store
from measuring import machine, markdown, publish, study_parser
from passhat.store import open_store
from passhat.store.rows import pack_transcript

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
EACH = 100
LEFT = 10


def resuming(tasks: int) -> tuple[str, ...]:
    """The same command again, with all but a few attempts done."""
    lines = [{"id": f"t{i}", "prompt": "?", "answer": "yes"} for i in range(tasks)]
    Path("tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    Path("agents.py").write_text("async def yes(prompt):\n    return 'yes'\n")
    command = ("run", "-s", "jsonl:tasks.jsonl", "-a", "python:agents:yes", "--store", "resume.db")
    measured(*command, "-n", "1")
    with open_store("resume.db") as store:
        store._db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < "
            f"{EACH}) INSERT INTO attempts (run, task, number, verdict, why, seed, seconds, steps, "
            "answer, finished) SELECT a.run, a.task, n.i, 1, '', n.i, 0.5, 1, a.answer, a.finished "
            "FROM attempts a CROSS JOIN n WHERE a.number = 1"
        )
        store._db.execute(
            "DELETE FROM attempts WHERE (run, task, number) IN "
            f"(SELECT run, task, number FROM attempts ORDER BY task DESC, number LIMIT {LEFT})"
        )
    needed = measured(*command, "-n", str(EACH))
    with open_store("resume.db", read_only=True) as store:
        assert store.runs()[0].attempts == tasks * EACH
    what = f"resume a run with {tasks * EACH - LEFT:,} attempts done, make {LEFT}"
    return what, f"{needed.busy:.1f} s", f"{needed.megabytes:.0f} MB", "4 s, 150 MB"


def many_runs(runs: int, goal: str) -> list[tuple[str, ...]]:
    """Lists and reports over a store with many runs of 20 tasks x 8."""
    place = f"runs-{runs}.db"
    write_store(place, 20, 8)
    with open_store(place) as store:
        # The same run under other names, with other tasks passed: one statement per table.
        numbers = (
            "(WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n "
            f"WHERE i < {runs}) SELECT i FROM n)"
        )
        for statement in (
            "INSERT INTO runs (key, id, agent, suite, name, protocol, planned, started) SELECT "
            "n.i, printf('%010x', n.i * 7919), printf('agent-%05d', n.i), suite, name, protocol, "
            f"planned, started FROM runs CROSS JOIN {numbers} n",
            "INSERT INTO tasks (key, run, position, task, labels) SELECT n.i * 100 + t.position, "
            f"n.i, t.position, t.task, t.labels FROM tasks t CROSS JOIN {numbers} n",
            "INSERT INTO attempts (run, task, number, verdict, why, seed, seconds, steps, tokens, "
            "cost, answer, finished) SELECT n.i, n.i * 100 + t.position, a.number, "
            "CASE WHEN (t.position + n.i) % 7 > 1 THEN 1 ELSE 0 END, '', a.seed, a.seconds, "
            "a.steps, a.tokens, a.cost, a.answer, a.finished FROM attempts a JOIN tasks t "
            f"ON t.key = a.task AND t.run = a.run CROSS JOIN {numbers} n WHERE a.run = 1",
        ):
            store._db.execute(statement)
    rows: list[tuple[str, ...]] = []
    for words in (("report", place), ("runs", "--store", place)):
        needed = measured(*words)
        what = f"`passhat {words[0]}` over {runs:,} runs of 20 tasks x 8"
        lines = len(needed.said.splitlines())
        cells = f"{needed.busy:.1f} s", f"{needed.megabytes:.0f} MB, {lines:,} lines"
        rows.append((what, *cells, goal if words[0] == "report" else ""))
    return rows


def ten_times(tasks: int) -> list[tuple[str, ...]]:
    """Commands on a run and on one with ten times its tasks: what grows, and how."""
    sizes = (tasks, 10 * tasks)
    ids = [write_store_with_answers(f"grown-{size}.db", size) for size in sizes]
    rows: list[tuple[str, ...]] = []
    for words in COMMANDS:
        small, large = (
            measured(*(word.format(store=f"grown-{size}.db", run=run) for word in words))
            for size, run in zip(sizes, ids, strict=True)
        )
        name = " ".join(words).format(store="STORE", run="RUN")
        cells = [f"{one.busy:.1f} s, {one.megabytes:.0f} MB" for one in (small, large)]
        rows.append((f"`passhat {name}`", *cells, f"{large.busy / small.busy:.1f}"))
    return rows


COMMANDS = (
    ("runs", "--store", "{store}"),
    ("report", "{store}"),
    ("report", "{store}", "-o", "json:report.json"),
    ("show", "{run}", "--store", "{store}"),
    ("show", "{run}", "suite/task-7#3", "--store", "{store}"),
    ("export", "{store}", "-o", "attempts.jsonl"),
    ("export", "{store}", "-o", "attempts.csv"),
    ("export", "{store}", "-o", "eee:attempts.jsonl"),
    ("export", "{store}", "-o", "attempts.parquet"),
)


def write_store_with_answers(place: str, tasks: int) -> str:
    """A run with a short conversation for every attempt; returns its id."""
    run = write_store(place, tasks, EACH)
    entries = (("user", "What is 2 + 2?"), ("agent", "The answer is 4"), ("expected", "4"))
    body = pack_transcript([{"role": role, "text": text} for role, text in entries])
    with open_store(place) as store:
        store._db.execute(
            "INSERT INTO transcripts (run, task, number, body) "
            "SELECT run, task, number, ? FROM attempts",
            (body,),
        )
    return run


def page(tasks: int) -> tuple[str, ...]:
    """An HTML report with every attempt, opened in a browser."""
    write_store("page.db", tasks, 8)
    needed = measured("report", "page.db", "-o", "page.html")
    size = Path("page.html").stat().st_size / 1e6
    first, complete = opened(Path("page.html").resolve().as_uri())
    return (
        f"HTML report of {tasks:,} tasks x 8 ({size:.1f} MB; made in {needed.busy:.1f} s)",
        f"first paint {first:.2f} s, complete {complete:.2f} s",
        f"{needed.megabytes:.0f} MB to make",
        "open in 2 s",
    )


def opened(address: str) -> tuple[float, float]:
    """Seconds from navigation to the first paint and to the loaded page; the fastest of three."""
    from playwright.sync_api import sync_playwright

    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    assert path is not None, f"no Chromium is installed ({', '.join(BROWSERS)})"
    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"], timeout=120_000
        )
        for _ in range(3):
            tab = browser.new_page()
            tab.goto(address, wait_until="load", timeout=120_000)
            tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
            times.append(
                tab.evaluate(
                    "[performance.getEntriesByName('first-contentful-paint')[0].startTime,"
                    " performance.getEntriesByType('navigation')[0].loadEventEnd]"
                )
            )
            tab.close()
        browser.close()
    first, complete = (min(values) / 1e3 for values in zip(*times, strict=True))
    return first, complete


def study(small: bool) -> str:
    """All rows of the table."""
    part = 100 if small else 1
    with tempfile.TemporaryDirectory() as folder:
        before = Path.cwd()
        os.chdir(folder)
        rows = [
            resuming(10_000 // part),
            *many_runs(500 // part, "3 s"),
            *many_runs(5_000 // part, "usable"),
            page(5_000 // part),
        ]
        grown = ten_times(1_000 // part)
        os.chdir(before)
    header = ("command", f"{1_000 // part * EACH:,}", f"{10_000 // part * EACH:,}", "times")
    grown_table = markdown(header, grown)
    table = markdown(("work", "processor time", "peak memory", "goal"), rows)
    return (
        "# Growth: long runs, many runs, large pages\n\n"
        "What `python benchmarks/growth.py` printed, on a shared machine with 2 processors "
        f"({machine()}).\n\n{table}\n\n## Ten times the attempts\n\n"
        f"Processor time and peak memory of commands on one run of that many attempts.\n\n"
        f"{grown_table}\n"
    )


if __name__ == "__main__":
    parser = study_parser(__doc__)
    parser.add_argument("--small", action="store_true", help="only to see that it works")
    chosen = parser.parse_args()
    publish(study(chosen.small), chosen.markdown)
