"""Quotas of single tenants and clients on the command line (`fhirpub quota`)."""
