"""Run inspect_ai tasks, and passhat metrics inside inspect_ai."""
