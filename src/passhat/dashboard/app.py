"""Routes of the dashboard and their views.

    /                                   runs                     /compare    runs side by side
    /runs/RUN                           a run                    /history    a suite over time
    /runs/RUN/attempts                  its attempts             /forecast   beyond n
    /runs/RUN/grid                      tasks by attempts
    /runs/RUN/why                       what goes with failure
    /runs/RUN/label                     label its attempts
    /runs/RUN/task/TASK                 one of its tasks         /plan       before it is paid for
    /runs/RUN/attempt/TASK/NUMBER       one attempt              /start      with --allow-run
    /runs/RUN/attempt/TASK/NUMBER/calls its calls to models

Each of them with ``.json`` or ``.csv`` behind it is the same for a program. ``/runs/RUN/live``
sends an event when a run has changed.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from importlib.resources import files

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from passhat.dashboard.app_state import (
    Answer,
    AppState,
    ChangeFeed,
    Html,
    Json,
    PageRequest,
    answer,
)
from passhat.dashboard.commands import Commands
from passhat.dashboard.event_stream import Ending, live
from passhat.dashboard.formatting import address
from passhat.dashboard.guard import Access, Forbidden, Guard, NotFound, read_form
from passhat.dashboard.run_snapshots import RunSnapshots
from passhat.dashboard.run_summaries import Summaries
from passhat.dashboard.views.attempts import attempt, attempts, calls, why
from passhat.dashboard.views.compare import comparison
from passhat.dashboard.views.forecast import forecast, plan_page
from passhat.dashboard.views.grid import grid, override
from passhat.dashboard.views.history import history
from passhat.dashboard.views.labels import draw_labels, label_page, save_label
from passhat.dashboard.views.run import run
from passhat.dashboard.views.runs import regrade_command, runs, show_commands, start_command
from passhat.dashboard.views.task_table import task
from passhat.errors import InvalidValue, PasshatError, StoreUnavailable
from passhat.store import open_reading

_GRACE_SECONDS = 3
_KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep a connection without requests: none is closed under a request."""

View = Callable[[AppState, PageRequest], Answer]

_PAGES: tuple[tuple[str, View], ...] = (
    ("/runs", runs),
    ("/compare", comparison),
    ("/history", history),
    ("/forecast", forecast),
    ("/plan", plan_page),
    ("/start", show_commands),
    ("/runs/{run}/attempts", attempts),
    ("/runs/{run}/grid", grid),
    ("/runs/{run}/why", why),
    ("/runs/{run}/label", label_page),
    ("/runs/{run}/attempt/{task:path}/{number:int}/calls", calls),
    ("/runs/{run}/attempt/{task:path}/{number:int}", attempt),
    ("/runs/{run}/task/{task:path}", task),
    ("/runs/{run}", run),
)


class _Form(Convertor[str]):
    regex = "json|csv"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


def make_app(
    store: str,
    access: Access,
    *,
    allow_run: bool = False,
    ending: Ending = lambda: False,
) -> Starlette:
    """The dashboard over a store.

    ``store`` is the path or address of one that is there and up to date; ``allow_run`` lets pages
    start runs. Once ``ending`` says that the server is about to stop, open streams end by
    themselves.
    """
    register_url_convertor("form", _Form())
    reading = open_reading(store)
    state = AppState(
        reading,
        ChangeFeed(reading),
        Summaries(reading),
        RunSnapshots(store),
        Commands(store),
        access,
        allow_run=allow_run,
    )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(state.close)

    app = Starlette(
        routes=_routes(state, store, ending),
        middleware=[Middleware(Guard, access)],
        exception_handlers={
            PasshatError: partial(_refuse, state),
            HTTPException: partial(_refuse, state),
        },
        lifespan=lifespan,
    )
    app.state.dashboard = state
    return app


def _routes(state: AppState, store: str, ending: Ending) -> list[BaseRoute]:
    static = StaticFiles(directory=str(files("passhat.dashboard").joinpath("static")))
    routes: list[BaseRoute] = [
        _of_the_report("/static/report.css", "style.css", "text/css"),
        _of_the_report("/static/scheme.js", "scheme.js", "text/javascript"),
        Mount("/static", static),
        Route("/", _page(state, runs)),
        Route("/start", partial(_start, state), methods=["POST"]),
        Route("/runs/{run}/regrade", partial(_regrade, state), methods=["POST"]),
        Route(
            "/runs/{run}/attempt/{task:path}/{number:int}/verdict",
            partial(_override, state, store),
            methods=["POST"],
        ),
        Route("/runs/{run}/label", partial(_label, state, store, save_label), methods=["POST"]),
        Route(
            "/runs/{run}/label/draw", partial(_label, state, store, draw_labels), methods=["POST"]
        ),
        Route("/runs/{run}/live", partial(_live, state, ending)),
    ]
    for path, view in _PAGES:
        routes += [
            Route(f"{path}.{{form:form}}", _page(state, view)),
            Route(path, _page(state, view)),
        ]
    return routes


def _of_the_report(path: str, name: str, kind: str) -> Route:
    """A file that the HTML report has, too."""
    text = files("passhat.reporting.html").joinpath(name).read_text(encoding="utf-8")
    return Route(path, lambda _request: Response(text, media_type=kind))


def _page(state: AppState, view: View) -> Callable[[Request], object]:
    """A view as an endpoint, computed in a thread outside the event loop."""

    async def endpoint(request: Request) -> Response:
        path = {name: str(value) for name, value in request.path_params.items()}
        page_request = PageRequest(path, request.query_params, path.pop("form", "html"))
        return await run_in_threadpool(lambda: answer(state, view(state, page_request)))

    return endpoint


async def _live(state: AppState, ending: Ending, request: Request) -> Response:
    return await live(request, state, ending)


async def _start(state: AppState, request: Request) -> Response:
    fields = await _fields(state, request)
    await run_in_threadpool(state.commands.start, "run", start_command(fields))
    return RedirectResponse("/start", HTTPStatus.SEE_OTHER)


async def _regrade(state: AppState, request: Request) -> Response:
    await _fields(state, request)
    arguments = await run_in_threadpool(regrade_command, state, request.path_params["run"])
    await run_in_threadpool(state.commands.start, "regrade", arguments)
    return RedirectResponse("/start", HTTPStatus.SEE_OTHER)


async def _override(state: AppState, store: str, request: Request) -> Response:
    """Store a person's verdict on an attempt; its page shows it next to the judge's."""
    fields = await _fields(state, request)
    path = request.path_params
    run = await run_in_threadpool(override, state, store, path, fields)
    return RedirectResponse(
        address("runs", run, "attempt", path["task"], path["number"]), HTTPStatus.SEE_OTHER
    )


async def _label(
    state: AppState,
    store: str,
    act: Callable[[AppState, str, str, dict[str, str]], str],
    request: Request,
) -> Response:
    """Keep a label or a draw, and show the next attempt."""
    fields = await _fields(state, request)
    place = await run_in_threadpool(act, state, store, request.path_params["run"], fields)
    return RedirectResponse(place, HTTPStatus.SEE_OTHER)


async def _fields(state: AppState, request: Request) -> dict[str, str]:
    """The fields of a form that may be acted on."""
    if not state.allow_run:
        raise Forbidden(
            "the dashboard only shows; it changes nothing.",
            hint="Start the dashboard with --allow-run.",
        )
    return await read_form(request, state.access)


async def _refuse(state: AppState, request: Request, error: Exception) -> Response:
    """An error as a page or as data, with its HTTP status."""
    if isinstance(error, HTTPException):
        status, message, hint = error.status_code, "there is no such page.", ""
        if status != HTTPStatus.NOT_FOUND:
            message = error.detail
    else:
        assert isinstance(error, PasshatError)
        status = {NotFound: 404, Forbidden: 403, StoreUnavailable: 503}.get(type(error), 400)
        message, hint = error.message, error.hint or ""
    if request.url.path.endswith((".json", ".csv")):
        response = answer(state, Json({"error": message, "hint": hint or None}))
        response.status_code = status
        return response
    context = {"status": status, "message": message, "hint": hint}
    return answer(state, Html("refused.html.j2", context, status))


# -- listening: the address is known before anything is served, and Ctrl-C ends everything ---------


def listen(host: str, port: int) -> socket.socket:
    """A socket at this address; port 0 takes a free one."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[
            0
        ]
    except (socket.gaierror, UnicodeError, OverflowError):
        raise InvalidValue(f"{host!r} is not an address of this machine.") from None
    # With the protocol named, asyncio sends small answers at once (TCP_NODELAY), not 40 ms later.
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(128)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise InvalidValue(
                f"port {port} of {host} is in use.",
                hint="Take another with --port, or any free one with --port 0.",
            ) from None
        raise InvalidValue(f"cannot listen at {host}, port {port}: {error.strerror}.") from None
    return listening


def address_of(listening: socket.socket, access: Access, name: str = "") -> str:
    """URL to open in a browser, with the token if there is one; ``name`` for other machines."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    host = name or host
    host_text = f"[{host}]" if ":" in host else host
    return f"http://{host_text}:{port}/" + (f"?token={access.token}" if access.token else "")


def serve(
    store: str,
    access: Access,
    listening: socket.socket,
    *,
    allow_run: bool,
    ready: Callable[[], None],
) -> None:
    """Serve until Ctrl-C; ``ready`` is called when the first request can be answered."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

    app = make_app(store, access, allow_run=allow_run, ending=lambda: server.should_exit)
    server = Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            ws="none",
        )
    )
    logging.getLogger("uvicorn.error").addFilter(_is_not_cut_off)
    server.run(sockets=[listening])


def _is_not_cut_off(record: logging.LogRecord) -> bool:
    """Filter tracebacks of responses that were cut off when the server ended."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
