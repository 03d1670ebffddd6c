"""A folder with one small file per attempt, whose path says what it is.

OSWorld and many scripts write ``MODEL/DOMAIN/TASK/result.txt`` with a number in it. The pattern
names the parts: ``{model}/{slice:domain}/{task}/result.txt``; ``**/`` stands for folders above.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from passhat.errors import ReadError
from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, ReadOptions, RunFacts
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run
from passhat.stats.outcomes.columns import SLICE_PREFIX
from passhat.stats.outcomes.rewards import RewardWords

__all__ = ["is_path_pattern", "read_paths", "suggest_pattern"]

_PART = re.compile(r"\\{([\w:]+)\\}")
_WORDS = ("model", "suite", "task", "trial", "seed")
_LONGEST = 256
"""Bytes of a file that holds one verdict."""


def is_path_pattern(records: str | None) -> bool:
    """Whether --records names parts of a path, as in {model}/{task}/result.txt."""
    return records is not None and "{" in records and "/" in records


def read_paths(folder: Source, options: ReadOptions) -> list[Run]:
    """Every file below a folder whose path fits the pattern; each is an attempt."""
    pattern = options.records or ""
    path_re = _compile(pattern, folder.name)
    slices = [name for name in path_re.groupindex if name not in _WORDS]
    log = LogBuilder(folder, "one file per attempt", options, order="trial", slices=slices)
    words, runs = RewardWords(), dict[str, tuple[str, str]]()
    files_of: dict[tuple[object, ...], str] = {}
    for file in folder.children("**/*"):
        relative = file.path.relative_to(folder.path).as_posix()
        match = path_re.fullmatch(relative)
        if match is None:
            log.skip("a file whose path does not fit the pattern")
            continue
        parts = match.groupdict()
        model, suite = parts.get("model") or "", parts.get("suite") or ""
        with log.row(relative):
            try:
                reward = words[_content(file)]
            except ValueError:
                log.lose(relative, "holds no verdict")
                continue
            first = files_of.setdefault(tuple(parts.values()), relative)
            if first != relative:
                raise ReadError(
                    f"{first} and {relative} are one attempt by the pattern {pattern}.",
                    source=folder.name,
                    hint="Name the part that tells them apart, as {trial} or {suite}.",
                )
            key = f"{model}\x1f{suite}"
            runs.setdefault(key, (model, suite))
            log.add(
                relative,
                parts["task"],
                None if reward != reward else reward,
                run=key,
                trial=parts.get("trial") or parts.get("seed"),
                why="not_recorded: empty file" if reward != reward else "",
                transcript=relative,
                labels=[parts[name] for name in slices],
            )

    def facts(key: str) -> RunFacts:
        model, suite = runs[key]
        return RunFacts(
            model or folder.stem,
            Protocol(suite=suite or None),
            variant=f"on {suite}" if suite else "",
            guessed=not model,
            decisions=(f"files that fit {pattern} are attempts",),
        )

    return log.runs(facts)


def _compile(pattern: str, source: str) -> re.Pattern[str]:
    names = re.findall(r"\{([\w:]+)\}", pattern)
    unknown = [n for n in names if n not in _WORDS and not re.fullmatch(r"slice:[^\W\d]\w*", n)]
    if unknown or "task" not in names or len(set(names)) < len(names):
        raise ReadError(
            f"the pattern {pattern!r} needs {{task}}, and each of its names once.",
            source=source,
            hint=f"Names: {', '.join(_WORDS)}, slice:NAME; * stands for any other part.",
        )
    text = re.escape(pattern).replace("slice:", "")
    text = _PART.sub(r"(?P<\1>[^/]+)", text)
    if "**/" not in pattern and not any(name.startswith(SLICE_PREFIX) for name in names):
        # A task may lie in folders: chrome/t1
        text = text.replace("(?P<task>[^/]+)", "(?P<task>.+)")
    return re.compile(text.replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*"))


def _content(file: Source) -> str:
    with file.open() as stream:
        return stream.read(_LONGEST).decode("utf-8", "replace").strip()


def suggest_pattern(folder: Source) -> str | None:
    """The pattern for a folder of small files of one name; ``None`` when it is no such folder."""
    files = list(_small_files(folder))
    if len(files) < 2:
        return None
    depth, name = Counter((len(p.parts), p.name) for p in files).most_common(1)[0][0]
    alike = [p for p in files if len(p.parts) == depth and p.name == name]
    words = RewardWords()
    try:
        for path in alike[:50]:
            words[_content(folder.inside(*path.parts))]
    except ValueError:
        return None
    if len(alike) < 2 or depth < 2:
        return None
    folders = depth - 1
    has_trial = folders > 1 and all(path.parts[depth - 2].isdigit() for path in alike)
    model = ["{model}"] if folders - has_trial > 1 else []
    return "/".join((*model, "{task}", *(["{trial}"] if has_trial else []), name))


def _small_files(folder: Source) -> Iterator[Path]:
    for file in folder.children("**/*"):
        if file.path.stat().st_size <= _LONGEST:
            yield file.path.relative_to(folder.path)
