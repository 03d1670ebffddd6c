"""Builders: one module per subject, from facts to a :class:`~passhat.reporting.document.Document`."""
