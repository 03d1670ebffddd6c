"""Which domains there are."""

from __future__ import annotations

from collections.abc import Callable

from tau2.data_model.message import AssistantMessage, UserMessage
from tau2.data_model.tasks import (
    Action,
    EvaluationCriteria,
    InitialState,
    Instructions,
    Task,
    UserScenario,
)
from tau2.environment.environment import Environment


def _wants(thing: str, *others: Action, **more: object) -> EvaluationCriteria:
    return EvaluationCriteria([Action("a", "add", {"thing": thing}), *others], **more)  # type: ignore[arg-type]


_MOCK = [
    Task("add_tea", UserScenario("Please add tea."), _wants("tea")),
    Task(
        "add_and_tell",
        UserScenario(Instructions("Add milk and tell me the total.", "My name is Kim.")),
        _wants("milk", communicate_info=["1 things"]),
    ),
    Task(
        "with_history",
        UserScenario("Now add jam."),
        _wants("jam"),
        InitialState(
            [
                UserMessage(role="user", content="Is this the shop?"),
                AssistantMessage(role="assistant", content="It is."),
            ]
        ),
    ),
    Task(
        "both_act",
        UserScenario("Add salt, then I will agree."),
        _wants("salt", Action("b", "agree", {}, "user")),
    ),
]
_JUDGED = [
    Task("by_rules", UserScenario("Please add tea."), _wants("tea")),
    Task(
        "by_model",
        UserScenario("Please add tea, kindly."),
        _wants("tea", nl_assertions=["kind"], reward_basis=["DB", "NL_ASSERTION"]),
    ),
]


class Registry:
    def get_domains(self) -> list[str]:
        return ["mock", "judged"]

    def get_tasks_loader(self, name: str) -> Callable[..., list[Task]]:
        return lambda _split=None: {"mock": _MOCK, "judged": _JUDGED}[name]

    def get_env_constructor(self, name: str) -> Callable[..., Environment]:
        return lambda solo_mode=False: Environment(name, "# Shop\nBe brief.")


registry = Registry()
