"""Reports of invented people, for trials (`fhirpub sample`)."""
