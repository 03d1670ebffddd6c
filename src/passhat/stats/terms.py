"""The terms of an analysis: decisions made before looking at the numbers.

Every function that needs more than two of these options takes one :class:`Terms`. Public functions
also take the options as keywords, typed once by :class:`TermOptions`:

    def estimate(outcomes, metric, terms=None, **options: Unpack[TermOptions]):
        terms = Terms.from_options(options, terms, takes=("missing", "level"))

An option outside ``takes`` is refused, so that no option is accepted and then ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, TypedDict

from passhat.errors import InvalidValue, shorten
from passhat.protocol import Alternative, Question
from passhat.stats.outcomes.vocabulary import MissingPolicy


class Population(StrEnum):
    """The tasks that an interval or a claim is about.

    ``new tasks`` are tasks like these; ``these tasks`` are exactly the tasks of the suite,
    attempted again; ``this run`` is what the attempts of this very run will read when it ends, and
    serves to stop early. ``re-runs`` is an older name of ``these tasks`` and is still accepted.
    """

    NEW_TASKS = "new tasks"
    THESE_TASKS = "these tasks"
    THIS_RUN = "this run"

    @classmethod
    def of(cls, word: str) -> Population:
        """The population with this name; ``new-tasks`` and the alias ``re-runs`` are accepted."""
        if not isinstance(word, str):
            raise InvalidValue(f"about must be 'new tasks' or 'these tasks', not {shorten(word)}.")
        text = word.strip().lower().replace("-", " ").replace("_", " ")
        if text in ("re runs", "reruns"):
            return cls.THESE_TASKS
        try:
            return cls(text)
        except ValueError:
            raise InvalidValue(
                f"about must be 'new tasks' or 'these tasks', not {word!r}.",
                hint="'new tasks' asks about tasks like these, 'these tasks' about this suite "
                "again.",
            ) from None


class TermOptions(TypedDict, total=False):
    """The keyword form of :class:`Terms`."""

    missing: str
    level: float | None
    drop_short: bool
    cluster: str | None
    about: str | None
    allow: bool


OptionName = Literal["missing", "level", "drop_short", "cluster", "about", "allow"]


@dataclass(frozen=True, slots=True)
class Terms:
    """Missing policy, confidence, population and the other options of an analysis."""

    missing: MissingPolicy = MissingPolicy.BOUND
    """How attempts without a verdict are counted: ``bound``, ``fail`` or ``exclude``."""
    level: float = 0.95
    """The confidence of intervals; one-sided in a gate."""
    drop_short: bool = False
    """Leave out tasks with fewer than k attempts, and say so, rather than refuse."""
    cluster: str | None = None
    """A label of the tasks; those that share its value are not independent of each other."""
    population: Population | None = None
    """The tasks that the result is about (the option ``about``); ``None`` leaves it to the function
    that is called.
    """
    allow: bool = False
    """Compare runs although their protocols differ; the differences are listed."""
    alternative: Alternative = "two-sided"
    """The direction of a comparison."""
    equal_tails: bool = False
    """Each end alone must hold with confidence (1 + level) / 2, as a gate needs it; only intervals
    that labels correct do not give that unless asked to.
    """

    def __post_init__(self) -> None:
        # Words are accepted where the type says an enum: a caller may have them from a file.
        object.__setattr__(self, "missing", MissingPolicy.of(self.missing))
        if self.population is not None:
            object.__setattr__(self, "population", Population.of(self.population))
        # Annotations are not checked at run time, and `drop_short="no"` would count as true.
        for name, kind, expectation in (
            ("drop_short", bool, "True or False"),
            ("allow", bool, "True or False"),
            ("level", int | float, "a number such as 0.95"),
            ("cluster", str | None, "the name of a label of the tasks"),
        ):
            value: object = getattr(self, name)
            if not isinstance(value, kind) or value == "" or (name == "level" and value is True):
                raise InvalidValue(f"{name} must be {expectation}, not {shorten(value)}.")
        # The question of a protocol has the same limits for both.
        Question(alternative=self.alternative, level=self.level)

    @classmethod
    def from_options(
        cls,
        options: Mapping[str, Any],
        base: Terms | None = None,
        *,
        takes: Collection[OptionName] | None = None,
        populations: Collection[Population] = (Population.NEW_TASKS, Population.THESE_TASKS),
    ) -> Terms:
        """Terms with these options; the others as in ``base``.

        ``options`` are keywords of :class:`TermOptions` that change ``base``. Any other option than
        the caller ``takes`` is refused, as is a population that it cannot speak about.
        """
        annotations = TermOptions.__annotations__
        for name in options:
            if name not in annotations:
                near = difflib.get_close_matches(name, annotations, 1)
                raise TypeError(
                    f"unexpected keyword argument {name!r}."
                    + (
                        f" Did you mean {near[0]}?"
                        if near
                        else f" Known are: {', '.join(annotations)}."
                    )
                )
            if takes is not None and name not in takes:
                raise InvalidValue(
                    f"the option {name!r} has no effect here.",
                    hint=f"Options that do: {', '.join(takes)}.",
                )
        values = {("population" if name == "about" else name): options[name] for name in options}
        terms = replace(base or cls(), **values)
        if terms.population is not None and terms.population not in populations:
            raise InvalidValue(
                f"{terms.population} is no population for this; it can be about "
                f"{' or '.join(populations)}.",
                hint="'this run' is for stopping a run early.",
            )
        return terms

    def for_tasks(self, count: int) -> Terms:
        """These terms for so many tasks: a single one says nothing of others unless asked to."""
        if count != 1 or self.population is not None:
            return self
        return replace(self, population=Population.THESE_TASKS)

    def about(self, default: Population = Population.NEW_TASKS) -> Population:
        """The population, or ``default`` where none was chosen."""
        return default if self.population is None else self.population
