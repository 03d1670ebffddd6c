"""A Ray cluster of one's own on this machine, for tests: a head with two processors."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from kept_ports import kept_port

__all__ = ["RayCluster"]

_TRIES = 3
"""Ray gives up when its own start takes 30 s, as it may on a busy machine."""
_START_SECONDS = 120.0
_STOP_SECONDS = 20.0
_STORE_BYTES = 80_000_000
_PATIENT_SECONDS = 600
_PATIENCE = {
    # A machine that stands still for half a minute is busy, not broken: Ray would take its node for
    # dead, and end every process that is connected to it, the tests' own included.
    "RAY_health_check_failure_threshold": "100",
    "RAY_grpc_keepalive_timeout_ms": f"{1000 * _PATIENT_SECONDS}",
    "RAY_grpc_client_keepalive_timeout_ms": f"{1000 * _PATIENT_SECONDS}",
    "RAY_gcs_rpc_server_reconnect_timeout_s": f"{_PATIENT_SECONDS}",
    "RAY_gcs_server_request_timeout_seconds": f"{_PATIENT_SECONDS}",
    "RAY_raylet_rpc_server_reconnect_timeout_base_s": f"{_PATIENT_SECONDS}",
    "RAY_raylet_rpc_server_reconnect_timeout_max_s": f"{_PATIENT_SECONDS}",
    "RAY_worker_register_timeout_seconds": f"{_PATIENT_SECONDS}",
    # Workers at the lowest priority wait for minutes while other tests keep the processors busy.
    "RAY_worker_niceness": "0",
    # Nor is one that is short of memory because of others.
    "RAY_memory_monitor_refresh_ms": "0",
}
_CONNECT = "import ray, sys; ray.init(sys.argv[1], log_to_driver=False)"
"""A process that cannot connect is ended by Ray, so another one tries it first."""


class RayCluster:
    """Started when it is made.

    Attributes
    ----------
    address : str
        For programs on this machine, as ``RAY_ADDRESS``.
    client : str
        For programs anywhere: ``ray://...``.
    environment : dict
        What a program needs in its environment to be let in.
    """

    def __init__(self, processors: int = 2) -> None:
        # A secret of its own: neither the user's, nor none at all.
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.environment = {**token, **_PATIENCE}
        for left in reversed(range(_TRIES)):
            try:
                self._start(processors)
            except RuntimeError:
                if not left:
                    raise
            else:
                return

    def _start(self, processors: int) -> None:
        with kept_port() as first, kept_port() as second:
            self._start_at(first, second, processors)

    def _start_at(self, first: int, second: int, processors: int) -> None:
        self._folder = tempfile.mkdtemp(prefix="passhat-ray-")
        self.address, self.client = f"127.0.0.1:{first}", f"ray://127.0.0.1:{second}"
        command = [
            *(str(Path(sys.executable).with_name("ray")), "start", "--head", "--block"),
            *("--node-ip-address=127.0.0.1", f"--port={first}"),
            *(f"--ray-client-server-port={second}", f"--num-cpus={processors}"),
            *(f"--object-store-memory={_STORE_BYTES}", f"--temp-dir={self._folder}"),
            *("--include-dashboard=false", "--disable-usage-stats"),
        ]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={
                **os.environ,
                **self.environment,
                # Its workers may import what stands beside this.
                "PYTHONPATH": str(Path(__file__).parent),
                # A busy machine takes longer than Ray's 30 s to answer the first client.
                "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": f"{_START_SECONDS:g}",
                "RAY_gcs_server_port_wait_time_s": f"{_START_SECONDS:g}",
            },
        )
        try:
            for port in (first, second):
                self._wait_for(port)
            self._wait_for_node()
        except BaseException:
            # It may have ended without ending what it started.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self.stop()
            raise

    def add_node(self, processors: int = 1) -> subprocess.Popen[bytes]:
        """Another node on this machine; it leaves the cluster when its process group is killed."""
        command = [
            *(str(Path(sys.executable).with_name("ray")), "start", "--block"),
            *(f"--address={self.address}", "--node-ip-address=127.0.0.1"),
            *(f"--num-cpus={processors}", f"--object-store-memory={_STORE_BYTES}"),
            "--disable-usage-stats",
        ]
        return subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **self.environment, "PYTHONPATH": str(Path(__file__).parent)},
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """As when the power fails: nobody says goodbye."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Ask the head to end, which ends what it started; then see that it has."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait_for(self, port: int) -> None:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                return
            time.sleep(0.1)
        raise RuntimeError("Ray did not start")

    def _wait_for_node(self) -> None:
        """The ports are open before the node answers that programs connect to."""
        command = [sys.executable, "-c", _CONNECT, self.address]
        environment = {**os.environ, **self.environment}
        end = time.monotonic() + _START_SECONDS
        while subprocess.run(command, env=environment, capture_output=True).returncode:
            if time.monotonic() > end or self._process.poll() is not None:
                raise RuntimeError("Ray did not start")
