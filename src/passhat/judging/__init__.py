"""Verdicts on generated code: programs run in a sandbox, and two judges decide.

The plain judge runs tests and program in one interpreter. The split judge keeps them apart: the
program sees nothing but the arguments it is called with, so it cannot forge a verdict.
"""

__all__ = ["JUDGE_NAMES", "is_code_judge"]

JUDGE_NAMES = {
    "both": "plain and split judge",
    "plain": "plain judge",
    "split": "split judge",
}
"""How a protocol names the judges."""


def is_code_judge(judge: str | None) -> bool:
    """Whether a protocol's judge is one for programs."""
    return (judge or "").startswith(tuple(JUDGE_NAMES.values()))
