"""Measures the service against the floor of its web framework, on the same machine in one run."""

from __future__ import annotations
