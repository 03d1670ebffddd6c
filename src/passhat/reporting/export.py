"""Attempts for other programs: JSON lines, CSV, Parquet, and the results file of tau2-bench."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

import msgspec

from passhat._display import csv_cell
from passhat.errors import InvalidValue, MissingExtra, ReadError, shorten
from passhat.protocol import Protocol
from passhat.readers.formats.export import EXPORT_COLUMNS, OUTCOMES_SCHEMA
from passhat.readers.sources import Source
from passhat.stats.outcomes import Attempt, FailureCategory, MissingReason, Run, Verdict
from passhat.store.database import private_file

_NUMBERS = ("attempt", "score", "steps", "seconds", "tokens", "cost", "retries")
_WHOLE = ("steps", "tokens", "retries")
_FLAGS = ("passed", "ordered")
_BLOCK_ROWS = 500
"""Rows that are written together."""


def export_rows(runs: Iterable[Run]) -> Iterator[dict[str, object]]:
    """A row per attempt of every run, in order; a value that was not recorded is None."""
    for run in runs:
        shared: dict[str, object] = {
            **dict.fromkeys(EXPORT_COLUMNS),
            "run": run.name,
            "agent": run.agent,
            "suite": run.protocol.suite,
            "judge": run.protocol.judge,
            **{word: text for word, text in run.about.items() if word in EXPORT_COLUMNS},
            "started": run.started or None,
            "decoding": dict(run.protocol.decoding) or None,
            "protocol": _further_protocol(run.protocol) or None,
            "ordered": run.outcomes.order is not None or run.stream is not None,
            "source": run.source,
            "schema": OUTCOMES_SCHEMA,
        }
        names = [f"slice:{name}" for name in run.outcomes.labels]
        slices = {
            task: dict(zip(names, labels, strict=False))
            for task, labels in run.label_rows().items()
        }
        for attempt in run.iterate_rows():
            row = {**shared, **attempt, **slices.get(str(attempt["task"]), {})}
            for name in ("extension", "labels"):
                if row.get(name) is not None:
                    row[name] = json.loads(str(row[name]))
            for name in _WHOLE:
                if (value := row[name]) is not None and type(value) is not int:
                    row[name] = _whole(value)
            yield row


def _further_protocol(protocol: Protocol) -> dict[str, object]:
    """The fields of a protocol that have no column of their own and are not at their defaults."""
    columns = ("suite", "judge", "decoding")
    default = Protocol().to_dict()
    fields = protocol.to_dict().items()
    return {name: v for name, v in fields if name not in columns and v != default[name]}


def as_json_lines(runs: Sequence[Run]) -> Iterator[str]:
    """The rows as JSON lines, some at a time."""
    return _encode_lines(export_rows(runs))


def _encode_lines(rows: Iterator[dict[str, object]]) -> Iterator[str]:
    while block := list(islice(rows, _BLOCK_ROWS)):
        yield b"\n".join([*map(_encode, block), b""]).decode()


def as_csv_rows(runs: Sequence[Run]) -> Iterator[str]:
    """CSV with a header line."""
    names = [*EXPORT_COLUMNS, *_slices(runs)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    rows = export_rows(runs)
    while block := list(islice(rows, _BLOCK_ROWS)):
        writer.writerows([_cell(row.get(name)) for name in names] for row in block)
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()  # the header alone, where there is no row


def as_tau2(runs: Sequence[Run]) -> Iterator[str]:
    """A results file as tau2-bench writes it.

    A run that was read from such a file is written with its conversations, criteria and endings,
    so that ``tau2 evaluate-trajs`` gives the same rewards. Any other run has none to write; it is
    marked so that it cannot be regraded, since tau2 grades a conversation without criteria as
    perfect. Fields that tau2 requires and that were not recorded are empty.
    """
    if len(runs) != 1:
        raise InvalidValue(
            f"a tau2-bench results file holds one run, and there are {len(runs)}.",
            hint="Choose one with --run: " + ", ".join(run.name for run in runs[:20]),
        )
    run = runs[0]
    original = _original(run)
    if original is not None:
        yield original
        return
    simulations = [_simulation(attempt, run.name) for attempt in run.iterate_attempts()]
    protocol = run.protocol
    # tau2-bench/retail as a log of it is called, tau2:retail@env as a suite is.
    suite = (protocol.suite or "").removeprefix("tau2-bench/").removeprefix("tau2:")
    results = {
        "timestamp": None,
        "info": {
            "git_commit": "unknown",
            "num_trials": protocol.attempts,
            "max_steps": protocol.max_steps,
            "max_errors": 10,
            "agent_info": {
                "implementation": "exported by passhat",
                "llm": run.agent,
                "llm_args": dict(protocol.decoding),
            },
            "user_info": {"implementation": protocol.user_simulator or "unknown"},
            "environment_info": {"domain_name": suite.partition("@")[0], "policy": ""},
            "passhat": {"protocol": protocol.to_dict()},
        },
        "tasks": [
            {
                "id": task,
                "user_scenario": {"instructions": ""},
                "evaluation_criteria": _NOT_TO_BE_REGRADED,
            }
            for task in run.outcomes.tasks
        ],
        "simulations": simulations,
    }
    yield json.dumps(results, indent=2, ensure_ascii=False) + "\n"


_EVERY_EVAL = "0.3.0"


def as_every_eval(runs: Sequence[Run]) -> Iterator[str]:
    """Instance-level records of Every Eval Ever, as JSON lines, some at a time."""
    return _encode_lines(_every_eval_records(runs))


def _every_eval_records(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    """The records of :func:`as_every_eval`.

    Its schema has no attempt without a verdict: a missing one is written as not correct with an
    error, and with the reason that brings it back in ``metadata``. The file about the whole
    evaluation needs facts on the organization that no run holds, and is not written.
    """
    kept = ("run", "attempt", "category", "seed", "seconds", "tokens", "cost", "retries")
    protocols = {run.name: _compact(run.protocol.to_dict()) for run in runs}
    for row in export_rows(runs):
        suite, passed, score = row["suite"] or "unknown", bool(row["passed"]), row["score"]
        model = row["model"] or row["agent"]
        metadata = {name: row[name] for name in (*kept, "provider", "model_version")}
        metadata |= {"missing_reason": row["reason"], "agent": row["agent"], "judge": row["judge"]}
        metadata |= {name: row[name] for name in row if name.startswith("slice:")}
        metadata["protocol"] = protocols[str(row["run"])]
        steps, seconds = row["steps"], row["seconds"]
        yield {
            "schema_version": _EVERY_EVAL,
            "evaluation_id": f"{suite}/{model}/{row['run']}",
            "model_id": model,
            "evaluation_name": suite,
            "sample_id": row["task"],
            "sample_hash": row["sample_hash"],
            "interaction_type": "single_turn",
            "input": {"raw": "", "reference": [row["expected"]] if row["expected"] else []},
            "output": {"raw": [] if row["answer"] is None else [row["answer"]]},
            "answer_attribution": [],
            "evaluation": {
                "score": float(passed) if score is None else score,
                "is_correct": passed,
                "num_turns": steps if isinstance(steps, int) and steps > 0 else None,
            },
            "performance": {"latency_ms": 1000 * seconds if isinstance(seconds, float) else None},
            "error": None if passed else row["detail"] or row["reason"],
            "metadata": {name: str(v) for name, v in metadata.items() if v is not None},
        }


def write_parquet(runs: Sequence[Run], path: str) -> None:
    """A Parquet file, written by DuckDB from JSON lines with stated types."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("Writing Parquet", extra="parquet") from None
    names = [*EXPORT_COLUMNS, *_slices(runs)]
    types = {name: _type(name) for name in names}
    columns = ", ".join(f"{_quote(name)}: {_quote(kind)}" for name, kind in types.items())
    with tempfile.TemporaryDirectory() as folder:
        lines, parquet = Path(folder) / "rows.jsonl", Path(folder) / "rows.parquet"
        with lines.open("w", encoding="utf-8") as stream:
            stream.writelines(as_json_lines(runs))
        query = (
            f"COPY (SELECT * FROM read_json({_quote(str(lines))}, format='newline_delimited', "
            f"columns={{{columns}}})) TO {_quote(str(parquet))} "
            # Every thread holds a group of rows in memory: small groups and one thread keep that
            # the same for any number of attempts.
            "(FORMAT parquet, ROW_GROUP_SIZE 20480)"
        )
        try:
            with duckdb.connect() as database:
                database.execute("SET threads = 1")
                database.execute(query)
            # DuckDB would give the file the mode of the umask.
            with (
                parquet.open("rb") as source,
                os.fdopen(private_file(path, truncate=True), "wb") as to,
            ):
                shutil.copyfileobj(source, to)
        except (duckdb.Error, OSError) as error:
            system_text = error.strerror if isinstance(error, OSError) else None
            why = system_text or shorten(str(error).splitlines()[0], 120)
            raise InvalidValue(f"{path} cannot be written ({why}).") from None


_NOT_TO_BE_REGRADED: dict[str, object] = {
    "actions": None,
    "env_assertions": [
        {
            "env_type": "assistant",
            # No environment has it, so that regrading stops with this name.
            "func_name": "exported_by_passhat_without_conversations",
            "arguments": {},
            "assert_value": True,
            "message": "exported by passhat without conversations: cannot be graded again",
        }
    ],
    "communicate_info": None,
    "nl_assertions": None,
    "reward_basis": ["ENV_ASSERTION"],
}

_ENDINGS = {
    str(FailureCategory.TIMEOUT): "max_steps",
    str(FailureCategory.AGENT_ERROR): "agent_error",
    str(MissingReason.USER_ERROR): "user_error",
}
"""How tau2 calls the end of an attempt with this failure category or missing reason."""


def _original(run: Run) -> str | None:
    """The tau2-bench results a run was read from, with the simulations that are in the run."""
    path = Path(run.source)
    if run.attempts is None or not path.exists():
        return None
    ids = {attempt.extras.get("source_id") for attempt in run.attempts} - {None}
    folder = path if path.is_dir() else path.parent
    data = _json_of(path / "results.json" if path.is_dir() else path)
    if not isinstance(data, dict) or "info" not in data or "tasks" not in data:
        return None
    simulations = data.get("simulations")
    if not isinstance(simulations, list):
        # The other form of results: an index, and a file for each simulation beside it.
        files = sorted((folder / "simulations").glob("*.json"))
        simulations = [_json_of(file) for file in files if file.stem in ids]
    matches = [s for s in simulations if isinstance(s, dict) and str(s.get("id")) in ids]
    if len(matches) != len(run.attempts):
        return None
    whole = {name: value for name, value in data.items() if name != "simulation_index"}
    return json.dumps({**whole, "simulations": matches}, indent=2, ensure_ascii=False) + "\n"


def _json_of(path: Path) -> object:
    """The content of a JSON file, compressed or not; ``None`` where it cannot be read."""
    try:
        with Source(str(path), path).open() as stream:
            return json.loads(stream.read())
    except (ReadError, ValueError, RecursionError):
        return None


def _simulation(attempt: Attempt, run: str) -> dict[str, object]:
    missing = attempt.verdict is Verdict.MISSING
    ending = _ENDINGS.get(str(attempt.why), "infrastructure_error" if missing else "agent_stop")
    seed = attempt.extras.get("seed")
    return {
        "id": attempt.extras.get("source_id") or f"{run} {attempt.id}",
        "task_id": attempt.task,
        "trial": attempt.number - 1,
        "seed": int(seed) if seed is not None and seed.isdecimal() else None,
        "start_time": "",
        "end_time": "",
        "duration": attempt.measures.get("seconds"),
        "termination_reason": ending,
        "agent_cost": attempt.measures.get("cost"),
        "reward_info": None
        if missing
        else {"reward": float(attempt.verdict), "info": {"score": attempt.score}},
        "messages": [],
    }


def _slices(runs: Sequence[Run]) -> list[str]:
    """Columns that only some runs have: labels of people, and slices."""
    labels = ["labels"] if any(run.labels is not None for run in runs) else []
    slices = (f"slice:{name}" for run in runs for name in run.outcomes.labels)
    return [*labels, *dict.fromkeys(slices)]


_encode = msgspec.json.Encoder().encode


def _compact(data: object) -> str:
    return _encode(data).decode()


def _whole(value: object) -> object:
    """A count without the decimal point that a column of floats gives it, also kept as text."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _cell(value: object) -> object:
    """A CSV cell: nothing for None, true and false as JSON writes them."""
    if value is None or isinstance(value, float):
        return value
    if isinstance(value, str):
        return _text_cell(value)
    if isinstance(value, dict | list):
        value = _compact(value)
    return str(value).lower() if isinstance(value, bool) else csv_cell(value)


_text_cell = lru_cache(maxsize=4096)(csv_cell)
"""Most texts of a row are those of the row before."""


def _type(name: str) -> str:
    if name in _FLAGS:
        return "BOOLEAN"
    return "DOUBLE" if name in _NUMBERS else "VARCHAR"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
