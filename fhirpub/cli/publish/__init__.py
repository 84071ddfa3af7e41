"""``fhirpub publish``: registers reports from a shell, and reports what became of each."""
