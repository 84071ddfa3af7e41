"""The element tables of FHIR R4 and the JSON schemas generated from them."""
