"""Publishes many reports in parallel: from folders, patterns, and files of one report a line."""
