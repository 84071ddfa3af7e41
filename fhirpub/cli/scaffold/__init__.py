"""Creates the package of a new plugin (`fhirpub plugin new`)."""
