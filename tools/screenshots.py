"""Photograph what `passhat demo` makes in the system's Chromium, for README and docs.

make screenshots
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal
from urllib.request import Request, urlopen

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CARD = Path(__file__).parent / "card.html"
"""What is shown where a link to the site is shared."""
MOST_BYTES = 250_000

Scheme = Literal["light", "dark"]
SHOTS: tuple[tuple[str, Scheme, int, int, str], ...] = (
    ("report-light", "light", 1240, 860, ""),
    ("report-dark", "dark", 1240, 860, ""),
    ("report-charts", "light", 1240, 900, "#s-charts"),
    ("report-tasks", "dark", 1240, 760, "#retail/012#3@2"),
    ("report-phone", "dark", 420, 900, "#s-tasks"),
)
"""Name, colours, width, height, and where on the page."""

DASHBOARD: tuple[tuple[str, Scheme, int, int, str], ...] = (
    ("dashboard-run", "light", 1240, 900, "/runs/{a}"),
    ("dashboard-attempt", "dark", 1240, 860, "/runs/{a}/attempt/retail/010/1"),
    ("dashboard-compare", "light", 1240, 860, "/compare?run={a}&run={b}"),
)
"""The same of the live dashboard; A and B are the demo's runs."""


def main() -> None:
    """Run the demo, open its page, and write every picture."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        sys.exit(f"no Chromium is installed ({', '.join(BROWSERS)})")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "passhat"]
        subprocess.run([*command, "demo", "--store", "demo.db"], cwd=folder, check=True)
        page = Path(folder) / "demo.html"
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found, args=flags)
            for name, scheme, width, height, at in SHOTS:
                where = page.as_uri() + at
                _photograph(browser, where, ".task", name, scheme, width, height)
            _dashboard(browser, command, folder)
            _photograph(browser, CARD.as_uri(), "img", "card", "light", 1200, 630)
            browser.close()


def _dashboard(browser: Browser, command: list[str], folder: str) -> None:
    """The demo's store in the dashboard."""
    process = subprocess.Popen(
        [*command, "view", "--store", "demo.db"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    printed = process.stdout.readline().rpartition(" ")[2].strip()
    address, token = printed.split("/?token=")
    headers = {"Authorization": f"Bearer {token}"}
    with urlopen(Request(f"{address}/runs.json", headers=headers)) as answer:
        runs = {
            letter: run["id"] for letter, run in zip("ab", json.load(answer)["runs"], strict=True)
        }
    for run in runs.values():
        urlopen(Request(f"{address}/runs/{run}.csv", headers=headers)).close()
    for name, scheme, width, height, at in DASHBOARD:
        path = at.format(**runs)
        where = f"{address}{path}{'&' if '?' in path else '?'}token={token}"
        _photograph(browser, where, "h1", name, scheme, width, height)
    process.send_signal(signal.SIGINT)
    process.communicate()


def _photograph(
    browser: Browser,
    where: str,
    when: str,
    name: str,
    scheme: Scheme,
    width: int,
    height: int,
) -> None:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    opened = context.new_page()
    opened.goto(where)
    opened.wait_for_selector(when)
    picture = IMAGES / f"{name}.png"
    opened.screenshot(path=picture)
    context.close()
    size = picture.stat().st_size
    if size > MOST_BYTES:
        sys.exit(f"{picture.name} has {size:,} bytes, more than {MOST_BYTES:,}")
    print(f"wrote docs/images/{picture.name} ({size:,} bytes)")


if __name__ == "__main__":
    main()
