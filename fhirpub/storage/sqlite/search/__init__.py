"""Searches in a SQLite store: where candidates are, what must hold of them, and their pages."""
