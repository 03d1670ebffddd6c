"""Runs in a browser, live: pages over a store, and the same for programs."""
