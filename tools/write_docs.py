"""Write the generated parts of the documentation: the command reference and the report's picture.

make docs
"""

from __future__ import annotations

import enum
import inspect
import io
import itertools
import operator
import re
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

import passhat
from passhat._serialize import Plain
from passhat.cli.main import COMMANDS, cli
from passhat.cli.shared.commands import Setting
from passhat.readers import read
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.documents.report import report_document
from passhat.reporting.terminal import render_terminal

DOCS = Path(__file__).parent.parent / "docs"
PICTURE = DOCS / "images" / "report.svg"
WIDTH = 100


EXIT_CODES = """\
## Exit codes

A script wants to know how a command ended without reading what it printed. Every command uses the
same codes:

| code | meaning |
| --- | --- |
| 0 | done; for a gate: every rule is shown |
| 1 | a gate's rule is refuted by the data; a review or the doctor found something |
| 2 | the command or its input cannot be used as it is; the message says what to do |
| 3 | the data neither show nor refute a rule; a review found no claim, or left a part open |
| 4 | something is absent: planned attempts, part of a file, a judgement; the last line says what |
| 130 | stopped by Ctrl-C, SIGTERM or SIGHUP |

```console
$ passhat report nothing.csv; echo "exit code $?"
passhat: nothing.csv: there is no such file.
  Check the path or the glob.
exit code 2
```

In Python the codes are `passhat.cli.shared.exits.ExitCode`.
"""


def command_reference() -> str:
    """Every command with its help, as click prints it."""
    parts = [
        "# The command line",
        "",
        "Every command prints its own page with `--help`. This page is made from those by "
        "`make docs`.",
        "",
    ]
    for name in COMMANDS:
        context = click.Context(cli, info_name="passhat", **cli.context_settings)
        command = cli.get_command(context, name)
        if command is None:
            raise LookupError(name)
        parts += _help_of(command, name, context, "##")
    return "\n".join([*parts, EXIT_CODES])


def _help_of(command: click.Command, name: str, parent: click.Context, level: str) -> list[str]:
    """A command's page, and below it those of its sub-commands."""
    own = click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH)
    parts = [f"{level} {own.command_path}", "", "```text", command.get_help(own), "```", ""]
    settings = [param.line() for param in command.params if isinstance(param, Setting)]
    if settings:
        parts += [
            "Settings, given with `--set KEY=VALUE`:",
            "",
            "| key | meaning |",
            "| --- | --- |",
        ]
        parts += [
            f"| `{key}` | {meaning.replace('|', chr(92) + '|')} |" for key, meaning in settings
        ]
        parts.append("")
    for sub in command.list_commands(own) if isinstance(command, click.Group) else ():
        found = command.get_command(own, sub) if isinstance(command, click.Group) else None
        if found is not None:
            parts += _help_of(found, sub, own, f"{level}#")
    return parts


API_GROUPS = {
    "Run agents": ("run", "arun", "open_store"),
    "Read logs and tables": ("read",),
    "Report": ("report", "Report", "why", "Explanation"),
    "Estimate": (
        *("estimate", "estimate_all", "diagnose", "exact", "metric"),
        *("pass_at_k", "pass_hat_k", "g_pass_at_k", "Estimate", "Diagnosis", "Metric"),
    ),
    "Compare": ("compare", "compare_all", "Comparison", "Comparisons"),
    "Gate, plan, forecast": (
        *("gate", "GateResult", "plan_tasks", "plan_attempts", "allocate", "Plan"),
        *("forecast", "Forecast"),
    ),
    "Runs and outcomes": ("Run", "Outcomes", "Attempt", "Verdict", "Protocol", "Question"),
    "Write a plug-in": (
        *("Agent", "Session", "Usage", "Suite", "Episode", "Task", "Turn", "Judgement", "Reader"),
    ),
    "Errors": ("PasshatError",),
}

API_PROMISE = """\
Everything on this page can be imported from `passhat` and is stable: until version 1.0 a name or an
argument is removed only after one minor release in which it works and warns, and the changelog
says so; from 1.0 on only in a major release. Modules below `passhat` (such as `passhat.stats`) and
names with an underscore may change in any release. JSON output carries a schema name with a number,
such as `passhat.report/1`; the number changes when a key is removed or changes its meaning.

Values a person reads are rounded; attributes and JSON hold all digits.
"""


def api_reference() -> str:
    """Every public name with its signature and docstring."""
    listed = sorted(name for names in API_GROUPS.values() for name in names)
    public = sorted(set(passhat.__all__) - {"__version__"})
    if listed != public:
        raise LookupError(f"not on the page, or not public: {set(listed) ^ set(public)}")
    parts = ["# The Python API", "", "This page is made from docstrings by `make docs`.", ""]
    parts += [API_PROMISE]
    for group, names in API_GROUPS.items():
        parts += [f"## {group}", ""]
        for name in names:
            parts += _documented(name)
    return "\n".join(parts).rstrip() + "\n"


def _documented(name: str) -> list[str]:
    thing = getattr(passhat, name)
    parts = [f"### {name}", "", "```py", f"passhat.{name}{_signature(thing)}", "```", ""]
    parts += _markdown(inspect.getdoc(thing) or "")
    if inspect.isclass(thing):
        parts += _members(thing)
    return parts


def _signature(thing: object) -> str:
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, enum.Enum)):
        return ""
    if inspect.isclass(thing) and (inspect.isabstract(thing) or issubclass(thing, Exception)):
        return ""
    text = str(inspect.signature(thing)).replace("'", "")
    text = re.sub(r"(\w+\.)+(?=[A-Z])", "", text)  # typing.Any is Any
    return text if len(text) < 80 else _broken(text)


def _broken(signature: str) -> str:
    """One parameter a line, as ruff would write it."""
    inside, _, returned = signature[1:].rpartition(")")
    depth, start, pieces = 0, 0, []
    for at, sign in enumerate(inside):
        depth += sign in "([{"
        depth -= sign in ")]}"
        if sign == "," and depth == 0:
            pieces.append(inside[start:at].strip())
            start = at + 1
    pieces.append(inside[start:].strip())
    return "(\n" + "".join(f"    {piece},\n" for piece in pieces) + f"){returned}"


def _markdown(text: str) -> list[str]:
    """A numpydoc docstring: sections become lists, examples code, double backticks single ones."""
    text = re.sub(r":\w+:`~?\.?([\w.]+)`", r"`\1`", text).replace("``", "`")
    parts: list[str] = []
    lines = text.splitlines()
    at = 0
    section = ""
    while at < len(lines):
        line = lines[at]
        if at + 1 < len(lines) and lines[at + 1].strip() and set(lines[at + 1].strip()) == {"-"}:
            section = line.strip()
            parts += ["", f"**{section}**", ""]
            at += 2
            continue
        if section in ("Parameters", "Attributes", "Raises", "Returns"):
            if line and not line.startswith(" "):
                parts.append(f"- `{line.strip()}`")
            elif line.strip():
                parts.append(f"  {line.strip()}")
        elif section == "Examples":
            if line.strip():
                parts += (["```pycon"] if not parts[-1] else []) + [line]
            elif parts[-1] and not parts[-1].startswith("**"):
                parts += ["```", ""]
        else:
            parts.append(line)
        at += 1
    if section == "Examples" and parts[-1] not in ("", "```"):
        parts.append("```")
    return [*parts, ""]


def _members(kind: type) -> list[str]:
    """Public methods and properties of a class that have a docstring, with its first line."""
    rows = []
    inherited = {"to_dict": Plain.to_dict} if issubclass(kind, Plain) else {}
    for name, value in sorted({**inherited, **vars(kind)}.items()):
        plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if name.startswith("_") or not (inspect.isfunction(plain) or isinstance(plain, property)):
            continue
        first = (inspect.getdoc(plain) or "").partition("\n")[0].replace("``", "`")
        first = re.sub(r":\w+:`~?\.?([\w.]+)`", r"`\1`", first).replace("|", "\\|")
        if first:
            rows.append(f"| `{name}{'' if isinstance(plain, property) else '()'}` | {first} |")
    return ["| member | |", "| --- | --- |", *rows, ""] if rows else []


def report_picture() -> str:
    """What `passhat report` shows for the example, as an SVG that needs nothing from elsewhere."""
    report = build_report(read("example:helpdesk")[:1], ReportOptions())
    screen = Console(width=WIDTH, record=True, force_terminal=True, file=io.StringIO())
    screen.print(Text.from_ansi(render_terminal(report_document(report), _colourful())))
    picture = screen.export_svg(title="passhat report example:helpdesk", unique_id="passhat")
    # Rich links a web font and its own site; the picture must not fetch anything.
    without_fonts = re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    return re.sub(r"<!--.*?-->", "", without_fonts, flags=re.DOTALL)


def _colourful() -> Console:
    return Console(width=WIDTH, force_terminal=True, color_system="truecolor", file=io.StringIO())


SUITE = (3.85, 1.65)
"""Rates of tasks as Beta(a, b) draws them: 70% on average, and differing as they often do."""


def reliability_picture() -> str:
    """All of k attempts pass, for k from 1 to 8, on a suite that passes 70% of single attempts."""
    a, b = SUITE
    shares = list(itertools.accumulate(((a + i) / (a + b + i) for i in range(8)), operator.mul))
    width, height, floor, left, step = 720, 330, 270, 44, 84
    bars = []
    for k, share in enumerate(shares, 1):
        x, tall = left + (k - 1) * step, 200 * share / 0.7
        shown = "end" if k in (1, 8) else "between"
        bars += [
            f'<rect class="{shown}" x="{x}" y="{floor - tall:.1f}" width="54" '
            f'height="{tall:.1f}" rx="3"/>',
            f'<text class="value" x="{x + 27}" y="{floor - tall - 8:.1f}">{share:.0%}</text>',
            f'<text class="k" x="{x + 27}" y="{floor + 20}">{k}</text>',
        ]
    title = f"{shares[0]:.0%} per try is {shares[-1]:.0%} eight times running"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="{title}">',
            "<style>text{font-family:system-ui,sans-serif;fill:#24292f;text-anchor:middle}"
            ".title{font-size:24px;font-weight:600}.value{font-size:15px;font-weight:600}"
            ".k,.note{font-size:13px;fill:#57606a}.end{fill:#0969da}.between{fill:#9ec5f4}"
            "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.k,.note{fill:#9198a1}"
            ".end{fill:#4493f8}.between{fill:#2b4f7f}}</style>",
            f'<text class="title" x="{width / 2}" y="32">{title}</text>',
            *bars,
            f'<text class="note" x="{width / 2}" y="{height - 14}">attempts that must all pass '
            f"(pass^k); rates of tasks drawn from Beta({a}, {b})</text>",
            "</svg>\n",
        ]
    )


def package_readme(repository: str, ref: str) -> str:
    """README with absolute links, as the package index needs them."""
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    page, raw = (
        f"https://github.com/{repository}/blob/{ref}/",
        f"https://raw.githubusercontent.com/{repository}/{ref}/",
    )
    text = re.sub(r'((?:src|srcset)=")(?!https?:)', rf"\1{raw}", text)
    return re.sub(r"(?<!!)(\]\()(?!https?:|#)", rf"\1{page}", text)


def main() -> None:
    """Write them, and print what was written.

    With ``--readme OWNER/NAME REF`` only README, with links that work on the package index.
    """
    if sys.argv[1:2] == ["--readme"]:
        (DOCS.parent / "README.md").write_text(package_readme(*sys.argv[2:4]), encoding="utf-8")
        return
    (DOCS / "cli.md").write_text(command_reference(), encoding="utf-8")
    (DOCS / "api.md").write_text(api_reference(), encoding="utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(report_picture(), encoding="utf-8")
    (PICTURE.parent / "reliability.svg").write_text(reliability_picture(), encoding="utf-8")
    print("wrote docs/cli.md, docs/api.md, docs/images/report.svg and reliability.svg")


if __name__ == "__main__":
    main()
