"""The one step before anything is recorded: no secrets, valid Unicode, bounded size."""

from __future__ import annotations

import json
import pickle
import random
import string
import sys
from pathlib import Path
from typing import Any

import pytest

from passhat.agents import Agent, AttemptInfo, Session, Usage
from passhat.agents.base import ModelCall
from passhat.runner import redaction
from passhat.runner.redaction import (
    Redactor,
    encode_data,
    make_encodable,
    make_plain,
    secret_values,
)
from passhat.runner.run_spec import RunSpec, run
from passhat.store import open_store
from passhat.suites.base import Turn

_DICE = random.Random(3)


_HEX = "0123456789abcdef"


def _letters(count: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(_DICE.choices(letters, k=count))


KEYS = {
    "Databricks": f"dapi{_letters(32, _HEX)}",
    "Bedrock": f"ABSK{_letters(60)}=",
    "Notion, older": f"secret_{_letters(43)}",
    "Sentry": f"sntrys_{_letters(40)}==_{_letters(43)}",
    "OpenAI": f"sk-proj-{_letters(48)}",
    "Anthropic": f"sk-ant-api03-{_letters(40)}",
    "OpenRouter": f"sk-or-v1-{_letters(40)}",
    "Stripe": f"rk_live_{_letters(24)}",
    "Google": f"AIza{_letters(35)}",
    "Google OAuth": f"ya29.{_letters(60)}",
    "GitHub": f"ghp_{_letters(36)}",
    "GitHub, fine-grained": f"github_pat_{_letters(22)}_{_letters(59)}",
    "GitHub, server": f"ghs_{_letters(36)}",
    "GitLab": f"glpat-{_letters(20)}",
    "Hugging Face": f"hf_{_letters(34)}",
    "Groq": f"gsk_{_letters(52)}",
    "xAI": f"xai-{_letters(60)}",
    "Replicate": f"r8_{_letters(37)}",
    "Perplexity": f"pplx-{_letters(40)}",
    "NVIDIA": f"nvapi-{_letters(60)}",
    "LangSmith": f"lsv2_pt_{_letters(32)}_{_letters(10)}",
    "Slack": f"xoxb-{_letters(11, string.digits)}-{_letters(24)}",
    "npm": f"npm_{_letters(36)}",
    "PyPI": f"pypi-{_letters(80)}",
    "Docker": f"dckr_pat_{_letters(27)}",
    "SendGrid": f"SG.{_letters(22)}.{_letters(43)}",
    "AWS": f"AKIA{_letters(16, string.ascii_uppercase)}",
    "AWS, temporary": f"ASIA{_letters(16, string.ascii_uppercase)}",
    "JSON Web Token": f"eyJ{_letters(20)}.eyJ{_letters(60)}.{_letters(43)}",
    "private key": f"-----BEGIN PRIVATE KEY-----\n{_letters(64)}\n-----END PRIVATE KEY-----",
    "Stripe, webhook": f"whsec_{_letters(32)}",
    "GitLab, runner": f"glrt-{_letters(20)}",
    "Figma": f"figd_{_letters(40)}",
    "New Relic": f"NRAK-{_letters(27, string.ascii_uppercase)}",
    "Grafana": f"glsa_{_letters(32)}_{_letters(8, _HEX)}",
    "Postman": f"PMAK-{_letters(24, _HEX)}-{_letters(34, _HEX)}",
    "Supabase": f"sbp_{_letters(40, _HEX)}",
    "PlanetScale": f"pscale_pw_{_letters(43)}",
    "Tavily": f"tvly-{_letters(32)}",
    "Google, client": f"GOCSPX-{_letters(28)}",
    "Google, refresh": f"1//0{_letters(60)}",
    "Atlassian": f"ATATT3xFfGF0{_letters(60)}",
    "Mailgun": f"key-{_letters(32, _HEX)}",
    "Doppler": f"dp.pt.{_letters(43)}",
    "Twilio": f"SK{_letters(32, _HEX)}",
    "Airtable": f"pat{_letters(14)}.{_letters(64, _HEX)}",
    "Square": f"EAAA{_letters(60)}",
    "Azure, client": f"8Q~{_letters(34)}",
    "PGP": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n"
    f"{_letters(64)}\n-----END PGP PRIVATE KEY BLOCK-----",
    "half a private key": f"-----BEGIN PRIVATE KEY-----\n{_letters(64)}",
}
AROUND = {
    "netrc": ("machine api.example.com login bob password {}", "correcthorse"),
    "user and password": ("./agent --auth bob:{} run", "correcthorse"),
    "bearer": ("Authorization: Bearer {}", _letters(30)),
    "basic": ("Authorization: Basic {}", _letters(24)),
    "database": ("postgresql://me:{}@db.example/app", "hunter2pw"),
    "redis": ("redis://:{}@cache:6379/0", "hunter2pw"),
    "option": ("./agent --api-key {} --fast", "abc123def"),
    "option with =": ("./agent --auth-token={}", "abc123def"),
    "assignment": ("aws_secret_access_key={}", _letters(40)),
    "azure": ("AccountName=x;AccountKey={};", _letters(40)),
    "header": ("x-api-key: {}", _letters(30)),
    "headers in Python": ("{{'x-api-key': '{}'}}", f"{_letters(30)}1"),
    "token": ("Authorization: token {}", f"{_letters(30)}1"),
    "encoded header": ("Authorization%3A%20Bearer%20{}", _letters(30)),
    "cookie": ("Cookie: {}", f"session={_letters(32)}; theme=dark"),
    "cookie that is set": ("Set-Cookie: {}", f"sid={_letters(32)}; HttpOnly"),
    "pair with spaces": ("aws_secret_access_key = {}", f"{_letters(39)}1"),
    "pair as JSON": ('{{"SecretAccessKey": "{}"}}', f"{_letters(39)}1"),
    "npmrc": ("//registry.example/:_authToken={}", f"{_letters(35)}1"),
    "signature": ("https://s3.example/x?X-Amz-Signature={}", f"{_letters(60, _HEX)}a1"),
    "query": ("https://api.example/x?token={}", f"{_letters(30)}a1"),
    "password as JSON": ('{{"password": "{}"}}', "correcthorse"),
    "password as YAML": ("password: {}", "s3cretpw!9"),
    "password in quotes": ("host=h password='{}' dbname=d", "s3cret pw9"),
    "password of ADO": ("Server=x;Uid=a;Pwd={};", "s3cretpw!9"),
    "password with @": ("https://me:{}@db.example/x", "p@ssw0rd99"),
    "password with /": ("postgres://me:{}@db.example/x", "pa/ssw0rd99"),
    "password, encoded": ("postgresql://me:{}@db.example/x", "p%40ss%2Fword9"),
    "token as user": ("https://{}@github.example/x.git", _letters(40)),
    "curl": ("curl -u admin:{} https://x.example", "s3cretpw!9"),
    "Telegram": ("7093444788{}", f":AA{_letters(33)}"),
    "Slack, webhook": (
        "https://hooks.slack.com/services/{}",
        f"T12345678/B12345678/{_letters(24)}",
    ),
    "Discord, webhook": ("https://discord.com/api/webhooks/1234567890/{}", _letters(68)),
    "Terraform": ("63qlvIgSuqmxP1.atlasv1.{}", _letters(60)),
    "PuTTY": ("Private-Lines: 1\n{}\nPrivate-MAC: 0", _letters(48)),
}
HARMLESS = [
    "Asia and basic rules; the bearer of this letter",
    "mask-ed words, risk_free_rate_of_return, disk-usage-report, task-000000000012",
    "https://example.com/a:b/c@d and mailto:me@example.com",
    "http://localhost:8000/x and git@github.com:a/b.git",
    "the tokens are 12, the key is on the table, --keyword only",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "the password is on the note; pass_hat_4 = 0.5",
    "password: required, token: string, api_key=None, the author: me and 12 others",
    "max_tokens=4096, token_count: 123456, tokenizer: gpt2-medium-v2, monkey: 3",
    "significant: p < 0.05; secret: the answer; {'password': None}; Cookie: the dog ate it",
    "http://localhost:8080/@scope/pkg@1.2 and https://example.com/a?token=1",
]


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_keys_of_providers(key: str) -> None:
    redact = Redactor()
    for text in (key, f"my key is {key}, keep it", f'{{"key": "{key}"}}'):
        assert not any(part in redact(text) for part in (key, key[-12:]))
    assert "keep it" in redact(f"my key is {key} , keep it") or "END" not in key


@pytest.mark.parametrize(("text", "secret"), AROUND.values(), ids=AROUND)
def test_secrets_by_what_is_before_them(text: str, secret: str) -> None:
    clean = Redactor()(text.format(secret))
    assert secret not in clean
    assert clean.startswith(text.format("\0").partition("\0")[0])


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor()(text) == text


def test_a_text_that_is_repeated_is_cleaned_every_time() -> None:
    """Clean texts are remembered, at most a bounded number of them."""
    redact = Redactor({"MY_TOKEN": "correct-horse-7"})
    for _ in range(2):
        assert redact("say correct-horse-7") == "say [redacted]"
        assert redact("a plain prompt") == "a plain prompt"
    for number in range(5_000):
        redact(f"an answer with the number {number}")
    assert len(redact._clean_texts) <= 1_000
    again = pickle.loads(pickle.dumps(redact))
    assert again("say correct-horse-7") == "say [redacted]"


def test_values_of_the_environment_under_any_name() -> None:
    opaque = "Zx8kQ2mVt7Lp4WnR9sYb"
    values = secret_values(
        {
            "MY_SERVICE": opaque,
            "DATABASE_URL": "mysql://app:s3cretpass@db/app",
            "OPENAI_API_KEY": "short-key",
            "SMTP_PASS": "mail-pass",
            "GITHUB_SHA": "3f786850e387550fdab836ed7e6dc881de23001b",
            "HOME": "/home/Someone/Folder1/WithALongName2",
            "LANG": "en_US.UTF-8",
            "AAAA": "Aa1" * 10,
        }
    )
    assert sorted(values) == sorted([opaque, "s3cretpass", "short-key", "mail-pass"])
    redact = Redactor({"MY_SERVICE": opaque})
    assert redact(f"it is {opaque}.") == "it is [redacted]."


class _Raises:
    def __str__(self) -> str:
        raise RuntimeError


LOOP: list[Any] = []
LOOP.append(LOOP)
DATA = ["a\udcffb", {"\ud800": 1}, {1.5: "x", (1, 2): "y"}, {"a": _Raises()}, LOOP, {"k": b"\xff"}]


@pytest.mark.parametrize("data", DATA, ids=["text", "key", "keys", "str", "loop", "bytes"])
def test_any_data_becomes_json(data: Any) -> None:
    text = encode_data({"reply": data})
    text.encode()
    assert "reply" in json.loads(text)
    json.dumps(Redactor().clean_data(data)).encode()


def test_long_data_is_cut_after_secrets_are_removed() -> None:
    key = KEYS["OpenAI"]
    cut = Redactor().clean_data(["x" * 39_980 + " " + key, "y" * 10_000])
    assert cut["characters"] > 40_000
    assert len(cut["cut"]) <= 40_000
    assert "sk-" not in cut["cut"]


class Odd(Agent, Session):
    """Records whatever it is given as the reply of a model, every other time."""

    def __init__(self, reply: Any, usage: Usage) -> None:
        self._reply = reply
        self._usage = usage

    async def session(self, attempt: AttemptInfo) -> Session:
        self._attempt = attempt
        return self

    async def answer(self, _turn: Turn) -> str:
        if self._attempt.number % 2:
            meter = self._attempt.meter
            meter.settle(self._usage)
            meter.record(ModelCall("m\udcff", reply=self._reply, stop_raw="\ud800", error="\udfff"))
        return "yes"


@pytest.mark.parametrize("reply", DATA, ids=["text", "key", "keys", "str", "loop", "bytes"])
@pytest.mark.parametrize(
    "usage", [Usage(10**30, 1.0), Usage(-5, -1.0), Usage(float("nan"), float("inf")), Usage(3, 0.5)]
)
def test_an_odd_reply_ends_no_run(tmp_path: Path, reply: Any, usage: Usage) -> None:
    (tmp_path / "t.jsonl").write_text('{"id": "a", "prompt": "?", "answer": "yes"}')
    store = str(tmp_path / "s.db")
    suite = f"jsonl:{tmp_path / 't.jsonl'}"
    result = run(RunSpec(agent=Odd(reply, usage), suite=suite, attempts=4, store=store, jobs=1))
    assert (result.stored.attempts, result.stored.passed) == (4, 4)
    with open_store(store, read_only=True) as stored:
        assert len(stored.calls(result.id, "a", 1)) == 1
        tokens = [row[6] for block in stored.rows(result.id) for row in block]
    assert tokens == [3 if usage.tokens == 3 else None, None] * 2


def test_words_of_a_command_are_stored_without_its_secrets(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"id": "a", "prompt": "?", "answer": "yes"}')
    spec = RunSpec(
        agent=f"command:{sys.executable} --api-key hunter2hunter2",
        suite=f"jsonl:{tmp_path / 't.jsonl'}",
    )
    loaded = spec.load()
    assert loaded.agent.name == f"command:{sys.executable} --api-key [redacted]"
    assert spec.plan(loaded).record.agent == loaded.agent.name


@pytest.mark.parametrize(
    ("begin", "fewest"),
    [
        *(("sk-", 12), ("pk_", 12), ("xoxb-", 12), ("ghp_", 16), ("github_pat_", 16), ("hf_", 16)),
        *(("glpat-", 16), ("fw_", 16), ("lsv2_pt_", 16), ("npm_", 20), ("hvs.", 20)),
        *(
            ("whsec_", 20),
            ("figd_", 20),
            ("pmak-", 20),
            ("tvly-", 20),
            ("key-", 30),
            ("dp.pt.", 30),
        ),
    ],
)
def test_a_key_is_redacted_from_its_shortest_form_on(begin: str, fewest: int) -> None:
    letters = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA"
    redact = Redactor()
    assert letters[:fewest] not in redact(f"it is {begin}{letters[:fewest]} today")
    shorter = f"it is {begin}{letters[: fewest - 1]} today"
    assert redact(shorter) == shorter


# -- parts -----------------------------------------------------------------------------------------


def test_patterns_that_need_a_sign_are_looked_for_only_with_it() -> None:
    """Most texts have few of the signs: without the groups each takes several times as long."""
    (_, with_hyphens), (_, with_names) = redaction._GROUPS
    assert {literal for literal, _ in with_names} == {*redaction._NAMES, "auth"} & {
        literal for literal, _ in redaction._PATTERNS
    }
    assert all({"-", "_"} & set(literal) for literal, _ in with_hyphens)
    apart = [*with_hyphens, *with_names, *redaction._ALWAYS]
    assert {id(pair) for pair in apart} == {id(pair) for pair in redaction._PATTERNS}
    assert not {"-", "_"} & {sign for literal, _ in redaction._ALWAYS for sign in literal}


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], "0123456789"),
        ([(0, 2)], "#23456789"),
        ([(8, 10)], "01234567#"),
        ([(2, 4), (4, 6)], "01##6789"),
        ([(2, 6), (3, 5)], "01#6789"),
        ([(2, 6), (3, 8)], "01#89"),
        ([(4, 6), (1, 2)], "0#23#6789"),
        ([(0, 10)], "#"),
    ],
)
def test_places_of_secrets_are_replaced(spans: list[tuple[int, int]], expected: str) -> None:
    assert redaction._without("0123456789", spans, "#") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abcdefg", "abcdefg"),
        ("abcdefgh", "[redacted]"),
        ("x abcdefghij y", "x [redacted] y"),
        ("x abcdefghij", "x [redacted]"),
        ("x ijklmnop y", "x [redacted] y"),
        ("abcdefghijklmnop", "[redacted]"),
        ("abcdefgh abcdefghX", "[redacted] [redacted]X"),
        ("jklmnop", "jklmnop"),
    ],
)
def test_the_beginning_or_end_of_a_secret_is_replaced(text: str, expected: str) -> None:
    assert redaction._without_part(text, "abcdefghijklmnop") == expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, []),
        ({"API_KEY": "short12"}, []),
        ({"API_KEY": "just8can"}, ["just8can"]),
        ({"db_pass": "just8can", "PASSAGE": "just8can2"}, ["just8can"]),
        (
            {"MY_CREDS": "just8can", "my_auth_x": "just8can22", "AUTHOR": "Jane Doe Smith"},
            ["just8can22", "just8can"],
        ),
        ({"URL": "http://me:secretpw@host"}, ["secretpw"]),
        ({"URL": "http://me:seven77@host"}, []),
        ({"ANY": "aB3aB3aB3aB3aB3aB3aB3aB3"}, []),  # few different signs
        ({"ANY": "abcdefgHIJKL12345mnop"}, ["abcdefgHIJKL12345mnop"]),
        ({"ANY": "abcdefgHIJKL12345mn"}, []),  # too short
        ({"ANY": "abcdefghijkl12345mnopq"}, []),  # no capital letter
    ],
)
def test_which_values_of_the_environment_are_secrets(
    environment: dict[str, str], expected: list[str]
) -> None:
    assert secret_values(environment) == expected


class _Odd:
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, None),
        (True, True),
        (0, 0),
        (0.5, 0.5),
        ("a\ud800", "a???"),
        ((1, "b"), [1, "b"]),
        ({1: {2: [3]}}, {"1": {"2": [3]}}),
        ({(1, 2): None}, {"(1, 2)": None}),
        (Usage(1.0, 2.0), str(Usage(1.0, 2.0))),
        (_Odd(), "a _Odd"),
        ([_Odd()], ["a _Odd"]),
    ],
)
def test_any_data_is_made_plain(data: Any, expected: Any) -> None:
    found = make_plain(data)
    if isinstance(expected, str) and "?" in expected:
        found = found.replace("\ufffd", "?")
    assert found == expected


def test_data_that_is_too_deep_is_text() -> None:
    data: Any = "in"
    for _ in range(redaction._DEEPEST + 1):
        data = [data]
    found = make_plain(data)
    for _ in range(redaction._DEEPEST):
        assert isinstance(found, list)
        (found,) = found
    assert found == "['in']"


@pytest.mark.parametrize("text", ["", "plain", "漢字", "é"])
def test_valid_text_stays(text: str) -> None:
    assert make_encodable(text) == text


def test_texts_are_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_MOST_REPEATED", 2)
    monkeypatch.setattr(redaction, "_LONGEST_REPEATED", 10)
    redact = Redactor()
    for text, count in (
        ("short77", 0),
        ("just8can", 1),
        ("just8can", 1),
        ("x" * 11, 1),
        ("x" * 10, 2),
        ("another one"[:9], 1),
    ):
        assert redact(text) == text
        assert len(redact._clean_texts) == count


@pytest.mark.parametrize("length", [99, 100, 101, 1000])
def test_a_text_is_shortened_in_its_middle(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setattr(redaction, "_MARGIN", 10)
    text = "".join(chr(97 + place % 26) for place in range(length))
    found = Redactor().shorten(text, 100)
    if length <= 100:
        assert found == text
    else:
        left_out = length - 100
        middle = f"\n[... {left_out:,} characters left out ...]\n"
        assert found == f"{text[:50]}{middle}{text[-50:]}"
