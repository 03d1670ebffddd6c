"""Suites that run themselves: another harness makes the attempts, passhat plans and keeps them."""
