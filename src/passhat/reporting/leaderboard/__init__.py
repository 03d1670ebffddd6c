"""Leaderboards: facts about many agents, their page, and the check of submissions."""

from passhat.reporting.leaderboard.facts import BoardOptions, Leaderboard, build_leaderboard

__all__ = ["BoardOptions", "Leaderboard", "build_leaderboard"]
