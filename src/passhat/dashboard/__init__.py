"""The live dashboard: pages over a store, and the same data as JSON and CSV."""
