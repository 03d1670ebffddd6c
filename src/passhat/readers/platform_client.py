"""HTTP requests to the platforms that keep results: keys, pages, waiting and errors."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from passhat._display import some
from passhat.errors import MissingExtra, ReadError, shorten

_SECONDS = 60.0
_LONGEST_WAIT = 60.0
"""Seconds that a server may ask to wait before the user is asked to come back later."""
_TRIES = 5
_MOST_PAGES = 100_000
"""A server that repeats its last page forever must not fill the disk."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Platform:
    """How one platform is reached.

    Attributes
    ----------
    title : str
        Its name, for messages.
    form : str
        What follows the prefix, as in ``PROJECT/EXPERIMENT``.
    url_variables : tuple of str
        Environment variables for the address; the first that is set counts.
    url : str
        The usual address; empty when the variable is required.
    keys : tuple of str
        Environment variables for the key: both of a pair, or the only one.
    key_required : bool
        False for servers that people run on their own machine.
    sign_in : {"bearer", "user and password", "api user", "x-api-key"}
        How the key is sent.
    records : callable
        Yields the records of a project.
    """

    title: str
    form: str
    url_variables: tuple[str, ...]
    url: str
    keys: tuple[str, ...]
    key_required: bool
    records: Callable[[PlatformClient, str], Iterator[Json]]
    sign_in: str = "bearer"


class PlatformClient:
    """Sends requests to a platform; a failure raises an error that names a remedy.

    Keys come from the environment and are never part of a message. Redirects are not followed, so
    that a key is sent to no other host.
    """

    def __init__(self, platform: Platform, word: str) -> None:
        self.platform = platform
        self.word = word
        try:
            import httpx
        except ImportError:
            raise MissingExtra(f"Asking {platform.title}", extra="platforms") from None
        self._httpx = httpx
        self.url = self._address()
        keys = [os.environ.get(name, "").strip() for name in platform.keys]
        if platform.key_required and not all(keys):
            absent = [name for name, key in zip(platform.keys, keys, strict=True) if not key]
            raise self.error(
                f"{platform.title} needs a key, and {' and '.join(absent)} "
                f"{'is' if len(absent) == 1 else 'are'} not set.",
                f"Create a key in {platform.title}'s settings, then: export {absent[0]}=...",
            )
        auth, headers = _credentials(platform, keys)
        try:
            self._client = httpx.Client(
                base_url=self.url, auth=auth, headers=headers, timeout=_SECONDS
            )
        except (httpx.InvalidURL, ValueError, UnicodeError):
            raise self.error(
                f"{shorten(self.url)} is not an address, or a key holds characters that no HTTP "
                "header can have.",
                f"Check {', '.join((*platform.url_variables, *platform.keys))}.",
            ) from None

    def __enter__(self) -> PlatformClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _address(self) -> str:
        platform = self.platform
        variable, url = next(
            ((name, os.environ[name]) for name in platform.url_variables if os.environ.get(name)),
            (platform.url_variables[0], platform.url),
        )
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            state = f"is {shorten(_without_user(url))}" if url else "is not set"
            hint = f"Set {variable} to an address such as {platform.url or 'https://HOST'}"
            if platform.title == "MLflow":
                hint = (
                    "Start a server for that store, and name it: mlflow server "
                    "--backend-store-uri STORE --port 5000, then export "
                    f"{variable}=http://127.0.0.1:5000"
                )
            raise self.error(f"{variable} {state}, and an http address is needed.", hint)
        return url.rstrip("/")

    @property
    def shown_url(self) -> str:
        """The address without user name and password."""
        return _without_user(self.url)

    def error(self, what: str, hint: str | None = None) -> ReadError:
        """The error to raise; names the source as the user typed it."""
        return ReadError(what, source=self.word, hint=hint)

    def get(self, path: str, **params: object) -> Any:
        """The answer to GET, parsed; ``None`` parameters are left out."""
        return self._parse(self._send("GET", path, params=_drop_none(params)))

    def get_or_none(self, path: str, **params: object) -> Any:
        """As :meth:`get`; ``None`` where the server does not have the path."""
        answer = self._send("GET", path, accept=(404, 405, 410), params=_drop_none(params))
        return None if answer.status_code in (404, 405, 410) else self._parse(answer)

    def post(self, path: str, body: object) -> Any:
        """The answer to POST, parsed."""
        return self._parse(self._send("POST", path, json=body))

    def post_lines(self, path: str, body: object) -> tuple[list[Json], str | None]:
        """The JSON lines that POST is answered with, and the cursor in the header."""
        answer = self._send("POST", path, json=body)
        lines = [line for line in answer.text.splitlines() if line.strip()]
        try:
            rows = [json.loads(line) for line in lines]
        except ValueError:
            raise self._not_json(answer) from None
        return [row for row in rows if isinstance(row, dict)], answer.headers.get("x-bt-cursor")

    def _send(self, method: str, path: str, accept: tuple[int, ...] = (), **how: Any) -> Any:
        for left in reversed(range(_TRIES)):
            try:
                answer = self._client.request(method, path, **how)
            except self._httpx.HTTPError as error:
                why = str(error) or type(error).__name__
                where = self.shown_url
                raise self.error(
                    f"{self.platform.title} cannot be reached at {where} ({why}).",
                    f"Check the network and {self.platform.url_variables[0]}.",
                ) from None
            if answer.is_success or answer.status_code in accept:
                return answer
            wait = _wait(answer, self._httpx.codes)
            if wait is None or not left or wait > _LONGEST_WAIT:
                raise self._refusal(answer, wait)
            time.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _refusal(self, answer: Any, wait: float | None) -> ReadError:
        status, platform = answer.status_code, self.platform
        where = f"{self.shown_url}{urlsplit(str(answer.url)).path}"
        if status in (401, 403):
            names = " and ".join(platform.keys)
            unset = not any(os.environ.get(name) for name in platform.keys)
            return self.error(
                f"{platform.title} refused the request (HTTP {status}): "
                + (f"it needs a key, and {names} is not set." if unset else f"see {names}."),
                f"Check that the key is valid, may read this project, and belongs to "
                f"{self.shown_url}.",
            )
        if status == 429:
            request = "" if wait is None else f" and asks to wait {wait:,.0f} seconds"
            return self.error(
                f"{platform.title} gets too many requests{request} (HTTP 429).", "Try again then."
            )
        if answer.is_redirect:
            target = _without_user(answer.headers.get("location", ""))
            return self.error(
                f"{where} redirects to {shorten(target, 80)}, and keys are not sent elsewhere.",
                f"Set {platform.url_variables[0]} to the final address.",
            )
        text = " ".join(answer.text.split())
        return self.error(
            f"{platform.title} answered {where} with HTTP {status}: {shorten(text, 160)}.",
            "Try again later."
            if status >= 500
            else f"Check the name after the colon, and {platform.url_variables[0]}.",
        )

    def _parse(self, answer: Any) -> Any:
        try:
            return answer.json()
        except (ValueError, RecursionError):
            raise self._not_json(answer) from None

    def _not_json(self, answer: Any) -> ReadError:
        return self.error(
            f"{_without_user(str(answer.url))} does not answer with JSON but with "
            f"{shorten(' '.join(answer.text.split()))}.",
            f"Set {self.platform.url_variables[0]} to the address of the API.",
        )

    def unknown(self, what: str, name: str, known: Iterable[object] = ()) -> ReadError:
        """The error for a project or experiment that is not there."""
        names = [str(one) for one in known]
        hint = (
            f"There are: {some(names, 20)}." if names else "Check the name and the key's project."
        )
        return self.error(f"{self.platform.title} has no {what} called {name!r}.", hint)


def _wait(answer: Any, codes: Any) -> float | None:
    """Seconds to wait before the same request may succeed; ``None`` when it never will."""
    if answer.status_code not in (codes.TOO_MANY_REQUESTS, codes.BAD_GATEWAY, 503, 504):
        return None
    text = answer.headers.get("retry-after", "")
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    with suppress(ValueError, TypeError):
        from email.utils import parsedate_to_datetime

        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    return 1.0


def _credentials(
    platform: Platform, keys: list[str]
) -> tuple[tuple[str, str] | None, dict[str, str]]:
    """HTTP basic authentication, or headers, for a platform's keys."""
    if platform.title == "MLflow":
        user, password = (os.environ.get(f"MLFLOW_TRACKING_{w}") for w in ("USERNAME", "PASSWORD"))
        if user and password:
            return (user, password), {}
    if not all(keys):
        return None, {}
    if platform.sign_in == "user and password":
        return (keys[0], keys[1]), {}
    if platform.sign_in == "api user":
        return ("api", keys[0]), {}
    if platform.sign_in == "x-api-key":
        return None, {"x-api-key": keys[0]}
    return None, {"Authorization": f"Bearer {keys[0]}"}


def _without_user(url: str) -> str:
    """An address without user name, password and query, which may hold secrets."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return (
        f"{parts.scheme}://{host}{parts.path}" if parts.scheme and host else url.partition("?")[0]
    )


def _drop_none(params: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def rows_in(data: object, *names: str) -> list[Json]:
    """The objects in a list inside an answer; anything else is an empty list."""
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []


def pages(
    ask: Callable[[Any], Any], following: Callable[[Any], object], first: object = None
) -> Iterator[Any]:
    """Every page, until an answer names no next one or the same again."""
    place = first
    for _ in range(_MOST_PAGES):
        answer = ask(place)
        yield answer
        next_place = following(answer) if isinstance(answer, dict) else None
        if not next_place or next_place == place:
            return
        place = next_place


def offset_pages(ask: Callable[[int], list[Json]], size: int) -> Iterator[Json]:
    """Every row of a list that is asked for by offset, until a page is not full."""
    for page in range(_MOST_PAGES):
        rows = ask(page * size)
        yield from rows
        if len(rows) < size:
            return


def pick(row: Json, *names: str) -> Json:
    """Some fields of a record; an absent one is ``None``."""
    return {name: row.get(name) for name in names}
