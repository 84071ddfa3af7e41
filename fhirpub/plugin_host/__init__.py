"""Loads plugins and compiles their schemas."""
