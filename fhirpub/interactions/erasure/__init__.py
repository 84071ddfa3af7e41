"""Erasure: the content of resources is removed on an order, and a tombstone stays (ADR 36)."""
