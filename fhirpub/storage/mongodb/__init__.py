"""The storage engine for MongoDB."""
