"""The command ``fhirpub audit``: the audit trail listed, exported and verified."""
