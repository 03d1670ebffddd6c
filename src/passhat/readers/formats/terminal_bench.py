"""Terminal-Bench: ``results.json`` with an entry per trial, and the files next to it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.json_records import open_document, read_bytes, read_sibling
from passhat.readers.parsing import (
    as_dict,
    number_or_none,
    numbers_in,
    seconds_between,
    sum_numbers,
)
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

_LONG_ID = 16
"""Trials have a UUID; what is shorter is a counter."""
_TRIAL = re.compile(r"\.(\d+)-of-\d+\b")

# failure_mode, when there is a verdict: the agent's doing.
_FAILED = {
    "agent_timeout": "timeout",
    "context_length_exceeded": "agent_error",
    "fatal_llm_parse_error": "format_error",
    "output_length_exceeded": "agent_error",
    "unknown_agent_error": "agent_error",
}
# And when there is none.
_MISSING = {
    "agent_installation_failed": "infrastructure",
    "parse_error": "judge_error",
    "test_timeout": "judge_error",
    "unknown_agent_error": "infrastructure",
}


class _Trial(msgspec.Struct):
    id: Any = None
    task_id: Any = None
    trial_name: Any = None
    is_resolved: Any = None
    failure_mode: Any = None
    total_input_tokens: Any = None
    total_output_tokens: Any = None
    started_at: Any = None
    ended_at: Any = None
    trial_started_at: Any = None
    trial_ended_at: Any = None
    agent_started_at: Any = None
    agent_ended_at: Any = None


class _Results(_Trial):
    """A whole run; the folder of one trial holds a file with its fields alone."""

    results: list[_Trial] | None = None
    pass_at_k: Any = None
    accuracy: Any = None


class _Metadata(msgspec.Struct):
    agent_name: Any = None
    model_name: Any = None
    dataset_name: Any = None
    dataset_version: Any = None
    n_attempts: Any = None
    run_id: Any = None


class TerminalBenchReader(Reader):
    """``{results: [{task_id, is_resolved, failure_mode, ...}], pass_at_k}``; null is missing."""

    name = "terminal_bench"
    repeats_in_siblings = True

    def recognizes(self, source: Source) -> bool:
        if source.is_folder:
            results = source.inside("results.json")
            return results.path.is_file() and self.recognizes(results)
        outline = source.outline
        several = "results" in outline.keys and b'"is_resolved"' in source.head
        several = several or len(outline.keys & {"n_resolved", "resolved_ids", "pass_at_k"}) > 1
        is_trial = {"task_id", "trial_name", "is_resolved"} <= outline.keys
        return outline.opens == "{" and (several or is_trial)

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        results = source.inside("results.json") if source.is_folder else source
        log = LogBuilder(source, "Terminal-Bench results", options, order="trial")
        document = open_document(
            read_bytes(results, log),
            log,
            whole=_Results,
            item=_Trial,
            items=lambda document: document.results or ([document] if document.task_id else []),
            paths=[("results",)],
            noun="trial",
        )
        for number, (_, trial) in enumerate(document.items, 1):
            with log.row(f"trial {number}"):
                _take(log, number, trial)
        about = read_sibling(results, "run_metadata.json", _Metadata, log)
        facts = _facts(document.head, about or _Metadata(), results)
        return log.runs(facts)


def _take(log: LogBuilder, number: int, trial: _Trial) -> None:
    number_match = _TRIAL.search(str(trial.trial_name or ""))
    mode = str(trial.failure_mode or "").rsplit(".", 1)[-1].lower()
    if trial.is_resolved is None:
        why = f"{_MISSING.get(mode, 'not_recorded')}: {mode or 'is_resolved is null'}"
    else:
        why = f"{_FAILED.get(mode, 'unknown_failure')}: {mode}" if mode else ""
    log.add(
        f"trial {number}",
        trial.task_id,
        trial.is_resolved,
        trial=int(number_match[1]) if number_match else None,
        why="" if trial.is_resolved else why,
        seconds=seconds_between(trial.agent_started_at, trial.agent_ended_at)
        or seconds_between(
            trial.trial_started_at or trial.started_at, trial.trial_ended_at or trial.ended_at
        ),
        tokens=sum_numbers((trial.total_input_tokens, trial.total_output_tokens)),
        transcript=str(trial.trial_name or ""),
        source_id=trial.id if len(str(trial.id or "")) >= _LONG_ID else None,
    )


def _facts(head: _Results, about: _Metadata, source: Source) -> RunFacts:
    parts = [str(part) for part in (about.agent_name, about.model_name) if part]
    suite = " ".join(str(p) for p in (about.dataset_name, about.dataset_version) if p)
    attempts = number_or_none(about.n_attempts)
    notes = () if parts else ("the log does not name the agent: the run is named after the folder",)
    if len(parts) == 1:
        notes = ("the log states the agent or the model, not both",)
    folder = source.path.resolve().parent.name
    return RunFacts(
        agent=" ".join(parts) or (folder if source.stem == "results" else source.stem),
        protocol=Protocol(
            suite=suite or "Terminal-Bench",
            attempts=int(attempts) if attempts and attempts >= 1 else None,
        ),
        says=_parse_stated_metrics(head),
        counts=("source counts trials without a verdict as failures",),
        reading=notes,
        # One agent runs many models: half a name is no identity to join attempts by.
        guessed=len(parts) < 2,
        origin=f"Terminal-Bench run {about.run_id}" if about.run_id else "",
    )


def _parse_stated_metrics(head: _Results) -> dict[str, float]:
    at = as_dict(head.pass_at_k)
    return numbers_in(
        {"accuracy": head.accuracy}
        | {f"pass@{k}": value for k, value in at.items() if str(k).isdigit()}
    )
