"""Every chart by name: of a page, and as a file for a paper."""

from __future__ import annotations

from passhat.report.figures.base import Figure, page_svg
from passhat.report.figures.registry import FIGURES, Material, make_figure
from passhat.report.figures.writing import FORMS, figure_bytes

__all__ = ["FIGURES", "FORMS", "Figure", "Material", "figure_bytes", "make_figure", "page_svg"]
