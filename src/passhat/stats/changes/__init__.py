"""Since when, and which change: shown changes in a series of runs, and the revision that broke it.

The rows of counts are runs or revisions, the columns are tasks; nothing here knows of git, files or
stores.
"""

from passhat.stats.changes.detector import LOOKS_PER_YEAR, Change, Series, find_changes
from passhat.stats.changes.posterior import in_order, locate_change
from passhat.stats.changes.search import Evidence, Found, Probe, Search

__all__ = [
    "LOOKS_PER_YEAR",
    "Change",
    "Evidence",
    "Found",
    "Probe",
    "Search",
    "Series",
    "find_changes",
    "in_order",
    "locate_change",
]
