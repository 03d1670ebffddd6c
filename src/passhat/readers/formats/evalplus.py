"""EvalPlus: every solution has a verdict on the base tests and one on the added tests."""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.identity import from_name
from passhat.readers.json_records import open_document, read_bytes
from passhat.readers.parsing import as_dict, numbers_in
from passhat.readers.sources import Source
from passhat.stats.estimate.metrics import PassAt
from passhat.stats.outcomes import Run

_BASE, _PLUS = "base", "plus"
_PASSED = ("pass", "success")


class _Solution(msgspec.Struct):
    solution: Any = None
    base_status: Any = None
    plus_status: Any = None


class _Older(msgspec.Struct):
    """The first schema: per task two lists of [status, one bool per test]."""

    base: list[Any] | None = None
    plus: list[Any] | None = None


class _Results(msgspec.Struct):
    hash: Any = None
    eval: dict[str, list[_Solution] | _Older] | None = None
    pass_at_k: Any = None


class EvalPlusReader(Reader):
    """``{date, hash, eval{task: [...]}}``; base and plus become two runs on two suites.

    A solution passes plus when it passes the base tests *and* the added ones, as EvalPlus counts.
    """

    name = "evalplus"

    def recognizes(self, source: Source) -> bool:
        outline, head = source.outline, source.head
        return (
            outline.opens == "{"
            and "eval" in outline.keys
            and (
                b'"base_status"' in head
                or b'"nfiles"' in head
                or b'"base":' in head.replace(b" ", b"")
            )
        )

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "EvalPlus results", options)
        document = open_document(
            read_bytes(source, log),
            log,
            whole=_Results,
            item=list[_Solution] | _Older,  # type: ignore[arg-type]
            items=lambda document: document.eval or {},
            paths=[("eval",)],
            noun="task",
        )
        suite = ""
        for task, solutions in document.items:
            suite = suite or task.partition("/")[0]
            for number, (base, plus, answer) in enumerate(_verdicts(solutions), 1):
                _take(log, f"task {task}, solution {number}", task, base, plus, answer)
        agent, decoding, notes = from_name(source)
        head = document.head

        def facts(key: str) -> RunFacts:
            name = f"{suite or 'EvalPlus'}{'+' if key == _PLUS else ''}"
            return RunFacts(
                agent,
                Protocol(
                    suite=name,
                    tests_fingerprint=str(head.hash) if head.hash else None,
                    decoding=decoding,
                ),
                variant=f"on {name}",
                says=_parse_stated_metrics(head.pass_at_k, key),
                reading=(*notes, "each solution counts once on the base tests and once on plus"),
                guessed=True,
            )

        return log.runs(facts)


def _verdicts(solutions: list[_Solution] | _Older) -> list[tuple[Any, Any, Any]]:
    if isinstance(solutions, list):
        return [
            (solution.base_status, solution.plus_status, solution.solution)
            for solution in solutions
        ]
    base = [_status(entry) for entry in solutions.base or []]
    plus = [_status(entry) for entry in solutions.plus or []]
    plus += [None] * (len(base) - len(plus))
    return [(base_status, two, None) for base_status, two in zip(base, plus, strict=False)]


def _status(entry: object) -> object:
    return entry[0] if isinstance(entry, list) and entry else entry


def _take(
    log: LogBuilder, where: str, task: str, base: object, plus: object, answer: object
) -> None:
    log.add(where, task, _passed(base), run=_BASE, why=_why(base), answer=answer)
    if plus is None:
        # Evaluated with the base tests only: there is no second suite.
        return
    decides = plus if _passed(base) else base
    log.add(where, task, _passed(decides), run=_PLUS, why=_why(decides), answer=answer)


def _passed(status: object) -> bool | None:
    return None if status is None else status in _PASSED


def _why(status: object) -> str:
    if status is None:
        return "judge_error: no status"
    if status in _PASSED:
        return ""
    return "timeout: timeout" if "time" in str(status) else f"unknown_failure: {status}"


def _parse_stated_metrics(pass_at_k: object, key: str) -> dict[str, float]:
    scores = numbers_in(as_dict(as_dict(pass_at_k).get(key)))
    return {word: value for word, value in scores.items() if str(word).startswith(PassAt.word)}
