"""The base of users that take turns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

STOP = "###STOP###"


class HalfDuplexUser(ABC):
    def __init__(self, instructions: str | None = None, tools: list[Any] | None = None) -> None:
        self.instructions = instructions
        self.tools = tools
        self.seed: int | None = None

    @abstractmethod
    def generate_next_message(self, message: Any, state: Any) -> tuple[Any, Any]: ...

    @abstractmethod
    def get_init_state(self, message_history: list[Any] | None = None) -> Any: ...

    def stop(self, message: Any = None, state: Any = None) -> None: ...

    def set_seed(self, seed: int) -> None:
        self.seed = seed
