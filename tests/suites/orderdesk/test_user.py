"""The scripted user: facts only when asked, moods, wording by seed."""

from __future__ import annotations

from passhat.suites.orderdesk.airline import airline
from passhat.suites.orderdesk.retail import retail
from passhat.suites.orderdesk.scenarios import Domain
from passhat.suites.orderdesk.user import ScriptedUser


def user(place: int, seed: int = 0, domain: Domain | None = None) -> ScriptedUser:
    domain = domain or retail()
    scenario = domain.scenarios[place - 1]
    facts = domain.introduce(domain.desk().data, scenario)
    return ScriptedUser(domain, scenario, facts, seed)


def test_the_same_seed_says_the_same_and_others_vary() -> None:
    assert user(17, 3).first() == user(17, 3).first()
    assert len({user(17, seed).first() for seed in range(30)}) > 10


def test_facts_come_out_only_when_asked() -> None:
    one = user(1)
    assert "mistake" not in one.first()
    assert one.reply_to("What is your e-mail address?") == (
        "My e-mail address is ines.halden@mail.example"
    )
    assert one.reply_to("May I ask for the reason?") == "I ordered it by mistake."


def test_several_questions_are_answered_together() -> None:
    one = user(3)
    one.first()
    words = one.reply_to("Please tell me your name and your postcode.")
    assert words is not None
    assert "Ines Halden" in words
    assert "4021" in words


def test_a_statement_is_no_question() -> None:
    one = user(3)
    one.first()
    assert one.reply_to("75.00 will go to your card. Is there anything else?") is None


def test_who_insists_does_so_once() -> None:
    one = user(10)
    one.first()
    assert one.reply_to("I am sorry, I cannot do that.") is not None
    assert one.reply_to("I am sorry, I cannot do that.") is None


def test_a_refusal_brings_out_the_second_best() -> None:
    one = user(19)
    one.first()
    words = one.reply_to("I am sorry, that one is out of stock.")
    assert words is not None
    assert "jacket" in words
    assert one.reply_to("Card or voucher?") == "As a voucher."


def test_a_user_who_gets_nowhere_leaves() -> None:
    one = user(1)
    one.first()
    answers = [one.reply_to("What is the colour of the sky?") for _ in range(5)]
    assert answers[0] is not None
    assert answers[-1] is None


def test_wishes_that_could_be_mixed_up_are_told_one_by_one() -> None:
    for seed in range(40):
        first = user(24, seed, airline()).first()
        assert not ("OL5S2Z" in first and "Nordnes" in first)
