"""``--on ray``: attempts made by the workers of a Ray cluster, on this machine or many.

Claims and results stay where the command was called: that process alone writes to the store, as
results come. This module finds the cluster and starts its workers;
:mod:`passhat.integrations.ray.ray_pool` keeps them at work.
"""

from __future__ import annotations

import socket
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from passhat._display import counted
from passhat.agents import Agent
from passhat.errors import EngineUnavailable, InvalidValue, MissingExtra
from passhat.integrations.ray.ray_pool import RayPool, connection_lost, first_line_of
from passhat.integrations.ray.ray_worker import About, Job, RayWorker
from passhat.runner.queues import Claims, Outbox
from passhat.runner.redaction import Redactor
from passhat.runner.remote_limits import Gatekeeper
from passhat.runner.run import RunPlan
from passhat.runner.run_spec import RunSpec

_SECONDS = 5.0
# Ray uses gRPC, so HTTP/2: both sides begin with their settings, a frame of type 4 (RFC 9113).
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
_TYPE, _SETTINGS = 3, 4
_TLS_ALERT = b"\x15\x03"
_SAID_AT_MOST = 60


def check_ray_address(address: str) -> None:
    """Return if Ray may be at an address such as ``ray://HEAD:10001``, ``HEAD:6379`` or ``auto``.

    Silence and a connection that is closed without a reply prove nothing, as the head may be busy
    or encrypted; Ray then finds out by itself.

    Raises
    ------
    ValueError
        If the address cannot be one.
    ConnectionError
        If no server listens there, or one that does not answer as Ray does.
    """
    parts = urlsplit(address if "://" in address else f"//{address}")
    if parts.scheme == "ray" and parts.port is None:
        raise ValueError("it needs a port, as in ray://HEAD:10001")
    if not (parts.hostname and parts.port):
        return
    try:
        line = socket.create_connection((parts.hostname, parts.port), _SECONDS)
    except OSError as error:
        raise ConnectionError(f"no server listens there: {error.strerror or error}") from None
    with line:
        reply = _answer(line)
    is_conclusive = len(reply) > _TYPE and not reply.startswith(_TLS_ALERT)
    if is_conclusive and reply[_TYPE] != _SETTINGS:
        raise ConnectionError(
            f"the program at that address is not Ray; it answers {_quote_reply(reply)}"
        )


def _answer(line: socket.socket) -> bytes:
    """The first bytes of the reply to a greeting, enough to recognize the protocol."""
    reply = b""
    with suppress(OSError):
        line.sendall(_HELLO)
        while len(reply) <= _TYPE and (data := line.recv(4096)):
            reply += data
    return reply


def _quote_reply(reply: bytes) -> str:
    """The first line, for a person: a server of another kind often names itself there."""
    text = reply.decode("ascii", "replace").splitlines()[0].strip()
    printable = "".join(sign if sign.isprintable() else "?" for sign in text)
    return repr(printable[:_SAID_AT_MOST])


_START_SECONDS = 120.0
_CLOSE_SECONDS = 10.0
_JOIN_TRIES = 3
_NOT_SHIPPED = [".git", ".venv", ".passhat", "node_modules", "__pycache__", "*.db", "*.db-*"]


class OnRay:
    """Workers on a Ray cluster, for one run; use it as a context manager.

    ``spec`` is the plan in words: each worker loads suite and agent for itself. ``models`` are all
    that may spend. ``address`` is ``ray://head:10001``, that of a cluster on this machine, or empty
    for a new one here. A process that is connected to a cluster already keeps that connection.
    """

    def __init__(
        self, plan: RunPlan, spec: RunSpec, models: Sequence[Agent] = (), address: str = ""
    ) -> None:
        if plan.suite.harness:
            raise InvalidValue(
                f"{plan.suite.name} makes its attempts by itself, so Ray workers cannot make them.",
                hint="Leave out --on; --jobs sets the number of attempts at once.",
            )
        if not spec.is_portable:
            raise InvalidValue(
                "Ray workers load the agent and the suite by name, and an object was given.",
                hint="Name them as on the command line: agent='python:MODULE:NAME'.",
            )
        self._plan = plan
        # Values of secrets stay on this machine; workers read their own environment.
        self._spec = replace(spec, redact=Redactor(), store="", in_process=True)
        self._models = models or (plan.agent,)
        self._address = address
        self._remote = address.startswith("ray://")
        self._connected = False
        self._actors: list[Any] = []
        try:
            import ray
        except ImportError:
            raise MissingExtra("Running on Ray", extra="ray") from None
        self._ray: Any = ray

    @staticmethod
    def address_of(text: str, here: str = "") -> str:
        """The address for ``ray`` or ``ray://head:10001``; ``here`` is a local cluster."""
        if text == "ray":
            return here
        if text.startswith("ray://") and len(text) > len("ray://"):
            return text
        raise InvalidValue(
            f"--on {text!r} is not something to run on.",
            hint="Write ray for this machine, or ray://HEAD:10001 for a cluster.",
        )

    @property
    def workers(self) -> int:
        return len(self._actors)

    def __enter__(self) -> Self:
        try:
            self._connect()
            self._start()
        except BaseException:
            self._disconnect()
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if isinstance(error, EngineUnavailable):
            return  # a cluster that is gone does not answer to a goodbye, and Ray waits long for it
        # A worker that is gone, perhaps with the whole cluster, needs no goodbye.
        with suppress(self._ray.exceptions.RayError, ConnectionError, RuntimeError):
            # One that is killed outright would leave its sandboxes behind.
            closing = [actor.close.remote() for actor in self._actors]
            self._ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_SECONDS)
            self._stop_workers()
        self._disconnect()

    def _connect(self) -> None:
        if self._ray.is_initialized():
            return
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self._remote:
            project = {"working_dir": str(Path.cwd()), "excludes": _NOT_SHIPPED}
            quiet = {**quiet, "runtime_env": project}
        elif not self._address:
            quiet = {**quiet, "include_dashboard": False}
        try:
            if self._address:
                check_ray_address(self._address)
            self._connected = True
            with warnings.catch_warnings():
                # Ray warns of the error it raises next, with a link to its own pages.
                warnings.simplefilter("ignore", UserWarning)
                self._use_cluster(quiet)
        except (RuntimeError, ValueError, OSError) as error:  # most are a ConnectionError
            cause = first_line_of(error)
            raise EngineUnavailable(
                f"the Ray cluster {self._address or 'here'} cannot be used ({cause}).",
                hint="Start one with `ray start --head`; clients use its port 10001, unless told "
                "otherwise. If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN "
                "here as there.",
            ) from None

    def _use_cluster(self, settings: dict[str, Any]) -> None:
        """Ray tries again where no head answers, but not where a busy head cannot take us in."""
        for left in reversed(range(_JOIN_TRIES)):
            try:
                self._ray.init(self._address or "local", **settings)
            except ConnectionAbortedError:
                if not left:
                    raise
            else:
                return

    def _disconnect(self) -> None:
        if self._connected:
            self._ray.shutdown()

    def _start(self) -> None:
        """As many workers as the cluster has processors, and no more than attempts at once."""
        plan = self._plan
        processors = int(self._ray.cluster_resources().get("CPU", 0))
        count = max(1, min(plan.jobs, processors))
        job = self._job = Job(
            self._spec,
            folder="" if self._remote else str(Path.cwd()),
            run=plan.record.id,
            tasks=tuple(task.id for task in plan.record.tasks),
            limits=plan.limits,
            canary=plan.canary,
            attempts=plan.attempts.each,
        )
        self._actors = self._start_workers(count, job)
        try:
            reports = self._ray.get(
                [actor.about.remote() for actor in self._actors], timeout=_START_SECONDS
            )
        except self._ray.exceptions.GetTimeoutError:
            raise EngineUnavailable(
                f"{counted(count, 'worker')} did not start within {_START_SECONDS:g} s; the "
                "cluster has "
                f"{counted(processors, 'processor')}, which others may be using.",
                hint="Ask for fewer with --jobs, or add nodes.",
            ) from None
        except self._ray.exceptions.RayError as error:
            raise self._cannot_load(_cause(error)) from None
        except ConnectionError as error:
            raise connection_lost(error) from None
        self._refuse_differing(reports)

    def _start_workers(self, count: int, job: Job) -> list[Any]:
        """Workers, in processes of their own."""
        # All attempts may end up at one worker, and answers to their questions must get through.
        at_once = self._plan.jobs + 8
        actor_class = self._ray.remote(num_cpus=1, max_restarts=-1, max_concurrency=at_once)(
            RayWorker
        )
        return [actor_class.remote(job) for _ in range(count)]

    def start_more(self) -> list[Any]:
        """Workers for processors that joined the cluster since the last call."""
        processors = int(self._ray.cluster_resources().get("CPU", 0))
        count = min(self._plan.jobs, processors) - len(self._actors)
        actors = self._start_workers(count, self._job) if count > 0 else []
        self._actors += actors
        return actors

    def _stop_workers(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)

    def _refuse_differing(self, reports: Sequence[About]) -> None:
        here = About.of(self._plan.suite)
        for about in reports:
            if about.wrong:
                raise self._cannot_load(about.wrong)
            names = [
                name for name in About.__slots__ if getattr(about, name) != getattr(here, name)
            ]
            if names:
                raise EngineUnavailable(
                    f"a worker has another {' and '.join(names)} than this machine "
                    f"({getattr(about, names[0])}, not {getattr(here, names[0])}).",
                    hint="Install the same passhat and the same suite on every node.",
                )

    def _cannot_load(self, why: str) -> EngineUnavailable:
        return EngineUnavailable(
            f"a worker cannot load suite {self._spec.suite!r} and agent "
            f"{self._spec.agent!r} ({why}).",
            hint="The project's folder is brought along; packages it needs, and passhat, must be "
            "installed on every node.",
        )

    async def work(self, plan: RunPlan, claims: Claims, outbox: Outbox) -> None:
        """Have claimed attempts made until there are none; ``plan.jobs`` at once, cluster-wide."""
        head = "" if self._remote else str(self._ray.get_runtime_context().gcs_address)
        actors = list(self._actors)
        pool = RayPool(self._ray, actors, plan, Gatekeeper(self._models), head, self.start_more)
        await pool.work(claims, outbox)


def _cause(error: BaseException) -> str:
    """The last line of a worker's error: the exception itself, without the traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[-1][:300]
