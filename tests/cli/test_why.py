"""``passhat why`` on stored runs and files: what it says, and where it says nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import passhat
from passhat.cli.main import cli, main
from passhat.protocol import Protocol
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict
from passhat.store import AttemptRecord, RunRecord, open_store
from passhat.suites.base import Judgement, Task
from passhat.suites.tool_calls import write_call

JUDGEMENTS = {
    Verdict.PASSED: Judgement.passed(),
    Verdict.FAILED: Judgement.failed(FailureCategory.WRONG_STATE, "not paid"),
    Verdict.MISSING: Judgement.missing(MissingReason.RATE_LIMIT, "busy"),
}
Row = tuple[str, int, Verdict, tuple[str, ...] | None]
RIGHT, WRONG = ("find", "check", "pay"), ("find", "delete", "pay")


def write_store(path: Path, attempts: Sequence[Row]) -> str:
    """Attempts with their tools, None for no conversation."""
    tasks = [Task(name, "Pay it.") for name in dict.fromkeys(task for task, *_ in attempts)]
    record = RunRecord("an agent", Protocol(suite="s"), tasks, "")
    with open_store(str(path)) as store:
        store.begin(record, max(number for _, number, *_ in attempts))
        store.claim(record.id, [(task, number) for task, number, *_ in attempts])
        store.finish(
            record.id,
            [
                AttemptRecord(task, number, JUDGEMENTS[verdict], transcript=transcript(tools))
                for task, number, verdict, tools in attempts
            ],
        )
    return record.id


def transcript(tools: tuple[str, ...] | None) -> list[dict[str, str]]:
    entries = [{"role": "user", "text": "Pay it."}] if tools is not None else []
    for tool in tools or ():
        entries += [
            {"role": "agent", "text": write_call(tool, {})},
            {"role": "user", "text": "Tool result: ok"},
        ]
    return entries


def attempts_of(task: str, *verdicts: tuple[Verdict, tuple[str, ...] | None]) -> list[Row]:
    return [(task, number, *each) for number, each in enumerate(verdicts, 1)]


PASS, FAIL = (Verdict.PASSED, RIGHT), (Verdict.FAILED, WRONG)
NOT_MADE = (Verdict.MISSING, None)


def ask(place: Path, *words: str) -> str:
    result = CliRunner().invoke(
        cli, ["why", *words], env={"PASSHAT_STORE": str(place), "COLUMNS": "200"}
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_a_planted_cause_over_tasks_and_within_one(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    attempts = [row for task in "abcd" for row in attempts_of(f"t/{task}", *[PASS, FAIL] * 4)]
    run = write_store(place, attempts + attempts_of("t/e", PASS, NOT_MADE))
    text = ask(place, run)
    assert "✗ goes with failure  calls delete" in text
    assert "16 of 16 attempts with it fail, 0 of 16 without it, at 4 tasks" in text
    assert "exactly the other attempts: calls check" in text
    assert "Left out: 1 missing attempt." in text
    assert f"passhat why {run} t/a" in text
    assert "because" not in text
    task = ask(place, run, "t/b")
    assert (
        "The decisive step: of the 4 attempts that call delete after find, 4 failed; of the 4 "
        "others that came as far, 0 (p 0.029)." in task
    )
    assert "├─ check → pay → ends  4 of 4 passed  #1 #3 #5 #7" in task
    assert "└─ delete → pay → ends  ← the decisive step  0 of 4 passed  #2 #4 #6 #8" in task
    assert "#1 (passed) and #2 (failed) part after the first call, which is the same." in task
    data = json.loads(ask(place, run, "t/b", "--json"))
    assert data["schema"] == "passhat.why/1"
    assert data["events"][0]["event"]["text"] == "calls delete"
    assert data["events"][0]["odds_ratio"] is None
    assert data["task"]["decisive"]["numbers"] == [2, 4, 6, 8]
    assert data["task"]["tree"]["branches"][1]["passed"] == []
    assert "  - **delete → pay → ends  ← the decisive step**: 0 of 4 passed" in ask(
        place, run, "t/b", "-o", "md"
    )
    page = ask(place, run, "t/b", "-o", "html")
    assert '<ul class="outline">' in page
    assert "calls delete" in ask(place, run, "--full")
    read = passhat.read(place)[0]
    assert "calls delete" in str(passhat.why(read, "t/b"))
    assert passhat.why(str(place)).facts == passhat.why(read).facts


@pytest.mark.parametrize(
    ("attempts", "sentence"),
    [
        (attempts_of("a", PASS), "The only attempt passed: there is no failure to explain."),
        (
            attempts_of("a", FAIL, FAIL) + attempts_of("b", FAIL),
            "All 3 attempts failed: there is no passing attempt to compare with.",
        ),
        (
            attempts_of("a", PASS, PASS) + attempts_of("b", FAIL),
            "None of the 2 tasks both passed and failed.",
        ),
        (attempts_of("a", NOT_MADE), "No attempt has a verdict, so there is nothing to compare."),
        (
            attempts_of("a", (Verdict.PASSED, None), (Verdict.FAILED, None)),
            "No conversation of these attempts is kept, so there is nothing to compare.",
        ),
        (attempts_of("a", PASS, FAIL), "1 pass and 1 failure are too few to show a decisive step."),
        (
            attempts_of("a", PASS, FAIL) + attempts_of("b", PASS),
            "Only one task both passed and failed; what goes with failure is compared over at "
            "least two.",
        ),
        (
            attempts_of("a", PASS, FAIL) + attempts_of("b", PASS, FAIL),
            "Nothing is shown to go with failure: nothing that attempts did at the 2 tasks that "
            "both passed and failed happened often enough to be tested.",
        ),
        (
            attempts_of("a", *[PASS, (Verdict.FAILED, RIGHT)] * 4),
            "#1 (passed) and #2 (failed) make the same 3 calls: what differs is not in the calls.",
        ),
        (
            attempts_of("a", *[(Verdict.PASSED, ()), (Verdict.FAILED, ())] * 4),
            "No attempt at this task called a tool, so there are no calls to compare.",
        ),
        (
            attempts_of("a", *[PASS, FAIL] * 4, (Verdict.PASSED, None)),
            "Left out: 1 attempt without a conversation.",
        ),
    ],
)
def test_where_there_is_little_or_nothing_to_compare(
    tmp_path: Path,
    attempts: Sequence[Row],
    sentence: str,
) -> None:
    place = tmp_path / "store.db"
    text = ask(place, write_store(place, attempts))
    assert sentence in " ".join(text.split())
    assert "✗" not in text
    assert "✓" not in text


def test_numbers_are_those_of_the_store(tmp_path: Path) -> None:
    """Attempts that were never finished leave a gap, not another number."""
    place = tmp_path / "store.db"
    attempts = [("a", number, *(PASS if number % 2 else FAIL)) for number in (3, 4, 7, 8)]
    run = write_store(place, attempts)
    assert "2 of 4 passed  #3 #4 #7 #8" in ask(place, run)


def test_mistakes(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    run = write_store(place, attempts_of("a", PASS, FAIL))
    with pytest.raises(passhat.PasshatError, match="has no task 'b'"):
        passhat.why(passhat.read(place)[0], "b")
    outcomes = passhat.Outcomes.from_counts(4, [2])
    with pytest.raises(passhat.PasshatError, match="no source"):
        passhat.why(passhat.Run("r", "a", outcomes))
    assert run


def test_a_run_without_a_store_keeps_its_conversations() -> None:
    tasks = [{"id": "sum", "prompt": "2+2?", "answer": "4"}]
    run = passhat.run(lambda prompt: prompt, tasks, n=2)
    assert passhat.why(run).facts.without_conversation == 0


def test_a_task_without_conversations_has_the_counts_of_its_outcomes(tmp_path: Path) -> None:
    table = tmp_path / "c.csv"
    rows = [f"{model},t,{i},{int(model == 'A')}" for model in "AB" for i in range(8)]
    table.write_text("\n".join(["model,task,attempt,passed", *rows]), encoding="utf-8")
    for name, count in (("A", 8), ("B", 0)):
        printed = CliRunner().invoke(cli, ["why", str(table), "--run", name]).output
        assert f"t  {count} of 8 passed" in printed


def test_advice_on_an_unreadable_file_names_no_option_that_why_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = tmp_path / "t.jsonl"
    tasks.write_text('{"id": "sum", "prompt": "2 + 2?", "answer": "4"}\n', encoding="utf-8")
    assert main(["why", str(tasks)]) == 2
    printed = capsys.readouterr().err
    assert "--" not in printed
    assert "passhat why reads runs of a store" in printed


def test_failures_that_are_no_wrong_answers_are_told_first(tmp_path: Path) -> None:
    calls: dict[str, int] = {}

    def agent(prompt: str) -> str:
        calls[prompt] = calls.get(prompt, 0) + 1
        if prompt == "a" and calls[prompt] == 1:
            return "4"
        raise KeyError("OPENAI_API_KEY")

    tasks = [{"id": name, "prompt": name, "answer": "4"} for name in "ab"]
    place = tmp_path / "store.db"
    run = passhat.run(agent, tasks, n=4, jobs=1, store=place, keep_going=True, progress=False)
    cause = "KeyError: 'OPENAI_API_KEY' (test_why.py:"
    text = ask(place, run.id, "a")
    assert f"The 7 failures are exceptions: {cause}" in text
    assert f"The 3 failures are exceptions: {cause}" in text
    data = passhat.why(run, "a").facts.to_dict()
    assert data["failures"]["groups"][0]["message"].startswith(cause)
    assert data["task"]["failures"]["exception"] == 3
    assert f"The 3 failures are exceptions: {cause}" in str(passhat.why(run, "a"))


def test_no_attempt_is_called_judged_where_all_of_them_raised(tmp_path: Path) -> None:
    def agent(_prompt: str) -> str:
        raise KeyError("OPENAI_API_KEY")

    tasks = [{"id": name, "prompt": name, "answer": "4"} for name in "ab"]
    place = tmp_path / "store.db"
    run = passhat.run(agent, tasks, n=1, store=place, keep_going=True, progress=False)
    text = ask(place, run.id)
    assert "The 2 failures are exceptions: KeyError" in text
    assert "All 2 attempts failed: there is no passing attempt to compare with." in text
    assert "judged attempt" not in text
