"""The parameters of a search about its answer, and what it returns beside the matches."""
