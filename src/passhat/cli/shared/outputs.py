"""``-o FILE``: output in the form that the file's ending names."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_ENDINGS = {
    "html": "html",
    "htm": "html",
    "md": "md",
    "csv": "csv",
    "json": "json",
    "jsonl": "jsonl",
    "xml": "junit",
    "parquet": "parquet",
    "svg": "svg",
}


_TO_COPY = re.compile(r"(^|[\s('])(passhat [a-z]|pip install |python -m )")
"""A line with a command stays whole: it is copied."""


def fit_screen(text: str) -> str:
    """The text with its lines broken between words where the screen ends.

    The rest of a line is indented as its text is, after a title too, as in ``paper     Yao ...``.
    """
    width = shutil.get_terminal_size().columns
    return "\n".join(
        textwrap.fill(
            line,
            width,
            subsequent_indent=" " * len(_TITLE.match(line)[0]),  # type: ignore[index]
            break_long_words=False,
            break_on_hyphens=False,
        )
        if len(line) > width and not _TO_COPY.search(line)
        else line
        for line in text.split("\n")
    )


_TITLE = re.compile(r"\s*(?:\S+\s{2,})?")


@dataclass(frozen=True, slots=True)
class Output:
    """A form and the file it is written to; ``-`` is standard output."""

    form: str
    place: str

    @classmethod
    def parse(cls, text: str, forms: Iterable[str]) -> Output:
        """Read ``report.md``, ``md:notes.txt``, or ``md`` for standard output.

        Raises
        ------
        ValueError
            The form is not one of ``forms``, or none is named.
        """
        forms = tuple(forms)
        form, sign, place = text.partition(":")
        if form in forms and (place or not sign):
            return cls(form, place or "-")
        ending = _ENDINGS.get(Path(text).suffix.lstrip(".").lower(), "")
        if ending in forms:
            return cls(ending, text)
        endings = [f".{name}" for name, form in _ENDINGS.items() if form in forms]
        raise ValueError(
            f"{text!r} names no form. Write a file ending in {', '.join(endings)}, or FORM:FILE "
            f"with one of {', '.join(forms)}."
        )


def output_option(*forms: str, help: str) -> Callable[[F], F]:  # noqa: A002
    """``-o``, repeatable; the command receives ``outputs``."""

    def parse(
        _ctx: click.Context, param: click.Parameter, values: Sequence[str]
    ) -> tuple[Output, ...]:
        try:
            return tuple(Output.parse(value, forms) for value in values)
        except ValueError as error:
            raise click.BadParameter(str(error), param=param) from None

    return click.option(
        "-o", "--output", "outputs", multiple=True, callback=parse, metavar="FILE", help=help
    )


def write_outputs(outputs: Iterable[Output], forms: Mapping[str, Callable[[], str]]) -> None:
    """Write every output whose form is a text, made on demand."""
    for output in outputs:
        if output.form in forms:
            write_text(output.place, forms[output.form]())


def prints_to_screen(outputs: Iterable[Output]) -> bool:
    """Whether standard output is free for the usual screen: no output goes there."""
    return all(output.place != "-" for output in outputs)


def write_text(path: str, text: str) -> None:
    """Write to a file, or to standard output for ``-``."""
    write_parts(path, [text])


def write_parts(path: str, parts: Iterable[str]) -> None:
    """Write a text part by part to a file, or to standard output for ``-``."""
    if path == "-":
        for part in parts:
            click.echo(part, nl=False)
        return
    try:
        _write_file(Path(path), parts)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None
    click.echo(f"wrote {path}", err=True)


def _write_file(path: Path, parts: Iterable[str]) -> None:
    """Write beside the file and replace it at the end: half a baseline would look like a whole."""
    from passhat.store.database import private_file

    whole = path.is_file() or not path.exists()
    place = path.with_name(f"{path.name}.part") if whole else path  # else a pipe or a device
    try:
        with os.fdopen(private_file(place, truncate=True), "w", encoding="utf-8") as stream:
            stream.writelines(parts)
        if whole:
            if path.exists():
                shutil.copymode(path, place)
            place.replace(path)
    finally:
        if whole:
            place.unlink(missing_ok=True)
