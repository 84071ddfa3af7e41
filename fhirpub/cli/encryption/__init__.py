"""The command `fhirpub secrets`, and what other commands report about keys."""
