"""A metric's value on every single task, in the order of the outcomes."""

from __future__ import annotations

import numpy as np

from passhat._arrays import FloatArray
from passhat.errors import InvalidValue
from passhat.estimates.metrics import CountMetric, Metric, OrderedMetric
from passhat.estimates.task_values import Completed
from passhat.outcomes import Completion, Outcomes

__all__ = ["per_task"]


def per_task(
    outcomes: Outcomes, metric: Metric, completion: Completion = Completion.AS_FAILED
) -> FloatArray:
    """One unbiased value per task; refuses when a task has fewer than k attempts.

    Where an average is enough, :class:`~passhat.estimates.task_values.Completed` is faster: this
    is for looking at tasks one by one, to pair them or to take them in a drawn order.
    """
    whole = Completed(outcomes, completion).supporting(metric, drop_short=False)
    if isinstance(metric, OrderedMetric):
        return metric.values(whole.sequences)
    if not isinstance(metric, CountMetric):
        raise InvalidValue(
            f"{metric} is not an average over tasks, so a single task has no value of it.",
            hint="Ask for pass^k or pass@k.",
        )
    n, c = outcomes.counts(completion)
    width = int(c.max()) + 1
    keys, where = np.unique(n * width + c, return_inverse=True)
    return metric.values(keys // width, keys % width)[where]
