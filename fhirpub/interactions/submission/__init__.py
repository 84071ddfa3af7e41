"""From a body to a submission: the resource and its parts, and where each of them stood."""
