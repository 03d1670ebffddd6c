"""Other people's files become runs.

``read`` looks at the content of each file, asks the readers that are registered in the entry-point
group ``passhat.readers`` which of them recognises it, and hands it over.
"""

from passhat.readers.base import Needs, Reader, ReadOptions
from passhat.readers.builder import LogBuilder, RunFacts
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
