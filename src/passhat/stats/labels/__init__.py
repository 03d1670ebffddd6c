"""A judge's error from labels, and numbers that are corrected for it."""
