"""Questions as a suite: a file with a task per line, or a list of dicts in Python.

A task has the keys ``id``, ``prompt``, ``answer``, ``grader`` and ``slices``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import msgspec

from passhat.errors import InvalidValue, PasshatError, ReadError, shorten
from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.suites.base import Episode, Judgement, Suite, Task, Turn, fingerprint
from passhat.suites.graders import Grader, check_expected, grader

__all__ = ["JsonLinesSuite", "QuestionSuite", "code_digest", "suite_from_tasks"]


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


class QuestionSuite(Suite):
    """Questions with an expected answer and a grader each."""

    has_tools = False

    def __init__(self, name: str, questions: Sequence[tuple[_Question, object]]) -> None:
        self.name = name
        self._questions = {question.task.id: question for question, _ in questions}
        self.tasks: Sequence[Task] = tuple(question.task for question, _ in questions)
        self.fingerprint = fingerprint([[task.id, task.prompt] for task in self.tasks])
        self.judge_fingerprint = fingerprint([graded for _, graded in questions])

    def episode(self, task: Task, seed: int) -> _OneAnswer:  # noqa: ARG002 - nothing is random here
        return _OneAnswer(self._questions[task.id])


class JsonLinesSuite(QuestionSuite):
    """Questions with an expected answer and a grader each: jsonl:FILE."""

    def __init__(self, path: str) -> None:
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            raise ReadError(f"cannot be read: {error.strerror}.", source=path) from None
        lines = [(i, raw) for i, raw in enumerate(text.splitlines(), 1) if raw.strip()]
        super().__init__(f"jsonl:{path}", _questions(lines, path))


Judge = Callable[[Task, str], "Judgement | bool"]
"""Decides in Python: ``judge(task, answer)`` returns whether the answer passes."""


def suite_from_tasks(
    tasks: Iterable[Mapping[str, object] | Task], judge: Judge | None = None, name: str = "tasks"
) -> QuestionSuite:
    """A suite from a list: dicts with the keys of a line of a jsonl file, or :class:`Task`.

    ``judge`` decides instead of the graders; a ``Task`` has no expected answer, so it needs one.
    """
    questions: list[tuple[_Question, object]] = []
    for position, item in enumerate(tasks, 1):
        if isinstance(item, Task):
            task: Task = item
        elif isinstance(item, Mapping):
            record = {"answer": None, **item} if judge is not None else item
            raw = _encoded(record, name, position)
            if judge is None:
                questions += _questions([(position, raw)], name)
                continue
            line = _decoded(raw, name, position)
            task = _task(line)
        else:
            raise InvalidValue(
                f"task {position} is a {type(item).__name__}; a dict or a Task is needed.",
                hint='A task is {"id": "a", "prompt": "2 + 2?", "answer": "4"}.',
            )
        if judge is None:
            raise InvalidValue(
                f"task {shorten(task.id)} is a Task, which has no expected answer.",
                hint="Give judge=FUNCTION, called with the task and the answer, or use dicts with "
                "an answer.",
            )
        questions.append((_Question(task, task, _graded_by(judge)), code_digest(judge)))
    if not questions:
        raise InvalidValue("the list of tasks is empty.")
    repeated = [i for i, n in Counter(q.task.id for q, _ in questions).items() if n > 1]
    if repeated:
        raise InvalidValue(f"task {shorten(repeated[0])} is listed twice.")
    return QuestionSuite(name, questions)


def _graded_by(judge: Judge) -> Grader:
    def grade(answer: str, task: object) -> Judgement:
        assert isinstance(task, Task)
        verdict = judge(task, answer)
        if isinstance(verdict, Judgement):
            return verdict
        if verdict:
            return Judgement.passed()
        return Judgement.failed(FailureCategory.WRONG_ANSWER)

    return grade


def code_digest(function: object) -> str:
    """A digest of a function's code, so that another function is another judge or agent."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if code is None:
        return fingerprint([name])
    # Constants may hold nested code objects, whose text names memory addresses.
    constants = [repr(c) if not hasattr(c, "co_code") else c.co_code.hex() for c in code.co_consts]
    return fingerprint([name, code.co_code.hex(), constants, list(code.co_names)])


def _encoded(record: Mapping[str, object], source: str, position: int) -> bytes:
    try:
        return msgspec.json.encode(dict(record))
    except (TypeError, ValueError) as error:
        raise ReadError(
            f"cannot be kept as JSON ({error}).",
            source=source,
            line=position,
            hint='A task is plain data: {"id": "a", "prompt": "2 + 2?", "answer": "4"}.',
        ) from None


def _task(line: _Line) -> Task:
    labels = {key: str(value) for key, value in (line.slices or {}).items()}
    return Task(str(line.id), line.prompt, MappingProxyType(labels))


def _questions(lines: Iterable[tuple[int, bytes]], source: str) -> list[tuple[_Question, object]]:
    """Every line with its grader; errors name the source and the line."""
    questions: dict[str, tuple[_Question, object]] = {}
    graders: dict[str, Grader] = {}
    for number, raw in lines:
        line = _decoded(raw, source, number)
        task = _task(line)
        if task.id in questions:
            raise ReadError(f"task {shorten(task.id)} is listed twice.", source=source, line=number)
        try:
            judge = graders.setdefault(line.grader, grader(line.grader))
            check_expected(line.grader, line.answer)
        except PasshatError as error:
            raise ReadError(error.message, source=source, line=number, hint=error.hint) from None
        questions[task.id] = (_Question(task, line.answer, judge), [line.answer, line.grader])
    if not questions:
        raise ReadError("holds no task.", source=source)
    return list(questions.values())


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
