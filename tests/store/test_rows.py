"""Records of the store: round trips, sets of attempts against Python sets, names of states."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import InvalidValue, ReadError
from passhat.protocol import Protocol, Question
from passhat.stats.outcomes import Verdict
from passhat.store import (
    AttemptRecord,
    CallRecords,
    JudgementSource,
    RunRecord,
    StoredJudgement,
    StoredRun,
    open_store,
)
from passhat.store.rows import (
    AttemptLine,
    AttemptSet,
    CallCounts,
    Origins,
    PlannedAttempts,
    RunCounts,
    RunHead,
    call_cells,
    damage_reported,
    finished_cells,
    origin_cells,
    pack_transcript,
    protocol_from,
    summarize_run,
    unpack_transcript,
)
from passhat.suites.base import Judgement, Task

ATTEMPTS = st.sets(st.tuples(st.sampled_from(["a", "b", "ü"]), st.integers(0, 130)))


@given(there=ATTEMPTS)
def test_a_set_of_attempts_is_a_set(there: set[tuple[str, int]]) -> None:
    attempts = AttemptSet([*there, *there])
    assert len(attempts) == len(there)
    asked = [(task, number) for task in ("a", "b", "ü", "other") for number in range(132)]
    assert {attempt for attempt in asked if attempt in attempts} == there
    in_both = {n for n in range(132) if {("a", n), ("b", n)} <= there}
    common = attempts.common(["a", "b"])
    assert {n for n in range(132) if common >> n & 1} == in_both


@given(there=ATTEMPTS, each=st.integers(1, 9), a=st.integers(1, 9))
def test_attempts_that_are_left(there: set[tuple[str, int]], each: int, a: int) -> None:
    """Numbers begin at 1, and attempts beyond the plan do not count against it."""
    tasks = ["a", "b", "never"]
    for planned in (PlannedAttempts(each), PlannedAttempts(9, {"a": a, "b": each})):
        wanted = {(task, n) for task in tasks for n in range(1, planned.of(task) + 1)}
        assert AttemptSet(there).left(tasks, planned) == len(wanted - there)
        assert planned.total(tasks) == len(wanted)


def test_planned_attempts_survive_the_store() -> None:
    source = {"id": "abc", "metric": "pass^4"}
    planned = PlannedAttempts(9, {"a": 2, 'odd "name"\n漢': 9, "zero": 1}, source)
    again = PlannedAttempts.from_text(planned.text, 9)
    assert again == planned
    assert (again.fewest, again.of("a"), again.of("not listed")) == (1, 2, 9)
    assert again.protocol_text == "1 to 9 by task for pass^4, from run abc"
    same = PlannedAttempts.from_text("", 4)
    assert (same, same.text, same.protocol_text, same.fewest) == (PlannedAttempts(4), "", None, 4)
    unsourced = PlannedAttempts(9, {"a": 2})
    assert PlannedAttempts.from_text(unsourced.text, 9) == unsourced
    assert PlannedAttempts(3, {"a": 3}).protocol_text == "3 to 3 by task, from run an earlier run"


def test_the_protocol_says_one_number_or_that_it_differs() -> None:
    protocol = Protocol(suite="s", attempts=7, allocation="old")
    assert PlannedAttempts(4).add_to_protocol(protocol) == Protocol(suite="s", attempts=4)
    differs = PlannedAttempts(4, {"a": 2, "b": 4}).add_to_protocol(protocol)
    assert (differs.attempts, differs.allocation) == (
        None,
        "2 to 4 by task, from run an earlier run",
    )


def test_a_protocol_survives_the_store() -> None:
    protocol = Protocol(
        suite="s", attempts=3, decoding={"temperature": 0.5, "n": 1}, question=Question()
    )
    again = protocol_from(json.loads(json.dumps(protocol.to_dict())))
    assert again == protocol
    assert again.digest == protocol.digest


TALKS = st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=20), max_size=2), max_size=3)


@settings(max_examples=30)
@given(talk=TALKS, times=st.sampled_from([1, 40]))
def test_a_conversation_survives_the_store(talk: list[dict[str, str]], times: int) -> None:
    """Short ones are stored as they are, long ones compressed."""
    assert unpack_transcript(pack_transcript(talk * times)) == talk * times


@pytest.mark.parametrize("body", [b"", b"[{", b"x\x9c\x00", b'[{"a": 1}]', b'["a"]', b"[\xff]"])
def test_a_damaged_conversation_says_so(body: bytes) -> None:
    with pytest.raises(ReadError, match="a transcript is damaged") as caught:
        unpack_transcript(body)
    assert "passhat store check" in str(caught.value.hint)


def test_a_compressed_conversation_that_was_cut_says_so() -> None:
    body = pack_transcript([{"role": "user", "text": random.Random(1).randbytes(900).hex()}])
    for length in (1, len(body) // 2, len(body) - 1):
        with pytest.raises(ReadError, match="damaged"):
            unpack_transcript(body[:length])


@pytest.mark.parametrize("error", [ValueError("v"), KeyError("k"), OverflowError("o")])
def test_a_damaged_value_names_the_store_without_its_password(error: Exception) -> None:
    with (
        pytest.raises(ReadError, match=type(error).__name__) as caught,
        damage_reported("postgresql://me:secret@host/db"),
    ):
        raise error
    assert "secret" not in f"{caught.value} {caught.value.hint}"
    assert "host/db" in str(caught.value)


def test_an_error_with_its_own_words_is_left_alone() -> None:
    with pytest.raises(InvalidValue, match="own words"), damage_reported("store.db"):
        raise InvalidValue("own words")


def _head(planned: int, total: int | None = None, *, is_open: bool = False) -> RunHead:
    return RunHead(1, "id", "agent", "suite", "", planned, "", "", is_open, total)


@pytest.mark.parametrize(
    ("head", "counts", "status"),
    [
        (_head(2), RunCounts(3, 6, 1, 0), "complete"),
        (_head(2), RunCounts(3, 5, 1, 0), "stopped"),
        (_head(2, is_open=True), RunCounts(3, 5, 1, 0), "in progress"),
        (_head(2), RunCounts(3, 6, 0, 5), "complete"),
        (_head(2), RunCounts(3, 6, 0, 6), "stopped"),  # nothing has a verdict
        (_head(9, total=4), RunCounts(3, 4, 1, 0), "complete"),
        (_head(9, total=4), RunCounts(3, 3, 1, 0), "stopped"),
        (_head(2), RunCounts(0, 0, 0, 0), "complete"),
    ],
)
def test_the_status_of_a_run(head: RunHead, counts: RunCounts, status: str) -> None:
    run = summarize_run(head, counts)
    assert run.status == status
    assert run.total == (head.planned * counts.tasks if head.total is None else head.total)
    assert run.title == "agent id"
    assert replace(run, name="mine").title == "mine"


def test_ids_tell_runs_apart() -> None:
    def id_of(agent: str = "a", name: str = "", selection: str = "", suite: str = "s") -> str:
        return RunRecord(agent, Protocol(suite=suite), [], name, selection).id

    others = [id_of("b"), id_of(name="n"), id_of(selection="n"), id_of(suite="t")]
    assert len({id_of(), *others}) == 5
    # The tasks themselves are described by the protocol.
    assert RunRecord("a", Protocol(suite="s"), [Task("t", "?")]).id == id_of()


def test_a_line_has_a_category_or_a_reason_and_never_both() -> None:
    def line(verdict: Verdict) -> dict[str, object]:
        cells = ("word", "", 0.0, None, 1.0, None, 0, "")
        return AttemptLine((1, 2), "t", 2, verdict, *cells).to_dict()

    shown = {verdict: line(verdict) for verdict in Verdict}
    words = {v: (row["category"], row["reason"]) for v, row in shown.items()}
    assert words == {
        Verdict.PASSED: (None, None),
        Verdict.FAILED: ("word", None),
        Verdict.MISSING: (None, "word"),
    }
    row = shown[Verdict.PASSED]
    assert (row["steps"], row["seconds"], row["seed"], row["detail"]) == (0.0, None, 0, None)


def test_a_judgement_in_words() -> None:
    def words(why: str, detail: str) -> str:
        return str(StoredJudgement(Verdict.FAILED, why, detail, JudgementSource.JUDGE))

    assert words("timeout", "late") == "failed, timeout: late"
    assert words("", "late") == "failed, late"
    assert words("", "") == "failed"


def test_runs_are_found_by_name_id_and_age(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        with pytest.raises(InvalidValue, match="only 0 runs") as caught:
            store.find("latest")
        assert "passhat run makes one" in str(caught.value.hint)
        records = [RunRecord("a", Protocol(), [], name) for name in ("one", "two", "latest~1")]
        for record in records:
            store.begin(record, 1)
        one, two, odd = (record.id for record in records)
        assert store.find("two").id == two
        assert store.find(one).id == one
        assert store.find(one[:9]).id == one
        assert store.find("latest").id == odd
        assert store.find("latest~2").id == one
        assert store.find("latest~1").id == odd  # a name goes first
        with pytest.raises(InvalidValue, match=r"no run 'latest~3', only 3 runs"):
            store.find("latest~3")
        with pytest.raises(InvalidValue, match="there is no run 'x'") as caught:
            store.find("x")
        assert one in str(caught.value.hint)


# -- defaults and cells ----------------------------------------------------------------------------


def test_what_is_not_recorded_is_none_or_nothing() -> None:
    assert CallCounts() == CallCounts(0, 0, None, None, 0, 0, 0)
    assert Origins() == Origins({}, 0, 0, 0)
    assert RunCounts() == RunCounts(0, 0, 0, 0)
    head = _head(1)
    assert (head.total, head.judged, head.revision) == (None, 0, "")
    run = StoredRun("i", "a", "s", 1, 2, 3, 0, 3, "", "complete")
    assert (run.total, run.allocation, run.revision, run.name) == (0, "", "", "")
    assert (run.title, run.is_fresh) == ("a i", False)
    record = AttemptRecord("t", 1, Judgement.passed())
    assert (record.retries, record.answer_hash, record.is_judged) == (0, "", True)
    assert (record.seconds, record.steps, record.tokens, record.cost) == (None,) * 4


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (None, Question()),
        ("pass^2", Question()),
        ({}, Question()),
        ({"metric": "pass^4"}, Question("pass^4")),
        ({"metric": "pass^4", "level": 0.9}, Question("pass^4", level=0.9)),
    ],
)
def test_the_question_of_a_protocol_is_read(question: object, expected: Question) -> None:
    assert protocol_from({"suite": "s", "question": question}) == Protocol(
        suite="s", question=expected
    )


@pytest.mark.parametrize(
    ("decoding", "expected"), [(None, {}), ("x", {}), ({"temperature": 0.5}, {"temperature": 0.5})]
)
def test_the_settings_of_a_protocol_are_read(decoding: object, expected: dict[str, object]) -> None:
    assert dict(protocol_from({"decoding": decoding}).decoding) == expected


@pytest.mark.parametrize(
    ("length", "cells"),
    [(0, ("", "d")), (200, ("w" * 200, "d")), (201, ("w" * 200, f"{'w' * 201} d"))],
)
def test_a_word_that_is_too_long_goes_on_in_the_detail(length: int, cells: tuple[str, str]) -> None:
    judgement = Judgement(Verdict.FAILED, "w" * length, "d")
    found = finished_cells(AttemptRecord("t", 3, judgement), "now", 7, 8)
    assert found[:3] == (0, *cells)
    assert found[3:] == (*(None,) * 5, 0, "", "now", None, None, 7, 8, 3, None)


def test_the_cells_of_an_attempt_are_in_their_order() -> None:
    talk = [{"role": "agent", "text": "a"}]
    record = AttemptRecord(
        *("t", 3, Judgement(Verdict.PASSED, "", "d", score=0.5), 1, 2.0, 3.0, 4.0, 5.0, 6, "hash"),
        leak="other#1",
        transcript=talk,
    )
    assert finished_cells(record, "now", 7, 8) == (
        *(1, "", "d", 1, 2.0, 3.0, 4.0, 5.0, 6, "hash", "now", "other#1", 0.5, 7, 8, 3),
        pack_transcript(talk),
    )


@pytest.mark.parametrize(
    ("served", "conversation", "cells"),
    [
        (None, "", ()),
        ((), "", ()),
        (None, "c", ("", "c")),
        ((), "c", ("", "c")),
        ((("m", ""),), "", ('[["m", ""]]', "")),
        ((("m", "f"),), "c", ('[["m", "f"]]', "c")),
    ],
)
def test_where_answers_came_from_is_written_where_it_is_known(
    served: tuple[tuple[str, str], ...] | None, conversation: str, cells: tuple[str, ...]
) -> None:
    calls = None if served is None else CallRecords(1, 2, 3, 4, 5, 6, b"[]", served)
    record = AttemptRecord("t", 1, Judgement.passed(), calls=calls, conversation=conversation)
    assert origin_cells(record) == cells
    if calls is None:
        assert call_cells(record) == ()
    else:
        assert call_cells(record)[:6] == (1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(("size", "is_packed"), [(399, False), (400, True)])
def test_a_conversation_is_compressed_from_a_size_on(size: int, is_packed: bool) -> None:
    talk = [{"t": "x" * (size - len('[{"t":""}]'))}]
    body = pack_transcript(talk)
    assert body.startswith(b"[") is not is_packed
    assert (len(body) == size) is not is_packed
    assert unpack_transcript(body) == talk


@pytest.mark.parametrize(
    ("attempts", "missing", "status"),
    [(0, 0, "stopped"), (1, 0, "complete"), (1, 1, "stopped"), (2, 1, "complete")],
)
def test_a_run_of_missing_attempts_alone_is_not_complete(
    attempts: int, missing: int, status: str
) -> None:
    assert summarize_run(_head(1), RunCounts(1, attempts, 0, missing)).status == status
