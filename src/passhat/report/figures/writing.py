"""A figure as a file for a paper: real colours on white, as SVG, PNG or PDF."""

from __future__ import annotations

from types import MappingProxyType

from passhat.report.figures.base import Figure, specification

__all__ = ["FORMS", "figure_bytes"]

FORMS = MappingProxyType({".svg": "svg", ".png": "png", ".pdf": "pdf"})
_PIXELS_PER_POINT = 3.0


def figure_bytes(figure: Figure, form: str) -> bytes:
    """The figure as ``svg``, ``png`` or ``pdf``."""
    import vl_convert

    drawn = specification(figure, paper=True)
    drawn["config"]["background"] = "white"
    drawn["description"] = f"{figure.title}. {figure.description}"
    if form == "png":
        return vl_convert.vegalite_to_png(drawn, scale=_PIXELS_PER_POINT)
    if form == "pdf":
        return vl_convert.vegalite_to_pdf(drawn)
    return vl_convert.vegalite_to_svg(drawn).encode()
