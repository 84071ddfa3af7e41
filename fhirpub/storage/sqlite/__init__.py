"""The storage engine for one SQLite file."""
