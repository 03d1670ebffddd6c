"""The report as a single self-contained HTML file."""

from passhat.reporting.html.page import HtmlOptions, html_report

__all__ = ["HtmlOptions", "html_report"]
