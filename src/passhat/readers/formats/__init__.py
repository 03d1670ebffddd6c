"""Readers of log formats, one per module; entry points of the group passhat.readers."""
