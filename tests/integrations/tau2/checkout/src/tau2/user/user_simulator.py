"""A user played by a model: here, a few models that misbehave in known ways."""

from __future__ import annotations

import time
from typing import Any

from tau2.data_model.message import UserMessage
from tau2.user.user_simulator_base import STOP, HalfDuplexUser


class UserSimulator(HalfDuplexUser):
    def __init__(
        self,
        llm: str,
        instructions: str | None = None,
        tools: list[Any] | None = None,
        llm_args: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(instructions, tools)
        self.llm, self.llm_args = llm, llm_args

    @classmethod
    def is_stop(cls, message: UserMessage) -> bool:
        return STOP in (message.content or "")

    def get_init_state(self, message_history: list[Any] | None = None) -> list[Any]:
        return list(message_history or ())

    def generate_next_message(
        self, message: Any, state: list[Any]
    ) -> tuple[UserMessage, list[Any]]:
        if self.llm == "model/broken":
            raise ConnectionError("the user's model is not there")
        if self.llm == "model/sleepy":
            time.sleep(60)
        return UserMessage(role="user", content=f"And? My seed is {self.seed}."), [*state, message]
