"""Small tables of our own that ship with passhat, read as ``example:NAME``."""
