"""``passhat judge --show``: what each judge found about the attempts at one task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.exits import ExitCode
from passhat.errors import InvalidValue

if TYPE_CHECKING:
    from passhat.judging.bench import Bench
    from passhat.judging.samples import Sample

__all__ = ["show_judged", "show_stored"]


@dataclass(frozen=True, slots=True)
class _Shown:
    """One judged attempt: verdict, what each judge found, the program and the raw answer."""

    id: str
    verdict: str
    judges: tuple[tuple[str, str], ...]
    program: str
    raw: str = ""


def show_judged(bench: Bench, samples: list[Sample], task: str) -> ExitCode:
    """Judge the samples of a task now, and print what each judge found."""
    chosen = [sample for sample in samples if _is(task, sample.task.id, sample.trial + 1)]
    verdicts = dict(bench.verdicts((sample.task, sample.program) for sample in chosen))
    return _print(
        [
            _Shown(
                f"{sample.task.id}#{sample.trial + 1}",
                verdicts[number].words,
                verdicts[number].judges or ((bench.rules.judges, verdicts[number].words),),
                sample.program,
                sample.raw,
            )
            for number, sample in enumerate(chosen)
        ],
        task,
    )


def show_stored(word: str, store_path: str, task: str) -> ExitCode:
    """Print what the judges found, from a file of results or a run of a store."""
    shown = _in_file(word) if Path(word).is_file() else _in_store(word, store_path)
    return _print([one for one in shown if _is(task, *one.id.rsplit("#", 1))], task)


def _is(wanted: str, task: str, number: object) -> bool:
    return wanted in (task, f"{task}#{number}")


def _in_file(path: str) -> Iterator[_Shown]:
    from passhat.judging.code_suites import json_lines

    for _, row in json_lines(path):
        success, judges = row.get("success"), row.get("judges")
        word = "missing" if success is None else "passed" if success else "failed"
        parts = (row.get("failure"), row.get("detail"))
        yield _Shown(
            f"{row.get('task')}#{int(str(row.get('trial', 0))) + 1}",
            ", ".join(str(part) for part in (word, *parts) if part),
            tuple(judges.items()) if isinstance(judges, dict) else (),
            str(row.get("program") or ""),
            str(row.get("raw") or ""),
        )


def _in_store(word: str, store_path: str) -> Iterator[_Shown]:
    from passhat.stats.outcomes import Verdict
    from passhat.store import open_store

    with open_store(store_path, must_exist=True) as store:
        run = store.find(word).id
        for block in store.rows(run):
            for name, number, *_ in block:
                ended = store.attempt(run, str(name), int(str(number)))
                assert ended is not None
                texts = {turn["role"]: turn["text"] for turn in ended.transcript}
                verdict = {Verdict.PASSED: "passed", Verdict.FAILED: "failed"}
                words = (verdict.get(ended.verdict, "missing"), ended.why, ended.detail)
                answer = texts.get("agent", "")
                yield _Shown(
                    f"{name}#{number}",
                    ", ".join(part for part in words if part),
                    tuple(
                        (role.removesuffix(" judge"), text)
                        for role, text in texts.items()
                        if role in ("plain judge", "split judge")
                    ),
                    texts.get("program", answer),
                    answer if "program" in texts else "",
                )


def _print(shown: list[_Shown], task: str) -> ExitCode:
    from passhat.report.audit import shown_program

    if not shown:
        raise InvalidValue(
            f"there is no attempt at {task!r}.", hint="Name a task, or an attempt as in TASK#2."
        )
    for one in shown:
        click.echo(f"{one.id}: {one.verdict}")
        for name, words in one.judges:
            click.echo(f"  {name}: {words}")
        if one.raw:
            click.echo("  answer:")
            click.echo(_indented(shown_program(one.raw)))
        click.echo("  program:")
        click.echo(_indented(shown_program(one.program)))
        click.echo()
    return ExitCode.OK


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
