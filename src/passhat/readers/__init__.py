"""Runs from the files of other tools.

``read`` asks the readers registered in the entry-point group ``passhat.readers`` which of them
recognizes a file by its content; that reader turns it into runs.
"""

from passhat.readers.base import LogBuilder, Needs, Reader, ReadOptions, RunFacts
from passhat.readers.reading import Reading, read, read_all
from passhat.readers.sources import Source

__all__ = [
    "LogBuilder",
    "Needs",
    "ReadOptions",
    "Reader",
    "Reading",
    "RunFacts",
    "Source",
    "read",
    "read_all",
]
