"""Every chart of the project by name: for pages, and as files for papers."""

from __future__ import annotations

from passhat.reporting.figures.base import FORMS, Figure, figure_bytes, page_svg
from passhat.reporting.figures.registry import FIGURES, Material, make_figure

__all__ = ["FIGURES", "FORMS", "Figure", "Material", "figure_bytes", "make_figure", "page_svg"]
