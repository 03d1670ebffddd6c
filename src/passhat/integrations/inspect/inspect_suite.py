"""``inspect:FILE[@TASK]``: inspect makes the attempts, as epochs, that the store does not have.

A suite that runs itself: it has ``run`` and the runner hands the plan over. Resume is the same
subtraction as everywhere, planned attempts minus those in the store.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from passhat.agents.base import Agent, AgentFault, AttemptInfo, Session
from passhat.errors import InvalidValue, MissingExtra, PasshatError
from passhat.integrations.inspect.samples import load_sample, with_conversation
from passhat.protocol import Protocol
from passhat.readers.base import ReadOptions
from passhat.readers.formats.inspect_ai import NO_DECODING, InspectReader, value_of
from passhat.readers.parsing import scalars
from passhat.readers.sources import Source
from passhat.readers.store import attempt_record
from passhat.readers.zip_members import Members
from passhat.runner.redaction import Redactor
from passhat.runner.run import Harness, Progress, RunPlan, Seen, Stop, expire_leases
from passhat.stats.outcomes import Attempt, FailureCategory, MissingReason
from passhat.store import AttemptRecord, Store
from passhat.suites.base import Judgement, Settings, Task
from passhat.suites.registry import end_child, last_error_line

_ENDED = ("Z", "X", "x")
"""States of a process that is over."""


def this_owner() -> str:
    """Host, process and its start: a process id alone is used again by others."""
    return f"{socket.gethostname()}/{os.getpid()}/{_start_of(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Whether an owner on this machine no longer runs; false for owners on other machines."""
    host, pid, start, *_ = [*owner.split("/"), "", ""]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _start_of(int(pid)) != start


def _start_of(pid: int) -> str:
    """Start time of a process, where the system reports it.

    One that has ended but was not waited for is still listed; it runs no more.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in _ENDED else fields[18]
    except (OSError, ValueError, IndexError):
        return ""


_ASKED, _TAKEN = "asked.json", "taken.json"
_EPOCH = re.compile(r"_epoch_(\d+)\.json$")


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples that lack the same number of attempts, and the numbers of those attempts."""

    numbers: Mapping[str, Sequence[int]]
    folder: Path

    @property
    def epochs(self) -> int:
        return len(next(iter(self.numbers.values())))

    def number_of(self, sample: str, epoch: int) -> int:
        return self.numbers[sample][epoch - 1]

    def write(self) -> None:
        """Write the requested attempts to disk first, so that a crash does not lose them."""
        data = {"owner": this_owner(), "numbers": {k: list(v) for k, v in self.numbers.items()}}
        (self.folder / _ASKED).write_text(json.dumps(data), encoding="utf-8")

    def records(self, scorer: str | None, redact: Redactor) -> Iterator[AttemptRecord]:
        """The attempts in the log; a sample that never ran is not among them."""
        for log in sorted(self.folder.glob("*.eval")):
            source = Source(str(log), log)
            members = Members(source)
            for run in InspectReader().read(source, ReadOptions(scorer=scorer)):
                judge = scorer or run.protocol.judge or ""
                for attempt, number in self._number_attempts(run.attempts or ()):
                    record = msgspec.structs.replace(attempt_record(attempt), number=number)
                    sample = load_sample(members, attempt.extras["transcript"])
                    yield with_conversation(record, sample, judge, redact)

    def _number_attempts(self, attempts: Iterable[Attempt]) -> Iterator[tuple[Attempt, int]]:
        for attempt in attempts:
            if attempt.why == MissingReason.STOPPED:
                continue  # in flight when inspect was interrupted: to be made again
            epoch = _EPOCH.search(attempt.extras.get("transcript", ""))
            if epoch is not None and attempt.task in self.numbers:
                yield attempt, self.number_of(attempt.task, int(epoch[1]))

    def mark_read(self) -> None:
        """Note that the log is in the store; it stays there for inspect's own viewer."""
        (self.folder / _ASKED).rename(self.folder / _TAKEN)


def batches(folder: Path, missing: Iterable[tuple[str, int]]) -> list[Batch]:
    """The fewest evaluations that cover the missing attempts: one per number of missing ones."""
    numbers: dict[str, list[int]] = {}
    for task, number in sorted(missing, key=lambda attempt: attempt[1]):
        numbers.setdefault(task, []).append(number)
    by_count: dict[int, dict[str, list[int]]] = {}
    for task, attempts in numbers.items():
        by_count.setdefault(len(attempts), {})[task] = attempts
    folder.mkdir(parents=True, exist_ok=True)
    return [
        Batch(samples, Path(tempfile.mkdtemp(prefix="eval-", dir=folder)))
        for _, samples in sorted(by_count.items(), reverse=True)
    ]


def load_unfinished(folder: Path) -> Iterator[Batch]:
    """Evaluations whose log was not read, because passhat was killed."""
    for path in sorted(folder.glob(f"eval-*/{_ASKED}")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if is_gone(data["owner"]):
            yield Batch(data["numbers"], path.parent)


class InspectModel(Agent):
    """A model inside inspect, for inspect suites: inspect:openai/gpt-4o, inspect:mockllm/model."""

    harness = "inspect"

    def __init__(self, model: str) -> None:
        if "/" not in model:
            raise InvalidValue(
                f"{model!r} is not a model of inspect.",
                hint="Models read PROVIDER/MODEL, as in inspect:openai/gpt-4o.",
            )
        self.model = model
        self.name = f"inspect:{model}"

    async def session(self, attempt: AttemptInfo) -> Session:
        """Never called: inspect calls its models itself."""
        raise AgentFault(
            FailureCategory.AGENT_ERROR,
            f"{self.name} only attempts suites that inspect runs, not {attempt.task}",
        )


class InspectProcess:
    """An interpreter with inspect loaded; the same that passhat runs in."""

    def __init__(self) -> None:
        if importlib.util.find_spec("inspect_ai") is None:
            raise MissingExtra("Running inspect tasks", extra="inspect")
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed together with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "passhat.integrations.inspect.inspect_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for passhat, which passes it on
        )
        self._errors = errors
        self._end = weakref.finalize(self, end_child, self._process, errors)

    def ask(self, what: str, job: Mapping[str, object]) -> None:
        """Send a question; the answers are then read one by one."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the next answer reports that the process ended
            self._process.stdin.write(json.dumps({what: job}).encode() + b"\n")
            self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The next answer; waits for it."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise InvalidValue(
                f"inspect ended without an answer: {last_error_line(self._errors)}",
                hint="Try the task by itself, with: inspect eval",
            )
        message: dict[str, Any] = json.loads(line)
        return message

    def interrupt(self) -> None:
        """Interrupt inspect, as Ctrl-C does: it cancels the run and completes its log."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._end()


_LOOK_SECONDS = 0.2
"""How often a request to stop is looked for while inspect is at work."""


class InspectSuite(Harness):
    """A task of inspect, run by inspect: inspect:FILE@TASK, inspect:inspect_evals/TASK."""

    harness = "inspect"

    def __init__(self, spec: str) -> None:
        self._spec = spec
        self._settings = Settings()
        self._process: InspectProcess | None = None

    def configure(self, settings: Settings) -> None:
        """Hand limits and temperature to inspect; by default the task's own are used."""
        if settings.user:
            raise InvalidValue("--user means nothing to an inspect task: it brings its own.")
        self._settings = settings

    @cached_property
    def name(self) -> str:
        place, _, _ = self._spec.partition("@")
        return f"inspect:{place}@{self._described['task']}"

    @cached_property
    def tasks(self) -> Sequence[Task]:
        return tuple(
            Task(sample["id"], sample["input"], MappingProxyType(sample["labels"]))
            for sample in self._described["samples"]
        )

    @cached_property
    def fingerprint(self) -> str:
        return str(self._described["fingerprint"])

    @cached_property
    def judge_fingerprint(self) -> str:
        return str(self._described["judge_fingerprint"])

    @property
    def protocol(self) -> Protocol:
        """The settings that inspect was given, named as in a log of inspect."""
        settings = self._settings
        limit = settings.max_steps or self._described["message_limit"]
        seconds = settings.attempt_seconds or self._described["time_limit"]
        decoding = scalars(self._described["config"], *NO_DECODING)
        if settings.temperature is not None:
            decoding["temperature"] = settings.temperature
        return Protocol(
            suite=self.name,
            suite_fingerprint=self.fingerprint,
            tests_fingerprint=self.judge_fingerprint,
            decoding=decoding,
            max_steps=limit,
            attempt_seconds=seconds,
            judge=self._scorer,
        )

    async def run(self, plan: RunPlan, store: Store, stop: Stop, seen: Seen) -> Progress:
        """Let inspect make every planned attempt that the store does not have yet."""
        assert isinstance(plan.agent, InspectModel)
        run = plan.record.id
        store.begin(plan.record, plan.attempts)
        folder = Path(store.path).parent / "inspect" / run
        left = list(load_unfinished(folder))
        if left:
            await expire_leases(store, run, stop, plan.tell)
        for batch in left:
            self._read_log(batch, plan, store, store.claim(run, _attempts(batch)))
            store.release(run)
        existing = store.load_attempts(run)
        claims = store.claim(
            run, [attempt for attempt in plan.order_attempts() if attempt not in existing]
        )
        progress = Progress(total=len(claims))
        try:
            for batch in batches(folder, claims):
                if not stop.asked:
                    await self._evaluate(batch, plan, store, stop, seen, progress)
        finally:
            store.release(run)
            self.close_process()
        return progress

    async def _evaluate(
        self,
        batch: Batch,
        plan: RunPlan,
        store: Store,
        stop: Stop,
        seen: Seen,
        progress: Progress,
    ) -> None:
        assert isinstance(plan.agent, InspectModel)
        batch.write()
        process = self._start_process()
        process.ask("evaluate", self._job(batch, plan.agent.model, plan.jobs))
        stop.when_impatient(process.kill)
        is_interrupted = False
        end: Mapping[str, Any] = {}
        failed = ""
        while not end and not failed:
            asking = asyncio.create_task(asyncio.to_thread(process.answer))
            while not asking.done():
                await asyncio.wait({asking}, timeout=_LOOK_SECONDS)
                if stop.asked and not is_interrupted and not asking.done():
                    process.interrupt()
                    is_interrupted = True
            try:
                message = asking.result()
            except PasshatError as error:
                message = (
                    {"done": {"status": "cancelled"}} if stop.asked else {"trouble": str(error)}
                )
            if "sample" in message and not is_interrupted:
                record = self._preview(batch, message)
                progress.count(record)
                seen(record, progress)
            end, failed = message.get("done", {}), message.get("trouble", "")
        self._read_log(batch, plan, store, _attempts(batch))
        problem = failed or (end.get("error", "") if end.get("status") == "error" else "")
        if problem:
            raise InvalidValue(f"inspect could not run {self.name}: {problem.rstrip('.')}.")

    def _read_log(
        self, batch: Batch, plan: RunPlan, store: Store, attempts: Sequence[tuple[str, int]]
    ) -> None:
        """Read the log into the store; attempts that are not in it remain to be made."""
        claims = set(attempts)
        records = [
            record
            for record in batch.records(self._scorer, plan.redact)
            if (record.task, record.number) in claims
        ]
        store.finish(plan.record.id, records)
        batch.mark_read()

    def _job(self, batch: Batch, model: str, jobs: int) -> dict[str, object]:
        limits = self._settings
        settings = {
            "message_limit": limits.max_steps,
            "time_limit": None
            if limits.attempt_seconds is None
            else math.ceil(limits.attempt_seconds),
            "temperature": limits.temperature,
        }
        return {
            "spec": self._spec,
            "model": model,
            "samples": list(batch.numbers),
            "epochs": batch.epochs,
            "log_dir": str(batch.folder),
            "cache_dir": str(batch.folder / "cache"),
            "max_samples": jobs,
            "settings": {name: value for name, value in settings.items() if value is not None},
        }

    def _preview(self, batch: Batch, sample: Mapping[str, Any]) -> AttemptRecord:
        """The likely result of a sample, for the progress display; the log decides."""
        scores = sample["scores"]
        value = value_of(scores.get(self._scorer, next(iter(scores.values()), None)))
        if sample["error"]:
            judgement = Judgement.missing(MissingReason.INFRASTRUCTURE, sample["error"])
        elif value is None:
            judgement = Judgement.missing(MissingReason.NOT_RECORDED, "no score")
        elif value >= 1 - 1e-6:
            judgement = Judgement.passed()
        else:
            judgement = Judgement.failed(FailureCategory.UNKNOWN_FAILURE)
        number = batch.number_of(sample["sample"], sample["epoch"])
        return AttemptRecord(
            sample["sample"],
            number,
            judgement,
            seconds=sample["seconds"] or 0.0,
            steps=sample["steps"],
        )

    @cached_property
    def _described(self) -> dict[str, Any]:
        process = self._start_process()
        process.ask("describe", {"spec": self._spec})
        reply = process.answer()
        if "trouble" in reply:
            raise InvalidValue(
                f"inspect:{self._spec} cannot be run: {reply['trouble'].rstrip('.')}.",
                hint="A suite reads inspect:FILE.py@TASK or inspect:PACKAGE/TASK.",
            )
        description: dict[str, Any] = reply["described"]
        return description

    @cached_property
    def _scorer(self) -> str | None:
        """The scorer whose verdict counts, checked before anything is paid for."""
        names = self._described["scorers"]
        scorer = self._settings.scorer
        if scorer is None and len(names) > 1:
            raise InvalidValue(
                f"{self.name} has {len(names)} scorers, and only one can decide what passed.",
                hint=f"Choose with --set scorer=NAME: {', '.join(names)}.",
            )
        return scorer or next(iter(names), None)

    def _start_process(self) -> InspectProcess:
        if self._process is None:
            self._process = InspectProcess()
        return self._process

    def close_process(self) -> None:
        """End inspect's process; another is started when there is more to ask."""
        if self._process is not None:
            self._process.close()
            self._process = None


def _attempts(batch: Batch) -> Sequence[tuple[str, int]]:
    return [(task, number) for task, numbers in batch.numbers.items() for number in numbers]
