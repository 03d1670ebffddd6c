"""The public functions: how to make, read, measure and report runs.

Each of them answers a misspelt keyword with the names that it takes. ``run`` and ``arun`` are
written here, the front ends of the statistics in :mod:`passhat._statistics`.
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from passhat import _statistics
from passhat._display import counted, some
from passhat.errors import InvalidValue
from passhat.readers import reading as _reading
from passhat.reporting import public as _public
from passhat.reporting.public import Explanation, Report
from passhat.stats import plan as _plan
from passhat.stats.outcomes import Run
from passhat.stats.outcomes.coercion import kind_of

if TYPE_CHECKING:
    from passhat.agents import Agent
    from passhat.runner.run import Progress, Stop
    from passhat.runner.run_spec import RunResult, RunSpec
    from passhat.stats.plan import Allocation, Plan
    from passhat.store import Store
    from passhat.suites import Judgement, Suite, Task

__all__ = [
    "Explanation",
    "Report",
    "allocate",
    "arun",
    "compare",
    "compare_all",
    "diagnose",
    "estimate",
    "estimate_all",
    "forecast",
    "gate",
    "open_store",
    "plan_attempts",
    "plan_tasks",
    "read",
    "report",
    "run",
    "why",
]

AgentLike: TypeAlias = "str | Agent | Callable[..., Any]"
"""A word such as ``openai:gpt-5``, an :class:`Agent`, or a function from prompt to answer."""
SuiteLike: TypeAlias = "str | PathLike[str] | Suite | Iterable[Mapping[str, Any] | Task]"
"""A word such as ``jsonl:tasks.jsonl``, a file, a :class:`Suite`, or a list of tasks."""
GraderLike: TypeAlias = "str | Callable[[str, object], Judgement | bool | float]"
"""A grader's name, or a function of the answer and the expected one."""


P = ParamSpec("P")
R = TypeVar("R")


_DATA = frozenset({"data", "a", "b", "against", "pilot", "runs"})
"""Parameters that take results in every form, a path among them."""


def _with_known_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Answer a misspelt keyword with the nearest one; read a path where results are asked for."""
    parameters = [*inspect.signature(function).parameters]

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        for name in keywords:
            if name not in parameters:
                near = difflib.get_close_matches(name, parameters, 1)
                guess = f" Did you mean {near[0]!r}?" if near else ""
                raise TypeError(
                    f"passhat.{function.__name__}() got an unexpected keyword argument {name!r}."
                    f"{guess} It takes: {', '.join(parameters)}."
                )
        data = [_load(*pair) for pair in zip(parameters, arguments, strict=False)]
        named = {name: _load(name, value) for name, value in keywords.items()}
        return function(*data, *arguments[len(data) :], **named)  # type: ignore[arg-type]

    return call


def _load(parameter: str, value: Any) -> Any:
    """The runs of a path where a function takes results; every other value as it is."""
    if parameter == "runs" and isinstance(value, Mapping):  # by name, one run for each
        return {name: _load("data", side) for name, side in value.items()}
    if parameter == "runs" and isinstance(value, list | tuple):
        return [
            run for item in value for run in (_reading.read(item) if _is_path(item) else [item])
        ]
    if parameter not in _DATA or not _is_path(value):
        return value
    runs = _reading.read(value)
    if parameter == "runs" or len(runs) == 1:
        return runs if parameter == "runs" else runs[0]
    sides = parameter == "a" and len(runs) == 2
    raise InvalidValue(
        f"{value} holds {len(runs)} runs ({some([run.name for run in runs])}); one is needed.",
        hint=f"Choose one of them: passhat.read({str(value)!r})[0]"
        + (
            f", or compare the two: passhat.compare(*passhat.read({str(value)!r}))" if sides else ""
        ),
    )


def _is_path(value: object) -> bool:
    return isinstance(value, str | PathLike)


read = _with_known_keywords(_reading.read)
report = _with_known_keywords(_public.report)
estimate = _with_known_keywords(_statistics.estimate)
estimate_all = _with_known_keywords(_statistics.estimate_all)
diagnose = _with_known_keywords(_statistics.diagnose)
compare = _with_known_keywords(_statistics.compare)
compare_all = _with_known_keywords(_statistics.compare_all)
gate = _with_known_keywords(_statistics.gate)
forecast = _with_known_keywords(_statistics.forecast)
why = _with_known_keywords(_public.why)
plan_tasks = _with_known_keywords(_plan.plan_tasks)
plan_attempts = _with_known_keywords(_plan.plan_attempts)
allocate = _with_known_keywords(_plan.allocate)


@_with_known_keywords
def run(
    agent: AgentLike,
    suite: SuiteLike,
    n: int | Plan | Allocation = 8,
    *,
    store: str | PathLike[str] | Store | None = None,
    jobs: int = 8,
    seed: int = 0,
    temperature: float | None = None,
    top_p: float | None = None,
    max_steps: int | None = None,
    step_seconds: float | None = None,
    attempt_seconds: float | None = None,
    tasks: Sequence[str] = (),
    random_tasks: int | None = None,
    name: str = "",
    user: str | None = None,
    tools: str = "text",
    stop_when: Sequence[str] = (),
    only_missing: bool = False,
    keep_going: bool = False,
    budget: float | None = None,
    max_tokens: int | None = None,
    rate: float | None = None,
    retries: int = 8,
    otlp: str | None = None,
    otlp_port: int | None = None,
    grader: GraderLike | None = None,
    judge: Callable[[Task, str], Judgement | bool] | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Run:
    """Make n fresh attempts of an agent at every task of a suite, and return the run.

    Works in a script and in a notebook. Ctrl-C lets the attempts in flight finish and then raises
    ``KeyboardInterrupt``; with a ``store``, the same call continues where it stopped.

    Parameters
    ----------
    agent : function, Agent or str
        A function from prompt to answer (sync or async), an :class:`Agent`, or a word of the
        command line such as ``openai:gpt-5``.
    suite : list, Suite or str
        Dicts such as ``{"id": "a", "prompt": "2+2?", "answer": "4"}``, :class:`Task` objects
        together with ``judge``, a :class:`Suite`, or a word such as ``jsonl:tasks.jsonl``.
    n : int or Plan
        Attempts at every task, or ``passhat.allocate(earlier)``: at each, where they decide.
    store : path, URL or Store, optional
        Where attempts are kept. Without it they are kept in memory only, and nothing resumes.
    jobs : int
        Attempts at the same time (8).
    seed : int
        Every attempt's seed is derived from it (0).
    temperature, top_p : float, optional
        Passed to the agent and recorded in the protocol.
    max_steps, step_seconds, attempt_seconds
        Limits of one attempt: turns, seconds for one answer, seconds in all.
    tasks : list of str, optional
        Only these tasks, by id.
    random_tasks : int, optional
        Only so many tasks, drawn by ``seed``.
    name : str
        Distinguishes runs that are otherwise the same.
    user, tools : str, optional
        The agent that plays the user; ``text`` or ``mcp``.
    stop_when : list of str
        Rules such as ``pass^4 >= 0.6``; the run ends once they are settled.
    only_missing : bool
        Make attempts without a verdict again.
    keep_going : bool
        Go on when the first three attempts all raise the same exception, give an empty or unusable
        answer, are refused, cut or late, or meet a judge that raises; by default that is a
        :class:`RunStopped`.
    budget, max_tokens, rate, retries
        Caps in dollars and tokens, calls per minute, retries of a call.
    otlp, otlp_port
        An OpenTelemetry collector that every attempt is sent to as a trace, and a port that takes
        the spans of an agent that is not started here.
    grader : str or function, optional
        For a list of dicts: the grader of those that name none, such as ``"contains"``, or a
        function that is called with the answer and the expected one and returns whether it passes,
        or a score.
    judge : function, optional
        For a list of tasks: called with the task and the answer, returns whether it passes.
    progress : bool or function, optional
        Show a progress bar; by default in a terminal and in a notebook. A function is called
        with the counts after every attempt.

    Examples
    --------
    >>> tasks = [{"id": "sum", "prompt": "2+2?", "answer": "4"}]
    >>> made = run(lambda prompt: "4", tasks, n=3)
    >>> made.outcomes.passes, made.outcomes.attempts
    (3, 3)
    """
    given = locals()  # all parameters, before any other name
    from passhat.runner.run import Stop
    from passhat.runner.run_spec import run as run_spec

    with _prepare(**given) as (spec, report_progress):
        stop = Stop()
        with _ctrl_c(stop) as was_interrupted:
            result = run_spec(spec, progress=report_progress, tell=_tell, stop=stop)
        result_run = _as_run(result, spec, kept=store is not None)
    if was_interrupted():
        raise KeyboardInterrupt(f"stopped with {counted(result.left, 'attempt')} to go")
    return result_run


@_with_known_keywords
async def arun(
    agent: AgentLike,
    suite: SuiteLike,
    n: int | Plan | Allocation = 8,
    *,
    store: str | PathLike[str] | Store | None = None,
    jobs: int = 8,
    seed: int = 0,
    temperature: float | None = None,
    top_p: float | None = None,
    max_steps: int | None = None,
    step_seconds: float | None = None,
    attempt_seconds: float | None = None,
    tasks: Sequence[str] = (),
    random_tasks: int | None = None,
    name: str = "",
    user: str | None = None,
    tools: str = "text",
    stop_when: Sequence[str] = (),
    only_missing: bool = False,
    keep_going: bool = False,
    budget: float | None = None,
    max_tokens: int | None = None,
    rate: float | None = None,
    retries: int = 8,
    otlp: str | None = None,
    otlp_port: int | None = None,
    grader: GraderLike | None = None,
    judge: Callable[[Task, str], Judgement | bool] | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Run:
    """:func:`run` for ``await``, in the event loop of the caller; parameters as there."""
    given = locals()
    from passhat.runner.run_spec import arun as arun_spec

    with _prepare(**given) as (spec, report_progress):
        result = await arun_spec(spec, progress=report_progress, tell=_tell)
        return _as_run(result, spec, kept=store is not None)


@contextmanager
def _prepare(
    agent: AgentLike,
    suite: SuiteLike,
    n: int | Plan | Allocation,
    *,
    store: str | PathLike[str] | Store | None,
    grader: GraderLike | None,
    judge: Callable[[Task, str], Judgement | bool] | None,
    progress: bool | Callable[[Progress], object] | None,
    tasks: Sequence[str],
    stop_when: Sequence[str],
    budget: float | None,
    max_tokens: int | None,
    rate: float | None,
    retries: int,
    **settings: Any,
) -> Iterator[tuple[RunSpec, Callable[[Any, Progress], None]]]:
    """The spec of a run, with a store that is deleted afterwards unless one was given."""
    import tempfile
    from contextlib import ExitStack

    from passhat.runner.run_spec import RunSpec
    from passhat.runner.spending import Spending

    caps = {"budget": budget, "max_tokens": max_tokens, "rate": rate, "retries": retries}
    _check_settings(settings | caps)
    if not (store is None or isinstance(store, str | PathLike) or hasattr(store, "runs")):
        raise InvalidValue(f"store must be a path, a URL or a Store; got {kind_of(store)}.")
    with ExitStack() as stack:
        if store is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="passhat-"))
            store = str(Path(folder) / "run.db")
        spec = RunSpec(
            agent=_agent(agent),
            suite=_suite(suite, grader, judge),
            attempts=_attempts(n),
            store=str(store) if isinstance(store, PathLike) else store,
            tasks=(tasks,) if isinstance(tasks, str) else tuple(tasks),
            stop_when=(stop_when,) if isinstance(stop_when, str) else tuple(stop_when),
            spending=Spending(budget, max_tokens, {} if rate is None else {"": rate}, retries),
            **settings,
        )
        yield spec, stack.enter_context(_progress(progress))


_WHOLE = {"seed": None, "jobs": 1, "max_steps": 1, "random_tasks": 1, "max_tokens": 1, "retries": 0}
_NUMBERS = ("temperature", "top_p", "step_seconds", "attempt_seconds", "budget", "rate")
_ABOVE_ZERO = ("step_seconds", "attempt_seconds", "budget", "rate")


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of another type or sign, before anything is made with them."""
    for name, least in _WHOLE.items():
        value = settings[name]
        is_whole = isinstance(value, Integral) and not isinstance(value, bool)
        if value is not None and (not is_whole or (least is not None and value < least)):
            from_ = "" if least is None else f" from {least} on"
            raise InvalidValue(f"{name} must be a whole number{from_}; got {kind_of(value)}.")
    for name in _NUMBERS:
        value = settings[name]
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if value is None or (is_number and (value > 0 or (value == 0 and name not in _ABOVE_ZERO))):
            continue
        sign = "above 0" if name in _ABOVE_ZERO else "from 0 on"
        raise InvalidValue(f"{name} must be a number {sign}; got {kind_of(value)}.")
    if not isinstance(settings["name"], str):
        raise InvalidValue(f"name must be text; got {kind_of(settings['name'])}.")


def _agent(agent: AgentLike) -> str | Agent:
    if isinstance(agent, str):
        return agent
    from passhat.agents import as_agent
    from passhat.suites.jsonl import code_digest

    loaded_agent = as_agent(agent)
    # Two lambdas have the same name, and would continue each other's run in one store.
    if "<lambda>" in loaded_agent.name or "<locals>" in loaded_agent.name:
        loaded_agent.name += f"#{code_digest(agent)[:8]}"
    return loaded_agent


def _attempts(n: int | Plan | Allocation) -> int | Allocation:
    """Number of attempts, or the allocation of a plan that has numbers per task."""
    from passhat.stats.plan import Plan

    if not isinstance(n, Plan):
        if isinstance(n, Real) and (not isinstance(n, Integral) or int(n) < 1):
            raise InvalidValue(f"n must be a whole number of at least 1; got {kind_of(n)}.")
        return n
    if n.allocation is None:
        raise InvalidValue(
            "this plan says how many tasks and attempts are needed, not how many at which task.",
            hint="Make it with passhat.allocate(earlier, ...).",
        )
    return n.allocation


def _suite(
    suite: SuiteLike,
    grader: GraderLike | None,
    judge: Callable[[Task, str], Judgement | bool] | None,
) -> str | Suite:
    from passhat.suites import Suite
    from passhat.suites.jsonl import suite_from_tasks

    given = [word for word, value in (("grader", grader), ("judge", judge)) if value is not None]
    if len(given) == 2:
        raise InvalidValue(
            "grader= and judge= both decide about an answer.",
            hint="Give grader=, called with answer and expected, or judge=, with task and answer.",
        )
    suite = str(suite) if isinstance(suite, PathLike) else suite
    if isinstance(suite, str | Suite):
        if given:
            raise InvalidValue(
                f"{given[0]}= is for a list of tasks; this suite has a judge of its own.",
                hint=f"Give the tasks as a list, or leave {given[0]} out.",
            )
        return suite
    if isinstance(suite, Mapping) or not isinstance(suite, Iterable):
        raise InvalidValue(
            "expected a list of tasks (dicts or Task objects), a Suite, or a word such as "
            f"'jsonl:tasks.jsonl'; got {kind_of(suite)}."
        )
    return suite_from_tasks(suite, judge, default_grader=grader)


@contextmanager
def _progress(
    wanted: bool | Callable[[Progress], object] | None,
) -> Iterator[Callable[[Any, Progress], None]]:
    """A callback for every attempt: the caller's, a progress bar, or nothing."""
    if callable(wanted):
        call = wanted

        def forward(_record: object, counts: Progress) -> None:
            call(counts)

        yield forward
        return
    notebook = _notebook_display()
    if wanted is None:
        wanted = sys.stderr.isatty() or notebook is not None
    if not wanted:
        yield lambda _record, _counts: None
        return
    if notebook is not None:
        with _notebook_bar(notebook) as show_cell:
            yield show_cell
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        bar_task = bar.add_task("attempts")

        def show(_record: object, counts: Progress) -> None:
            bar.update(
                bar_task,
                total=counts.total,
                completed=counts.done,
                description=_counts_text(counts),
            )

        yield show


def _counts_text(counts: Progress) -> str:
    text = f"{counts.passed} passed, {counts.failed} failed"
    return text + (f", {counts.missing} missing" if counts.missing else "")


def _notebook_display() -> Callable[..., Any] | None:
    """IPython's ``display`` where this process is the kernel of a notebook, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return display


@contextmanager
def _notebook_bar(display: Callable[..., Any]) -> Iterator[Callable[[Any, Progress], None]]:
    """A line with a bar below the cell, drawn again at most five times a second."""
    import time

    from passhat.runner.run import Progress

    counts = Progress(total=0)
    shown = time.monotonic()
    handle = display(_bar_form(counts), raw=True, display_id=True)

    def show(_record: object, latest: Progress) -> None:
        nonlocal counts, shown
        counts = latest
        if time.monotonic() - shown >= 0.2:
            handle.update(_bar_form(counts), raw=True)
            shown = time.monotonic()

    try:
        yield show
    finally:
        handle.update(_bar_form(counts), raw=True)


def _bar_form(counts: Progress) -> dict[str, str]:
    text = f"{counts.done} of {counts.total} attempts: {_counts_text(counts)}"
    if not counts.total:
        text = "attempts: starting"
    bar = f'<progress value="{counts.done}" max="{max(counts.total, 1)}"></progress>'
    return {"text/plain": text, "text/html": f"{bar} {text}"}


def _tell(message: str) -> None:
    """Messages about the run itself, such as a store that cannot be reached."""
    print(f"passhat: {message}", file=sys.stderr)  # noqa: T201 - the caller has no other channel


_PATIENT_PRESSES = 2


@contextmanager
def _ctrl_c(stop: Stop) -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks the run to stop, so that attempts in flight are kept; yields whether it did."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.getsignal(signal.SIGINT)
    presses = 0

    def ask(_signal: int, _frame: object) -> None:
        nonlocal presses
        presses += 1
        stop.ask()
        if presses > _PATIENT_PRESSES:  # an agent may hold up the event loop
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: presses > 0
    finally:
        signal.signal(signal.SIGINT, before)


def _as_run(result: RunResult, spec: RunSpec, *, kept: bool) -> Run:
    """The stored run with its headline estimates; one in a temporary store names no place."""
    from contextlib import nullcontext

    from passhat.readers import Needs
    from passhat.readers.base import FEW_ATTEMPTS
    from passhat.readers.store import run_from_store
    from passhat.stats.estimate import default_ks, estimate_all
    from passhat.stats.estimate.metrics import PassHat
    from passhat.store import open_store as open_place

    opening = open_place(spec.store) if isinstance(spec.store, str) else nullcontext(spec.store)
    with opening as place:
        stored = place.find(result.id)
        # A temporary store is gone afterwards: passhat.why needs the conversations.
        with_talk = not kept and stored.attempts <= FEW_ATTEMPTS
        run = run_from_store(place, stored, Needs(conversations=with_talk))
    if not kept:
        run = replace(run, name=run.agent, source="passhat.run")
    ks = default_ks(run.outcomes)
    words = [PassHat(k) for k in dict.fromkeys((1, *ks[-1:]))] if len(ks) else []
    estimates = estimate_all(run.outcomes, words) if words else ()
    return replace(run, estimates=estimates)


def open_store(place: str | PathLike[str]) -> Store:
    """Open a store of attempts: a path to a SQLite file, or ``postgresql://...``.

    Use it in a ``with`` statement, or call its ``close``.
    """
    from passhat.store import open_store as open_place

    return open_place(str(place))
