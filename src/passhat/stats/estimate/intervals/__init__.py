"""Intervals of estimates: one for new tasks, one for these tasks, each by name."""
