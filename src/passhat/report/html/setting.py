"""What all pages are set with: templates, style and scripts, and the versions in the footer."""

from __future__ import annotations

import platform
from importlib.resources import files
from typing import TYPE_CHECKING

import passhat

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["own_file", "template", "versions"]


def template(name: str) -> Template:
    """A template that escapes what it sets and misses nothing in silence."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("passhat.report.html", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"own_file": own_file, "versions": versions()}
    return environment.get_template(name)


def own_file(name: str) -> str:
    """A file that lies beside the templates."""
    return files("passhat.report.html").joinpath(name).read_text(encoding="utf-8")


def versions() -> str:
    """What the numbers were made with."""
    import numpy
    import scipy

    return (
        f"passhat {passhat.__version__}, Python {platform.python_version()}, "
        f"NumPy {numpy.__version__}, SciPy {scipy.__version__}"
    )
