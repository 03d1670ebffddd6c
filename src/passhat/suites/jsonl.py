"""A suite in a file: one task per line, ``{"id", "prompt", "answer", "grader", "slices"}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import msgspec

from passhat.errors import PasshatError, ReadError, shorten
from passhat.stats.outcomes import MissingReason
from passhat.suites.base import Episode, Judgement, Suite, Task, Turn, fingerprint
from passhat.suites.graders import Grader, check_expected, grader

__all__ = ["JsonLinesSuite"]


class _Line(msgspec.Struct):
    id: str | int
    prompt: str
    answer: object = None
    grader: str = "exact"
    slices: dict[str, str | int | float | bool] | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    task: Task
    expected: object
    judge: Grader


class _OneAnswer(Episode):
    """Asks once, takes the answer, grades it."""

    def __init__(self, question: _Question) -> None:
        self._question = question
        self._answer: str | None = None

    def open(self) -> Turn:
        prompt = self._question.task.prompt
        return Turn(prompt, said=prompt)

    def reply(self, answer: str) -> Turn | None:
        self._answer = answer
        return None

    def judge(self) -> Judgement:
        if self._answer is None:
            return Judgement.missing(MissingReason.JUDGE_ERROR, "judged before it was answered")
        return self._question.judge(self._answer, self._question.expected)


class JsonLinesSuite(Suite):
    """Questions with an expected answer and a grader each."""

    has_tools = False

    def __init__(self, path: str) -> None:
        self.name = f"jsonl:{path}"
        lines = list(_read(path))
        self._questions = {question.task.id: question for question, _ in lines}
        self.tasks: Sequence[Task] = tuple(question.task for question, _ in lines)
        self.fingerprint = fingerprint([[one.id, one.prompt] for one in self.tasks])
        self.judge_fingerprint = fingerprint([[line.answer, line.grader] for _, line in lines])

    def episode(self, task: Task, seed: int) -> _OneAnswer:  # noqa: ARG002 - nothing is random here
        return _OneAnswer(self._questions[task.id])


def _read(path: str) -> list[tuple[_Question, _Line]]:
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}.", source=path) from None
    found: dict[str, tuple[_Question, _Line]] = {}
    graders: dict[str, Grader] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw.strip():
            continue
        line = _decoded(raw, path, number)
        name = str(line.id)
        if name in found:
            raise ReadError(f"task {shorten(name)} stands there twice.", source=path, line=number)
        try:
            judge = graders.setdefault(line.grader, grader(line.grader))
            check_expected(line.grader, line.answer)
        except PasshatError as error:
            raise ReadError(error.message, source=path, line=number, hint=error.hint) from None
        labels: Mapping[str, str] = {key: str(value) for key, value in (line.slices or {}).items()}
        task = Task(name, line.prompt, MappingProxyType(dict(labels)))
        found[name] = (_Question(task, line.answer, judge), line)
    if not found:
        raise ReadError("holds no task.", source=path)
    return list(found.values())


def _decoded(raw: bytes, path: str, number: int) -> _Line:
    try:
        return msgspec.json.decode(raw, type=_Line)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ReadError(
            f"is not a task ({error}).",
            source=path,
            line=number,
            hint='A task reads {"id": "a", "prompt": "2 + 2?", "answer": 4, "grader": "numeric"}.',
        ) from None
