"""Photograph a real report of `passhat demo` in the system's Chromium, for README and docs.

make screenshots
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
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


def main() -> None:
    """Run the demo, open its page, and write every picture."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        sys.exit(f"no Chromium is installed ({', '.join(BROWSERS)})")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-c",
            "import sys; from passhat.cli import main; sys.exit(main())",
        ]
        subprocess.run([*command, "demo", "--store", "demo.db"], cwd=folder, check=True)
        page = Path(folder) / "demo.html"
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found, args=flags)
            for shot in SHOTS:
                _photograph(browser, page, *shot)
            browser.close()


def _photograph(
    browser: Browser, page: Path, name: str, scheme: Scheme, width: int, height: int, at: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    opened = context.new_page()
    opened.goto(page.as_uri() + at)
    opened.wait_for_selector(".task")
    picture = IMAGES / f"{name}.png"
    opened.screenshot(path=picture)
    context.close()
    size = picture.stat().st_size
    if size > MOST_BYTES:
        sys.exit(f"{picture.name} has {size:,} bytes, more than {MOST_BYTES:,}")
    print(f"wrote docs/images/{picture.name} ({size:,} bytes)")


if __name__ == "__main__":
    main()
