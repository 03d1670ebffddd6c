"""Many judgements at once: some workers, each with its own sandboxes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from queue import Empty, SimpleQueue

from passhat.judging.examination import Examiner
from passhat.judging.interpreters import Interpreter
from passhat.judging.judgement import Judgement
from passhat.judging.limits import Limits
from passhat.judging.sandbox import SandboxKind
from passhat.judging.tasks import CodeTask
from passhat.outcomes.words import MissingReason

__all__ = ["judge_all"]

Work = tuple[CodeTask, str]


def judge_all(
    work: Iterable[Work],
    *,
    kind: SandboxKind,
    interpreter: Interpreter,
    limits: Limits | None = None,
    jobs: int = 1,
) -> Iterator[tuple[int, Judgement]]:
    """Judge programs; yields their positions with the judgements, as they are made.

    Each is judged once. What a broken sandbox interrupts is judged again in a new one.
    """
    waiting: SimpleQueue[tuple[int, Work]] = SimpleQueue()
    count = 0
    for count, one in enumerate(work, 1):
        waiting.put((count - 1, one))
    done: SimpleQueue[tuple[int, Judgement]] = SimpleQueue()
    stopping = threading.Event()
    examiners = [Examiner(kind, interpreter, limits or Limits()) for _ in range(min(jobs, count))]
    threads = [
        threading.Thread(target=_work, args=(examiner, waiting, done, stopping), daemon=True)
        for examiner in examiners
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(count):
            yield done.get()
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def _work(
    examiner: Examiner,
    waiting: SimpleQueue[tuple[int, Work]],
    done: SimpleQueue[tuple[int, Judgement]],
    stopping: threading.Event,
) -> None:
    try:
        while not stopping.is_set():
            try:
                position, (task, program) = waiting.get_nowait()
            except Empty:
                return
            try:
                judgement = examiner.judge(task, program)
            except Exception as error:  # a bug of ours must not lose the other judgements
                examiner.close()
                detail = f"{type(error).__name__}: {error}"
                judgement = Judgement.missing(MissingReason.JUDGE_ERROR, detail)
            done.put((position, judgement))
    finally:
        examiner.close()
