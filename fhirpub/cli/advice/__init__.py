"""What works, but is likely a mistake or unsafe in production: the warnings of `fhirpub check`."""
