"""Whether a repeated registration has the content of the first one, and what differs."""
