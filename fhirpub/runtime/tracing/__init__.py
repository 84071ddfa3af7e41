"""Traces: the context that a request brings, the spans of its steps, and where they are sent."""
