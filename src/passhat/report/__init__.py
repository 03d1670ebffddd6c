"""One view model; terminal, Markdown, JSON, CSV and HTML made from it.

Nothing is imported here: the list of runs must not wait for what a comparison needs.
"""
