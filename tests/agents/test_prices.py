"""Prices: what ships, what the user writes over it, and what is wrong with a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from passhat.agents.prices import PriceTable, TokenCount, read_prices
from passhat.errors import ReadError


def cost(table: PriceTable, provider: str, model: str) -> float:
    price = table.price(provider, model)
    assert price is not None
    return price.of(TokenCount(1_000_000, 1_000_000))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_shipped_table_is_dated_and_knows_dated_names() -> None:
    table = read_prices()
    assert table.as_of
    assert cost(table, "openai", "gpt-4o-2024-08-06") == cost(table, "openai", "gpt-4o")
    assert cost(table, "anthropic", "claude-sonnet-4-5-20250929") == 18.0
    assert table.price("openai", "somebodys-model") is None
    assert table.price("anthropic", "gpt-4o") is None


def test_the_users_own_entries_win() -> None:
    own = '[openai]\n"gpt-4o" = { input = 1, output = 2 }\n"mine" = { input = 0, output = 0 }\n'
    Path("passhat-prices.toml").write_text(own)
    table = read_prices()
    assert (cost(table, "openai", "gpt-4o"), cost(table, "openai", "mine")) == (3.0, 0.0)
    assert cost(table, "openai", "gpt-4o-mini") == 0.75
    Path("other.toml").write_text('[openai]\n"gpt-4o" = { input = 10, output = 20 }\n')
    assert cost(read_prices("other.toml"), "openai", "gpt-4o") == 30.0


def test_what_went_through_a_cache_has_its_own_price() -> None:
    price = read_prices().price("anthropic", "claude-sonnet-4")
    assert price is not None
    million = 1_000_000
    count = TokenCount(3 * million, million, cached=million, written=million)
    assert price.of(count) == pytest.approx(3.00 + 0.30 + 3.75 + 15.00)
    assert price.at_most(million, million) == pytest.approx(3.75 + 15.00)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[openai", "is not TOML"),
        ("openai = 3", "should be a table of models"),
        ('[openai]\n"m" = 3', "is no price"),
        ('[openai]\n"m" = { input = 1 }', "lacks 'output'"),
        ('[openai]\n"m" = { input = 1, output = "2" }', "dollars per million, not '2'"),
        ('[openai]\n"m" = { input = 1, output = -2 }', "dollars per million, not -2"),
        ('[openai]\n"m" = { input = 1, output = nan }', "dollars per million, not nan"),
        ('[openai]\n"m" = { in = 1, output = 2, input = 1 }', "has no field in"),
    ],
)
def test_a_wrong_table_is_refused(text: str, said: str) -> None:
    Path("mine.toml").write_text(text)
    with pytest.raises(ReadError, match=r"mine\.toml") as caught:
        read_prices("mine.toml")
    assert said in str(caught.value)


def test_a_table_that_is_named_must_be_there() -> None:
    with pytest.raises(ReadError, match=r"nowhere\.toml"):
        read_prices("nowhere.toml")


def test_models_that_are_in_no_table_have_the_published_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = read_prices()
    price = table.price("gemini", "gemini-2.5-pro")
    assert price is not None
    assert (price.input, price.output) == (1.25, 10.0)
    assert price.source.startswith("genai-prices ")
    assert table.price("openai", "no-such-model-at-all") is None
    (tmp_path / "passhat-prices.toml").write_text(
        '[gemini]\n"gemini-2.5-pro" = { input = 1, output = 2 }'
    )
    own = read_prices().price("gemini", "gemini-2.5-pro")
    assert own is not None
    assert (own.input, own.source) == (1.0, "passhat-prices.toml")


def test_a_report_with_a_cost_names_the_prices_and_their_date(
    questions: Path, serve: Any, answer: Any, passhat: Any
) -> None:
    del questions
    with serve(lambda _: answer("yes")) as (base, _):
        for model in ("gpt-4.1-mini", "m"):
            words = ("-a", f"openai:{model}@{base}", "-s", "jsonl:tasks.jsonl", "-n", 1)
            assert passhat("run", *words, "--task", "t1", "--store", "s.db").code == 0
    own = read_prices(None).price("openai", "gpt-4.1-mini")
    assert own is not None
    full = " ".join(passhat("report", "s.db", "--full").out.split())
    assert full.count(f"cost at the prices of {own.source}") == 1  # not of the model without one
    assert read_prices(None).as_of in own.source
    passhat("report", "s.db", "-o", "report.html")
    assert f"cost at the prices of {own.source}" in Path("report.html").read_text()
