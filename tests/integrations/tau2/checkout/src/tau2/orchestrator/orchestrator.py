"""Passes messages on between agent, user and environment."""

from __future__ import annotations

from typing import Any

from tau2.agent.base_agent import HalfDuplexAgent
from tau2.data_model.message import AssistantMessage
from tau2.data_model.simulation import SimulationRun, TerminationReason
from tau2.data_model.tasks import Task
from tau2.environment.environment import Environment
from tau2.user.user_simulator import UserSimulator
from tau2.user.user_simulator_base import HalfDuplexUser


class Orchestrator:
    def __init__(
        self,
        domain: str,
        agent: HalfDuplexAgent,
        user: HalfDuplexUser,
        environment: Environment,
        task: Task,
        max_steps: int = 100,
        max_errors: int = 10,
        seed: int | None = None,
        solo_mode: bool = False,
        simulation_id: str | None = None,
        validate_communication: bool = False,
        timeout: float | None = None,
    ) -> None:
        self.agent, self.user, self.environment, self.task = agent, user, environment, task
        self.max_steps, self.max_errors, self.seed = max_steps, max_errors, seed

    def run(self) -> SimulationRun:
        if self.seed is not None:
            self.agent.set_seed(self.seed)
            self.user.set_seed(self.seed)
        state = self.task.initial_state
        history = list(state.message_history or ()) if state else []
        history = history or [AssistantMessage(role="assistant", content="Hi! How can I help?")]
        self.messages = history
        agent_state = self.agent.get_init_state(history)
        user_state = self.user.get_init_state(history[:-1])
        message: Any = history[-1]
        turn, errors, reason = "user", 0, None
        while reason is None:
            if turn == "user":
                message, user_state = self.user.generate_next_message(message, user_state)
                if UserSimulator.is_stop(message):
                    reason = TerminationReason.USER_STOP
            else:
                message, agent_state = self.agent.generate_next_message(message, agent_state)
            message.validate()
            self.messages.append(message)
            if message.is_tool_call():
                message = self.environment.get_response(message.tool_calls[0])
                errors += message.error
                self.messages.append(message)
            else:
                turn = "agent" if turn == "user" else "user"
            if reason is None and len(self.messages) >= self.max_steps:
                reason = TerminationReason.MAX_STEPS
            if reason is None and errors >= self.max_errors:
                reason = TerminationReason.TOO_MANY_ERRORS
        own = f"simulation-{self.task.id}-{self.seed}"
        return SimulationRun(own, self.task.id, reason, self.messages, self.seed)
