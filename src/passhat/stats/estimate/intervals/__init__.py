"""What an estimate is worth: one interval for new tasks, one for re-runs, each by name."""
