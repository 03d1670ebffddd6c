"""Verdicts on generated code: the tests in one place, the program in another, plain data between.

The hidden tests run in a process that the program cannot reach. The program runs in a sandbox and
sees nothing but the arguments it is called with. So a verdict is made from answers, never from
what the program says about itself.
"""

__all__ = ["SPLIT_JUDGE"]

SPLIT_JUDGE = "split judge"
"""How a protocol names this judge."""
