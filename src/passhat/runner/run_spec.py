"""Who attempts what, in words: what a user said, so that any process can load the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from passhat.agents import Agent, load_agent
from passhat.agents.prices import PriceTable
from passhat.errors import InvalidValue
from passhat.judging.bench import JudgingChoice
from passhat.runner.spending import Spending, prepare
from passhat.runner.users import with_user
from passhat.suites import Suite, load_suite
from passhat.suites.settings import Settings

__all__ = ["Loaded", "SetUp"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the words mean here; ``models`` are all who may spend: the agent, and a user."""

    suite: Suite
    agent: Agent
    models: Sequence[Agent]


@dataclass(frozen=True, slots=True)
class SetUp:
    """Suite and agent by name, and all that was said about them; can be sent elsewhere.

    Attributes
    ----------
    user : str, optional
        The agent that plays the user.
    tools : str
        ``text``, or ``mcp`` for an endpoint of every attempt.
    judging : JudgingChoice, optional
        How programs are judged; only suites of programs can be told.
    judges : int, optional
        How many programs are judged at once; one per processor unless given.
    """

    suite: str
    agent: str
    settings: Settings = field(default_factory=Settings)
    user: str | None = None
    tools: str = "text"
    judging: JudgingChoice | None = None
    judges: int | None = None
    spending: Spending = field(default_factory=Spending)
    prices: PriceTable = field(default_factory=lambda: PriceTable({}))

    def loaded(self) -> Loaded:
        """Load everything, put prices, rates and the user in place."""
        suite, agent = load_suite(self.suite, self.settings), load_agent(self.agent)
        self._choose_judge(suite)
        models = [agent]
        takes_user = getattr(suite, "takes_user", False)  # and has been told already
        if self.user is not None and self.user != "scripted" and not takes_user:
            models.append(load_agent(self.user))
            suite = with_user(suite, models[-1])
        prepare(models, self.spending, self.prices)
        if self.tools == "mcp":
            from passhat.runner.mcp_worlds import McpSuite

            suite = McpSuite(suite)
        return Loaded(suite, agent, models)

    def _choose_judge(self, suite: Suite) -> None:
        """Tell a suite of programs how to judge them; the others have no use for it."""
        judge_with = getattr(suite, "judge_with", None)
        if judge_with is not None:
            judge_with(replace(self.judging or JudgingChoice(), jobs=self.judges))
        elif self.judging is not None:
            raise InvalidValue(
                f"{suite.name} has no programs to judge, so --sandbox, --python, --with and the "
                "limits of programs mean nothing there.",
                hint="They go with code suites, as in -s code:ordercode.",
            )
