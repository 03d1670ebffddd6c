"""Pieces of logs: JSON split into its parts without decoding; numbers, times, settings, errors.

A whole document is decoded in one go when it is sound. When it is not, one broken record must not
take the others with it: the list that holds them is found, cut into elements, and each is decoded
for itself.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import msgspec

from passhat.errors import InvalidValue, shorten
from passhat.readers.wide_tables import distinct_cells, is_model_name, reward_or_none
from passhat.stats.outcomes.cells import is_empty
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import Chunk
from passhat.stats.outcomes.rewards import RewardWords
from passhat.suites.base import EXPECTED, GOT
from passhat.suites.tool_calls import TOOL_ERROR, Unreadable, read_call, write_call

_ROLES = {"assistant": "agent", "user": "user", "system": "system", "tool": "tool"}
_ERRORS = (TOOL_ERROR, "Error:", "Error ")
"""How results of tools begin that did nothing; the second form is tau-bench's."""
_ATTACHMENT = "attachment://"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def conversation_text(entries: Iterable[tuple[str, str]]) -> str:
    """A conversation as the text of one column; empty where there is none."""
    pairs = list(entries)
    return msgspec.json.encode(pairs).decode() if pairs else ""


def read_conversation(text: str) -> list[tuple[str, str]]:
    """The (role, text) pairs of such a column."""
    return msgspec.json.decode(text, type=list[tuple[str, str]]) if text else []


def with_answers(
    entries: Iterable[tuple[str, str]], answer: object, expected: object
) -> Iterator[tuple[str, str]]:
    """The entries, the answer where there are none, and the expected answer at the end."""
    has_entries = False
    for entry in entries:
        has_entries = True
        yield entry
    if not has_entries and isinstance(answer, str):
        yield "agent", answer
    if isinstance(expected, list) and len(expected) == 1:
        expected = expected[0]
    if expected not in (None, "", [], {}):
        yield EXPECTED, expected if isinstance(expected, str) else _json_text(expected)


def action_entries(
    entries: Iterable[tuple[str, str]], actions: object, arguments: str
) -> Iterator[tuple[str, str]]:
    """The entries, then the expected actions and the agent's own calls of the same tools.

    ``arguments`` is the key under which an action has its arguments. Other tools look things up,
    and how often is up to the agent; a call that returned an error changed nothing.
    """
    actions = [action for action in _as_list(actions) if isinstance(action, dict)]
    wanted = [(str(action.get("name")), action.get(arguments) or {}) for action in actions]
    names = {name for name, _ in wanted}
    calls: list[tuple[str, object]] = []
    is_last_a_call = False
    for role, text in entries:
        yield role, text
        if role == "tool" and is_last_a_call and text.startswith(_ERRORS):
            calls.pop()
        is_last_a_call = False
        if wanted and role == "agent":
            with suppress(Unreadable):
                call = read_call(text)
                if is_last_a_call := call.name in names:
                    calls.append((call.name, call.arguments))
    if wanted:
        yield EXPECTED, _number_calls(wanted)
        yield GOT, _number_calls(calls)


def _number_calls(calls: Iterable[tuple[str, object]]) -> str:
    """Calls by the name of their tool, so that they are compared argument by argument."""
    counts: Counter[str] = Counter()
    numbered = {}
    for name, arguments in calls:
        counts[name] += 1
        numbered[name if counts[name] == 1 else f"{name} {counts[name]}"] = arguments
    return _json_text(numbered)


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def transcript_entries(
    messages: object, attachments: Mapping[str, Any] = _NOTHING
) -> Iterator[tuple[str, str]]:
    """(role, text) of messages as OpenAI, inspect, tau-bench and tau2 write them.

    Every tool call of a message is an entry of its own. Tools of a simulated user (tau2's
    telecom) are not the agent's, and are left out.
    """
    for message in _as_list(messages):
        if isinstance(message, dict):
            yield from _entries(message, attachments)


def _entries(
    message: Mapping[str, Any], attachments: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    role = _ROLES.get(str(message.get("role")), "other")
    text = message_text(message.get("content"), attachments)
    if role == "tool":
        if message.get("requestor") == "user":
            role = "other"
        elif error := message.get("error"):
            words = error.get("message") if isinstance(error, dict) else None
            text = f"{TOOL_ERROR}{text or words or ''}"
    calls = list(_calls(message)) if role == "agent" else []
    if text or not calls:
        yield role, text
    for name, arguments in calls:
        yield role, write_call(name, arguments)


def _calls(message: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, object]]]:
    calls = message.get("tool_calls")
    old = message.get("function_call")
    for call in [*(calls if isinstance(calls, list) else []), *([old] if old else [])]:
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        body = function if isinstance(function, dict) else call
        name = function if isinstance(function, str) else body.get("name")
        yield str(name), _arguments(body.get("arguments"))


def _arguments(value: object) -> Mapping[str, object]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {"text": value}
    return value if isinstance(value, dict) else {}


def message_text(content: object, attachments: Mapping[str, Any] = _NOTHING) -> str:
    """The text of a message: a string, or parts; inspect keeps long ones beside the sample."""
    if isinstance(content, str):
        if content.startswith(_ATTACHMENT):
            return str(attachments.get(content.removeprefix(_ATTACHMENT), content))
        return content
    return "\n".join(_part_texts(content if isinstance(content, list) else (), attachments))


def _part_texts(parts: Iterable[object], attachments: Mapping[str, Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, dict) and part.get("type") == "text":
            yield message_text(part.get("text"), attachments)
        else:
            yield f"[{part.get('type') if isinstance(part, dict) else None}]"


LONGEST_DETAIL = 120
"""Characters that are kept of a source's own words about an attempt."""


def number_or_none(cell: object) -> float | None:
    """A finite number, or None: null stays null and nonsense is not a measure."""
    if cell is None or isinstance(cell, bool):
        return None
    if type(cell) is float and math.isfinite(cell):  # nearly always, and quick
        return cell
    try:
        number = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def scalars(settings: object, *left_out: str) -> dict[str, str | int | float | bool]:
    """The decoding settings of a log that have a plain value."""
    if not isinstance(settings, Mapping):
        return {}
    return {
        str(key): value
        for key, value in settings.items()
        if isinstance(value, str | int | float | bool) and key not in left_out
    }


_REASONS = (
    ("rate_limit", ("rate limit", "ratelimit", "rate_limit", "429", "quota", "overloaded")),
    ("sandbox_error", ("sandbox", "docker", "container")),
    ("judge_error", ("judge", "grader", "scorer", "verifier")),
    ("stopped", ("cancelled", "canceled", "keyboardinterrupt")),
)


def why_missing(message: object) -> str:
    """A missing reason and the message itself, from the error that left an attempt unscored."""
    text = " ".join(str(message).split())[:LONGEST_DETAIL]
    lower = text.lower()
    for reason, marks in _REASONS:
        if any(mark in lower for mark in marks):
            return f"{reason}: {text}"
    return f"infrastructure: {text}"


def error_message(error: object) -> object:
    """The message of an error that a log writes as an object, or the error itself."""
    return error.get("message", error) if isinstance(error, dict) else error


def as_dict(value: object) -> dict[Any, Any]:
    """The value, if it is an object of JSON; anything else is empty."""
    return value if isinstance(value, dict) else {}


def numbers_in(cells: Mapping[str, object]) -> dict[str, float]:
    """The entries that are finite numbers."""
    return {
        name: number for name, cell in cells.items() if (number := number_or_none(cell)) is not None
    }


def sum_numbers(cells: Iterable[object]) -> float | None:
    """The sum of the cells that are numbers; ``None`` when none is."""
    numbers = [number for cell in cells if (number := number_or_none(cell)) is not None]
    return sum(numbers) if numbers else None


def seconds_between(start: object, end: object) -> float | None:
    """The seconds between two times in ISO 8601."""
    try:
        first, last = (datetime.fromisoformat(str(at)) for at in (start, end))
        return (last - first).total_seconds()
    except (TypeError, ValueError):
        return None


def utc_text(at: object) -> str:
    """A time in ISO 8601 as one of UTC, so that texts are in the order of time; else empty.

    A time without a zone is taken as UTC.

    Examples
    --------
    >>> utc_text("2026-03-09T19:00:00-08:00")
    '2026-03-10T03:00:00+00:00'
    """
    try:
        moment = datetime.fromisoformat(str(at))
    except ValueError:
        return ""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


# -- the parts of a JSON text ------------------------------------------------------------------

Bytes = bytes | bytearray

# A string, or one sign of structure. A lone quote is a string that never ends.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)
_COLON = re.compile(rb"\s*:\s*")
_SPACE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Part:
    """An element of a list, or an entry of an object; ``complete`` unless the file ends in it."""

    key: str
    content: bytes
    complete: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """The outermost bracket of a JSON text and the keys of its first object."""

    opens: str
    keys: frozenset[str]


def outline(head: bytes) -> Outline:
    """The keys of the first object, as far as the head of a file shows them."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE)
    opens = text[:1].decode("latin-1")
    if opens not in ("{", "["):
        return Outline("", frozenset())
    start = text.find(b"{")
    if start < 0 or text[1:start].strip(_SPACE) not in (b"",):
        return Outline(opens, frozenset())
    return Outline(opens, frozenset(key for key, _ in _keys(text, start)))


def find_container(data: Bytes, path: Sequence[str]) -> int | None:
    """Where the list or object at a path of keys opens, or ``None``."""
    at = _first_sign(data, 0)
    for name in path:
        if at is None or data[at : at + 1] != b"{":
            return None
        at = next((value for key, value in _keys(data, at) if key == name), None)
    return at if at is not None and data[at : at + 1] in (b"{", b"[") else None


def parts(data: Bytes, opening: int) -> Iterator[Part]:
    """The elements of the list or object that opens here; the last may be cut off."""
    has_keys = data[opening : opening + 1] == b"{"
    depth, start, stop = 1, opening + 1, len(data)
    for token in _TOKEN.finditer(data, opening + 1):
        sign = token[0]
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                stop = token.start()
                break
        elif sign == b"," and depth == 1:
            yield _part(data[start : token.start()], has_keys, complete=True)
            start = token.end()
        elif sign == b'"':
            break
    rest = data[start:stop]
    if rest.strip(_SPACE):
        yield _part(rest, has_keys, complete=depth == 0)


def container_end(data: Bytes, opening: int) -> int | None:
    """Just past the sign that closes a container, or ``None`` when the file ends before."""
    depth = 0
    for token in _TOKEN.finditer(data, opening):
        sign = token[0]
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return token.end()
        elif sign == b'"':
            return None
    return None


def _part(text: Bytes, keyed: bool, *, complete: bool) -> Part:
    content = bytes(text.strip(_SPACE))
    if not keyed:
        return Part("", content, complete)
    match = _TOKEN.match(content)
    colon = _COLON.match(content, match.end()) if match else None
    if match is None or colon is None:
        return Part("", content, False)
    return Part(_text(match[0]), content[colon.end() :], complete)


def _keys(data: Bytes, opening: int) -> Iterator[tuple[str, int]]:
    """The keys of one object, each with the place of its value."""
    depth = 1
    for token in _TOKEN.finditer(data, opening + 1):
        sign = token[0]
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return
        elif depth == 1 and len(sign) > 1 and (colon := _COLON.match(data, token.end())):
            yield _text(sign), colon.end()
        elif sign == b'"':
            return


def _first_sign(data: Bytes, start: int) -> int | None:
    while start < len(data) and data[start : start + 1] in (b" ", b"\t", b"\r", b"\n", b"\xef"):
        start += 3 if data[start : start + 1] == b"\xef" else 1
    return start if start < len(data) else None


def _text(quoted: bytes) -> str:
    """A key as text; escapes are rare in keys and are decoded only when there are any."""
    if b"\\" in quoted:
        import msgspec

        try:
            return str(msgspec.json.decode(quoted))
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
    return quoted[1:-1].decode("utf-8", "replace")


# -- several verdicts in a cell ------------------------------------------------------------

_LIST = re.compile(r"\s*\[.*\]\s*", re.DOTALL)
_SIGNS = re.compile(r"[✓✔✅✗✘✖❌🟢🔴🟩🟥👍👎]\ufe0f?")
_SIGN_OR_NONE = re.compile(rf"{_SIGNS.pattern}|[-–—?]")
_LETTERS = re.compile(r"(?=.*[A-Z])(?:[PF.?_-]{2,}|[TF.?_-]{2,}|[YN.?_-]{2,}|[CI.?_-]{2,})")
_LONGEST_LETTERS = 500
_LETTER_WORDS = {"P": "pass", "T": "true", "Y": "yes", "C": "correct"}


_DASHED = re.compile(r"[pf](?:-[pf])+", re.IGNORECASE)


def split_list(cell: object) -> list[object] | None:
    """The verdicts in a cell such as [1, 0, 1], 1;0;1, PFP or ✅❌; ``None`` for any other."""
    if isinstance(cell, list):
        return None if any(isinstance(part, dict | list) for part in cell) else cell
    if not isinstance(cell, str):
        return None
    text = cell.strip()
    if _LIST.fullmatch(text):
        parts = text[1:-1].split(",")
        return [word.strip(" \t\"'") for word in parts if word.strip()]
    text = text.replace("-", ",") if _DASHED.fullmatch(text) else text
    letters = re.sub(r"[\s,;|/]", "", text) if len(text) <= _LONGEST_LETTERS else ""
    if _LETTERS.fullmatch(letters):
        return [_LETTER_WORDS.get(s, "fail" if s.isalpha() else "") for s in letters]
    signs = _SIGNS.findall(text)
    marks = re.sub(r"[\s,;|]", "", _SIGNS.sub("", text))
    if len(signs) > 1 and not marks.strip("-–—?"):  # ✓ - ✗: one without a verdict
        return [sign if _SIGNS.match(sign) else "" for sign in _SIGN_OR_NONE.findall(text)]
    words = RewardWords()
    tokens = text.split()
    if reward_or_none(words, text) is not None and len(set(tokens)) == len(tokens):
        return None  # one verdict: ❌ FAIL
    for sign in (";", "|", ",", " ", "/"):
        parts = [part.strip() for part in text.split(sign)]
        if len(parts) > 1 and not (sign in ",/" and len(parts) == 2):
            rewards = [reward_or_none(words, part) for part in parts]
            if all(reward is not None and reward in (0, 1) for reward in rewards):
                return list(parts)
    return None


def are_bits(cells: Sequence[object]) -> bool:
    """Whether cells are texts such as 0110, of one length: one that begins with 0 is no number."""
    texts = [cell for cell in cells if isinstance(cell, str) and re.fullmatch("[01]{2,}", cell)]
    return (
        len(texts) == len(cells) > 1
        and len(set(map(len, texts))) == 1
        and any(text.startswith("0") for text in texts)
    )


def is_verdict_list(cell: object) -> bool:
    """Whether a cell holds several verdicts."""
    words = RewardWords()
    rewards = [reward_or_none(words, part) for part in split_list(cell) or ()]
    return bool(rewards) and all(r is not None and (r != r or 0 <= r <= 1) for r in rewards)


_LOOKED_AT = 500
_RATE_OF = re.compile(
    r"\s*(\d{1,3}(?:[.,]\d{1,4})?)\s*%\s*[(\[]\s*(?:n\s*=\s*)?(?:(\d{1,6})\s*/\s*)?(\d{1,6})"
    r"\s*(?:runs|attempts|trials|tries|samples)?\s*[)\]]\s*",
    re.IGNORECASE,
)


def as_fraction(cell: object) -> str | None:
    """Passes of attempts for cells such as PPF, "66.7% (n=3)" and "67% (2/3)"; else ``None``."""
    if not isinstance(cell, str) or len(cell) > _LONGEST_LETTERS:
        return None
    if match := _RATE_OF.fullmatch(cell):
        total, share = int(match[3]), float(match[1].replace(",", ".")) / 100
        passes = int(match[2]) if match[2] else round(share * total)
        step = 0.5 * 10.0 ** -(len(match[1].replace(",", ".").partition(".")[2]) + 2)
        is_near = total > 0 and abs(passes / total - share) <= step * 1.001
        return f"{passes}/{total}" if is_near else None
    words = RewardWords()
    rewards = [reward_or_none(words, part) for part in split_list(cell) or ()]
    is_list = len(rewards) > 1 and set(rewards) <= {0.0, 1.0}
    return f"{rewards.count(1.0)}/{len(rewards)}" if is_list else None


Rewrite = Callable[[Chunk, Sequence[int]], tuple[Chunk, Sequence[int]]]
"""Takes the rows of a chunk and the line of each, and returns them as plain columns."""


def find_listed(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """Columns for each model whose cells hold several attempts: PPF, "66.7% (n=3)"."""
    if {"success", "n", "c"} & (ColumnMap.resolve(chunk).meaning.keys() - stated.keys()):
        return None
    cells = {name: distinct_cells(chunk[name])[:_LOOKED_AT] for name in chunk}
    rates = [n for n, each in cells.items() if each and all(map(_is_rate, each))]
    lists = [n for n, each in cells.items() if each and all(map(_attempts_in, each))]
    if len(lists) < 2 or "success" in stated or set(lists) & set(stated.values()):
        lists = []  # a column of lists is read with the order of its attempts
    rewrite = _part_lists(chunk, lists) if any(map(is_model_name, lists)) else None
    if rewrite is not None:
        return rewrite, f"cells such as {shorten(cells[lists[0]][0])} list the attempts"
    names = [n for n in (*rates, *lists) if None not in map(as_fraction, cells[n])]
    if not names:
        return None

    def count(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        rest = {name: chunk[name] for name in chunk}
        for name in names:
            rest[name] = [as_fraction(cell) or cell for cell in chunk[name]]
        return rest, lines

    first = cells[names[0]][0]
    return count, f"cells such as {shorten(first)} are passes of attempts: {as_fraction(first)}"


def _is_rate(cell: object) -> bool:
    return len(str(cell)) < _LONGEST_LETTERS and _RATE_OF.fullmatch(str(cell)) is not None


def _attempts_in(cell: object) -> list[object]:
    """The attempts in a text such as PPF; none for a single one, or for another text."""
    parts = split_list(cell) if isinstance(cell, str) and len(cell) <= _LONGEST_LETTERS else None
    words = RewardWords()
    rewards = [reward_or_none(words, part) for part in parts or ()]
    is_list = len(rewards) > 1 and all(r is None or r != r or r in (0, 1) for r in rewards)
    return parts or [] if is_list and {0.0, 1.0} & set(rewards) else []


def _part_lists(chunk: Chunk, names: Sequence[str]) -> Rewrite | None:
    """Turn each column of lists into a column for each attempt: ``gpt-5 run 1``.

    ``None`` for lists of several lengths: an attempt that was not planned is not missing.
    """
    lengths = {name: {len(_attempts_in(c)) for c in distinct_cells(chunk[name])} for name in names}
    if any(len(found) > 1 for found in lengths.values()):
        return None
    size = {name: min(found) for name, found in lengths.items()}

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        columns: dict[str, Sequence[object]] = {}
        for name in chunk:
            if name not in size:
                columns[name] = chunk[name]
                continue
            blank: list[object] = [None] * size[name]
            rows = [blank if is_empty(cell) else _attempts_in(cell) for cell in chunk[name]]
            if any(len(row) != size[name] for row in rows):
                raise InvalidValue(
                    f"column {name!r} lists {size[name]} attempts in its first rows, and something "
                    "else in later ones.",
                    hint=f"If it is the only one that counts: --map success={name}",
                )
            for place in range(size[name]):
                columns[f"{name} run {place + 1}"] = [row[place] for row in rows]
        return columns, lines

    return rewrite


def are_consecutive(labels: Sequence[str]) -> bool:
    """Whether texts are whole numbers without a gap, in any order."""
    if not labels or not all(label.isdigit() for label in labels):
        return False
    numbers = sorted(map(int, labels))
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))
