"""The report as one HTML file that needs nothing from elsewhere."""

from passhat.report.html.document import HtmlOptions, html_report

__all__ = ["HtmlOptions", "html_report"]
