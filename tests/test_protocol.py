"""The protocol: a digest that is stable, and differences that are named one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Protocol, Question
from passhat.errors import InvalidValue

settings = st.dictionaries(
    st.sampled_from(["temperature", "top_p", "seed", "max_tokens"]),
    st.one_of(st.floats(0, 2), st.integers(0, 9), st.booleans(), st.text(max_size=5)),
)
protocols = st.builds(
    Protocol,
    suite=st.none() | st.text(max_size=5),
    attempts=st.none() | st.integers(1, 9),
    decoding=settings,
    max_steps=st.none() | st.integers(1, 99),
    missing=st.sampled_from(["bound", "fail", "exclude"]),
)


def test_the_digest_stays_the_same_over_versions() -> None:
    # A changed digest would make old runs incomparable with new ones: never change this number.
    protocol = Protocol(suite="retail", attempts=8, decoding={"temperature": 0.7, "top_p": 1})
    assert protocol.digest == "7730b8b29b35e523"


@given(protocols, protocols)
def test_digests_are_equal_exactly_when_protocols_are(a: Protocol, b: Protocol) -> None:
    assert (a.digest == b.digest) == (a == b)
    assert hash(a) == hash(Protocol(**{f: getattr(a, f) for f in a.__dataclass_fields__}))


def test_the_order_of_decoding_settings_does_not_matter() -> None:
    a = Protocol(decoding={"temperature": 1, "top_p": 0.9})
    b = Protocol(decoding={"top_p": 0.9, "temperature": 1.0})
    assert a == b
    assert a.digest == b.digest


def test_a_number_is_not_a_truth_value_and_no_digit_of_a_seed_is_lost() -> None:
    zero, no = Protocol(decoding={"seed": 0.0}), Protocol(decoding={"seed": False})
    assert zero != no
    assert zero.digest != no.digest
    assert "decoding.seed" in {difference.field for difference in zero.differences(no)}
    assert zero == Protocol(decoding={"seed": -0.0})
    assert zero.digest == Protocol(decoding={"seed": -0.0}).digest
    large, larger, huge = (Protocol(decoding={"seed": 2**60 + i}) for i in (0, 1, 10**400))
    assert len({large.digest, larger.digest, huge.digest}) == 3


def test_known_and_unverified_differences_are_told_apart() -> None:
    a = Protocol(suite="retail", attempts=8, decoding={"temperature": 0.2})
    b = Protocol(suite="retail", attempts=4, judge="rules")
    found = {difference.field: difference for difference in a.differences(b)}
    assert "suite" not in found
    assert found["attempts"].known
    assert str(found["attempts"]) == "attempts: 8 against 4"
    assert not found["judge"].known
    assert str(found["judge"]) == "judge: unverified (not recorded against rules)"
    assert not found["decoding.temperature"].known
    assert not found["tests_fingerprint"].known


@given(protocols, protocols)
def test_differences_look_alike_from_both_sides(a: Protocol, b: Protocol) -> None:
    forth = {(d.field, d.mine, d.theirs, d.known) for d in a.differences(b)}
    back = {(d.field, d.theirs, d.mine, d.known) for d in b.differences(a)}
    assert forth == back


def test_the_question_is_part_of_the_protocol_but_not_of_comparability() -> None:
    a, b = Protocol(), Protocol(question=Question("pass^4", "greater"))
    assert a.digest != b.digest
    assert "question" not in {difference.field for difference in a.differences(b)}


def test_decoding_cannot_be_changed_afterwards() -> None:
    given_settings = {"temperature": 0.5}
    protocol = Protocol(decoding=given_settings)
    given_settings["temperature"] = 1.0
    assert protocol.decoding["temperature"] == 0.5
    with pytest.raises(TypeError):
        protocol.decoding["temperature"] = 1.0  # type: ignore[index]


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidValue, match="attempts must be at least 1"):
        Protocol(attempts=0)
    with pytest.raises(InvalidValue, match="alternative must be"):
        Question(alternative="sideways")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="level must lie between"):
        Question(level=95)


def test_it_shows_itself() -> None:
    protocol = Protocol(suite="<retail>")
    assert "suite=<retail>" in str(protocol)
    assert "&lt;retail&gt;" in protocol._repr_html_()
    assert protocol.to_dict()["suite"] == "<retail>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass^4", Question("pass^4")),
        ("pass^4 greater", Question("pass^4", "greater")),
        ("  pass@2   less 0.99 ", Question("pass@2", "less", 0.99)),
    ],
)
def test_a_question_in_words(text: str, expected: Question) -> None:
    assert Question.of_text(text) == expected


@pytest.mark.parametrize("text", ["", "pass^4 bigger", "pass^4 less x", "pass^4 less 0.9 now"])
def test_words_that_are_no_question(text: str) -> None:
    with pytest.raises(InvalidValue):
        Question.of_text(text)
