"""Tests of erasure: content goes, keys stay, and orders and holds are recorded (ADR 36)."""
