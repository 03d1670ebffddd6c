"""HELM: a run folder with ``run_spec.json`` and ``per_instance_stats.json``."""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.json_records import (
    open_list,
    read_bytes,
    read_sibling,
)
from passhat.readers.parsing import number_or_none
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

_STATS, _SPEC, _SUMMARY = "per_instance_stats.json", "run_spec.json", "stats.json"
_PREFERRED = (
    *("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match"),
    *("final_number_exact_match", "math_equiv_chain_of_thought", "pass", "code_eval_acc"),
)
"""HELM computes several metrics per instance; the first of these that is there decides."""


class _Name(msgspec.Struct):
    name: Any = None
    split: Any = None
    perturbation: Any = None


class _Stat(msgspec.Struct):
    name: _Name | None = None
    mean: Any = None
    count: Any = None


class _Instance(msgspec.Struct):
    instance_id: Any = None
    train_trial_index: Any = None
    perturbation: Any = None
    stats: list[_Stat] | None = None


class _Adapter(msgspec.Struct):
    model: Any = None
    model_deployment: Any = None
    temperature: Any = None


class _RunSpec(msgspec.Struct):
    name: Any = None
    adapter_spec: _Adapter | None = None


class HelmReader(Reader):
    """``[{instance_id, train_trial_index, stats: [{name: {name}, mean}]}]``."""

    name = "helm"
    has_scorers = True

    def recognizes(self, source: Source) -> bool:
        if source.is_folder:
            stats = source.inside(_STATS)
            return stats.path.is_file() and self.recognizes(stats)
        outline = source.outline
        return outline.opens == "[" and {"instance_id", "stats"} <= outline.keys

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "HELM per-instance statistics", options, order="trial")
        stats = source.inside(_STATS) if source.is_folder else source
        rows = list(open_list(read_bytes(stats, log), log, _Instance, "instance"))
        metric = _metric(rows, options.scorer, source)
        for number, row in enumerate(rows, 1):
            where = f"instance {number}"
            with log.row(where):
                if row.perturbation is not None:
                    log.skip("a perturbed version of an instance")
                    continue
                mean = next((s.mean for s in row.stats or () if _metric_name(s) == metric), None)
                why = "not_recorded: no such metric" if mean is None else "wrong_answer: "
                log.add(where, row.instance_id, mean, trial=row.train_trial_index, why=why)
        facts = _facts(stats, metric, log)
        return log.runs(facts)


def _metric_name(stat: _Stat) -> str:
    plain = stat.name is not None and stat.name.perturbation is None
    return str(stat.name.name) if stat.name is not None and plain else ""


def _metric(rows: list[_Instance], scorer: str | None, source: Source) -> str:
    names = dict.fromkeys(
        name for row in rows for s in row.stats or () if (name := _metric_name(s))
    )
    metrics = (scorer,) if scorer else _PREFERRED
    metric = next((name for name in metrics if name in names), None)
    if metric is None:
        raise ReadError(
            f"has no metric called {scorer!r}." if scorer else "no metric decides what passed.",
            source=source.name,
            hint=f"Choose with --scorer: {', '.join(list(names)[:30])}.",
        )
    return metric


def _facts(stats: Source, metric: str, log: LogBuilder) -> RunFacts:
    spec = read_sibling(stats, _SPEC, _RunSpec, log) or _RunSpec()
    adapter = spec.adapter_spec or _Adapter()
    model = adapter.model or adapter.model_deployment
    temperature = number_or_none(adapter.temperature)
    summary = read_sibling(stats, _SUMMARY, list[_Stat], log) or []
    says = [
        number
        for stat in summary
        if _metric_name(stat) == metric
        and stat.name is not None
        and stat.name.split in (None, "test")
        and (number := number_or_none(stat.mean)) is not None
    ]
    folder = stats.path.resolve().parent.name
    return RunFacts(
        str(model or folder),
        Protocol(
            suite=str(spec.name).partition(":")[0] if spec.name else None,
            judge=metric,
            decoding={} if temperature is None else {"temperature": temperature},
        ),
        says={"accuracy": says[0]} if says else {},
        counts=("source averages the metric over instances and trials",),
        reading=(f"metric {metric}",),
        guessed=not model,
    )
