"""One reader per log format; each is an entry point of the group passhat.readers."""
