"""Corrections of bodies that break FHIR's form without meaning anything else; by settings only."""
