"""Checks of a request, each a module with a function that yields issues."""
