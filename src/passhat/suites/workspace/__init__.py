"""Coding agents on a repository: ``workspace:FOLDER``, a fresh workspace for every attempt."""
