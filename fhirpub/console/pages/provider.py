"""Signing in by an OpenID Connect provider."""

from __future__ import annotations
