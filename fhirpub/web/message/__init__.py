"""Reading requests and writing responses: formats, preconditions, ranges and bodies."""
