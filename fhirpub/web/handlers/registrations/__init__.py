"""Registrations over HTTP, and revisions, which are registrations sent again."""
