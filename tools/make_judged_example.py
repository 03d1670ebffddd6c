"""Make the table that ships as ``example:judged``: a judge that is sometimes wrong, with labels.

    python tools/make_judged_example.py > src/passhat/examples/judged.csv

40 questions with 6 attempts each. A model judged them: it fails some right answers, alike at all
tasks, and passes every answer about dates, right or wrong. A person labeled all attempts of 24
tasks that were drawn at random. All of it is made up; the numbers come from a fixed seed.
"""

from __future__ import annotations

import csv
import json
import random
import sys

from passhat.readers.formats.export import EXPORT_COLUMNS
from passhat.stats.labels.drawing import draw_whole_tasks

TASKS, ATTEMPTS, LABELED, SEED = 40, 6, 24, 29
TOPICS = ("dates", "amounts", "names", "rules")
FALSE_FAILURES = 0.06


def rows() -> list[dict[str, object]]:
    """A row per attempt, with labels at the tasks that were drawn."""
    draw = random.Random(SEED)
    names = [f"q{i:02d}" for i in range(1, TASKS + 1)]
    places = [(name, number) for name in names for number in range(1, ATTEMPTS + 1)]
    drawn = draw_whole_tasks(places, LABELED, SEED)
    found = []
    for place, name in enumerate(names):
        topic = TOPICS[place % len(TOPICS)]
        rate = 0.97 if draw.random() < 0.75 else draw.uniform(0.1, 0.8)
        for number in range(1, ATTEMPTS + 1):
            right = draw.random() < rate
            passed = topic == "dates" or (right and draw.random() >= FALSE_FAILURES)
            row: dict[str, object] = {
                "run": "answers",
                "agent": "demo-agent",
                "task": name,
                "attempt": number,
                "passed": str(passed).lower(),
                "category": "" if passed else "wrong_answer",
                "suite": "questions",
                "judge": "questions, rubric by demo-judge",
                "ordered": "true",
                "schema": "passhat.outcomes/2",
                "slice:topic": topic,
            }
            if (name, number) in drawn.attempts:
                label = {
                    "person": "ada",
                    "label": "right" if right else "wrong",
                    "note": "",
                    "at": "2026-01-15T10:00:00+00:00",
                    "draw": drawn.text,
                }
                row["labels"] = json.dumps([label])
            found.append(row)
    return found


def main() -> None:
    names = [*EXPORT_COLUMNS, "labels", "slice:topic"]
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows())


if __name__ == "__main__":
    main()
