"""Identity of agents and attempts across files: which rows are copies of one another.

Nothing is counted twice: the same file under two names, the same run written twice, and the same
attempt in two files each count once, and the reading names what was left out. Nothing is joined on
a guess: a name that comes from a file name must be stated before attempts are put together.
"""

from __future__ import annotations

import glob
import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from passhat._display import counted, some
from passhat.errors import InvalidValue
from passhat.protocol import Scalar
from passhat.readers.rewrites import are_attempts, match_attempt
from passhat.readers.sources import STANDARD_INPUT, Source
from passhat.stats.arrays import IntArray
from passhat.stats.outcomes import Attempts, Outcomes, Run, Tally
from passhat.stats.outcomes.attempts import Categorical, concatenate
from passhat.stats.outcomes.gathering import columns_of

_DIGITS = re.compile(r"\d+")
_REPEAT_LETTER = re.compile(
    r"(?<=seed|.run|tria|empt|.try|.rep|peat|poch|iter|ound)[_-]?[a-z](?=[/\\._-]|$)", re.IGNORECASE
)
"""The letter of a repeat, as in ``seed_a`` or ``run-b``."""
_WEAK_ID = 8
"""An id shorter than this may be a counter that every file starts anew."""


def without_retries(runs: Sequence[Run]) -> list[Run]:
    """Keep a single file of those that hold the same run: the most complete one.

    A harness that begins a run again writes a second file with the run's own id, and copies into
    it what was finished. Counting both would count those attempts twice.
    """
    latest: dict[object, Run] = {}
    for index, run in enumerate(runs):
        key = (run.origin, run.agent, run.protocol.suite, run.protocol.judge)
        key_of_this: object = key if run.origin else index
        other = latest.get(key_of_this)
        if other is None or other.source == run.source:
            latest[key_of_this if other is None else index] = run
            continue
        # An edit is made after the run: the later one counts, whatever its file is called.
        further = (run.edited, run.outcomes.scored) >= (other.edited, other.outcomes.scored)
        winner, loser = (run, other) if further else (other, run)
        what = "edited earlier" if winner.edited > loser.edited else "begun another time"
        note = (
            f"{loser.source} holds the same run ({run.origin}), {what}: left aside "
            f"with {counted(loser.outcomes.attempts, 'attempt')}"
        )
        latest[key_of_this] = _decide(winner, note)
    return list(latest.values())


def _decide(run: Run, *decisions: str) -> Run:
    """The run with decisions that change its numbers, which reports print."""
    return replace(run, reading=(*run.reading, *decisions), decisions=(*run.decisions, *decisions))


def count_once(runs: Sequence[Run], *, joining: bool = False) -> list[Run]:
    """Drop runs and attempts that another file has already brought.

    Two runs are the same when everything recorded about their attempts is the same: verdicts,
    answers, seeds, times, costs. Ids and fractions of seconds settle it. Without them two runs may
    be equal by chance (a deterministic agent, few tasks), so both stay unless they are about to be
    joined, where the same attempts would count twice; names of files that number them as repeats
    (``run1``, ``run2``) keep them apart even then.
    """
    if len({run.source for run in runs}) < 2:
        return list(runs)  # runs of one file are never copies of one another
    unique_runs: list[Run] = []
    copies: dict[int, list[str]] = {}
    by_content: dict[bytes, dict[str, list[int]]] = {}
    for run in runs:
        if run.attempts is None:
            unique_runs.append(run)
            continue
        digest, telling = _content(run.attempts)
        # By source, since runs of one file are never copies of one another: a file with 20,000
        # models is then read in linear time.
        by_source = by_content.setdefault(digest, {})
        places = [p for name, ps in by_source.items() if name != run.source for p in ps]
        may_be = telling or joining
        first = next((p for p in places if _is_copy(unique_runs[p], run, may_be, telling)), -1)
        if first >= 0:
            copies.setdefault(first, []).append(run.source)
        else:
            by_source.setdefault(run.source, []).append(len(unique_runs))
            unique_runs.append(run)
    for place, sources in copies.items():
        note = f"the same attempts are also in {some(sources)}: counted once"
        unique_runs[place] = _decide(unique_runs[place], note)
    return _without_partial(_attempts_once(unique_runs))


_PARTIAL = re.compile(
    r"(?i)[\W_]+(partial|part|tmp|bak|backup|wip|incomplete|copy)\b|^copy of\s+|\s*\(\d+\)(?=\.)"
)
"""An earlier state or a second download of a file; old, prev and checkpoint may be other runs."""


def _without_partial(runs: list[Run]) -> list[Run]:
    """Without an earlier state or a copy beside a file: ``a.partial.jsonl``, ``a (1).csv``."""
    by_source: dict[str, list[Run]] = {}
    for run in runs:
        by_source.setdefault(run.source, []).append(run)
    whole_of: dict[str, str] = {}
    for source, own in by_source.items():
        name = Path(source).name
        whole = str(Path(source).with_name(_PARTIAL.sub("", name, count=1) or name))
        others = by_source.get(whole, ()) if whole != source else ()
        if others and _attempt_counts(own) <= _attempt_counts(others):
            whole_of[source] = whole
    return [
        _decide(run, *(f"{s} holds the same attempts or fewer: counted once" for s in parts))
        if (parts := [s for s, whole in whole_of.items() if whole == run.source])
        else run
        for run in runs
        if run.source not in whole_of
    ]


def _attempt_counts(runs: Sequence[Run]) -> Counter[tuple[object, ...]]:
    """How often each task has each verdict, with the agent."""
    counts: Counter[tuple[object, ...]] = Counter()
    for run in runs:
        if run.attempts is None:
            counts[run.source, run.name] += 1  # in no other file
            continue
        attempts, agent = run.attempts, "" if run.agent_guessed else run.agent
        tasks = np.repeat(np.arange(len(attempts.tasks)), np.diff(attempts.starts)).tolist()
        rows = zip(tasks, attempts.verdicts.tolist(), strict=True)
        counts.update((agent, attempts.tasks[task], verdict) for task, verdict in rows)
    return counts


def _is_copy(first: Run, second: Run, may_be: bool, telling: bool) -> bool:
    if not may_be or first.source == second.source:
        return False
    if not (first.agent_guessed or second.agent_guessed) and first.agent != second.agent:
        return False
    # Equal verdicts alone are no evidence, unless the two would be joined into one run.
    joins = first.name == second.name and not _are_numbered(first.source, second.source)
    return telling or joins


def _are_numbered(first: str, second: str) -> bool:
    """Whether two paths differ in what counts repeats alone: run1 and run2, seed_a and seed_b."""
    plain = [_DIGITS.sub("#", _REPEAT_LETTER.sub("#", path)) for path in (first, second)]
    return first != second and plain[0] == plain[1]


_REPEAT = re.compile(
    r"(?:^|[^a-z])(?:seed|run|trial|attempt|rep|repeat|sample|try|epoch|iter|rollout)[\s_#.-]*\d+",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T_]\d\d[\d.:Z-]*)?")


def say_numbered(runs: Sequence[Run], words: Sequence[str], flags: Sequence[str]) -> list[Run]:
    """The runs, with a word where files or folders seed_1, seed_2 hold the same tasks.

    ``words`` and ``flags`` are the sources and the options as typed, for the commands.
    """
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        is_said = any("if they are attempts" in line for line in run.decisions)
        if is_said or run.attempts is None:
            continue
        if _find_repeats(run.source):
            plain = [_DIGITS.sub("#", text) for text in (run.source, run.agent)]
            place = _REPEAT.sub("#", _DATE.sub("", run.source)) if run.agent_guessed else ""
            key = (place, plain[0] if place else "", plain[1], *sorted(run.outcomes.tasks))
            groups.setdefault(key, []).append(run)
    groups = {key: group for key, group in groups.items() if len(set(_repeat_names(group))) > 1}
    said: dict[int, str] = {}
    for group in groups.values():
        paths = [run.source for run in group]
        whole = shlex.join([*words, *flags])
        archive = paths[0].partition(".zip/")[0] + ".zip"
        is_packed = ".zip/" in paths[0]
        is_mixed = is_packed and sum(r.source.startswith(f"{archive}/") for r in runs) > len(group)
        by_folder = all(map(_is_agent_folder, paths))
        condition, command = "if they are attempts of one agent", f"report {whole} --join"
        if group[0].agent_guessed and by_folder and (len(groups) > 1 or is_mixed):
            condition = "if each folder is an agent"
            command = f"read {whole} --join-by folder -o runs.jsonl"
        elif group[0].agent_guessed:
            if is_mixed:
                continue  # a command about the archive would join the others, too
            sources = shlex.join([archive if is_packed else _common_pattern(paths), *flags])
            agent = shlex.quote(_name_before(paths[0]))
            command = f"read {sources} --join --agent {agent} -o runs.jsonl"
        names = some(list(dict.fromkeys(_repeat_names(group))), 3)
        line = f"{names} are runs of their own; {condition}: passhat {command}"
        said |= {id(run): line for run in group}
    return [_decide(run, said[id(run)]) if id(run) in said else run for run in runs]


def _repeat_names(runs: Sequence[Run]) -> list[str]:
    return [_find_repeats(run.source)[-1][0].strip("/_-. ") for run in runs]


def _is_agent_folder(path: str) -> bool:
    """Whether the number of the repeat is in a folder, or all that the file is called."""
    *folders, name = path.split("/")
    stem = name.partition(".")[0]
    return len(folders) > 1 and (
        _REPEAT.search(name) is None or _REPEAT.fullmatch(stem) is not None
    )


def folder_agent(folder: Path) -> str:
    """The agent by the name of a folder, without what numbers repeats: gpt for gpt/seed_1."""
    for name in (folder.name, *(parent.name for parent in folder.parents)):
        match = _REPEAT_AT_END.fullmatch(name)
        plain = name if match is None else match[1]
        if plain and not plain.isdigit():
            return plain
    return folder.name


_REPEAT_AT_END = re.compile(
    r"(.*?)[\s_#.-]*(?<![a-z])(?:seed|run|trial|attempt|rep|repeat|sample|try|epoch|iter|rollout)"
    r"[\s_#.-]*\d+",
    re.IGNORECASE,
)


def _find_repeats(path: str) -> list[re.Match[str]]:
    """The numbers of repeats in a path; without one, its dates."""
    return [*_REPEAT.finditer(path)] or [*_DATE.finditer(path)]


def _name_before(path: str) -> str:
    """A name for what is repeated: gpt for gpt_seed1.json and for gpt/seed_1/results.json."""
    start = _find_repeats(path)[-1].start()
    *folders, name = path[: start + (not path[start].isdigit())].rstrip("/_-. ").split("/")
    return name.removesuffix(".zip") or (folders or [""])[-1] or "agent"


def _common_pattern(paths: Sequence[str]) -> str:
    """A pattern for paths that differ in numbers alone."""
    columns = zip(*(path.split("/") for path in paths), strict=True)
    return "/".join(
        parts[0] if len(set(parts)) == 1 else _DIGITS.sub("*", glob.escape(parts[0]))
        for parts in columns
    )


def _content(attempts: Attempts) -> tuple[bytes, bool]:
    """A digest of all that is recorded, and whether equal digests mean the same attempts."""
    digest = hashlib.blake2b(digest_size=16)
    # By the names of the tasks, so that a copy with its rows in another order is one.
    order = np.array(sorted(range(len(attempts.tasks)), key=attempts.tasks.__getitem__), np.int64)
    if (order != np.arange(len(order))).any():
        sizes = np.diff(attempts.starts)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        rows = np.argsort(np.repeat(rank, sizes), kind="stable")
        names = tuple(attempts.tasks[place] for place in order.tolist())
        starts = np.append(0, np.cumsum(sizes[order]))
        attempts = concatenate([attempts], names, starts, rows)
    digest.update("\0".join(attempts.tasks).encode("utf-8", "replace"))
    digest.update(attempts.starts.astype(np.int64).tobytes())
    digest.update(attempts.verdicts.astype(np.int8).tobytes())
    telling = False
    if attempts.answers is not None:
        digest.update(attempts.answers.astype(np.int64).tobytes())
    for name, column in sorted(attempts.measures.items()):
        if not np.isnan(column).all():
            digest.update(name.encode() + column.astype(np.float64).tobytes())
            # No two attempts take the same fraction of a second; they may take the same steps.
            values = column[~np.isnan(column)]
            telling = telling or bool((values % 1 != 0).any())
    if attempts.scores is not None:
        digest.update(attempts.scores.tobytes())
    for name in ("seed", "source_id"):
        texts = attempts.extras.get(name)
        if texts is not None and any(texts.values):
            codes, back = np.unique(texts.codes, return_inverse=True)
            texts_used = [texts.values[code] for code in codes.tolist()]
            digest.update(
                "\0".join([name, *texts_used]).encode("utf-8", "replace") + back.tobytes()
            )
            telling = telling or (name == "source_id" and all(texts_used))
    return digest.digest(), telling


def _attempts_once(runs: list[Run]) -> list[Run]:
    """Drop single attempts whose id an earlier file has already brought."""
    first_places: dict[tuple[str, str, str], tuple[int, tuple[object, ...]]] = {}
    remaining: list[Run | None] = []
    notes: dict[int, list[str]] = {}
    for place, run in enumerate(runs):
        ids = None if run.attempts is None else run.attempts.extras.get("source_id")
        if run.attempts is None or ids is None or not any(ids.values) or len(runs) == 1:
            remaining.append(run)
            continue
        again: dict[int, int] = {}
        for row, (key, facts) in enumerate(_identities(run, run.attempts, ids)):
            if key is None:
                continue
            other = first_places.setdefault(key, (place, facts))
            if runs[other[0]].source != run.source and _same(key, other[1], facts):
                again[row] = other[0]
        for other_place in sorted(set(again.values())):
            count = sum(value == other_place for value in again.values())
            notes.setdefault(other_place, []).append(
                f"{counted(count, 'attempt')} of {run.source} {'is' if count == 1 else 'are'} also "
                "here, by their own ids: counted once"
            )
        rows = np.array([row for row in range(len(run.attempts)) if row not in again], np.int64)
        remaining.append(run if not again else _take_attempts(run, rows) if len(rows) else None)
    return [
        run if place not in notes else _decide(run, *notes[place])
        for place, run in enumerate(remaining)
        if run is not None
    ]


_Identity = tuple[tuple[str, str, str] | None, tuple[object, ...]]


def _identities(run: Run, attempts: Attempts, ids: Categorical) -> list[_Identity]:
    """Per attempt its key, or ``None`` without an id, and its other recorded values."""
    tasks = np.repeat(np.arange(len(attempts.tasks)), np.diff(attempts.starts))
    columns = [column.tolist() for _, column in sorted(attempts.measures.items())]
    rows = zip(tasks.tolist(), attempts.verdicts.tolist(), *columns, strict=True)
    owner = f"{'' if run.agent_guessed else run.agent}\n{run.protocol.suite or ''}"
    return [
        (
            (owner, attempts.tasks[task], text) if (text := ids[row]) else None,
            (verdict, *(None if value != value else value for value in measures)),
        )
        for row, (task, verdict, *measures) in enumerate(rows)
    ]


def _same(key: tuple[str, str, str], first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    """Whether one id means one attempt: a counter needs something recorded that agrees."""
    weak = len(key[2]) < _WEAK_ID or key[2].isdigit()
    has_measure = any(value is not None for value in first[1:])
    return first == second and (has_measure or not weak)


def _take_attempts(run: Run, rows: IntArray) -> Run:
    """The run with some of its attempts."""
    assert run.attempts is not None
    attempts = run.attempts
    task = np.repeat(np.arange(len(attempts.tasks)), np.diff(attempts.starts))[rows]
    task_places, place = np.unique(task, return_inverse=True)
    names = tuple(attempts.tasks[index] for index in task_places.tolist())
    starts = np.searchsorted(place, np.arange(len(names) + 1))
    part = concatenate([attempts], names, starts, rows)
    labels = {
        name: tuple(values[index] for index in task_places.tolist())
        for name, values in run.outcomes.labels.items()
    }
    has_order = run.outcomes.order is not None
    columns = columns_of(part, ordered=has_order, labels=labels)
    return replace(run, attempts=part, outcomes=Outcomes.from_columns(columns))


def split_numbered(run: Run) -> Run:
    """The run with the attempts of a task together, where names such as ``a_run2`` number them.

    Every task has to have the same numbers, from 0 or 1.
    """
    attempts = run.attempts
    if attempts is None or (np.diff(attempts.starts) != 1).any():
        return run
    parts = _numbered_parts(attempts.tasks)
    if parts is None:
        return run
    rows = np.array([place for places in parts.values() for place in places], np.int64)
    size = len(rows) // len(parts)
    labels = {name: tuple(values[r] for r in rows) for name, values in run.outcomes.labels.items()}
    if any(
        values[i] != values[i - i % size] for values in labels.values() for i in range(len(rows))
    ):
        return run  # the names of a task differ in what is known of them
    starts = np.arange(0, len(rows) + 1, size, dtype=np.int64)
    whole = concatenate([attempts], tuple(parts), starts, rows)
    labels = {name: values[::size] for name, values in labels.items()}
    shown, task = attempts.tasks[rows[1]], next(iter(parts))
    is_ordered = "seed" not in shown.lower()  # a larger seed did not come later
    outcomes = Outcomes.from_columns(columns_of(whole, ordered=is_ordered, labels=labels))
    return _decide(
        replace(run, attempts=whole, outcomes=outcomes),
        f"{shown!r} is read as an attempt at {task!r}; a task that --map states stays whole",
    )


def _numbered_parts(tasks: Sequence[str]) -> dict[str, list[int]] | None:
    """The places of the names of each task in order; None where the numbers are no attempts."""
    matches = []
    for name in tasks:
        match = match_attempt(name)
        if match is None:
            return None
        matches.append(match)
    places: dict[str, dict[int, int]] = {}
    for place, match in enumerate(matches):
        places.setdefault(match[1], {})[int(match[5])] = place
    numbers = sorted(next(iter(places.values()), ()))
    is_counted = len(numbers) > 1 and numbers[0] < 2 and numbers[-1] - numbers[0] < len(numbers)
    is_grid = is_counted and all(sorted(each) == numbers for each in places.values())
    is_whole = len(places) > 1 and len(places) * len(numbers) == len(tasks)
    if not (is_grid and is_whole and are_attempts(matches)):
        return None
    return {name: [each[number] for number in numbers] for name, each in places.items()}


# -- joining ---------------------------------------------------------------------------------


def join_runs(runs: Sequence[Run], words: Sequence[str] = ()) -> list[Run]:
    """Join runs of the same agent whose recorded facts do not differ.

    The name counts as well: it tells apart the runs of one file, such as two prompts. ``words`` are
    the sources as typed, for the command in the message of a refusal.
    """
    groups: dict[object, list[Run]] = {}
    for run in runs:
        protocol = replace(run.protocol, attempts=None)
        key = (run.name, run.agent, protocol.digest) if run.attempts is not None else id(run)
        groups.setdefault(key, []).append(run)
    for group in groups.values():
        if len(group) > 1 and any(run.agent_guessed for run in group):
            raise _guess_error(group, words)
    return [group[0] if len(group) == 1 else join_group(group) for group in groups.values()]


def _guess_error(group: list[Run], words: Sequence[str]) -> InvalidValue:
    """Refuse to join runs that are one agent only by the look of their file names."""
    agent = group[0].agent
    sources = shlex.join(words or [run.source for run in group])
    return InvalidValue(
        f"{some([run.source for run in group], 3)} do not name their agent; {agent!r} is a guess "
        "from the names of the files, and attempts are not joined on a guess.",
        hint=f"If they are one agent, state it: passhat read --join --agent {shlex.quote(agent)} "
        f"{sources} -o runs.jsonl ; if the folder is the agent: --join-by folder",
    )


def join_group(runs: list[Run]) -> Run:
    """A single run with the attempts of all, in the order of the runs."""
    tasks = list(dict.fromkeys(task for run in runs for task in run.outcomes.tasks))
    place = {task: index for index, task in enumerate(tasks)}
    parts = [run.attempts for run in runs if run.attempts is not None]
    task = np.concatenate(
        [np.repeat([place[name] for name in part.tasks], np.diff(part.starts)) for part in parts]
    )
    # Stable: within a task the attempts stay in the order of the files, then of the file itself.
    sorting = np.argsort(task, kind="stable")
    starts = np.searchsorted(task[sorting], np.arange(len(tasks) + 1))
    attempts = concatenate(parts, tuple(tasks), starts, sorting)
    has_order = all(run.outcomes.order is not None for run in runs)
    columns = columns_of(attempts, ordered=has_order, labels=_labels(runs, tasks))
    outcomes = Outcomes.from_columns(columns)
    first = runs[0]
    per_task = np.diff(starts)
    joined_note = f"{len(runs)} runs of the same agent joined: {first.source} first"
    short = int((per_task < per_task.max()).sum())
    if short:
        joined_note += f"; {counted(short, 'task')} of {len(tasks)} with fewer attempts"
    return replace(
        first,
        outcomes=outcomes,
        attempts=attempts,
        protocol=replace(
            first.protocol,
            attempts=int(per_task[0]) if per_task.min() == per_task.max() else None,
        ),
        attempts_counted=True,
        source=", ".join(dict.fromkeys(run.source for run in runs)),
        source_says=MappingProxyType({}),
        reading=(
            joined_note,
            *dict.fromkeys(line for run in runs for line in run.reading),
        ),
        decisions=(joined_note, *dict.fromkeys(line for run in runs for line in run.decisions)),
        tally=_sum_tallies([run.tally for run in runs if run.tally is not None]),
        origin="",
        agent_guessed=any(run.agent_guessed for run in runs),
    )


def _labels(runs: list[Run], tasks: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The slices that all of them have; where they disagree the first file is believed."""
    labels = {}
    for name in runs[0].outcomes.labels:
        if not all(name in run.outcomes.labels for run in runs):
            continue
        label_of: dict[str, str] = {}
        for run in runs:
            values = zip(run.outcomes.tasks, run.outcomes.labels[name], strict=True)
            label_of = {**dict(values), **label_of}
        labels[name] = tuple(label_of[task] for task in tasks)
    return labels


def _sum_tallies(tallies: list[Tally]) -> Tally | None:
    """Each file once, even when several of its runs were joined."""
    different = list({id(tally): tally for tally in tallies}.values())
    if not different:
        return None
    skipped: dict[str, int] = {}
    for tally in different:
        for why, count in tally.skipped.items():
            skipped[why] = skipped.get(why, 0) + count
    return Tally(
        sum(tally.rows for tally in different),
        sum(tally.attempts for tally in different),
        MappingProxyType(skipped),
        tuple(loss for tally in different for loss in tally.losses),
        sum(tally.absent for tally in different),
    )


# A bare t needs a number that can be a temperature: "t0.8" is one, "flan-t5" is a model.
_TEMPERATURE = re.compile(
    r"[_-](?:temp(?:erature)?_?(\d+(?:\.\d+)?)|t([012]\.\d+|[01](?!\.\d)))(?=[_\-.]|$)",
    re.IGNORECASE,
)
_ENDINGS = re.compile(r"(\.(jsonl?|gz|results)|_(results|samples|eval_results|eval_all))+$")

# "mine_run1" and "mine_run2" are the same agent; "gpt-4" and "gpt-5" are not.
_COUNTER = re.compile(
    r"[_\-.](?:trial|run|seed|attempt|try|rep|repeat|epoch)[_-]?\d+$", re.IGNORECASE
)


def from_name(source: Source) -> tuple[str, dict[str, Scalar], tuple[str, ...]]:
    """The agent and its decoding settings from a file name, and notes that say so."""
    if source.name == STANDARD_INPUT:
        return source.stem, {}, ("the log does not name the model",)
    name = _ENDINGS.sub("", Path(source.name).name)
    match = _TEMPERATURE.search(name)
    agent = _COUNTER.sub("", name[: match.start()] if match else name).strip("_-.") or source.stem
    note = "the log does not name the model: the run is named after the file"
    if match is None:
        return agent, {}, (note,)
    temperature = float(match[1] if match[1] is not None else match[2])
    return agent, {"temperature": temperature}, (f"{note}, and so is the temperature",)


def with_unique_names(runs: list[Run]) -> list[Run]:
    """Add the folder, the source, then a number, where two runs would have the same name."""
    runs = _name_by_folders(runs)
    name_counts = Counter(run.name for run in runs)
    with_sources = [
        replace(run, name=f"{run.name} ({run.source})") if name_counts[run.name] > 1 else run
        for run in runs
    ]
    name_counts = Counter(run.name for run in with_sources)
    numbers: Counter[str] = Counter()
    unique = []
    for run in with_sources:
        numbers[run.name] += 1
        number = f" #{numbers[run.name]}" if name_counts[run.name] > 1 else ""
        unique.append(replace(run, name=run.name + number))
    return unique


def _name_by_folders(runs: list[Run]) -> list[Run]:
    """Runs of one name with the folders that tell them apart in their names.

    Where the name is only that of the file, as results.json is, the folders are the name.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.name, []).append(run)
    renamed: dict[int, Run] = {}
    for group in groups.values():
        paths = [run.source.split("/")[:-1] for run in group]
        is_clear = len(set(map(tuple, paths))) == len(group) > 1
        if not is_clear or len(set(map(len, paths))) > 1:
            continue
        different = [parts for parts in zip(*paths, strict=True) if len(set(parts)) > 1]
        for run, *parts in zip(group, *different, strict=True):
            name = "/".join(parts)
            is_file = run.agent_guessed and Path(run.source).name.startswith(run.name)
            again = replace(run, name=name, agent=name) if is_file else run
            renamed[id(run)] = again if is_file else replace(run, name=f"{run.name} {name}")
    return [renamed.get(id(run), run) for run in runs]
