"""The statistics: NumPy and SciPy only, no files, network, terminal or clock."""
