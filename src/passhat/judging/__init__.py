"""Verdicts on generated code: programs run in a sandbox, and two judges decide.

The plain judge runs tests and program in one interpreter. The split judge keeps them apart: the
program sees nothing but the arguments it is called with, so it cannot forge a verdict.
"""

from passhat.protocol import JUDGE_NAMES, is_code_judge

__all__ = ["JUDGE_NAMES", "is_code_judge"]
