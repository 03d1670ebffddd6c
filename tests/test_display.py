"""Numbers, names and amounts as people read them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from passhat._display import (
    counted,
    csv_cell,
    duration,
    duration_range,
    figure,
    html_table,
    money,
    money_range,
    number,
    percent,
    percent_digits,
    percent_interval,
    percent_range,
    some,
    visible,
)

shares = st.floats(0, 1)


@given(shares, st.integers(0, 2))
@example(0.9999999, 0)
@example(1e-9, 1)
@example(0.005, 0)
def test_only_none_and_all_read_as_0_and_100(share: float, digits: int) -> None:
    text = percent(share, digits)
    if share in (0.0, 1.0):
        assert float(text.rstrip("%")) == 100 * share
    elif text.startswith(("under", "over")):
        assert min(share, 1 - share) < 1e-4
    else:
        shown = float(text.rstrip("%"))
        assert 0 < shown < 100
        # Digits are added, never taken away: what is shown is within half of its last digit.
        decimals = len(text.rstrip("%").partition(".")[2])
        assert decimals >= digits
        assert abs(shown - 100 * share) <= 0.5 * 10**-decimals + 1e-9


@given(shares, shares)
def test_a_range_holds_both_ends_and_one_where_they_read_alike(one: float, other: float) -> None:
    low, high = sorted((one, other))
    text = percent_interval(low, high)
    ends = text.split(" to ")
    assert len(ends) in (1, 2)
    assert ends[-1].endswith("%")
    if len(ends) == 2:
        assert ends[0] != ends[1]
        digits = percent_digits(low, high)
        assert percent(low, digits).rstrip("%") == ends[0].rstrip("%")
        assert percent(high, digits) == ends[1]
    else:
        assert high - low < 0.01


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.49, 0.77, "49 to 77%"),
        (0.512, 0.539, "51.2 to 53.9%"),
        (0.5121, 0.5139, "51.21 to 51.39%"),
        (0.5, 0.5, "50%"),
        (0.0, 0.2, "0 to 20%"),
        (0.00001, 0.3, "under 0.01% to 30%"),
        (None, 0.3, "–"),
        (0.3, None, "–"),
    ],
)
def test_narrow_intervals_get_the_digits_that_tell_their_ends_apart(
    low: float | None, high: float | None, text: str
) -> None:
    assert percent_interval(low, high) == text


def test_another_unit_and_a_missing_share() -> None:
    assert percent_range(0.1, 0.2, 0, " points") == "10 to 20 points"
    assert percent_range(0.1, 0.1, 0, " points") == "10 points"
    assert percent(None) == "–"


@given(st.floats(-2, 2), st.integers(1, 4))
@example(-1e-17, 3)
@example(-0.0004, 3)
def test_zero_has_no_sign(value: float, digits: int) -> None:
    text = number(value, digits)
    assert float(text) == pytest.approx(value, abs=0.5 * 10**-digits + 1e-12)
    assert len(text.partition(".")[2]) == digits
    assert text.startswith("-") == (float(text) < 0)


@given(st.floats(1e-4, 1e9), st.integers(2, 5))
@example(999.6, 3)
@example(12345.6, 4)
def test_an_amount_is_never_in_powers_of_ten(value: float, digits: int) -> None:
    """A gate on tokens read "tokens is 1.235e+04"."""
    text = figure(value, digits)
    assert "e" not in text
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.5 * 10 ** (1 - digits))
    assert figure(None, digits) == "–"
    assert figure(-value, digits) == f"-{text}"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks"), (1200, "1,200 tasks"), (10**6, "1,000,000")],
)
def test_counts_have_their_noun_in_the_right_number(count: int, text: str) -> None:
    assert counted(count, "task").startswith(text)
    assert counted(count, "entry", "entries").endswith("entry" if count == 1 else "entries")


@given(st.lists(st.text("ab", min_size=1, max_size=2), max_size=12), st.integers(1, 6))
def test_some_names_and_how_many_more(names: list[str], most: int) -> None:
    text = some(names, most)
    listed, _, more = text.partition(" and ")
    assert [name for name in listed.split(", ") if name] == names[:most]
    assert (int(more.split()[0]) if more else 0) == max(0, len(names) - most)


_UNITS = {"s": 1, "min": 60, "h": 3600}


def _seconds(text: str) -> float:
    parts = re.findall(r"([\d.,]+) (s|min|h)\b", text)
    assert " ".join(f"{amount} {unit}" for amount, unit in parts) == text
    return sum(float(amount.replace(",", "")) * _UNITS[unit] for amount, unit in parts)


@given(st.floats(0, 400_000))
@example(9.94)
@example(9.96)
@example(59.5)
@example(59.4)
@example(3599.4)
@example(3599.6)
@example(7199.9)
def test_a_duration_reads_back_to_within_its_last_unit(seconds: float) -> None:
    text = duration(seconds)
    error = abs(_seconds(text) - seconds)
    assert error <= (0.0501 if "." in text else 60 if "h" in text else 0.501)
    assert "60 s" not in text
    assert "60 min" not in text
    assert "10.0 s" not in text


@given(st.floats(0, 10_000), st.floats(0, 10_000))
def test_longer_never_reads_shorter(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert _seconds(duration(low)) <= _seconds(duration(high))
    both = duration_range(low, high)
    assert both == duration(low) or both == f"{duration(low)} to {duration(high)}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "$0"),
        (0.00005, "under $0.0001"),
        (0.0001, "$0.0001"),
        (0.0123, "$0.012"),
        (0.5, "$0.5"),
        (0.994, "$0.99"),
        (0.996, "$1.00"),
        (1, "$1.00"),
        (1234.567, "$1,234.57"),
    ],
)
def test_money(value: float, text: str) -> None:
    assert money(value) == text


def test_a_range_of_money_is_one_amount_where_both_read_alike() -> None:
    assert money_range(1.001, 1.002) == "$1.00"
    assert money_range(0.5, 2) == "$0.5 to $2.00"


@given(st.text("aé \x1b\x00\x9b\n\u2028\u202e\u2066", max_size=12))
@example("\x1b[2Jevil")
@example("a\u202egnp.exe")
def test_no_name_can_move_the_cursor(name: str) -> None:
    shown = visible(name)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", shown)
    if name.isprintable():
        assert shown == name


def test_names_that_differ_in_a_control_character_stay_apart() -> None:
    assert visible("a\x07b") == "a\\x07b" != visible("a\x08b")
    assert visible("line\nbreak") == "line\\nbreak"


@given(st.text("=+-@a1\t\r\n\x1b ", max_size=6))
@example("=1+1")
@example("@SUM(A1)")
@example("\t=1")
def test_no_cell_is_a_formula(text: str) -> None:
    cell = csv_cell(text)
    assert isinstance(cell, str)
    assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r")
    assert csv_cell(-3) == -3  # numbers stay numbers
    assert csv_cell(None) is None


class _Cells(HTMLParser):
    """The text of every cell, and the tags that were met."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        self.tags.append(tag)
        if tag in ("td", "th", "caption", "p"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        self.cells[-1] += data


@given(
    st.lists(st.text("<>&'\"ab", max_size=5), min_size=2, max_size=2), st.text("<b>&", max_size=6)
)
def test_a_notebook_table_shows_any_text_as_text(row: list[str], note: str) -> None:
    page = _Cells()
    page.feed(html_table("<caption>", ("a", "b"), [row], note))
    page.close()
    assert page.cells == ["<caption>", "a", "b", *row, *([note] if note else [])]
    assert set(page.tags) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
