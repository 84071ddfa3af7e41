"""The console: pages for people, made of what the interfaces for machines return (ADR 46)."""
