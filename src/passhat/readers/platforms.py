"""Live platforms as sources: ``langfuse:PROJECT``, ``mlflow:EXPERIMENT`` and others.

What a platform answers is kept as JSON lines in the shape that the mapping of its exported files
reads, so that a live project and an exported file give the same runs. The REST APIs are called
directly: six SDKs would bring some 200 packages for a few requests each.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from passhat.errors import NoRows, ReadError
from passhat.readers.parsing import seconds_between
from passhat.readers.platform_client import (
    Json,
    Platform,
    PlatformClient,
    offset_pages,
    pages,
    pick,
    rows_in,
)

_PAGE = 100
_MLFLOW_PREVIEW = 1000
"""Characters that MLflow keeps of a request in the list of traces."""


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
    with PlatformClient(platform, word) as client, path.open("w", encoding="utf-8") as lines:
        for record in platform.records(client, name):
            lines.write(json.dumps(record, ensure_ascii=True) + "\n")
            count += 1
    if not count:
        raise NoRows(f"{platform.title} has no results there.", source=word)
    return path


# -- Langfuse --------------------------------------------------------------------------------


def _langfuse(client: PlatformClient, name: str) -> Iterator[Json]:
    """Scores of experiments; an item without a score that others have is a missing attempt."""
    project, _, experiment = name.partition("/")
    # A pair of keys belongs to one project.
    projects = [str(row.get("name")) for row in rows_in(client.get("/api/public/projects"), "data")]
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
    params = {
        "fields": "scores",
        "limit": 50,
        "fromStartTime": "2020-01-01T00:00:00Z",
        "toStartTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "experimentName": experiment or None,
    }
    items: list[Json] = []
    for page in pages(
        lambda cursor: client.get_or_none("/api/public/experiment-items", cursor=cursor, **params),
        lambda page: (page.get("meta") or {}).get("cursor"),
    ):
        if page is None:
            return None
        items += [
            {
                "traceId": row.get("traceId"),
                "task": row.get("experimentItemId"),
                "experiment": row.get("experimentName"),
                "scores": [score for score in rows_in(row, "scores") if "name" in score],
            }
            for row in rows_in(page, "data")
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
            for row in rows_in(answer, "datasetRunItems"):
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

    for page in pages(lambda page: client.get(path, page=page, limit=50), following, 1):
        yield from rows_in(page, "data")


# -- LangSmith -------------------------------------------------------------------------------


def _langsmith(client: PlatformClient, name: str) -> Iterator[Json]:
    """The root runs of an experiment, or of every experiment on a dataset of that name."""
    sessions = rows_in(client.get("/api/v1/sessions", name=name))
    if not sessions:
        datasets = rows_in(client.get("/api/v1/datasets", name=name))
        if not datasets:
            raise client.unknown("experiment or dataset", name)
        for dataset in datasets:
            params = {"reference_dataset": dataset.get("id"), "limit": _PAGE}
            sessions += offset_pages(
                lambda at, params=params: rows_in(  # type: ignore[misc]
                    client.get("/api/v1/sessions", offset=at, **params)
                ),
                _PAGE,
            )
    fields = ["id", "error", "start_time", "end_time", "reference_example_id", "feedback_stats"]
    for session in sessions:
        body = {
            "session": [session.get("id")],
            "is_root": True,
            "limit": _PAGE,
            "select": [*fields, "total_tokens", "total_cost"],
        }
        for page in pages(
            lambda cursor, body=body: client.post(  # type: ignore[misc]
                "/api/v1/runs/query", body if cursor is None else {**body, "cursor": cursor}
            ),
            lambda page: (page.get("cursors") or {}).get("next"),
        ):
            for run in rows_in(page, "runs"):
                yield {
                    **pick(
                        run, "reference_example_id", "id", "total_tokens", "total_cost", "error"
                    ),
                    "session_name": session.get("name"),
                    "feedback_stats": run.get("feedback_stats") or {},
                    "latency": seconds_between(run.get("start_time"), run.get("end_time")),
                }


# -- Braintrust ------------------------------------------------------------------------------


def _braintrust(client: PlatformClient, name: str) -> Iterator[Json]:
    """The root spans of the experiments of a project."""
    project, _, experiment = name.partition("/")
    if not rows_in(client.get("/v1/project", project_name=project), "objects"):
        raise client.unknown("project", project)
    experiments = [
        row
        for page in pages(
            lambda after: client.get(
                "/v1/experiment",
                project_name=project,
                experiment_name=experiment or None,
                limit=_PAGE,
                starting_after=after,
            ),
            lambda page: (rows_in(page, "objects") or [{}])[-1].get("id"),
        )
        for row in rows_in(page, "objects")
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
        for page in pages(
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
                        **pick(event, "id", "span_id", "error", "origin", "dataset_record_id"),
                        "input": event.get("input"),
                        "scores": event.get("scores") or {},
                        "metrics": event.get("metrics") or {},
                        "experiment_name": row.get("name"),
                    }


# -- Phoenix ---------------------------------------------------------------------------------


def _phoenix(client: PlatformClient, name: str) -> Iterator[Json]:
    """The runs of the experiments on a dataset."""
    dataset, _, experiment = name.partition("/")
    datasets = list(_phoenix_pages(client, "/v1/datasets"))
    ids = [row.get("id") for row in datasets if dataset in (row.get("name"), row.get("id"))]
    if not ids:
        raise client.unknown("dataset", dataset, [row.get("name") for row in datasets])
    titles: list[object] = []
    for number in ids:
        for row in _phoenix_pages(client, f"/v1/datasets/{number}/experiments"):
            title = row.get("name") or row.get("id")
            titles.append(title)
            if experiment and experiment not in (title, row.get("id")):
                continue
            answer = client.get_or_none(f"/v1/experiments/{row.get('id')}/json")
            for run in rows_in(answer):
                yield {
                    **pick(run, "example_id", "repetition_number", "error", "id", "trace_id"),
                    "annotations": run.get("annotations") or [],
                    "latency": _milliseconds(run.get("latency_ms")),
                    "experiment": title,
                }
    if experiment and experiment not in titles:
        raise client.unknown(f"experiment on {dataset}", experiment, titles)


def _milliseconds(value: object) -> float | None:
    return value / 1000 if isinstance(value, int | float) else None


def _phoenix_pages(client: PlatformClient, path: str) -> Iterator[Json]:
    for page in pages(
        lambda cursor: client.get(path, cursor=cursor, limit=_PAGE),
        lambda page: page.get("next_cursor"),
    ):
        yield from rows_in(page, "data")


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
    for call in offset_pages(
        lambda at: client.post_lines("/calls/stream_query", {**body, "offset": at})[0], _PAGE
    ):
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
    for page in pages(
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
        for trace in rows_in(page, "traces"):
            metadata = trace.get("trace_metadata") or {}
            run = str(metadata.get("mlflow.sourceRun") or "")
            if run and run not in names:
                answer = client.get_or_none("/api/2.0/mlflow/runs/get", run_id=run) or {}
                info = (answer.get("run") or {}).get("info") or {}
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
    task = (trace.get("tags") or {}).get("task") or (trace.get("trace_metadata") or {}).get("task")
    if task or not isinstance(preview, str) or len(preview) < _MLFLOW_PREVIEW:
        return preview
    path = "/api/3.0/mlflow/traces/get"
    answer = client.get_or_none(path, trace_id=trace.get("trace_id")) or {}
    for span in rows_in(answer, "trace", "spans"):
        for attribute in rows_in(span, "attributes"):
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
    return [row for row in rows_in(trace, "assessments") if "feedback" in row]


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
        "user and password",
    ),
    "langsmith": Platform(
        "LangSmith",
        "EXPERIMENT, or a dataset for all its experiments",
        ("LANGSMITH_ENDPOINT",),
        "https://api.smith.langchain.com",
        ("LANGSMITH_API_KEY",),
        True,
        _langsmith,
        "x-api-key",
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
        "api user",
    ),
}
"""The platforms that ``passhat import PLATFORM:NAME`` knows."""
