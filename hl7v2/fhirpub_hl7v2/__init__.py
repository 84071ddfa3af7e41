"""HL7 v2 result messages, published as FHIR reports by a client of fhirpub."""
