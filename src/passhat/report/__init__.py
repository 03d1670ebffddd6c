"""One view model; terminal, Markdown, JSON and CSV made from it."""

from passhat.report.building import ReportOptions, build_report
from passhat.report.view import Report, RunReport, TaskRow

__all__ = ["Report", "ReportOptions", "RunReport", "TaskRow", "build_report"]
