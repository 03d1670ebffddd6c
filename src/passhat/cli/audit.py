"""``passhat judge --audit``: some judged attempts for a person to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.exits import ExitCode
from passhat.cli.options import write_text
from passhat.errors import InvalidValue, ReadError

if TYPE_CHECKING:
    from passhat.judging.audit import Audited
    from passhat.store import Ended, Store, StoredJudgement

__all__ = ["audit_run"]


def audit_run(
    word: str, store_path: str, size: int, seed: int, as_json_text: bool, md: str | None
) -> ExitCode:
    """Print a sample of a stored run or of a file of results."""
    from passhat.judging.audit import agreement, audit_sample
    from passhat.report.audit import audit_as_json, audit_as_markdown
    from passhat.store import open_store

    if Path(word).is_file():
        judged = audited_in_results(word)
        answer = ""
    else:
        with open_store(store_path, must_exist=True) as store:
            run = store.find(word).id
            judged = audited_in_store(store, run)
        answer = (
            f"Say what you think: `passhat show {run} TASK#N --override passed|failed "
            "--because TEXT`."
        )
    sample = audit_sample(judged, size, seed)
    agreed = agreement((one.passed, one.human) for one in judged if one.human is not None)
    if as_json_text:
        click.echo(audit_as_json(sample, len(judged), seed, agreed), nl=False)
        return ExitCode.OK
    write_text(md or "-", audit_as_markdown(sample, len(judged), seed, agreed, answer))
    return ExitCode.OK


def audited_in_store(store: Store, run: str) -> list[Audited]:
    """Every attempt of a run that has a verdict, with what the agent wrote."""
    from passhat.judging.audit import Audited
    from passhat.stats.outcomes import Verdict

    found = []
    for block in store.rows(run):
        for task, number, *_ in block:
            ended = store.attempt(run, str(task), int(str(number)))
            assert ended is not None
            judge, human = _words(ended)
            if judge.verdict is Verdict.MISSING:
                continue
            texts = [turn["text"] for turn in ended.transcript if turn["role"] == "agent"]
            found.append(
                Audited(
                    ended.task,
                    ended.number,
                    judge.verdict is Verdict.PASSED,
                    judge.why,
                    judge.detail,
                    "\n".join(texts),
                    human,
                )
            )
    if not found:
        raise InvalidValue(f"run {run} has no attempt with a verdict to audit.")
    return found


def _words(ended: Ended) -> tuple[StoredJudgement, bool | None]:
    """The judge's latest judgement of an attempt, and whether a person passed it."""
    from passhat.stats.outcomes import Verdict
    from passhat.store import JudgementSource

    human = [entry for entry in ended.said if entry.source is JudgementSource.HUMAN]
    judge = next(entry for entry in reversed(ended.said) if entry not in human)
    return judge, (human[-1].verdict is Verdict.PASSED) if human else None


def audited_in_results(path: str) -> list[Audited]:
    """Every row with a verdict of a file that ``passhat judge --out`` wrote."""
    from passhat.judging.audit import Audited
    from passhat.judging.code_suites import json_lines

    found = []
    for line, row in json_lines(path):
        if row.get("success") is None:
            continue
        if not isinstance(row.get("program"), str) or not isinstance(row.get("trial"), int):
            raise ReadError(
                "the row holds no program, so it cannot be looked at.",
                source=path,
                line=line,
                hint="Results of passhat judge --out hold it; judge the samples again.",
            )
        found.append(
            Audited(
                str(row.get("task")),
                int(str(row["trial"])) + 1,
                bool(row["success"]),
                str(row.get("failure") or ""),
                str(row.get("detail") or ""),
                str(row["program"]),
            )
        )
    if not found:
        raise ReadError("holds no judged attempt.", source=Path(path).name)
    return found
