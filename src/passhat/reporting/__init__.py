"""A single view model, and the terminal, Markdown, JSON, CSV and HTML made from it.

Nothing is imported here: the list of runs must not wait for the imports of a comparison.
"""
