"""Why the same task passes and fails: events, the tree of tool calls, and tests of both.

Within a task, attempts differ only by chance, so what its failing attempts do and its passing ones
do not is evidence about the cause. It shows what goes with failure, not what causes it.
"""

from passhat.stats.why.events import Event, EventKind, Step, Trace, list_events
from passhat.stats.why.explanation import (
    EventFinding,
    TaskWhy,
    Why,
    explain_failures,
    explain_task,
)
from passhat.stats.why.tree import (
    END,
    Branch,
    ClosestPair,
    DecisiveStep,
    build_tree,
    find_closest_pair,
    find_decisive_step,
)

__all__ = [
    "END",
    "Branch",
    "ClosestPair",
    "DecisiveStep",
    "Event",
    "EventFinding",
    "EventKind",
    "Step",
    "TaskWhy",
    "Trace",
    "Why",
    "build_tree",
    "explain_failures",
    "explain_task",
    "find_closest_pair",
    "find_decisive_step",
    "list_events",
]
