"""One module per page: from a question to an answer, without a word of HTML."""
