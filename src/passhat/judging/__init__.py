"""Verdicts on generated code: the tests in one place, the program in another, plain data between.

The hidden tests run in a process that the program cannot reach. The program runs in a sandbox and
sees nothing but the arguments it is called with. So a verdict is made from answers, never from
what the program says about itself.
"""

from passhat.judging.judgement import Judgement
from passhat.judging.limits import Limits
from passhat.judging.pool import judge_all
from passhat.judging.sandboxes import SandboxKind, choose_sandbox
from passhat.judging.tasks import CodeSuite, CodeTask

__all__ = [
    "CodeSuite",
    "CodeTask",
    "Judgement",
    "Limits",
    "SandboxKind",
    "choose_sandbox",
    "judge_all",
]
