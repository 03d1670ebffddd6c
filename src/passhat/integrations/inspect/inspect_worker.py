"""inspect in a process of its own: describes a task, and evaluates it.

One JSON object per line on standard input, one or more per line back. Standard input closing is
the sign that passhat has gone: a run that is going on is then cancelled, its log completed.

    {"describe": {"spec"}}                                    {"described": {...}}
    {"evaluate": {"spec", "model", "samples", "epochs", ...}} {"sample": {...}} ... {"done": {...}}
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import queue
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

_MOCK = "mockllm/model"
_LONGEST_LABEL = 40
_MARKUP = re.compile(r"\[/?[a-z ]+\]")


class Trouble(Exception):
    """A problem that the user can fix."""


def load_task(spec: str) -> Any:
    """The task named by ``FILE``, ``MODULE`` or ``PACKAGE/TASK``, with ``@TASK`` or not."""
    from inspect_ai._eval.loader import load_tasks
    from inspect_ai._util.error import PrerequisiteError

    place, _, name = spec.partition("@")
    path = _file_of(place)
    try:
        tasks = load_tasks([f"{path or place}@{name}" if name else path or place])
    except PrerequisiteError as error:
        raise Trouble(_plain(error)) from None
    except Exception as error:
        raise Trouble(f"{place} cannot be loaded: {type(error).__name__}: {error}") from None
    if not tasks:
        what = "has no task in it" if path else "is not a file, a module or a registered task"
        raise Trouble(f"{place} {what}")
    if len(tasks) > 1:
        names = ", ".join(f"{place}@{task.name}" for task in tasks)
        raise Trouble(f"{place} has {len(tasks)} tasks; name one: {names}")
    return tasks[0]


def _file_of(place: str) -> str | None:
    if Path(place).is_file():
        return place
    if "/" in place or place.endswith(".py"):
        return None
    try:
        module = importlib.util.find_spec(place)
    except (ImportError, ValueError):
        return None
    return module.origin if module is not None else None


def number_samples(task: Any) -> list[Any]:
    """The samples of a task; a sample without an id gets its place, as in inspect."""
    samples = list(task.dataset)
    for place, sample in enumerate(samples, 1):
        if sample.id is None:
            sample.id = place
    return samples


def describe(spec: str) -> dict[str, object]:
    """Facts needed before any attempt: samples, scorers, settings, fingerprints."""
    task = load_task(spec)
    samples = number_samples(task)
    inputs = [sample.model_dump(mode="json", exclude={"target"}) for sample in samples]
    scorers = [_name(scorer) for scorer in task.scorer or ()]
    config = task.config.model_dump(mode="json", exclude_none=True)
    return {
        "task": task.name,
        "samples": [
            {"id": str(sample.id), "input": _text(sample.input), "labels": _labels(sample.metadata)}
            for sample in samples
        ],
        "scorers": scorers,
        "config": config,
        "message_limit": task.message_limit,
        "time_limit": task.time_limit,
        "fingerprint": _digest([task.name, str(task.version), inputs, _source_of(task)]),
        "judge_fingerprint": _digest([scorers, [sample.target for sample in samples]]),
    }


def _source_of(task: Any) -> str:
    """The text of the task's file: solver and tools are part of the task."""
    from inspect_ai._eval.task.util import task_file

    path = task_file(task)
    return Path(path).read_text(encoding="utf-8") if path and Path(path).is_file() else ""


def _name(thing: Any) -> str:
    from inspect_ai._util.registry import registry_log_name

    return str(registry_log_name(thing))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(message.text for message in content)


def _labels(metadata: dict[str, Any] | None) -> dict[str, str]:
    return {
        name: str(value)
        for name, value in (metadata or {}).items()
        if isinstance(value, str | int | bool) and len(str(value)) <= _LONGEST_LABEL
    }


def _digest(data: object) -> str:
    text = json.dumps(data, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def evaluate(job: dict[str, Any], say: Callable[[object], None]) -> dict[str, object]:
    """Run some samples for some epochs; report every sample as soon as it ends."""
    from inspect_ai import Epochs, task_with
    from inspect_ai import eval as inspect_eval
    from inspect_ai._util.error import PrerequisiteError
    from inspect_ai.dataset import MemoryDataset

    os.environ["INSPECT_CACHE_DIR"] = job["cache_dir"]  # an attempt is fresh, never from a cache
    _report_samples(say)
    task = load_task(job["spec"])
    ids = set(job["samples"])
    selection = [sample for sample in number_samples(task) if str(sample.id) in ids]
    task = task_with(
        task,
        dataset=MemoryDataset(selection, name=task.dataset.name, location=task.dataset.location),
    )
    reducers = [reducer for reducer in task.epochs_reducer or () if _k(reducer) <= job["epochs"]]
    try:
        logs = inspect_eval(
            task,
            model=_model(job["model"]),
            epochs=Epochs(job["epochs"], reducers or "mean"),
            display="none",
            log_dir=job["log_dir"],
            log_format="eval",
            fail_on_error=False,
            max_samples=job["max_samples"],
            ctl_server=False,
            **job["settings"],
        )
    except (PrerequisiteError, ValueError) as error:
        raise Trouble(_plain(error)) from None
    if not logs:
        return {"status": "cancelled", "error": ""}
    return {"status": logs[0].status, "error": logs[0].error.message if logs[0].error else ""}


def _k(reducer: Any) -> int:
    from inspect_ai._util.registry import registry_params

    return int(registry_params(reducer).get("k", 0))


def _model(name: str) -> Any:
    """A mock model that reports its usage, so that no tokenizer is fetched to count it."""
    if name != _MOCK:
        return name
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def answer(*_: object) -> ModelOutput:
        output = ModelOutput.from_content(_MOCK, f"Default output from {_MOCK}")
        output.usage = ModelUsage()
        return output

    return get_model(_MOCK, custom_outputs=answer, memoize=False)


def _report_samples(say: Callable[[object], None]) -> None:
    from inspect_ai.hooks import Hooks, SampleEnd, hooks

    class SampleReporter(Hooks):
        async def on_sample_end(self, data: SampleEnd) -> None:
            sample = data.sample
            scores = {name: score.value for name, score in (sample.scores or {}).items()}
            say(
                {
                    "sample": str(sample.id),
                    "epoch": sample.epoch,
                    "scores": scores,
                    "error": sample.error.message if sample.error else "",
                    "seconds": sample.total_time,
                    "steps": len(sample.messages),
                }
            )

    hooks(name="passhat", description="tells passhat of every sample that ended")(SampleReporter)


def _plain(error: BaseException) -> str:
    """The message without the colours that inspect marks up."""
    return " ".join(_MARKUP.sub("", str(error)).removeprefix("ERROR: ").split())


def _listen(jobs: queue.Queue[dict[str, Any] | None], busy: threading.Event) -> None:
    """Read requests; when the parent has ended, stop, and cancel a running evaluation."""
    for line in sys.stdin:
        jobs.put(json.loads(line))
    jobs.put(None)
    if busy.is_set():
        os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    """Answer until standard input closes."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of tasks must not be taken for an answer
    lock = threading.Lock()
    sys.path.insert(0, "")  # MODULE may be one of the folder that passhat was called in

    def say(data: object) -> None:
        with lock:
            answers.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")
            answers.flush()

    jobs: queue.Queue[dict[str, Any] | None] = queue.Queue()
    busy = threading.Event()  # while an evaluation is going on
    threading.Thread(target=_listen, args=(jobs, busy), daemon=True).start()
    while (job := jobs.get()) is not None:
        busy.set()
        try:
            if "describe" in job:
                say({"described": describe(job["describe"]["spec"])})
            else:
                say({"done": evaluate(job["evaluate"], say)})
        except Trouble as trouble:
            say({"trouble": str(trouble)})
        except KeyboardInterrupt:
            say({"done": {"status": "cancelled", "error": ""}})
        except Exception as error:
            say({"trouble": f"{type(error).__name__}: {error}"})
        busy.clear()


if __name__ == "__main__":
    main()
