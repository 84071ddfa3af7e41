"""Publishes what appears in a folder, and moves it to where its result belongs."""
