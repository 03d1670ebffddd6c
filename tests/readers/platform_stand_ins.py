"""Stand-ins for the REST APIs of six platforms on loopback, in the shape their docs describe.

``make test-platforms`` runs the same commands against real servers of MLflow and Phoenix.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

KEY = "sk-secret-of-the-test"
PAIR = "Basic " + base64.b64encode(f"pk-test:{KEY}".encode()).decode()


@dataclass
class Request:
    """What a client asked for."""

    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass
class Answer:
    """What it is answered with."""

    body: object
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Request], "Answer | object"]


@contextmanager
def serving(routes: dict[str, Handler]) -> Iterator[tuple[str, list[Request]]]:
    """A server for routes such as ``GET /v1/things/(.+)``: its address, and what it was asked."""
    asked: list[Request] = []

    class Server(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            size = int(self.headers.get("content-length") or 0)
            raw = self.rfile.read(size)
            request = Request(
                unquote(parts.path),
                {name: values[0] for name, values in parse_qs(parts.query).items()},
                json.loads(raw) if raw else None,
                {name.lower(): value for name, value in self.headers.items()},
            )
            asked.append(request)
            for route, handler in routes.items():
                method, _, path = route.partition(" ")
                if method == self.command and re.fullmatch(path, request.path):
                    made = handler(request)
                    break
            else:
                made = Answer({"message": "not found"}, 404)
            answer = made if isinstance(made, Answer) else Answer(made)
            text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            data = text.encode()
            self.send_response(answer.status)
            for name, value in {"content-length": str(len(data)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    # The default looks only every half second whether it should stop.
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def keyed(header: str, value: str, handler: Handler) -> Handler:
    """Answers 401 unless the key is sent as the platform wants it."""

    def checked(request: Request) -> object:
        if request.headers.get(header) != value:
            return Answer({"message": "invalid credentials"}, 401)
        return handler(request)

    return checked


def passed(task: int, trial: int) -> bool:
    """The verdicts of all stand-ins: 3 tasks x 2 attempts, 4 passed."""
    return (task, trial) not in ((1, 1), (2, 0))


PAIRS = [(task, trial) for trial in range(2) for task in range(3)]


def langfuse_4() -> dict[str, Handler]:
    """Experiment items with their scores, two to a page."""
    items = [
        {
            "id": f"o{t}{i}",
            "traceId": f"trace-{t}-{i}",
            "experimentName": f"run-{i}",
            "experimentItemId": f"item-{t}",
            "scores": [{"name": "correct", "dataType": "BOOLEAN", "value": passed(t, i)}],
        }
        for t, i in PAIRS
    ]

    def page(request: Request) -> object:
        assert request.query["fields"] == "scores"
        assert request.query["fromStartTime"] < request.query["toStartTime"]
        name = request.query.get("experimentName")
        rows = [row for row in items if name in (None, row["experimentName"])]
        at = int(request.query.get("cursor") or 0)
        more = {"cursor": str(at + 2)} if at + 2 < len(rows) else {}
        return {"data": rows[at : at + 2], "meta": {"limit": 2, **more}}

    routes: dict[str, Handler] = {
        "GET /api/public/projects": lambda _: {"data": [{"id": "p", "name": "helpdesk"}]},
        "GET /api/public/experiment-items": page,
    }
    return {route: keyed("authorization", PAIR, handler) for route, handler in routes.items()}


def langfuse_3() -> dict[str, Handler]:
    """Dataset runs, their items, and scores of traces: one page each, two of scores."""
    scores = [
        {
            "traceId": f"trace-{t}-{i}",
            "name": "correct",
            "value": float(passed(t, i)),
            "dataType": "NUMERIC",
        }
        for t, i in PAIRS
        if (t, i) != (0, 1)  # never scored: missing
    ]
    scores.append({"traceId": "of-production", "name": "correct", "value": 1.0})

    def paged(rows: list[Any]) -> Handler:
        def page(request: Request) -> object:
            number, size = int(request.query["page"]), 4
            total = -(-len(rows) // size)
            meta = {"page": number, "limit": size, "totalItems": len(rows), "totalPages": total}
            return {"data": rows[(number - 1) * size : number * size], "meta": meta}

        return page

    def items(request: Request) -> object:
        i = request.path[-1]
        rows = [
            {
                "datasetRunName": f"run-{i}",
                "datasetItemId": f"item-{t}",
                "traceId": f"trace-{t}-{i}",
            }
            for t in range(3)
        ]
        return {"id": f"r{i}", "name": f"run-{i}", "datasetRunItems": rows}

    return {
        "GET /api/public/projects": lambda _: {"data": [{"id": "p", "name": "helpdesk"}]},
        "GET /api/public/v2/datasets": paged([{"id": "d", "name": "set/of tasks"}]),
        "GET /api/public/datasets/set/of tasks/runs": paged([{"name": "run-0"}, {"name": "run-1"}]),
        "GET /api/public/datasets/set/of tasks/runs/run-.": items,
        "GET /api/public/v2/scores": paged(scores),
    }


def langsmith() -> dict[str, Handler]:
    """Sessions by name or dataset, and their runs, two to a page."""

    def sessions(request: Request) -> object:
        rows = [{"id": f"s{i}", "name": f"bot-{i}"} for i in range(2)]
        if request.query.get("reference_dataset") == "d":
            return rows
        return [row for row in rows if row["name"] == request.query.get("name")]

    def runs(request: Request) -> object:
        i = int(request.body["session"][0][1:])
        rows = [
            {
                "id": f"run-{t}-{i}",
                "reference_example_id": f"example-{t}",
                "feedback_stats": {"correct": {"n": 1, "avg": float(passed(t, i))}},
                "start_time": "2026-01-01T00:00:00Z",
                "end_time": "2026-01-01T00:00:01.500Z",
                "total_tokens": 7,
            }
            for t in range(3)
        ]
        at = int(request.body.get("cursor") or 0)
        assert request.body["is_root"]
        return {"runs": rows[at : at + 2], "cursors": {"next": "2" if at == 0 else None}}

    routes: dict[str, Handler] = {
        "GET /api/v1/sessions": sessions,
        "GET /api/v1/datasets": lambda r: [{"id": "d"}] if r.query["name"] == "tasks" else [],
        "POST /api/v1/runs/query": runs,
    }
    return {route: keyed("x-api-key", KEY, handler) for route, handler in routes.items()}


def braintrust() -> dict[str, Handler]:
    """Experiments of a project, one to a page, and their events, with child spans."""

    def experiments(request: Request) -> object:
        rows = [{"id": f"e{i}", "name": f"bot-{i}"} for i in range(2)]
        name = request.query.get("experiment_name")
        rows = [row for row in rows if name in (None, row["name"])]
        after = request.query.get("starting_after")
        ids = [row["id"] for row in rows]
        at = ids.index(after) + 1 if after in ids else 0
        return {"objects": rows[at : at + 1]}

    def query(request: Request) -> Answer:
        asked = request.body["query"]
        i = int(asked["from"]["args"][0]["value"][1:])
        rows: list[dict[str, object]] = [
            {
                "id": f"{t}{i}",
                "span_id": f"span-{t}-{i}",
                "is_root": True,
                "input": {"question": t},
                "scores": {"correct": float(passed(t, i))},
                "metrics": {"tokens": 9},
            }
            for t in range(3)
        ]
        rows.insert(1, {"id": "child", "is_root": False, "input": "x", "scores": None})
        at = int(asked.get("cursor") or 0)
        lines = "\n".join(json.dumps(row) for row in rows[at : at + 2])
        return Answer(lines, headers={"x-bt-cursor": "2"} if at == 0 else {})

    routes: dict[str, Handler] = {
        "GET /v1/project": lambda r: {
            "objects": [{"id": "p"}] if r.query["project_name"] == "helpdesk" else []
        },
        "GET /v1/experiment": experiments,
        "POST /btql": query,
    }
    return {
        route: keyed("authorization", f"Bearer {KEY}", handler) for route, handler in routes.items()
    }


def phoenix() -> dict[str, Handler]:
    """Datasets on two pages, experiments, and their runs with repetitions."""

    def datasets(request: Request) -> object:
        if "cursor" not in request.query:
            return {"data": [{"id": "d0", "name": "other"}], "next_cursor": "second"}
        return {"data": [{"id": "d1", "name": "tasks"}], "next_cursor": None}

    rows = [
        {
            "example_id": f"example-{t}",
            "repetition_number": i + 1,
            "latency_ms": 1500.0,
            "error": None,
            "annotations": [{"name": "correct", "score": float(passed(t, i))}],
        }
        for t, i in PAIRS
    ]
    return {
        "GET /v1/datasets": datasets,
        "GET /v1/datasets/d1/experiments": lambda _: {"data": [{"id": "x", "name": "bot"}]},
        "GET /v1/experiments/x/json": lambda _: rows,
    }


def weave() -> dict[str, Handler]:
    """Calls of an evaluation as JSON lines; references stand for objects."""
    rows = [
        {
            "id": f"call-{t}-{i}",
            "inputs": {
                "example": f"weave:///team/helpdesk/object/Dataset:x/attr/rows/id/{t}",
                "model": "weave:///team/helpdesk/object/Bot:abc",
            },
            "output": {"scores": {"judge": {"correct": passed(t, i)}}, "model_latency": 0.5},
        }
        for t, i in PAIRS
    ]

    def calls(request: Request) -> str:
        assert request.body["project_id"] == "team/helpdesk"
        assert "predict_and_score" in request.body["filter"]["op_names"][0]
        at = request.body["offset"]
        return "\n".join(map(json.dumps, rows[at : at + request.body["limit"]]))

    basic = "Basic " + base64.b64encode(f"api:{KEY}".encode()).decode()
    return {"POST /calls/stream_query": keyed("authorization", basic, calls)}


@dataclass
class Tracking:
    """The part of an MLflow tracking server that passhat uses."""

    experiments: dict[str, str] = field(default_factory=lambda: {"helpdesk": "1"})
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def routes(self) -> dict[str, Handler]:
        path = "/api/2.0/mlflow"
        return {
            f"GET {path}/experiments/get-by-name": self._experiment,
            f"POST {path}/experiments/create": self._create,
            f"POST {path}/runs/create": self._create_run,
            f"POST {path}/runs/log-batch": self._log,
            f"POST {path}/runs/update": self._update,
            f"GET {path}/runs/get": lambda r: {
                "run": {"info": {"run_name": f"eval-{r.query['run_id'][1:]}"}}
            },
            "POST /api/3.0/mlflow/traces/search": self._traces,
            "GET /api/3.0/mlflow/traces/get": self._trace,
        }

    def _experiment(self, request: Request) -> object:
        found = self.experiments.get(request.query["experiment_name"])
        if found is None:
            return Answer({"error_code": "RESOURCE_DOES_NOT_EXIST"}, 404)
        return {"experiment": {"experiment_id": found}}

    def _create(self, request: Request) -> object:
        self.experiments[request.body["name"]] = number = str(len(self.experiments) + 1)
        return {"experiment_id": number}

    def _create_run(self, request: Request) -> object:
        number = f"r{len(self.runs)}"
        self.runs[number] = {**request.body, "metrics": {}, "params": {}}
        return {"run": {"info": {"run_id": number}}}

    def _log(self, request: Request) -> object:
        run = self.runs[request.body["run_id"]]
        for kind in ("metrics", "params"):
            for row in request.body.get(kind, ()):
                if not re.fullmatch(r"[\w\-. :/]+", row["key"]):  # MLflow's own rule
                    return Answer({"error_code": "INVALID_PARAMETER_VALUE"}, 400)
                run[kind][row["key"]] = row["value"]
        return {}

    def _update(self, request: Request) -> object:
        self.runs[request.body["run_id"]]["status"] = request.body["status"]
        return {"run_info": {}}

    def _traces(self, request: Request) -> object:
        traces = [
            {
                "trace_id": f"trace-{t}-{i}",
                "state": "OK",
                "execution_duration": "1.5s",
                # Cut as MLflow cuts it: the questions differ only after 1,000 characters.
                "request_preview": "x" * 997 + "...",
                "trace_metadata": {"mlflow.sourceRun": f"r{i}"},
                "assessments": [
                    {"assessment_name": "expected", "expectation": {"value": "x"}},
                    {"assessment_name": "correct", "feedback": {"value": passed(t, i)}},
                ],
            }
            for t, i in PAIRS
        ]
        place = request.body["locations"][0]["mlflow_experiment"]
        assert place["experiment_id"] == "1"
        at = int(request.body.get("page_token") or 0)
        more = {"next_page_token": str(at + 4)} if at + 4 < len(traces) else {}
        return {"traces": traces[at : at + 4], **more}

    def _trace(self, request: Request) -> object:
        question = {"string_value": f"question {request.query['trace_id'].split('-')[1]}"}
        inputs = [{"key": "mlflow.spanInputs", "value": question}]
        child = {"parent_span_id": "root", "attributes": [{"key": "mlflow.spanInputs", "value": 1}]}
        return {"trace": {"spans": [child, {"attributes": inputs}]}}
