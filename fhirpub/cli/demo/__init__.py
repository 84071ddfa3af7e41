"""The demonstration of the service (`fhirpub demo`)."""
