"""The demonstration: `fhirpub demo`."""
