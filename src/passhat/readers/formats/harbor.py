"""Harbor: a job is a folder, and every trial in it a folder with a ``result.json``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.json_records import BROKEN, BYTE_ORDER_MARK, decode
from passhat.readers.parsing import number_or_none, seconds_between, sum_numbers, utc_text
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

_RESULT = "result.json"

# The first words of an exception's name show whose fault it was.
_FAILED = (
    ("AgentTimeout", "timeout"),
    ("AgentExecutionTimeout", "timeout"),
    ("Agent", "agent_error"),
    ("NonZeroAgent", "agent_error"),
)
_MISSING = (
    ("Verifier", "judge_error"),
    ("Reward", "judge_error"),
    ("RateLimit", "rate_limit"),
    ("Environment", "sandbox_error"),
    ("Docker", "sandbox_error"),
    ("Sandbox", "sandbox_error"),
    ("Daytona", "sandbox_error"),
    ("Cancelled", "stopped"),
    ("KeyboardInterrupt", "stopped"),
)


class _Verified(msgspec.Struct):
    rewards: Any = None
    reward: Any = None


class _Exception(msgspec.Struct):
    exception_type: Any = None


class _Model(msgspec.Struct):
    name: Any = None
    provider: Any = None


class _Agent(msgspec.Struct):
    name: Any = None
    version: Any = None
    model_info: _Model | None = None


class _Used(msgspec.Struct):
    n_input_tokens: Any = None
    n_output_tokens: Any = None
    cost_usd: Any = None


class _AgentConfig(msgspec.Struct):
    name: Any = None
    model_name: Any = None


class _Config(msgspec.Struct):
    agent: _AgentConfig | None = None


class _Trial(msgspec.Struct):
    id: Any = None
    task_name: Any = None
    trial_name: Any = None
    source: Any = None
    agent_info: _Agent | None = None
    config: _Config | None = None
    agent_result: _Used | None = None
    verifier_result: _Verified | None = None
    exception_info: _Exception | None = None
    started_at: Any = None
    finished_at: Any = None


class HarborReader(Reader):
    """``result.json`` with ``{task_name, verifier_result{rewards}, exception_info, ...}``."""

    name = "harbor"
    has_scorers = True

    def recognizes(self, source: Source) -> bool:
        if source.is_folder:
            return any(self.recognizes(trial) for trial in _trials(source))
        outline = source.outline
        return (
            outline.opens == "{"
            and "task_name" in outline.keys
            and (not outline.keys.isdisjoint({"verifier_result", "trial_name", "agent_info"}))
        )

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        trials = list(_load(source))
        have_times = all(isinstance(trial, str) or trial.started_at for _, trial in trials)
        log = LogBuilder(
            source, "Harbor job", options, order="appearance" if have_times else "trial"
        )
        trials.sort(
            key=lambda pair: "" if isinstance(pair[1], str) else utc_text(pair[1].started_at)
        )
        agents: dict[str, _Trial] = {}
        for where, trial in trials:
            if isinstance(trial, str):
                log.lose(where, trial)
                continue
            with log.row(where):
                agents.setdefault(_agent(trial), trial)
                _take(log, where, trial, options)
        return log.runs(
            lambda key: RunFacts(
                key or source.stem,
                Protocol(suite=_suite(agents.get(key))),
                variant=key,
                guessed=not key,
            )
        )


def _trials(folder: Source) -> Iterator[Source]:
    yield from folder.children(f"*/{_RESULT}")


def _load(source: Source) -> Iterator[tuple[str, _Trial | str]]:
    """Each trial with its place, or the problem with it."""
    for trial in _trials(source) if source.is_folder else [source]:
        where = trial.path.parent.name if source.is_folder else _RESULT
        try:
            with trial.open() as stream:
                yield where, decode(stream.read().removeprefix(BYTE_ORDER_MARK), _Trial)
        except BROKEN as error:
            yield where, f"{_RESULT} cannot be read ({error})"
        except ReadError as error:
            yield where, error.message


def _take(log: LogBuilder, where: str, trial: _Trial, options: ReadOptions) -> None:
    reward = _reward(trial, options.scorer, log.source)
    exception = str(trial.exception_info.exception_type or "") if trial.exception_info else ""
    why = ""
    if reward is None:
        category = next((word for start, word in _FAILED if exception.startswith(start)), "")
        reason = next((word for start, word in _MISSING if exception.startswith(start)), "")
        if category:
            reward, why = 0.0, f"{category}: {exception}"
        else:
            reason = reason or ("infrastructure" if exception else "not_recorded")
            why = f"{reason}: {exception or 'no reward'}"
    elif exception:
        category = next(
            (word for start, word in _FAILED if exception.startswith(start)), "exception"
        )
        why = f"{category}: {exception}"
    usage = trial.agent_result or _Used()
    log.add(
        where,
        trial.task_name,
        reward,
        run=_agent(trial),
        why=why if reward != 1 else "",
        seconds=seconds_between(trial.started_at, trial.finished_at),
        tokens=sum_numbers((usage.n_input_tokens, usage.n_output_tokens)),
        cost=usage.cost_usd,
        transcript=where,
        source_id=trial.id,
    )


def _reward(trial: _Trial, scorer: str | None, source: Source) -> float | None:
    """The only reward, or the requested one."""
    result = trial.verifier_result
    if result is None:
        return None
    rewards = result.rewards if result.rewards is not None else result.reward
    if not isinstance(rewards, dict):
        return number_or_none(rewards)
    name = scorer or ("reward" if "reward" in rewards else None)
    if name is None and len(rewards) > 1:
        raise ReadError(
            f"a verifier gave {len(rewards)} rewards, and only one can decide what passed.",
            source=source.name,
            hint=f"Choose with --scorer: {', '.join(map(str, rewards))}.",
        )
    return number_or_none(rewards.get(name) if name else next(iter(rewards.values()), None))


def _agent(trial: _Trial) -> str:
    about = trial.agent_info or _Agent()
    model = about.model_info or _Model()
    config = (trial.config.agent if trial.config else None) or _AgentConfig()
    names = (about.name or config.name, model.name or config.model_name)
    parts = [str(part) for part in names if part]
    return " ".join(parts)


def _suite(trial: _Trial | None) -> str | None:
    return None if trial is None or trial.source is None else str(trial.source)
