"""Check files in the format passhat.outcomes/2 (or /1), JSON lines: standard library only.

    python check_outcomes.py FILE...

Prints a line for each problem and ends with exit code 1 where there is one. This file may be copied
into any project; it has the rules of the JSON Schema, and three that a schema cannot say: an
attempt is listed once, a run has one agent and one protocol, and numbers are finite.
"""

import json
import math
import re
import sys
from pathlib import Path

NAMES = re.compile(r"passhat\.outcomes/([12])")
TEXT, NUMBER, OBJECT = (str,), (int, float), (dict, str)
OPTIONAL = {
    "category": TEXT, "reason": TEXT, "detail": TEXT, "seed": TEXT, "answer": TEXT,
    "transcript": TEXT, "suite": TEXT, "judge": TEXT, "model": TEXT, "model_version": TEXT,
    "provider": TEXT, "source": TEXT, "source_id": TEXT, "sample_hash": TEXT,
    "steps": NUMBER, "seconds": NUMBER, "tokens": NUMBER, "cost": NUMBER, "retries": NUMBER,
    "decoding": OBJECT, "protocol": OBJECT, "extension": OBJECT,
}  # fmt: skip
REQUIRED = {"schema", "run", "agent", "task", "attempt", "passed"}
SECOND = {
    "score": NUMBER, "expected": TEXT, "revision": TEXT, "started": TEXT, "labels": (list, str),
}  # fmt: skip
"""Fields that version 2 added."""
SAME = ("agent", "suite", "judge", "decoding", "protocol")
"""Fields that all rows of a run have in common."""


def is_of(value, kinds):
    """Whether a value is of these kinds; true and false are no numbers."""
    return isinstance(value, kinds) and not isinstance(value, bool)


def row_problems(row):
    """The problems of one attempt, in words."""
    if not isinstance(row, dict):
        yield "a line is not an object"
        return
    version = NAMES.fullmatch(str(row.get("schema")))
    if version is None:
        yield f"schema is {row.get('schema')!r}, not passhat.outcomes/2"
    yield from required_problems(row)
    optional = OPTIONAL | (SECOND if version and version[1] == "2" else {})
    for name in row.keys() - REQUIRED:
        kinds = TEXT if name.startswith("slice:") else optional.get(name)
        if kinds is None and name != "ordered":
            yield f"{name} is not a field of the format; put it into extension"
        elif name == "ordered" and not isinstance(row[name], bool):
            yield "ordered is not true or false"
        elif kinds is not None and row[name] is not None:
            yield from value_problems(name, row[name], kinds)
    yield from verdict_problems(row)


def required_problems(row):
    """Problems of the fields that every attempt has."""
    for name in ("run", "agent", "task"):
        if not isinstance(row.get(name), str):
            yield f"{name} is not a text"
    if row.get("task") == "":
        yield "task is empty"
    attempt = row.get("attempt")
    if not is_of(attempt, int) or attempt < 1:
        yield "attempt is not a whole number from 1"
    if "passed" not in row or not (row["passed"] is None or isinstance(row["passed"], bool)):
        yield "passed is not true, false or null"


def value_problems(name, value, kinds):
    """Problems of a field that may be left out."""
    if not is_of(value, kinds):
        yield f"{name} is {value!r}"
    elif kinds is NUMBER and not 0 <= value < math.inf:
        yield f"{name} is {value!r}, below 0 or not finite"
    elif name == "score" and value > 1:
        yield f"score is {value!r}, above 1"


def verdict_problems(row):
    """A failure has a category, a missing attempt a reason, and one that passed neither."""
    passed, category, reason = row.get("passed", 0), row.get("category"), row.get("reason")
    if passed is True and (category is not None or reason is not None):
        yield "an attempt that passed has a category or a reason"
    if passed is None and not isinstance(reason, str):
        yield "a missing attempt (passed is null) has no reason"
    if passed is None and category is not None:
        yield "a missing attempt has a category of failure"


def refuse_constant(word):
    """JSON has no NaN and no Infinity."""
    raise ValueError(f"{word} is not a number of JSON")


def run_problems(row, first):
    """Fields of a run that differ between two of its rows."""
    for name in SAME:
        if (row.get(name) or None) != (first.get(name) or None):
            yield f"run {row.get('run')} has {name} {first.get(name)!r} and {row.get(name)!r}"


def file_problems(path):
    """The problems of a file: line and problem."""
    attempts, firsts = {}, {}
    for number, line in enumerate(Path(path).read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8-sig"), parse_constant=refuse_constant)
        except (ValueError, RecursionError) as error:
            yield number, f"no JSON: {error}"
            continue
        yield from ((number, problem) for problem in row_problems(row))
        if not isinstance(row, dict):
            continue
        key = (row.get("run"), row.get("task"), row.get("attempt"))
        if str(key) in attempts:
            yield number, f"attempt {key[2]} of {key[1]} is also in line {attempts[str(key)]}"
        attempts[str(key)] = number
        first = firsts.setdefault(str(row.get("run")), row)
        yield from ((number, problem) for problem in run_problems(row, first))
    if not attempts:
        yield 0, "no attempt"


def main(paths):
    """Check every file; 1 where one of them has a problem."""
    is_broken = False
    for path in paths:
        problems = list(file_problems(path))
        is_broken = is_broken or bool(problems)
        for number, problem in problems[:50]:
            print(f"{path}, line {number}: {problem}")
        print(f"{path}: {f'{len(problems)} problems' if problems else 'valid passhat.outcomes'}")
    return int(is_broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
