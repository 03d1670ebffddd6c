"""The base of agents that take turns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class HalfDuplexAgent(ABC):
    def __init__(self, tools: list[Any], domain_policy: str) -> None:
        self.tools = tools
        self.domain_policy = domain_policy

    @abstractmethod
    def generate_next_message(self, message: Any, state: Any) -> tuple[Any, Any]: ...

    @abstractmethod
    def get_init_state(self, message_history: list[Any] | None = None) -> Any: ...

    @classmethod
    def is_stop(cls, message: Any) -> bool:
        return False

    def stop(self, message: Any = None, state: Any = None) -> None: ...

    def set_seed(self, seed: int) -> None: ...
