"""Live platforms as sources: ``langfuse:PROJECT``, ``mlflow:EXPERIMENT`` and others.

What a platform answers is kept as JSON lines in the shape that the mapping of its exported files
reads, so that a live project and an exported file give the same runs. The REST APIs are called
directly: six SDKs would bring some 200 packages for a few requests each.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from passhat._display import some
from passhat.errors import MissingExtra, NoRows, ReadError, shorten

__all__ = ["PLATFORMS", "Platform", "PlatformClient", "download", "platform_of"]

_SECONDS = 60.0
_LONGEST_WAIT = 60.0
"""Seconds that a server may ask to wait before the user is asked to come back later."""
_TRIES = 5
_PAGE = 100
_MLFLOW_PREVIEW = 1000
"""Characters that MLflow keeps of a request in the list of traces."""
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


def platform_of(word: str) -> str | None:
    """The prefix of a live source such as ``langfuse:PROJECT``, or ``None``."""
    prefix, colon, _ = word.partition(":")
    return prefix if colon and prefix in PLATFORMS else None


def download(word: str) -> Path:
    """The records of a live source as a file of JSON lines, removed when the process ends."""
    prefix, _, name = word.partition(":")
    platform = PLATFORMS[prefix]
    if not name.strip("/"):
        raise ReadError("names no project.", source=word, hint=f"Write {prefix}:{platform.form}")
    folder = Path(tempfile.mkdtemp(prefix="passhat-"))  # readable by this user alone
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # Runs that have no other name are named after the file.
    path = folder / (re.sub(r"[^\w.@ -]+", "-", name).strip(".-")[:100] or prefix)
    count = 0
    with PlatformClient(prefix, word) as client, path.open("w", encoding="utf-8") as lines:
        for record in platform.records(client, name):
            lines.write(json.dumps(record, ensure_ascii=True) + "\n")
            count += 1
    if not count:
        raise NoRows(f"{platform.title} has no results there.", source=word)
    return path


class PlatformClient:
    """Sends requests to a platform; a failure raises an error that names a remedy.

    Keys come from the environment and are never part of a message. Redirects are not followed, so
    that a key is sent to no other host.
    """

    def __init__(self, prefix: str, word: str) -> None:
        self.platform = platform = PLATFORMS[prefix]
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
        auth, headers = _credentials(prefix, keys)
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
            shown = f"is {shorten(_without_user(url))}" if url else "is not set"
            hint = f"Set {variable} to an address such as {platform.url or 'https://HOST'}"
            if platform.title == "MLflow":
                hint = (
                    "Start a server for that store, and name it: mlflow server "
                    "--backend-store-uri STORE --port 5000, then export "
                    f"{variable}=http://127.0.0.1:5000"
                )
            raise self.error(f"{variable} {shown}, and an http address is needed.", hint)
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
        return self._parsed(self._send("GET", path, params=_given(params)))

    def get_or_none(self, path: str, **params: object) -> Any:
        """As :meth:`get`; ``None`` where the server does not have the path."""
        answer = self._send("GET", path, accept=(404, 405, 410), params=_given(params))
        return None if answer.status_code in (404, 405, 410) else self._parsed(answer)

    def post(self, path: str, body: object) -> Any:
        """The answer to POST, parsed."""
        return self._parsed(self._send("POST", path, json=body))

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
                raise self._refused(answer, wait)
            time.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _refused(self, answer: Any, wait: float | None) -> ReadError:
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
            asked = "" if wait is None else f" and asks to wait {wait:,.0f} seconds"
            return self.error(
                f"{platform.title} gets too many requests{asked} (HTTP 429).", "Try again then."
            )
        if answer.is_redirect:
            target = _without_user(answer.headers.get("location", ""))
            return self.error(
                f"{where} redirects to {shorten(target, 80)}, and keys are not sent elsewhere.",
                f"Set {platform.url_variables[0]} to the final address.",
            )
        told = " ".join(answer.text.split())
        return self.error(
            f"{platform.title} answered {where} with HTTP {status}: {shorten(told, 160)}.",
            "Try again later."
            if status >= 500
            else f"Check the name after the colon, and {platform.url_variables[0]}.",
        )

    def _parsed(self, answer: Any) -> Any:
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


def _credentials(prefix: str, keys: list[str]) -> tuple[tuple[str, str] | None, dict[str, str]]:
    """How a platform wants its key: HTTP basic authentication, or headers."""
    if prefix == "mlflow":
        user, password = (os.environ.get(f"MLFLOW_TRACKING_{w}") for w in ("USERNAME", "PASSWORD"))
        if user and password:
            return (user, password), {}
    if not all(keys):
        return None, {}
    if prefix == "langfuse":
        return (keys[0], keys[1]), {}
    if prefix == "weave":
        return ("api", keys[0]), {}
    if prefix == "langsmith":
        return None, {"x-api-key": keys[0]}
    return None, {"Authorization": f"Bearer {keys[0]}"}


def _without_user(url: str) -> str:
    """An address without user name, password and query, which may hold secrets."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return (
        f"{parts.scheme}://{host}{parts.path}" if parts.scheme and host else url.partition("?")[0]
    )


def _given(params: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def _rows(data: object, *names: str) -> list[Json]:
    """The objects in a list inside an answer; anything else is an empty list."""
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []


def _pages(
    ask: Callable[[Any], Any], following: Callable[[Any], object], first: object = None
) -> Iterator[Any]:
    """Every page, until an answer names no next one or the same again."""
    place = first
    for _ in range(_MOST_PAGES):
        answer = ask(place)
        yield answer
        found = following(answer) if isinstance(answer, dict) else None
        if not found or found == place:
            return
        place = found


# -- Langfuse --------------------------------------------------------------------------------


def _langfuse(client: PlatformClient, name: str) -> Iterator[Json]:
    """Scores of experiments; an item without a score that others have is a missing attempt."""
    project, _, experiment = name.partition("/")
    # A pair of keys belongs to one project.
    projects = [str(row.get("name")) for row in _rows(client.get("/api/public/projects"), "data")]
    if project not in projects:
        raise client.unknown("project that the keys can read", project, projects)
    items = _langfuse_items(client, experiment)
    if items is None:
        items = _langfuse_run_items(client, experiment)
    if experiment and not items:
        raise client.unknown("experiment", experiment)
    names = {str(score["name"]) for item in items for score in item["scores"]}
    for item in items:
        scores = {str(score["name"]): score for score in item["scores"]}
        for name in sorted(names) or ["score"]:
            score = scores.get(name, {})
            yield {
                "traceId": item["traceId"],
                "name": name,
                "value": score.get("value"),
                "stringValue": score.get("stringValue"),
                "datasetItemId": item["task"],
                "datasetRunName": item["experiment"],
            }


def _langfuse_items(client: PlatformClient, experiment: str) -> list[Json] | None:
    """The items of experiments in Langfuse 4, with their scores; ``None`` before that."""
    asked = {
        "fields": "scores",
        "limit": 50,
        "fromStartTime": "2020-01-01T00:00:00Z",
        "toStartTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "experimentName": experiment or None,
    }
    items: list[Json] = []
    for page in _pages(
        lambda cursor: client.get_or_none("/api/public/experiment-items", cursor=cursor, **asked),
        lambda page: (page.get("meta") or {}).get("cursor"),
    ):
        if page is None:
            return None
        items += [
            {
                "traceId": row.get("traceId"),
                "task": row.get("experimentItemId"),
                "experiment": row.get("experimentName"),
                "scores": [score for score in _rows(row, "scores") if "name" in score],
            }
            for row in _rows(page, "data")
        ]
    return items


def _langfuse_run_items(client: PlatformClient, experiment: str) -> list[Json]:
    """The items of dataset runs in Langfuse 3 and earlier, with the scores of their traces."""
    items: dict[str, Json] = {}
    for dataset in _langfuse_pages(client, "/api/public/v2/datasets"):
        path = f"/api/public/datasets/{quote(str(dataset.get('name')), safe='')}/runs"
        for run in _langfuse_pages(client, path):
            if experiment and run.get("name") != experiment:
                continue
            answer = client.get(f"{path}/{quote(str(run.get('name')), safe='')}")
            for row in _rows(answer, "datasetRunItems"):
                items[str(row.get("traceId"))] = {
                    "traceId": row.get("traceId"),
                    "task": row.get("datasetItemId"),
                    "experiment": row.get("datasetRunName") or run.get("name"),
                    "scores": [],
                }
    for score in _langfuse_pages(client, "/api/public/v2/scores"):
        item = items.get(str(score.get("traceId")))
        if item is not None and "name" in score:
            item["scores"].append(score)
    return list(items.values())


def _langfuse_pages(client: PlatformClient, path: str) -> Iterator[Json]:
    def following(page: Json) -> object:
        meta = page.get("meta") or {}
        number, total = meta.get("page") or 1, meta.get("totalPages") or 0
        return number + 1 if number < total else None

    for page in _pages(lambda page: client.get(path, page=page, limit=50), following, 1):
        yield from _rows(page, "data")


# -- LangSmith -------------------------------------------------------------------------------


def _langsmith(client: PlatformClient, name: str) -> Iterator[Json]:
    """The root runs of an experiment, or of every experiment on a dataset of that name."""
    sessions = _rows({"found": client.get("/api/v1/sessions", name=name)}, "found")
    if not sessions:
        datasets = _rows({"found": client.get("/api/v1/datasets", name=name)}, "found")
        for dataset in datasets:
            for page in _pages(
                lambda offset, dataset=dataset: {  # type: ignore[misc]
                    "offset": offset,
                    "found": client.get(
                        "/api/v1/sessions",
                        reference_dataset=dataset.get("id"),
                        limit=_PAGE,
                        offset=offset,
                    ),
                },
                lambda page: page["offset"] + _PAGE if len(page["found"]) == _PAGE else None,
                0,
            ):
                sessions += _rows(page, "found")
        if not datasets:
            raise client.unknown("experiment or dataset", name)
    wanted = ["id", "error", "start_time", "end_time", "reference_example_id", "feedback_stats"]
    for session in sessions:
        body = {
            "session": [session.get("id")],
            "is_root": True,
            "limit": _PAGE,
            "select": [*wanted, "total_tokens", "total_cost"],
        }
        for page in _pages(
            lambda cursor, body=body: client.post(  # type: ignore[misc]
                "/api/v1/runs/query", body if cursor is None else {**body, "cursor": cursor}
            ),
            lambda page: (page.get("cursors") or {}).get("next"),
        ):
            for run in _rows(page, "runs"):
                yield {
                    "reference_example_id": run.get("reference_example_id"),
                    "id": run.get("id"),
                    "session_name": session.get("name"),
                    "feedback_stats": run.get("feedback_stats") or {},
                    "latency": _seconds_between(run.get("start_time"), run.get("end_time")),
                    "total_tokens": run.get("total_tokens"),
                    "total_cost": run.get("total_cost"),
                    "error": run.get("error"),
                }


def _seconds_between(start: object, end: object) -> float | None:
    try:
        first, last = (datetime.fromisoformat(str(t).replace("Z", "+00:00")) for t in (start, end))
        return (last - first).total_seconds()
    except (TypeError, ValueError):
        return None


# -- Braintrust ------------------------------------------------------------------------------


def _braintrust(client: PlatformClient, name: str) -> Iterator[Json]:
    """The root spans of the experiments of a project."""
    project, _, experiment = name.partition("/")
    if not _rows(client.get("/v1/project", project_name=project), "objects"):
        raise client.unknown("project", project)
    experiments = [
        row
        for page in _pages(
            lambda after: client.get(
                "/v1/experiment",
                project_name=project,
                experiment_name=experiment or None,
                limit=_PAGE,
                starting_after=after,
            ),
            lambda page: (_rows(page, "objects") or [{}])[-1].get("id"),
        )
        for row in _rows(page, "objects")
    ]
    if experiment and not experiments:
        raise client.unknown(f"experiment in {project}", experiment)
    for row in experiments:
        # /v1/experiment/ID/fetch answers with 1,000 events at most; a query has pages.
        table = {
            "op": "function",
            "name": {"op": "ident", "name": ["experiment"]},
            "args": [{"op": "literal", "value": row.get("id")}],
        }
        query: Json = {"from": table, "select": [{"op": "star"}], "limit": 1000}
        for page in _pages(
            lambda cursor, query=query: dict(  # type: ignore[misc]
                zip(
                    ("events", "cursor"),
                    client.post_lines(
                        "/btql",
                        {
                            "query": query if cursor is None else {**query, "cursor": cursor},
                            "fmt": "jsonl",
                        },
                    ),
                    strict=True,
                )
            ),
            lambda page: page["cursor"] if page["events"] else None,
        ):
            for event in page["events"]:
                if event.get("is_root", True):
                    yield {
                        "scores": event.get("scores") or {},
                        "id": event.get("id"),
                        "span_id": event.get("span_id"),
                        "experiment_name": row.get("name"),
                        "metrics": event.get("metrics") or {},
                        "error": event.get("error"),
                        "origin": event.get("origin"),
                        "dataset_record_id": event.get("dataset_record_id"),
                        "input": event.get("input"),
                    }


# -- Phoenix ---------------------------------------------------------------------------------


def _phoenix(client: PlatformClient, name: str) -> Iterator[Json]:
    """The runs of the experiments on a dataset."""
    wanted, _, experiment = name.partition("/")
    datasets = list(_phoenix_pages(client, "/v1/datasets"))
    ids = [row.get("id") for row in datasets if wanted in (row.get("name"), row.get("id"))]
    if not ids:
        raise client.unknown("dataset", wanted, [row.get("name") for row in datasets])
    known: list[object] = []
    for number in ids:
        for row in _phoenix_pages(client, f"/v1/datasets/{number}/experiments"):
            title = row.get("name") or row.get("id")
            known.append(title)
            if experiment and experiment not in (title, row.get("id")):
                continue
            answer = client.get_or_none(f"/v1/experiments/{row.get('id')}/json")
            for run in _rows({"runs": answer}, "runs"):
                yield {
                    "example_id": run.get("example_id"),
                    "repetition_number": run.get("repetition_number"),
                    "annotations": run.get("annotations") or [],
                    "error": run.get("error"),
                    "id": run.get("id"),
                    "trace_id": run.get("trace_id"),
                    "latency": _milliseconds(run.get("latency_ms")),
                    "experiment": title,
                }
    if experiment and experiment not in known:
        raise client.unknown(f"experiment on {wanted}", experiment, known)


def _milliseconds(value: object) -> float | None:
    return value / 1000 if isinstance(value, int | float) else None


def _phoenix_pages(client: PlatformClient, path: str) -> Iterator[Json]:
    for page in _pages(
        lambda cursor: client.get(path, cursor=cursor, limit=_PAGE),
        lambda page: page.get("next_cursor"),
    ):
        yield from _rows(page, "data")


# -- Weave -----------------------------------------------------------------------------------


def _weave(client: PlatformClient, name: str) -> Iterator[Json]:
    """The calls of an evaluation that predict and score one example each."""
    if name.count("/") != 1:
        raise client.error("needs the entity, too.", "Write weave:ENTITY/PROJECT")
    body = {
        "project_id": name,
        "filter": {"op_names": [f"weave:///{name}/op/Evaluation.predict_and_score:*"]},
        "sort_by": [{"field": "started_at", "direction": "asc"}],
        "limit": _PAGE,
    }
    for page in _pages(
        lambda offset: {
            "offset": offset,
            "calls": client.post_lines("/calls/stream_query", {**body, "offset": offset})[0],
        },
        lambda page: page["offset"] + _PAGE if len(page["calls"]) == _PAGE else None,
        0,
    ):
        for call in page["calls"]:
            inputs, output = call.get("inputs") or {}, call.get("output")
            result = output if isinstance(output, dict) else {}
            yield {
                "inputs": {"example": inputs.get("example"), "model": _object(inputs.get("model"))},
                "output": {
                    "scores": result.get("scores") or {},
                    "model_latency": result.get("model_latency"),
                },
                "id": call.get("id"),
                "exception": call.get("exception"),
            }


def _object(reference: object) -> object:
    """The name of an object: MyModel of weave:///ENTITY/PROJECT/object/MyModel:DIGEST."""
    if isinstance(reference, str) and reference.startswith("weave:///"):
        return reference.rpartition("/")[2].partition(":")[0]
    return reference


# -- MLflow ----------------------------------------------------------------------------------


def _mlflow(client: PlatformClient, name: str) -> Iterator[Json]:
    """The traces of an experiment that were assessed, under the name of their run."""
    answer = client.get_or_none("/api/2.0/mlflow/experiments/get-by-name", experiment_name=name)
    experiment = (answer or {}).get("experiment") or {}
    if "experiment_id" not in experiment:
        raise client.unknown("experiment", name)
    place = {
        "type": "MLFLOW_EXPERIMENT",
        "mlflow_experiment": {"experiment_id": experiment["experiment_id"]},
    }
    names: dict[str, object] = {}
    for page in _pages(
        lambda token: client.post(
            "/api/3.0/mlflow/traces/search",
            {
                "locations": [place],
                "max_results": _PAGE,
                **({"page_token": token} if token else {}),
            },
        ),
        lambda page: page.get("next_page_token"),
    ):
        for trace in _rows(page, "traces"):
            metadata = trace.get("trace_metadata") or {}
            run = str(metadata.get("mlflow.sourceRun") or "")
            if run and run not in names:
                found = client.get_or_none("/api/2.0/mlflow/runs/get", run_id=run) or {}
                info = (found.get("run") or {}).get("info") or {}
                names[run] = info.get("run_name") or run
            failed = trace.get("state") == "ERROR"
            yield {
                "trace_id": trace.get("trace_id"),
                "assessments": _assessments(trace),
                "run_name": names.get(run),
                "tags": trace.get("tags") or {},
                "trace_metadata": metadata,
                "execution_duration": _duration(trace.get("execution_duration")),
                "error": "the trace ended with an error" if failed else None,
                "request": _request(client, trace),
            }


def _request(client: PlatformClient, trace: Json) -> object:
    """The request. MLflow cuts long requests in its list, so that two tasks would look the same."""
    preview = trace.get("request_preview") or trace.get("request")
    tagged = (trace.get("tags") or {}).get("task") or (trace.get("trace_metadata") or {}).get(
        "task"
    )
    if tagged or not isinstance(preview, str) or len(preview) < _MLFLOW_PREVIEW:
        return preview
    path = "/api/3.0/mlflow/traces/get"
    answer = client.get_or_none(path, trace_id=trace.get("trace_id")) or {}
    for span in _rows(answer, "trace", "spans"):
        for attribute in _rows(span, "attributes"):
            if attribute.get("key") == "mlflow.spanInputs" and not span.get("parent_span_id"):
                text = json.dumps(attribute.get("value"), sort_keys=True)
                return f"{preview[:60]} {hashlib.sha256(text.encode()).hexdigest()[:12]}"
    raise client.error(
        f"the request of trace {trace.get('trace_id')} is cut after {len(preview):,} characters, "
        "so that tasks cannot be told apart.",
        "Tag the traces with their task: mlflow.set_trace_tag(TRACE, 'task', NAME)",
    )


def _assessments(trace: Json) -> list[Json]:
    """The assessments that are verdicts: an expectation is the right answer, not a score."""
    return [row for row in _rows(trace, "assessments") if "feedback" in row]


def _duration(value: object) -> float | None:
    """Seconds of 1.5s, as protocol buffers write a duration, or of milliseconds."""
    if isinstance(value, str) and value.endswith("s"):
        with suppress(ValueError):
            return float(value[:-1])
    return None


PLATFORMS: dict[str, Platform] = {
    "braintrust": Platform(
        "Braintrust",
        "PROJECT[/EXPERIMENT]",
        ("BRAINTRUST_API_URL",),
        "https://api.braintrust.dev",
        ("BRAINTRUST_API_KEY",),
        True,
        _braintrust,
    ),
    "langfuse": Platform(
        "Langfuse",
        "PROJECT[/EXPERIMENT]",
        ("LANGFUSE_BASE_URL", "LANGFUSE_HOST"),
        "https://cloud.langfuse.com",
        ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"),
        True,
        _langfuse,
    ),
    "langsmith": Platform(
        "LangSmith",
        "EXPERIMENT, or a dataset for all its experiments",
        ("LANGSMITH_ENDPOINT",),
        "https://api.smith.langchain.com",
        ("LANGSMITH_API_KEY",),
        True,
        _langsmith,
    ),
    "mlflow": Platform(
        "MLflow",
        "EXPERIMENT",
        ("MLFLOW_TRACKING_URI",),
        "http://127.0.0.1:5000",
        ("MLFLOW_TRACKING_TOKEN",),
        False,
        _mlflow,
    ),
    "phoenix": Platform(
        "Phoenix",
        "DATASET[/EXPERIMENT]",
        ("PHOENIX_BASE_URL", "PHOENIX_COLLECTOR_ENDPOINT"),
        "http://127.0.0.1:6006",
        ("PHOENIX_API_KEY",),
        False,
        _phoenix,
    ),
    "weave": Platform(
        "W&B Weave",
        "ENTITY/PROJECT",
        ("WF_TRACE_SERVER_URL",),
        "https://trace.wandb.ai",
        ("WANDB_API_KEY",),
        True,
        _weave,
    ),
}
"""The platforms that ``passhat import PLATFORM:NAME`` knows."""
