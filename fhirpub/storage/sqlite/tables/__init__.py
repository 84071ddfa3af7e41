"""The tables of a SQLite store by subject, and the statements on them."""
