"""The documentation site: every page is in its navigation, and every link leads somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def pages(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for item in nav if isinstance(nav, list) else nav.values() if isinstance(nav, dict) else ():
        yield from pages(item)


def test_every_page_is_in_the_navigation_once() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    listed = list(pages(config["project"]["nav"]))
    assert sorted(listed) == sorted(path.name for path in DOCS.glob("*.md"))


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.text = ""

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if (tag, name) in (("a", "href"), ("img", "src"), ("source", "srcset")) and value:
                self.links.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, _Page]:
    """The site as `make docs` builds it, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs")
    (folder / "docs" / "live").mkdir(exist_ok=True)  # not in a fresh checkout
    (folder / "zensical.toml").write_bytes((ROOT / "zensical.toml").read_bytes())
    for words in (
        ["report", "example:helpdesk", "-o", "docs/live/report.html"],
        ["leaderboard", "example:helpdesk", "-o", "docs/live/board"],
    ):
        command = [sys.executable, "-m", "passhat", *words]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build"], cwd=folder, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stdout + built.stderr
    parsed = {}
    for path in sorted((folder / "site").rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        parsed[path.resolve()] = page
    assert len(parsed) > 30
    return parsed


def test_no_page_shows_a_fence_that_was_not_understood(site: dict[Path, _Page]) -> None:
    """An unknown option of a fenced block turns it, and what follows, into running text."""
    assert [path.name for path, page in site.items() if "```" in page.text] == []


def test_every_link_and_anchor_of_the_site_leads_somewhere(site: dict[Path, _Page]) -> None:
    broken = []
    for path, page in site.items():
        if path.name == "404.html":  # its links start at the root of a server
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                broken.append(f"{path.name}: {link}")
            elif parts.fragment not in ("", "__toc") and target in site:
                anchors = site[target].anchors
                broken += [link] if unquote(parts.fragment) not in anchors else []
    assert sorted(set(broken)) == []


def test_pages_load_nothing_from_elsewhere(site: dict[Path, _Page]) -> None:
    for path in site:
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="(https?:[^"]+)"', text)
        assert [one for one in loaded if "canonical" not in one] == [], path.name
