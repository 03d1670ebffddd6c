"""The documentation site: every page is in its navigation, and every link leads somewhere."""

from __future__ import annotations

import json
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

from publish_site import publish

pytestmark = pytest.mark.xdist_group("site")  # it is built once
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
    shutil.copytree(ROOT / "tools" / "theme", folder / "tools" / "theme")
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


def test_a_shared_link_has_a_card(site: dict[Path, _Page]) -> None:
    pages = {path.name: path for path in site if path.parent.name == "site"}
    for name, title in (("index.html", "passhat"), ("why.html", "Why does the same task")):
        text = pages[name].read_text(encoding="utf-8")
        assert f'<meta property="og:title" content="{title}' in text
        (image,) = re.findall(r'property="og:image" content="([^"]+)"', text)
        assert (pages[name].parent / image).read_bytes().startswith(b"\x89PNG")


def test_sites_of_several_versions_lie_side_by_side(tmp_path: Path) -> None:
    site, folder = tmp_path / "site", tmp_path / "published"
    site.mkdir()
    folder.mkdir()
    with pytest.raises(FileNotFoundError, match="make docs"):
        publish(site, folder, "0.2.0")
    for version in ("0.9.1", "0.10.0", "0.9.2"):
        (site / "index.html").write_text(version)
        names = publish(site, folder, version)
    assert names == ["0.10", "0.9"]
    assert (folder / "0.9" / "index.html").read_text() == "0.9.2"
    assert (folder / "latest" / "index.html").read_text() == "0.10.0"
    entries = json.loads((folder / "versions.json").read_text())
    assert [(one["version"], one["aliases"]) for one in entries] == [
        ("0.10", ["latest"]),
        ("0.9", []),
    ]
    assert "latest/index.html" in (folder / "index.html").read_text()
