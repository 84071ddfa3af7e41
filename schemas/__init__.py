"""Data only: JSON Schemas of FHIR R4, value sets, and the R4 element tables they come from."""
