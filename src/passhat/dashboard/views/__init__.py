"""The views, a module for each page: from a request to its data, without HTML."""
