"""Put the built site beside those of other versions, with a list that its pages show.

    make docs && python tools/publish_site.py FOLDER

FOLDER is what is published: FOLDER/0.2 is this version's site, FOLDER/latest the newest one's,
FOLDER/index.html leads there, and FOLDER/versions.json lists all. Other versions stay as they are.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LATEST = "latest"
REDIRECT = """<!doctype html>
<meta charset="utf-8">
<title>passhat</title>
<meta http-equiv="refresh" content="0; url=latest/index.html">
<a href="latest/index.html">passhat</a>
"""


def publish(site: Path, folder: Path, version: str) -> list[str]:
    """Copy a site to its place; returns the versions that are there, the newest first."""
    if not (site / "index.html").is_file():
        raise FileNotFoundError(f"{site} holds no site. Write: make docs")
    series = ".".join(version.split(".")[:2])
    _replace(site, folder / series)
    all_series = [path.name for path in folder.iterdir() if _is_series(path.name)]
    names = sorted(all_series, key=_number, reverse=True)
    _replace(folder / names[0], folder / LATEST)
    entries = [
        {"version": name, "title": name, "aliases": [LATEST] if name == names[0] else []}
        for name in names
    ]
    (folder / "versions.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(REDIRECT, encoding="utf-8")
    return names


def _replace(site: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(site, place)


def _is_series(name: str) -> bool:
    return all(part.isdecimal() for part in name.split("."))


def _number(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("."))


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/publish_site.py FOLDER")
    from passhat import __version__

    names = publish(ROOT / "site", Path(sys.argv[1]), __version__)
    print(f"{sys.argv[1]} has {', '.join(names)}; {LATEST} is {names[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
