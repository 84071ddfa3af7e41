"""Tables of a SQLite store, and the statements on them."""
