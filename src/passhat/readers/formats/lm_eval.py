"""lm-evaluation-harness: ``samples_*.jsonl``, a line per document and filter.

Two filters give two lines for the same document: they are two ways to judge one answer, so each
filter is a run of its own and no document counts twice in any of them.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.identity import folder_agent
from passhat.readers.json_records import BROKEN, decode, json_lines, read_sibling
from passhat.readers.parsing import as_dict, numbers_in
from passhat.readers.sources import STANDARD_INPUT, Source
from passhat.stats.outcomes import Run

_NAME = re.compile(r"samples_(.+)_(\d{4}-\d\d-\d\dT[\d\-.]+?)\.jsonl")
_NOT_METRICS = ("doc_id",)
_Line = dict[str, msgspec.Raw]


class _Results(msgspec.Struct):
    """The results file that lm-eval writes next to the samples."""

    model_sha: Any = None
    model_name: Any = None
    model_source: Any = None
    config: Any = None
    results: Any = None


class LmEvalReader(Reader):
    """``{doc_id, doc, target, resps, filtered_resps, filter, metrics, ...}`` per line."""

    name = "lm_eval"
    has_scorers = True

    def recognizes(self, source: Source) -> bool:
        outline = source.outline
        return (
            outline.opens == "{"
            and "doc_id" in outline.keys
            and (not outline.keys.isdisjoint({"filtered_resps", "resps", "doc_hash", "arguments"}))
        )

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "lm-eval samples", options, order="trial")
        asked_metric, _, asked_filter = (options.scorer or "").partition(",")
        metrics: dict[str, str] = {}
        others: set[str] = set()
        answers = 1
        for line, row in json_lines(source, log, _Line):
            filter_name = str(_value(row, "filter") or "none")
            if asked_filter and filter_name != asked_filter:
                log.skip(f"filter {filter_name!r}, which was not requested")
                continue
            present = _metrics_of(row)
            metric = asked_metric or metrics.get(filter_name) or next(iter(present), "")
            if metric not in present:
                _refuse(metric, present, asked_metric, source)
                log.lose(f"line {line}", f"has no metric {metric or 'at all'}")
                continue
            metrics[filter_name] = metric
            others |= set(present) - {metric}
            answers = max(answers, _answers(row))
            score = _value(row, metric)
            log.add(
                f"line {line}",
                _value(row, "doc_id"),
                score,
                run=filter_name,
                trial=0,
                why="" if score else "wrong_answer: ",
            )
        results = _results_file(source, log)
        return log.runs(lambda key: _facts(key, metrics[key], others, answers, results, source))


def _facts(
    filtered: str,
    metric: str,
    others: set[str],
    sampled: int,
    beside: _Results,
    source: Source,
) -> RunFacts:
    match = _NAME.search(source.path.name)
    suite = match[1] if match else None
    model = beside.model_name or _loaded_model(beside.config) or beside.model_source
    reading = [f"metric {metric}, filter {filtered}"]
    if others:
        reading.append(f"also there, choose with --scorer: {', '.join(sorted(others))}")
    if sampled > 1:
        reading.append(f"{sampled} answers were sampled per document; the filter keeps one verdict")
    is_guess = not model
    if not model:
        reading.append("the log does not name the model: the run is named after the folder")
        is_stream = source.name == STANDARD_INPUT
        model = source.stem if is_stream else folder_agent(source.path.resolve().parent)
    return RunFacts(
        agent=str(model),
        protocol=Protocol(suite=suite, judge=f"{metric}, filter {filtered}"),
        variant=f"[{filtered}]",
        says=_parse_stated_metrics(beside, suite, metric, filtered),
        reading=tuple(reading),
        guessed=is_guess,
        about={
            "model": "" if is_guess else str(model),
            "model_version": str(beside.model_sha or ""),
        },
    )


def _loaded_model(config: object) -> object:
    """The model in the arguments, ``pretrained=org/name,dtype=float16``."""
    arguments = as_dict(config).get("model_args")
    if isinstance(arguments, str):
        pairs = (part.partition("=") for part in arguments.split(","))
        arguments = {name.strip(): value.strip() for name, _, value in pairs}
    names = as_dict(arguments)
    return names.get("pretrained") or names.get("model") or names.get("model_name")


def _metrics_of(row: _Line) -> list[str]:
    """The names of the metrics; older files do not list them, so numbers at the end are taken."""
    names = _value(row, "metrics")
    if isinstance(names, list) and names:
        return [str(name) for name in names if str(name) in row]
    numbers = {name: _value(row, name, short=True) for name in row if name not in _NOT_METRICS}
    return [name for name, cell in numbers.items() if isinstance(cell, bool | int | float)]


def _value(row: _Line, name: str, *, short: bool = False) -> Any:
    raw = row.get(name)
    data = b"" if raw is None else bytes(raw)
    # A metric is a short number; a question is not worth decoding to see that it is none.
    if not data or (short and len(data) > 32):
        return None
    try:
        return decode(data, Any)
    except BROKEN:
        return None


def _answers(row: _Line) -> int:
    """How many answers to one document were sampled."""
    responses = _value(row, "resps")
    first = responses[0] if isinstance(responses, list) and responses else None
    plain = isinstance(first, list) and all(isinstance(text, str) for text in first)
    return len(first) if plain and isinstance(first, list) else 1


def _refuse(metric: str, metrics: list[str], scorer: str, source: Source) -> None:
    """Raise an error: the requested metric is not in the file."""
    if scorer and metrics:
        raise ReadError(
            f"has no metric {metric!r}.",
            source=source.name,
            hint=f"Choose with --scorer: {', '.join(metrics)}.",
        )


def _results_file(source: Source, log: LogBuilder) -> _Results:
    """The results file of the same run, when it lies in the same folder."""
    match = _NAME.search(source.path.name)
    if match is None:
        return _Results()
    return read_sibling(source, f"results_{match[2]}.json", _Results, log) or _Results()


def _parse_stated_metrics(
    beside: _Results, suite: str | None, metric: str, filtered: str
) -> dict[str, float]:
    numbers = as_dict(as_dict(beside.results).get(suite))
    return numbers_in(
        {
            "accuracy": numbers.get(f"{metric},{filtered}"),
            "stderr": numbers.get(f"{metric}_stderr,{filtered}"),
        }
    )
