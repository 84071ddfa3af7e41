"""Tests of what a store keeps for authentication."""
