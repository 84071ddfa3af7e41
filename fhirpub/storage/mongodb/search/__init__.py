"""Searches on MongoDB: pipelines for what matches, and the pages of it."""
