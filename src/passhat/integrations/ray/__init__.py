"""Run attempts on a Ray cluster (`passhat run --on ray`)."""
