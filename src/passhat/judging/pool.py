"""Many judgements at once: some workers, each with its own sandboxes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Self

from passhat.judging.examiner import Examiner, References
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits, SandboxSpec
from passhat.judging.tasks import CodeTask
from passhat.judging.verdict import CodeVerdict
from passhat.stats.outcomes.vocabulary import MissingReason

__all__ = ["JudgePool", "judge_all"]

Work = tuple[CodeTask, str]
_Waiting = SimpleQueue[tuple[Work, "Future[CodeVerdict]"] | None]


class JudgePool:
    """Workers that judge what they are given until they are closed.

    Each program is judged once. What a broken sandbox interrupts is judged again in a new one.
    """

    def __init__(
        self,
        kind: SandboxSpec,
        interpreter: Interpreter,
        limits: ProgramLimits | None = None,
        jobs: int = 1,
        rules: JudgeRules | None = None,
    ) -> None:
        self._waiting: _Waiting = SimpleQueue()
        self._closing = threading.Event()
        references = References()
        self._examiners = [
            Examiner(kind, interpreter, limits or ProgramLimits(), rules, references)
            for _ in range(jobs)
        ]
        self._threads = [
            threading.Thread(target=self._work, args=(examiner,), daemon=True)
            for examiner in self._examiners
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, task: CodeTask, program: str) -> Future[CodeVerdict]:
        """Put a program in the queue; its judgement comes with the future."""
        future: Future[CodeVerdict] = Future()
        self._waiting.put(((task, program), future))
        return future

    def close(self) -> None:
        """End the workers at once, with what they are at; what waits is never begun."""
        self._closing.set()
        for examiner in self._examiners:
            examiner.abandon()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self, examiner: Examiner) -> None:
        try:
            while (one := self._waiting.get()) is not None:
                (task, program), future = one
                if self._closing.is_set():
                    future.cancel()
                elif future.set_running_or_notify_cancel():
                    future.set_result(_judged(examiner, task, program))
        finally:
            examiner.close()


def _judged(examiner: Examiner, task: CodeTask, program: str) -> CodeVerdict:
    try:
        return examiner.judge(task, program)
    except Exception as error:  # a bug of ours must not lose the other judgements
        examiner.close()
        detail = f"{type(error).__name__}: {error}"
        return CodeVerdict.missing(MissingReason.JUDGE_ERROR, detail)


def judge_all(
    work: Iterable[Work],
    *,
    kind: SandboxSpec,
    interpreter: Interpreter,
    limits: ProgramLimits | None = None,
    jobs: int = 1,
    rules: JudgeRules | None = None,
) -> Iterator[tuple[int, CodeVerdict]]:
    """Judge programs; yields their positions with the judgements, as they are made."""
    every = list(work)
    done: SimpleQueue[tuple[int, CodeVerdict]] = SimpleQueue()
    with JudgePool(kind, interpreter, limits, min(jobs, len(every)), rules) as pool:
        for position, (task, program) in enumerate(every):
            future = pool.submit(task, program)
            future.add_done_callback(
                lambda ended, at=position: (  # type: ignore[misc]
                    None if ended.cancelled() else done.put((at, ended.result()))
                )
            )
        for _ in every:
            yield done.get()
