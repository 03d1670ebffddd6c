"""``passhat judge --audit``: some judged attempts for a person to look at."""

from __future__ import annotations

from pathlib import Path

import click

from passhat.cli.exits import ExitCode
from passhat.cli.options import write_text

__all__ = ["audit_run"]


def audit_run(
    word: str, store_path: str, size: int, seed: int, as_json_text: bool, md: str | None
) -> ExitCode:
    """Print a sample of a stored run or of a file of results."""
    from passhat.judging.audit import agreement, audit_sample
    from passhat.report.audit import audit_as_json, audit_as_markdown
    from passhat.runner.auditing import audited_in_results, audited_in_store
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
