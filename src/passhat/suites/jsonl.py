"""Questions as a suite: a file with a task per line, or a list of dicts in Python.

A task has the keys ``id``, ``prompt``, ``answer``, ``grader`` and ``slices``; it may also have
``system``, ``messages``, ``tools``, ``choices``, ``images``, ``response_format``, several
``graders`` with weights, or a ``rubric`` that a model judges by. Short values of other keys are
labels of the task, as those in ``slices`` are.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import msgspec

from passhat.errors import InvalidValue, PasshatError, ReadError, shorten
from passhat.stats.outcomes import MissingReason
from passhat.suites.base import (
    RUBRIC_BY,
    Episode,
    Judgement,
    Suite,
    Task,
    TaskCheck,
    ToolSpec,
    Turn,
    fingerprint,
)
from passhat.suites.graders import (
    LETTERS,
    Grader,
    check_expected,
    check_judge,
    choice_grader,
    grader,
    load_function,
    read_expected_json,
    weigh_graders,
)
from passhat.suites.tool_calls import RESPOND, Unreadable, read_call, write_call


class _Graded(msgspec.Struct, forbid_unknown_fields=True):
    """A grader of a task with several graders."""

    grader: str
    answer: object = None
    weight: float = 1.0


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    """A tool of a task: its result is fixed, or computed by ``function``."""

    name: str
    description: str = ""
    parameters: dict[str, object] = {}
    result: object = None
    function: str | None = None


class _Line(msgspec.Struct):
    id: str | int
    prompt: str = ""
    answer: object = None
    grader: str = "exact"
    slices: dict[str, str | int | float | bool] | None = None
    system: str | None = None
    messages: list[dict[str, object]] = []
    tools: list[_Tool] = []
    choices: list[str] = []
    images: list[str] = []
    response_format: dict[str, object] | None = None
    graders: list[_Graded] = []
    pass_at: float = 1.0
    rubric: str | None = None
    judge: str | None = None
    repeats: int = 3


_KEYS = _Line.__struct_fields__
_OTHER_NAMES = {
    **dict.fromkeys(("expected", "target", "gold", "label", "reference", "solution"), "answer"),
    **dict.fromkeys(("ground_truth", "expected_output", "output"), "answer"),
    **dict.fromkeys(("question", "input", "query", "instruction"), "prompt"),
}
"""Names that other tools have for keys of a task."""
_GRADED_BY = frozenset(("grader", "graders", "choices", "rubric"))
"""Keys by which a task names its own grader."""
_LONGEST_LABEL = 80
_LONGEST_ID = 40
_ID = re.compile(r"id$|^(task|name|key|number)$", re.IGNORECASE)
"""Keys that may have been meant as the id."""


@dataclass(frozen=True, slots=True)
class _Question:
    task: Task
    expected: object
    judge: Grader
    line: _Line | None = None

    @property
    def runs_code(self) -> bool:
        """Whether a function that the file names decides."""
        if self.line is None:
            return False
        words = [self.line.grader, *(part.grader for part in self.line.graders)]
        return any(word.startswith("python:") for word in words)

    def grade(self, answer: str) -> Judgement:
        """The grader's verdict, with the expected answer."""
        judgement = self.judge(answer, self.expected)
        line = self.line
        if line is None or judgement.expected or not (expected := _expected_text(line)):
            return judgement
        if judgement is Judgement.passed():  # a million times the same: dataclasses.replace is slow
            return _passed(expected)
        return replace(judgement, expected=expected)


@lru_cache(maxsize=4096)
def _plain_turn(prompt: str) -> Turn:
    return Turn(prompt, said=prompt)


@lru_cache(maxsize=4096)
def _passed(expected: str) -> Judgement:
    return replace(Judgement.passed(), expected=expected)


class GraderPool(Protocol):
    """Where graders that are functions of the user's are called, if not in this process."""

    def start(self) -> object: ...

    async def grade(self, attempt: object, answer: str) -> Judgement: ...

    async def close(self) -> None: ...


class _OneAnswer(Episode):
    """Asks once, lets tools be called, takes the answer, grades it."""

    def __init__(
        self,
        question: _Question,
        judges: Mapping[str, RubricJudge],
        pool: GraderPool | None = None,
    ) -> None:
        self._question = question
        self._pool = pool
        self._line = question.line
        self._judges = judges
        self._attempt: object = None
        self._answer: str | None = None

    def join(self, attempt: object) -> None:
        self._attempt = attempt

    def open(self) -> Turn:
        prompt, line = self._question.task.prompt, self._line
        if line is None or not (
            line.system or line.tools or line.messages or line.images or line.response_format
        ):
            return _plain_turn(prompt)
        earlier = [
            f"{entry.get('role', 'user')}: {entry.get('content')}" for entry in line.messages
        ]
        tools = tuple(
            ToolSpec(tool.name, tool.description, tool.parameters or _NO_PARAMETERS)
            for tool in line.tools
        )
        parts = [line.system or "", _list_tools(tools), *earlier, prompt]
        return Turn(
            "\n\n".join(part for part in parts if part),
            system=line.system,
            said=prompt,
            tools=tools,
            messages=tuple(line.messages),
            images=tuple(line.images),
            response_format=line.response_format,
        )

    def reply(self, answer: str) -> Turn | None:
        self._answer = answer
        if self._line is None or not self._line.tools:
            return None
        try:
            call = read_call(answer)
        except Unreadable:
            return None  # plain text is the answer
        if call.name == RESPOND:
            self._answer = str(call.arguments.get("content", ""))
            return None
        tool = next((tool for tool in self._line.tools if tool.name == call.name), None)
        if tool is None:
            text = f"Tool error: there is no tool {call.name!r}"
            return Turn(text, result=text)
        result = tool.result
        if tool.function is not None:
            try:
                result = load_function(tool.function.removeprefix("python:"))(**call.arguments)
            except Exception as error:
                text = f"Tool error: {type(error).__name__}: {error}"
                return Turn(text, result=text)
        text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
        return Turn(f"Tool result: {text}", result=text)

    def judge(self) -> Judgement | Awaitable[Judgement]:
        if self._answer is None:
            return Judgement.missing(MissingReason.JUDGE_ERROR, "judged before it was answered")
        line = self._line
        if line is not None and line.rubric is not None:
            judge = self._judges.get(line.judge or "")
            if judge is None:
                return Judgement.missing(MissingReason.JUDGE_ERROR, f"no judge {line.judge!r}")
            question = self._question.task.prompt
            return judge(self._attempt, question, self._answer, line.rubric, line.repeats)
        if self._pool is not None and self._question.runs_code:
            return self._pool.grade(self._attempt, self._answer)
        return self._question.grade(self._answer)


def _expected_text(line: _Line) -> str:
    """The expected answer of a task as it is shown; a value that is not text as JSON."""
    expected = [part.answer for part in line.graders] if line.graders else line.answer
    if expected is None or isinstance(expected, str):
        return expected or ""
    return msgspec.json.encode(expected).decode()


RubricJudge = Callable[[object, str, str, str, int], Awaitable[Judgement]]
"""(attempt, question, answer, rubric, repeats) to a judgement by a model."""

_NO_PARAMETERS: Mapping[str, object] = MappingProxyType({"type": "object", "properties": {}})


def _list_tools(tools: Sequence[ToolSpec]) -> str:
    """The tools in text, for agents without tool calling."""
    if not tools:
        return ""
    lines = [
        f"- {tool.name}: {tool.description} parameters: "
        f"{msgspec.json.encode(dict(tool.parameters)).decode()}"
        for tool in tools
    ]
    form = write_call("tool_name", {"parameter": "value"})
    return "\n".join(
        ["Tools:", *lines, f"Call a tool by answering {form}; any other answer is final."]
    )


class QuestionSuite(Suite):
    """Questions with an expected answer and a grader each."""

    def __init__(self, name: str, questions: Sequence[tuple[_Question, object]]) -> None:
        self.name = name
        lines = [question.line for question, _ in questions if question.line is not None]
        self.has_tools = any(line.tools for line in lines)
        self.single_turn = not self.has_tools
        words = dict.fromkeys(line.judge or "" for line in lines if line.rubric is not None)
        self.judge_words: tuple[str, ...] = tuple(words)
        self.judges: Mapping[str, RubricJudge] = {}
        if self.judge_words:
            self.judge = f"{name}, {RUBRIC_BY} {', '.join(self.judge_words)}"
        self._questions = {question.task.id: question for question, _ in questions}
        self.runs_code = any(question.runs_code for question, _ in questions)
        self.grader_pool: GraderPool | None = None
        self.tasks: Sequence[Task] = tuple(question.task for question, _ in questions)
        contents = [_task_data(question) for question, _ in questions]
        self.fingerprint = fingerprint(contents)
        self.judge_fingerprint = fingerprint([key for _, key in questions])

    def episode(self, task: Task, seed: int) -> _OneAnswer:  # noqa: ARG002 - nothing is random here
        return _OneAnswer(self._questions[task.id], self.judges, self.grader_pool)

    def grade(self, task: str, answer: str) -> Judgement:
        """The verdict of a task's grader on an answer."""
        return self._questions[task].grade(answer)

    def check(self, tasks: Sequence[Task]) -> Sequence[TaskCheck]:  # noqa: ARG002
        if self.grader_pool is not None:
            self.grader_pool.start()
        return ()

    async def close(self) -> None:
        if self.grader_pool is not None:
            await self.grader_pool.close()


def _task_data(question: _Question) -> list[object]:
    """All that the agent sees of a question; only the prompt where there is nothing else."""
    task, line = question.task, question.line
    parts: list[object] = [task.id, task.prompt]
    if line is not None:
        settings = {
            "system": line.system,
            "messages": line.messages,
            "tools": msgspec.to_builtins(line.tools),
            "images": line.images,
            "response_format": line.response_format,
        }
        parts += [settings] if any(settings.values()) else []
    return parts


class JsonLinesSuite(QuestionSuite):
    """Questions with an expected answer and a grader each: jsonl:FILE."""

    def __init__(self, path: str) -> None:
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            raise ReadError(f"cannot be read: {error.strerror}.", source=path) from None
        if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # by PowerShell
            text = text.decode("utf-16", "replace").encode()
        lines = enumerate(text.removeprefix(codecs.BOM_UTF8).splitlines(), 1)
        super().__init__(
            f"jsonl:{path}", _questions(((i, raw) for i, raw in lines if raw.strip()), path)
        )


Judge = Callable[[Task, str], "Judgement | bool | float"]
"""Decides in Python: ``judge(task, answer)`` returns whether the answer passes."""


def suite_from_tasks(
    tasks: Iterable[Mapping[str, object] | Task],
    judge: Judge | None = None,
    name: str = "tasks",
    default_grader: str | Callable[[str, object], object] | None = None,
) -> QuestionSuite:
    """A suite from a list: dicts with the keys of a line of a jsonl file, or :class:`Task`.

    ``judge`` decides instead of the graders; a ``Task`` has no expected answer, so it needs one.
    ``default_grader`` is the grader of every dict that names none.
    """
    if judge is not None:
        check_judge(judge)
    graders: dict[str, Grader] = {}
    default_word = _default_word(default_grader, graders)
    questions: list[tuple[_Question, object]] = []
    for position, item in enumerate(tasks, 1):
        if isinstance(item, Task):
            task: Task = item
        elif isinstance(item, Mapping):
            record = {"answer": None, **item} if judge is not None else item
            if default_word is not None and not _GRADED_BY.intersection(item):
                record = {**item, "grader": default_word}
            raw = _encode(record, name, position)
            if judge is None:
                questions += _questions([(position, raw)], name, graders)
                continue
            line = _decode(raw, name, position)
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
        questions.append((_Question(task, task, _make_grader(judge)), code_digest(judge)))
    if not questions:
        raise InvalidValue("the list of tasks is empty.")
    duplicates = [i for i, n in Counter(q.task.id for q, _ in questions).items() if n > 1]
    if duplicates:
        raise InvalidValue(f"task {shorten(duplicates[0])} is listed twice.")
    return QuestionSuite(name, questions)


def _default_word(
    default_grader: str | Callable[[str, object], object] | None, graders: dict[str, Grader]
) -> str | None:
    """The name of the default grader; a function gets one by its code, among ``graders``."""
    if default_grader is None or isinstance(default_grader, str):
        return default_grader
    word = f"function {code_digest(default_grader)}"
    graders[word] = grader(default_grader)
    return word


def _make_grader(judge: Judge) -> Grader:
    def grade(answer: str, task: object) -> Judgement:
        assert isinstance(task, Task)
        return Judgement.from_result(judge(task, answer))

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


def _encode(record: Mapping[str, object], source: str, position: int) -> bytes:
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
    prompt = line.prompt
    if line.choices:
        options = [f"{letter}) {text}" for letter, text in zip(LETTERS, line.choices, strict=False)]
        instruction = "Answer with the letter of one choice."
        prompt = "\n".join([prompt, *options, instruction])
    return Task(str(line.id), prompt, MappingProxyType(labels))


def _grader_of(line: _Line, graders: dict[str, Grader]) -> Grader:
    """The grader of a line, or several with weights; checks their expected values."""
    if line.rubric is not None:
        if not line.judge:
            raise InvalidValue(
                "a rubric needs the agent that judges.", hint='As in "judge": "openai:gpt-5-mini".'
            )
        if not line.rubric.strip():
            raise InvalidValue("the rubric is empty, so there is nothing to judge by.")
        if line.repeats < 1:
            raise InvalidValue(f"repeats must be at least 1, not {line.repeats}.")
        return _load_grader("exact", graders)
    if line.choices:
        return choice_grader(line.choices, line.answer)
    if not line.graders:
        check_expected(line.grader, line.answer)
        return _load_grader(line.grader, graders)
    if not 0 < line.pass_at <= 1:
        raise InvalidValue(
            f"pass_at must be above 0 and at most 1, not {line.pass_at:g}.",
            hint="It is the share of the graders' weights that must pass.",
        )
    parts = []
    for part in line.graders:
        check_expected(part.grader, part.answer)
        if not part.weight > 0:
            raise InvalidValue(f"the weight of {part.grader} must be more than 0.")
        grade_one = _load_grader(part.grader, graders)
        parts.append((part.grader, grade_one, part.answer, part.weight))
    return weigh_graders(parts, line.pass_at)


def _load_grader(word: str, graders: dict[str, Grader]) -> Grader:
    """The grader of this name, which is made once."""
    if word not in graders:
        graders[word] = grader(word)
    return graders[word]


def _questions(
    lines: Iterable[tuple[int, bytes]], source: str, graders: dict[str, Grader] | None = None
) -> list[tuple[_Question, object]]:
    """Every line with its grader; errors name the source and the line."""
    questions: dict[str, tuple[_Question, object]] = {}
    graders = {} if graders is None else graders
    for number, raw in lines:
        line = _decode(raw, source, number)
        task = _task(line)
        if task.id in questions:
            raise ReadError(f"task {shorten(task.id)} is listed twice.", source=source, line=number)
        try:
            line = _with_json(line)
            judge = _grader_of(line, graders)
        except PasshatError as error:
            raise ReadError(error.message, source=source, line=number, hint=error.hint) from None
        questions[task.id] = (_Question(task, line.answer, judge, line), _grading_key(line))
    if not questions:
        raise ReadError("holds no task.", source=source)
    return list(questions.values())


def _with_json(line: _Line) -> _Line:
    """The line with expected JSON values that were written as text."""
    replace_fields = msgspec.structs.replace
    if line.grader == "json" and not (line.graders or line.choices or line.rubric):
        return replace_fields(line, answer=read_expected_json(line.answer))
    parts = [
        replace_fields(part, answer=read_expected_json(part.answer))
        if part.grader == "json"
        else part
        for part in line.graders
    ]
    return replace_fields(line, graders=parts)


def _grading_key(line: _Line) -> list[object]:
    """All that decides about an answer."""
    key: list[object] = [line.answer, line.grader]
    if line.graders or line.choices or line.rubric is not None:
        parts = msgspec.to_builtins(line.graders)
        key.append([parts, line.pass_at, line.choices, line.rubric, line.judge, line.repeats])
    return key


def _meant_key(key: str, data: Mapping[str, object]) -> str | None:
    """The key that an unknown one stands for: a slip, or another tool's name for an absent one."""
    others = {name: meant for name, meant in _OTHER_NAMES.items() if meant not in data}
    names = {**others, **dict(zip(_KEYS, _KEYS, strict=True))}
    near = get_close_matches(key.lower(), names, 1, 0.8)
    return names[near[0]] if near and key.lower() not in _OTHER_NAMES.keys() - others else None


def _labels(extra: Mapping[str, object]) -> dict[str, str | int | float | bool]:
    """Short values of further keys; ``labels`` and ``metadata`` hold several."""
    labels: dict[str, str | int | float | bool] = {}
    for key, value in extra.items():
        if key in ("labels", "metadata") and isinstance(value, dict):
            labels |= _labels(value)
        elif isinstance(value, bool | int | float) or (
            isinstance(value, str) and len(value) <= _LONGEST_LABEL and value.isprintable()
        ):
            labels[key] = value
    return labels


def _id_of(prompt: str) -> str:
    """The id of a task that has none: its prompt, whatever its place in the file."""
    text = " ".join(prompt.split())
    return text if len(text) <= _LONGEST_ID else f"{text[:32]} {fingerprint([prompt])[:8]}"


def _decode(raw: bytes, path: str, number: int) -> _Line:
    refuse = partial(ReadError, source=path, line=number)
    try:
        data = msgspec.json.decode(raw)
        if isinstance(data, dict) and not any(_ID.search(key) for key in data):
            data |= {"id": _id_of(data["prompt"])} if isinstance(data.get("prompt"), str) else {}
        line = msgspec.convert(data, _Line)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        hint = 'A task reads {"id": "a", "prompt": "2 + 2?", "answer": 4, "grader": "numeric"}.'
        if raw.lstrip().startswith(b"["):
            hint = "Write a line for each task, not a list: jq -c '.[]' LIST.json > tasks.jsonl"
        raise refuse(f"is not a task ({error}).", hint=hint) from None
    extra = {key: value for key, value in data.items() if key not in _KEYS}
    for key in extra:
        if (meant := _meant_key(key, data)) is not None:
            raise refuse(
                f"has the unknown key {key!r}. Did you mean {meant!r}?",
                hint=f"Keys of a task: {', '.join(_KEYS)}. Other keys are labels.",
            )
    line.slices = {**_labels(extra), **(line.slices or {})}
    for key in ("choices", "graders"):
        if key in data and not data[key]:
            hint = f"Leave out {key}, or list at least one."
            raise refuse(f"is not a task ({key} is empty).", hint=hint)
    if not line.prompt and not line.messages:
        raise refuse("is not a task (it has neither a prompt nor messages).")
    return line
