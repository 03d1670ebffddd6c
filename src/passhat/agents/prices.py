"""Prices of models: the user's table, a small table that ships, then genai-prices."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from passhat.errors import ReadError

OWN_FILE = "passhat-prices.toml"
"""The user's own table, looked for in the folder that passhat is called in."""

_FIELDS = ("input", "output", "cached_input", "written_input")
_DATED = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$")
_MILLION = 1_000_000
_MOST = 10**12
"""A larger number in an answer is a fault of the server."""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The tokens of one call.

    ``input`` is all of them; some may have been read from a cache or written to one. ``reasoning``
    is the part of ``output`` that was thinking, where the provider reports it.
    """

    input: int
    output: int
    cached: int = 0
    written: int = 0
    reasoning: int | None = None

    @property
    def all(self) -> int:
        return self.input + self.output


def read_count(value: object) -> int | None:
    """Return a number of tokens; ``None`` for anything else, and for what no call can use."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        return None
    return int(value)


def read_cost(usage: object) -> float | None:
    """Dollars that a provider reports with its usage: a number, or Perplexity's object."""
    cost = usage.get("cost") if isinstance(usage, Mapping) else None
    cost = cost.get("total_cost") if isinstance(cost, Mapping) else cost
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < _MOST:
        return None
    return float(cost)


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens; input read from or written to a cache may cost otherwise."""

    input: float
    output: float
    cached_input: float | None = None
    written_input: float | None = None
    source: str = ""
    """Where the price comes from, with the date or version of that data."""

    def of(self, count: TokenCount) -> float:
        """Cost of a call, in dollars.

        Examples
        --------
        >>> Price(input=2.5, output=10, cached_input=1.25).of(TokenCount(1000, 100, cached=400))
        0.003
        """
        cached = self.input if self.cached_input is None else self.cached_input
        write_price = self.input if self.written_input is None else self.written_input
        plain = count.input - count.cached - count.written
        input_cost = plain * self.input + count.cached * cached + count.written * write_price
        return (input_cost + count.output * self.output) / _MILLION

    def at_most(self, inputs: int, outputs: int) -> float:
        """Upper bound of a call's cost: every input token at the most expensive rate."""
        dearest = max(self.input, self.cached_input or 0.0, self.written_input or 0.0)
        return (inputs * dearest + outputs * self.output) / _MILLION


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by provider and model. A model that is not in it has no price."""

    prices: Mapping[tuple[str, str], Price]
    as_of: str = ""
    with_published: bool = False
    """Whether models that are not in the table are looked up in ``genai-prices``."""

    def price(self, provider: str, model: str) -> Price | None:
        """The price of a model; a date at the end of its name makes no difference."""
        price = self.prices.get((provider, model))
        price = price or self.prices.get((provider, _DATED.sub("", model)))
        return price or (_published_price(provider, model) if self.with_published else None)

    def price_of_model(self, model: str) -> Price | None:
        """The price of a model without its provider: ``gpt-4o`` or ``openai/gpt-4o``."""
        provider, sign, rest = model.partition("/")
        if sign and (price := self.price(provider, rest)):
            return price
        name = rest if sign else model
        return next(
            (price for provider in _providers(self) if (price := self.price(provider, name))), None
        )


def _providers(table: PriceTable) -> list[str]:
    return list(dict.fromkeys(provider for provider, _ in table.prices))


_PUBLISHERS = {
    "openai-responses": "openai",
    "gemini": "google",
    "azure": "azure",
    "bedrock": "aws",
    "vertex": "google",
    "openrouter": "openrouter",
}
"""Our kinds of agents by the names that genai-prices uses, where they differ."""


@cache
def _published_price(provider: str, model: str) -> Price | None:
    """The price that ``genai-prices`` has for a model; of prices by size, the usual one."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    publisher = _PUBLISHERS.get(provider, provider)
    try:
        prices = calc_price(Usage(input_tokens=1), model_ref=model, provider_id=publisher)
    except (LookupError, ValueError):
        return None
    listing = prices.model_price

    def dollars(price: Any) -> float | None:
        return None if price is None else float(getattr(price, "base", price))

    inputs, outputs = dollars(listing.input_mtok), dollars(listing.output_mtok)
    if inputs is None or outputs is None:
        return None
    return Price(
        inputs,
        outputs,
        dollars(listing.cache_read_mtok),
        dollars(listing.cache_write_mtok),
        f"genai-prices {version('genai-prices')}",
    )


def read_prices(own: str | None = None) -> PriceTable:
    """The table that ships, with the user's entries over it.

    ``own`` is the user's table; else ``passhat-prices.toml`` in the current folder, if it is there.
    """
    text = (files(__package__) / "prices.toml").read_text(encoding="utf-8")
    table = _read(text, "prices.toml")
    path = Path(own or OWN_FILE)
    if own is None and not path.is_file():
        return PriceTable(table.prices, table.as_of, with_published=True)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError(f"cannot be read as a price table ({error}).", source=str(path)) from None
    prices = {**table.prices, **_read(text, str(path)).prices}
    return PriceTable(prices, table.as_of, with_published=True)


def _read(text: str, source: str) -> PriceTable:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ReadError(f"is not TOML ({error}).", source=source) from None
    as_of = str(data.pop("as_of", ""))
    prices = {}
    for provider, models in data.items():
        if not isinstance(models, dict):
            raise _wrong(source, f"[{provider}] should be a table of models")
        for model, entry in models.items():
            price = _price(entry, source, f'{provider} "{model}"')
            prices[provider, model] = replace(price, source=f"{source} {as_of}".rstrip())
    return PriceTable(prices, as_of)


def _price(entry: object, source: str, where: str) -> Price:
    if not isinstance(entry, dict):
        raise _wrong(source, f"{where} is no price")
    if unknown := set(entry) - set(_FIELDS):
        raise _wrong(source, f"{where} has no field {', '.join(sorted(unknown))}")
    for name in ("input", "output"):
        if name not in entry:
            raise _wrong(source, f"{where} lacks {name!r}")
    for name, value in entry.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < _MILLION:
            raise _wrong(source, f"{where}: {name} should be dollars per million, not {value!r}")
    numbers = {name: float(value) for name, value in entry.items()}
    return Price(
        numbers["input"],
        numbers["output"],
        numbers.get("cached_input"),
        numbers.get("written_input"),
    )


def _wrong(source: str, what: str) -> ReadError:
    return ReadError(
        f"{what}.",
        source=source,
        hint='A price is dollars per million tokens: [openai] "my-model" = '
        "{ input = 0.5, output = 1.5 }",
    )
