"""FHIR XML, read into and written from the JSON form."""
