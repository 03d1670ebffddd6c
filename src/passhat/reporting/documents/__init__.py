"""Builders of documents from facts, one module per subject."""
