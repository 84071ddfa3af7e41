"""Patients of several reports on the command line (`fhirpub patient`)."""
