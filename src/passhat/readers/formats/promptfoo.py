"""promptfoo: schemas 1 to 4, one result per provider, prompt and test case."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.json_records import open_document, read_bytes
from passhat.readers.parsing import as_dict, number_or_none, transcript_entries, why_missing
from passhat.readers.rows import CsvRows
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

_ERROR = 2
"""promptfoo's failureReason: 0 none, 1 an assertion, 2 an error."""
_CODE = ("javascript", "python", "ruby", "webhook")


class _Prompt(msgspec.Struct):
    raw: Any = None
    display: Any = None
    label: Any = None
    provider: Any = None
    metrics: Any = None


class _Tokens(msgspec.Struct):
    total: Any = None
    cached: Any = None


class _Response(msgspec.Struct):
    output: Any = None
    cached: Any = None
    tokenUsage: _Tokens | None = None  # noqa: N815 - promptfoo's own name


class _Case(msgspec.Struct, rename={"checks": "assert"}):
    vars: Any = None
    description: Any = None
    metadata: Any = None
    checks: Any = None


class _Row(msgspec.Struct, rename="camel"):
    prompt: _Prompt | None = None
    prompt_idx: Any = None
    provider: Any = None
    vars: Any = None
    test_case: _Case | None = None
    success: Any = None
    score: Any = None
    error: Any = None
    failure_reason: Any = None
    response: _Response | None = None
    provider_response: _Response | None = None
    latency_ms: Any = None
    cost: Any = None
    metadata: Any = None
    id: Any = None


class _Stats(msgspec.Struct):
    successes: Any = None
    failures: Any = None
    errors: Any = None


class _Inner(msgspec.Struct):
    version: Any = None
    results: list[_Row] | None = None
    prompts: list[_Prompt] | None = None
    stats: _Stats | None = None


class _Output(msgspec.Struct):
    results: list[_Row] | _Inner | None = None
    prompts: list[_Prompt] | None = None
    stats: _Stats | None = None
    config: Any = None
    data: _Output | None = None


class PromptfooReader(Reader):
    """A run per provider and prompt; a test case is the task, a repeat of it an attempt.

    A cached answer is no fresh attempt: it counts once, and its copies are skipped.
    """

    name = "promptfoo"

    def recognizes(self, source: Source) -> bool:
        outline, head = source.outline, source.head
        if not outline.opens:
            return _is_csv(head)
        outer = not outline.keys.isdisjoint({"results", "data", "evalId", "table"})
        return (
            outline.opens == "{"
            and outer
            and b'"vars"' in head
            and (b'"success"' in head or b'"promptIdx"' in head or b'"prompts"' in head)
        )

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        if not source.outline.opens:
            return _read_csv(source, options)
        log = LogBuilder(source, "promptfoo output", options)
        document = open_document(
            read_bytes(source, log),
            log,
            whole=_Output,
            item=_Row,
            items=_rows,
            paths=[("data", "results", "results"), ("results", "results"), ("results",)],
            noun="result",
        )
        runs: dict[str, tuple[str, str, int]] = {}
        attempted: set[tuple[str, str]] = set()
        tasks = _Tasks()
        for number, (_, row) in enumerate(document.items, 1):
            with log.row(f"result {number}"):
                agent, prompt = _provider(row, document.head), _prompt(row)
                key = f"{agent}\n{prompt}"
                runs.setdefault(key, (agent, prompt, _index(row)))
                _take(log, number, row, key, tasks.of(row), attempted)
        prompts = list(dict.fromkeys(prompt for _, prompt, _ in runs.values()))

        def facts(key: str) -> RunFacts:
            agent, prompt, index = runs[key]
            return RunFacts(
                agent,
                Protocol(judge="promptfoo assertions"),
                variant=f"prompt {prompts.index(prompt) + 1}",
                says=_parse_stated_metrics(document.head, index, alone=len(runs) == 1),
                reading=(f"prompt {prompts.index(prompt) + 1}: {' '.join(prompt.split())[:60]}",),
            )

        return log.runs(facts)


# The CSV output: a column per variable, then one per prompt and provider, headed
# "[provider] prompt" and filled with "[PASS] answer", "[FAIL] (why)" or "[ERROR] message".
_CELL = re.compile(r"\[(PASS|FAIL|ERROR)\]\s*(.*)", re.DOTALL)
_HEADING = re.compile(r"\[([^\]]+)\]\s*(.*)", re.DOTALL)


def _is_csv(head: bytes) -> bool:
    """Whether a table has cells that begin with a promptfoo verdict."""
    return any(
        quote + mark in head
        for mark in (b"[PASS]", b"[FAIL]", b"[ERROR]")
        for quote in (b",", b',"', b"\n", b'\n"')
    )


def _read_csv(source: Source, options: ReadOptions) -> list[Run]:
    log = LogBuilder(source, "promptfoo CSV output", options)
    prompts: dict[str, int] = {}
    number = 0
    for chunk in CsvRows(source, log).chunks():
        names = list(chunk)
        for cells in zip(*chunk.values(), strict=True):
            number += 1
            row = {name: str(cell) for name, cell in zip(names, cells, strict=True)}
            verdicts = {name: m for name, cell in row.items() if (m := _CELL.match(cell))}
            prompts |= {name: len(prompts) for name in verdicts if name not in prompts}
            # Columns after the prompts repeat the verdict (Status, Score, Pass) for each of them.
            first = min((names.index(name) for name in verdicts), default=len(names))
            task = _task({name: row[name] for name in names[:first]})
            if not verdicts:
                log.lose(f"row {number}", "has no verdict")
            for name, judged_cell in verdicts.items():
                _take_cell(log, f"row {number}", task, name, judged_cell)
    agents = {name: _HEADING.match(name) for name in prompts}
    several = {name: f"prompt {place + 1}" for place, name in enumerate(prompts)}

    def facts(key: str) -> RunFacts:
        heading = agents[key]
        return RunFacts(
            heading[1] if heading else key,
            Protocol(judge="promptfoo assertions"),
            variant=several[key],
            reading=(f"column {' '.join(key.split())[:60]}",),
        )

    return log.runs(facts)


def _take_cell(log: LogBuilder, where: str, task: str, run: str, match: re.Match[str]) -> None:
    verdict, rest = match[1], match[2]
    if verdict == "ERROR":
        log.add(where, task, None, run=run, why=why_missing(rest))
        return
    why = "" if verdict == "PASS" else f"wrong_answer: {rest.splitlines()[0] if rest else ''}"
    log.add(where, task, verdict == "PASS", run=run, why=why, answer=rest)


def _rows(output: _Output) -> list[_Row]:
    results = output.results
    if isinstance(results, list):
        return results
    if isinstance(results, _Inner) and results.results is not None:
        return results.results
    return _rows(output.data) if output.data is not None else []


def _take(
    log: LogBuilder, number: int, row: _Row, key: str, task: str, seen: set[tuple[str, str]]
) -> None:
    answer = row.response or row.provider_response or _Response()
    if _cached(answer) and (key, task) in seen:
        log.skip("a cached answer, which is not a fresh attempt")
        return
    seen.add((key, task))
    passed, why = row.success, ""
    if row.failure_reason == _ERROR or (row.error and answer.output is None):
        passed, why = None, why_missing(row.error or "an error")
    elif passed is None:
        why = "not_recorded: no verdict"
    elif not passed:
        why = f"wrong_answer: {row.error or ''}"
    latency = number_or_none(row.latency_ms)
    tokens = answer.tokenUsage or _Tokens()
    log.add(
        f"result {number}",
        task,
        passed,
        run=key,
        why=why,
        seconds=None if latency is None or _cached(answer) else latency / 1000,
        tokens=tokens.total,
        cost=row.cost,
        answer=answer.output if isinstance(answer.output, str) else None,
        source_id=row.id,
        score=row.score,
        conversation=_conversation(row, answer),
        expected=_expected_values(row.test_case),
    )


def _expected_values(case: _Case | None) -> list[object]:
    """The values that a test's assertions compare with; not the code of those that are code."""
    checks = case.checks if case is not None and isinstance(case.checks, list) else []
    return [
        check["value"]
        for check in checks
        if isinstance(check, dict) and check.get("value") and check.get("type") not in _CODE
    ]


def _conversation(row: _Row, answer: _Response) -> Iterator[tuple[str, str]]:
    """Messages that a provider recorded, else the prompt and the answer or its tool calls."""
    messages = as_dict(row.metadata).get("messages")
    if isinstance(messages, list):
        yield from transcript_entries(messages)
        return
    prompt = (row.prompt or _Prompt()).raw
    if isinstance(prompt, str):
        yield "user", prompt
    is_calls = isinstance(answer.output, list)
    content = {"tool_calls": answer.output} if is_calls else {"content": answer.output}
    if answer.output is not None:
        yield from transcript_entries([{"role": "assistant", **content}])


def _cached(answer: _Response) -> bool:
    """Whether the answer came from the cache: by its flag, or its count of cached tokens."""
    tokens = answer.tokenUsage
    early = tokens is not None and bool(tokens.cached) and tokens.total is None
    return answer.cached is True or (answer.cached is None and early)


class _Tasks:
    """Names for test cases: the variables, and details that distinguish cases that share them.

    A red-team probe and its jailbroken versions have the same variables, and so may two tests
    with different assertions; they are not repeats of one another.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def of(self, row: _Row) -> str:
        case = row.test_case or _Case()
        name = _task(row.vars or case.vars)
        about = {**as_dict(case.metadata), **as_dict(row.metadata)}
        probe = [str(about[key]) for key in ("pluginId", "strategyId") if about.get(key)]
        if probe:
            name = f"{name} [{'/'.join(probe)}]"
        digest = ""
        if case.description is not None or case.checks is not None:
            told_apart = msgspec.json.encode([case.description, case.checks], order="sorted")
            digest = hashlib.sha256(told_apart).hexdigest()[:6]
        names = self._known.setdefault(name, {})
        return names.setdefault(digest, name if not names else f"{name} ({digest})")


def _task(variables: object) -> str:
    """A test case has no id; its variables are one, shortened when they are long."""
    if isinstance(variables, dict) and variables:
        text = ", ".join(f"{name}={value}" for name, value in variables.items())
    else:
        text = "the only test" if not variables else str(variables)
    text = " ".join(text.split())
    if len(text) <= 80:
        return text
    return f"{text[:70]}… {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _provider(row: _Row, output: _Output) -> str:
    provider = row.provider
    if isinstance(provider, dict):
        provider = provider.get("label") or provider.get("id")
    if not provider:
        providers = as_dict(output.config).get("providers")
        provider = providers[0] if isinstance(providers, list) and len(providers) == 1 else None
    return str(provider) if isinstance(provider, str) and provider else "unknown provider"


def _prompt(row: _Row) -> str:
    prompt = row.prompt or _Prompt()
    if _index(row) >= 0:
        return f"{_index(row) + 1}. {prompt.label or prompt.display or ''}"
    return str(prompt.display or prompt.label or prompt.raw or "")


def _index(row: _Row) -> int:
    return row.prompt_idx if isinstance(row.prompt_idx, int) else -1


def _parse_stated_metrics(output: _Output, index: int, *, alone: bool) -> dict[str, float]:
    """The share of passed tests: per prompt where the file has it, else of the whole file."""
    inner = output.results if isinstance(output.results, _Inner) else None
    prompts = (inner.prompts if inner else None) or output.prompts or []
    if 0 <= index < len(prompts):
        metrics = prompts[index].metrics
        counts = as_dict(metrics)
        return _share(*(counts.get(f"test{word}Count") for word in ("Pass", "Fail", "Error")))
    stats = (inner.stats if inner else None) or output.stats
    if stats is None or not alone:
        return {}
    return _share(stats.successes, stats.failures, stats.errors)


def _share(*cells: object) -> dict[str, float]:
    passed, failed, errors = (number_or_none(cell) or 0.0 for cell in cells)
    total = passed + failed + errors
    return {"accuracy": passed / total} if total else {}
