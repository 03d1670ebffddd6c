"""Markdown forms, read by an independent CommonMark parser: names stay text, tables stay whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from itertools import pairwise

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from passhat import Outcomes, Run, compare, gate
from passhat.reporting.audit import Audited, audit_as_markdown
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.documents.report import report_document
from passhat.reporting.documents.verdicts import comparison_document, gate_document
from passhat.reporting.markdown import code, escape, render_markdown, table

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a|b||c",
    "`rm -rf`",
    "``two`` and ```three```",
    "*bold* _it_ __b__ ~~gone~~",
    "[link](http://x.invalid) ![i](y)",
    "# heading",
    "> quote",
    "\\ back \\| slash",
    "&lt;b&gt; &amp; &#60; &copy;",
    "two\nlines",
    "three\r\nmore\rlines\u2028here",
    "ünï 漢字 \U0001f600",
    "x" * 500,
    "<!-- hidden",
    "trailing\\",
]


def _tokens(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(text)


def _flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flat(token.children or [])


def _text(token: Token) -> str:
    """The text a reader sees of an inline token."""
    return "".join(part.content for part in token.children or [])


def _one_line(name: str) -> str:
    return " ".join(name.replace("\r\n", "\n").splitlines())


def _cells(text: str) -> list[list[str]]:
    rows: list[list[str]] = []
    tokens = _tokens(text)
    for before, token in pairwise(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and before.type in ("td_open", "th_open"):
            rows[-1].append(_text(token))
    return rows


@pytest.mark.parametrize("name", HOSTILE)
def test_an_escaped_name_reads_as_itself(name: str) -> None:
    (inline,) = [token for token in _tokens(f"before {escape(name)}") if token.type == "inline"]
    assert {part.type for part in inline.children or []} <= {"text", "text_special"}
    assert _text(inline) == f"before {_one_line(name)}"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_at_the_start_of_a_line_opens_no_block(name: str) -> None:
    first = _tokens(escape(name))[0]
    assert first.type == "paragraph_open"


@pytest.mark.parametrize("name", [*HOSTILE, "`", "``", "a`", "`b"])
def test_a_code_span_holds_any_name(name: str) -> None:
    (inline,) = [token for token in _tokens(f"source {code(name)} end") if token.type == "inline"]
    (span,) = [part for part in inline.children or [] if part.type == "code_inline"]
    assert span.content == _one_line(name)
    assert _text(inline) == f"source {_one_line(name)} end"


def test_a_table_has_a_row_for_each_and_every_cell_is_its_text() -> None:
    rows = [(name, str(place)) for place, name in enumerate(HOSTILE)]
    text = "\n".join(table(("name", "place"), rows))
    assert _cells(text) == [
        ["name", "place"],
        *([_one_line(name), place] for name, place in rows),
    ]


def _named(names: list[str], *, agent: str = "agent", passes: int = 2) -> Run:
    n = [4] * len(names)
    outcomes = Outcomes.from_counts(n, [min(4, passes + i % 2) for i in range(len(n))], names)
    return Run(agent, agent, outcomes, source=f"/data/`{agent}`.csv")


def _markdown(run: Run, *metrics: str) -> str:
    report = build_report([run], ReportOptions(metrics=metrics, with_tasks=True))
    return render_markdown(report_document(report))


def _live_html(text: str) -> list[str]:
    return [t.content for t in _flat(_tokens(text)) if t.type in ("html_inline", "html_block")]


def test_a_report_on_hostile_names_has_no_markup_of_theirs() -> None:
    run = _named(HOSTILE, agent="<b>*a*</b> `x` | y")
    text = _markdown(run, "pass^1", "pass^2")
    tokens = list(_flat(_tokens(text)))
    assert _live_html(text) == []
    assert not [token for token in tokens if token.type in ("link_open", "image", "s_open")]
    heads = [t for before, t in pairwise(tokens) if before.tag == "h2"]
    assert unescape(_text(heads[0])) == "<b>*a*</b> `x` | y"
    listed = [row[0] for row in _cells(text) if len(row) == 4]
    assert [name for name in map(_one_line, HOSTILE) if name not in listed] == []
    assert run.source in [_text(token) for token in tokens if token.type == "inline"]


def test_comparisons_and_gates_on_hostile_names() -> None:
    old = _named(HOSTILE, agent="<i>old</i> | *1*", passes=0)
    new = _named(HOSTILE, agent="[new](x) `2`", passes=3)
    document = comparison_document(compare(old, new, "pass^2"))
    for text in (
        render_markdown(document),
        render_markdown(gate_document(gate(new, "pass^2 >= 0.5"))),
    ):
        tokens = list(_flat(_tokens(text)))
        assert _live_html(text) == []
        assert not [t for t in tokens if t.type in ("link_open", "image")]
        spans = [token.content for token in tokens if token.type == "code_inline"]
        assert all("●" in span for span in spans)  # a drawn change, and no name
    title = render_markdown(document).splitlines()[0]
    (inline,) = [token for token in _tokens(title) if token.type == "inline"]
    assert _text(inline) == "[new](x) `2` (B) against <i>old</i> | *1* (A)"


def test_the_numbers_of_the_table_are_those_of_the_data() -> None:
    """3 tasks, n = 2, c = 2, 1, 0: pass^1 = 1/2, pass^2 = 1/3, pass@2 = 2/3."""
    run = Run("a", "a", Outcomes.from_matrix([[1, 1], [1, 0], [0, 0]]))
    text = _markdown(run, "pass^1", "pass^2", "pass@2")
    rows: dict[str, list[str]] = {}
    for row in _cells(text):
        rows.setdefault(row[0], row)
    values = [rows["pass^1"][1], *rows["2"][1:3]]
    assert [value.split()[0] for value in values] == ["50%", "33%", "67%"]
    assert rows["pass^1"][2:4] == ["3", "6"]
    passed = [row[2] for row in _cells(text) if len(row) == 4 and " of " in row[2]]
    assert sorted(passed) == ["0 of 2", "1 of 2", "2 of 2"]


def test_missing_attempts_are_said_and_none_are_not() -> None:
    whole = Run("a", "a", Outcomes.from_counts([4, 4], [3, 2], ["x", "y"]))
    holes = replace(
        whole, outcomes=Outcomes.from_counts([4, 3], [3, 2], ["x", "y"], missing=[0, 1])
    )
    without, with_holes = (_markdown(run, "rate") for run in (whole, holes))
    assert "Where a value is a range" not in without
    assert "Where a value is a range" in with_holes
    # Counted as failed 5 of 8 passed; had the missing one passed, 6 of 8.
    row = next(row for row in _cells(with_holes) if row[0] == "rate")
    assert row[1].startswith("62 to 75% (")


def test_an_audit_names_attempts_whole() -> None:
    sample = [Audited(name, 1, True, "", "", "x = 1") for name in HOSTILE]
    text = audit_as_markdown(sample, len(sample), 0, None, "")
    spans = [token.content for token in _flat(_tokens(text)) if token.type == "code_inline"]
    assert spans == [f"{_one_line(name)}#1" for name in HOSTILE]
    assert len([token for token in _tokens(text) if token.type == "fence"]) == len(HOSTILE)
